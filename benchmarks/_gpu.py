"""What the parts of benchmarks/gpu.py share: data, clocks and tables."""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

#: what onefit asks of psutil, which is free memory, for a machine that has little but PyTorch
SHIM = """
import os
from types import SimpleNamespace


def virtual_memory():
    return SimpleNamespace(available=os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def Process():
    return SimpleNamespace(memory_info=lambda: SimpleNamespace(vms=0, rss=0))
"""

try:
    import psutil  # noqa: F401
except ImportError:
    # a file, since processes that are started later import it, too
    folder = tempfile.mkdtemp()
    Path(folder, "psutil.py").write_text(SHIM, encoding="utf-8")
    sys.path.insert(0, folder)

import torch  # noqa: E402

KERNELS = ("Gaussian", "Laplace", "Matern12", "Matern32", "Matern52")


def synchronise() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def timed(action):
    """(seconds, peak GiB, result) of one call."""
    synchronise()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    result = action()
    synchronise()
    seconds = time.perf_counter() - start
    peak = torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else float("nan")
    return seconds, peak, result


def sample(n: int, seed: int = 0):
    """Eight columns and a target with noise, as in the prototype."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 8))
    y = np.sin(X @ random.normal(size=(8, 3))).sum(axis=1) + 0.3 * random.normal(size=n)
    return X, y


def folds_of(n: int):
    from sklearn.model_selection import KFold

    from onefit.folds import Folds

    X = np.zeros((n, 1))
    return Folds.draw(KFold(10, shuffle=True, random_state=0), X, None, None, classifier=False)


def problem_of(kernel, X, y, hold: bool, loss=None):
    """The problem of a kernel, K on the device of X."""
    from onefit.losses import Squared
    from onefit.problem import Problem

    tiles = kernel.tiles(X)
    K = tiles.hold() if hold else tiles
    return Problem(K, y[:, None], np.ones(y.size), loss or Squared(), True, "mean", definite=True)


def problem_of_host(kernel, X, y, loss=None):
    from onefit.losses import Squared
    from onefit.problem import Problem

    K = kernel(X)
    return Problem(K, y[:, None], np.ones(y.size), loss or Squared(), True, "mean", definite=True)


def table(rows: list[dict]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(str(row.get(name, "")) for name in names) + " |" for row in rows]
    return "\n".join(lines)


@contextmanager
def clocks(phases, spent):
    """Functions that write down how long they took, while the block runs."""
    kept = []
    for owner, name, label in phases:
        raw = vars(owner)[name]
        kept.append((owner, name, raw))
        setattr(owner, name, _clocked(raw, spent.setdefault(label, [])))
    try:
        yield
    finally:
        for owner, name, raw in kept:
            setattr(owner, name, raw)


def _clocked(raw, times):
    function = raw.__func__ if isinstance(raw, classmethod) else raw

    def run(*args, **options):
        synchronise()
        start = time.perf_counter()
        try:
            return function(*args, **options)
        finally:
            synchronise()
            times.append(time.perf_counter() - start)

    return classmethod(run) if isinstance(raw, classmethod) else run
