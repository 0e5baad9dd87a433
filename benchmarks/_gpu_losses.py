"""Parts of benchmarks/gpu.py beyond the squared loss, and beyond PyTorch."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import torch
from _gpu import clocks, folds_of, problem_of, problem_of_host, sample, timed

#: what a carried file is called
A9A = Path("build/a9a_20000.npz")
#: 15 gammas and lams as in benchmarks/svm_search.py, of which three gammas are run
GAMMAS, CS = 2.0 ** np.linspace(-10.0, 4.0, 15), 2.0 ** np.linspace(-3.0, 11.0, 15)
TAKEN = (2, 7, 12)


def prepare(path: Path = A9A) -> None:
    """20,000 rows of a9a in a small file, for a machine to which the data do not travel."""
    folder = Path(os.environ["ONEFIT_DATA_DIR"])
    rows = np.loadtxt(folder / "a9a.csv.gz", delimiter=",", skiprows=1)
    some = np.sort(np.random.default_rng(0).permutation(len(rows))[:20_000])
    path.parent.mkdir(exist_ok=True)
    X, y = rows[some, :-1], rows[some, -1]
    np.savez_compressed(path, X=X.astype(np.int8), y=np.sign(y).astype(np.int8))
    print(f"{path}: {X.shape[0]} rows, {X.shape[1]} columns, {path.stat().st_size / 2**10:.0f} KiB")


def _a9a(rows: int):
    if not A9A.is_file():
        raise SystemExit(f"{A9A} is not there: run --prepare where ONEFIT_DATA_DIR is, carry it")
    with np.load(A9A) as file:
        return 2.0 * file["X"][:rows] - 1.0, file["y"][:rows].astype(np.float64)


def svm(flags) -> list[dict]:
    """Exact 10-fold of the smoothed hinge on a9a, gamma by gamma."""
    from onefit.heldout import Exact
    from onefit.kernels import Gaussian
    from onefit.losses import SmoothedHinge

    n = 500 if flags.quick else flags.rows
    X, y = _a9a(n)
    there, folds = torch.tensor(X, device=flags.device), folds_of(n)
    lams = 1.0 / (2.0 * 0.9 * n * CS)

    def run(gamma: float, rows: int = n):
        problem = problem_of(
            Gaussian(gamma), there[:rows], y[:rows], True, SmoothedHinge(flags.delta)
        )
        return Exact().prepare(problem, folds if rows == n else folds_of(rows)).predict(lams)

    run(GAMMAS[7], 400)  # libraries start
    found, spent, clocked = [], [], {}
    for place in TAKEN:
        if spent and time.perf_counter() - flags.start + max(spent) > flags.budget:
            found.append({"gamma": f"{GAMMAS[place]:.3g}", "seconds": "not begun: time is up"})
            continue
        with clocks(_phases() if flags.clocks else [], clocked):
            seconds, peak, path = timed(lambda place=place: run(GAMMAS[place]))
        spent.append(seconds)
        wrong = (np.sign(path.values[:, :, 0]) != y[path.folds.rows]).mean(axis=1)
        best = int(np.nanargmin(wrong))
        found.append(
            {
                "gamma": f"{GAMMAS[place]:.3g}",
                "n": f"{n:,}",
                "lams x folds": f"{lams.size} x 10",
                "seconds": f"{seconds:.2f}",
                "steps, most": int(path.steps.max()),
                "exact": f"{100 * path.exact.mean():.0f} %",
                "failed lams": sum(map(bool, path.reasons)),
                "lowest error": f"{wrong[best]:.4f} at lam {lams[best]:.1e}",
                "peak GiB": f"{peak:.1f}",
            }
        )
        print(found[-1], flush=True)
    total = np.mean(spent) * GAMMAS.size
    found.append({"gamma": "all 15, extrapolated", "seconds": f"{total:.0f}"})
    for name, each in clocked.items():
        found.append({"gamma": name, "seconds": f"{sum(each):.2f} in {len(each)} calls"})
    return found


def _phases():
    """Where the time of method "exact" may go."""
    from onefit.columns.newton import Batch
    from onefit.gram import DeviceGram
    from onefit.heldout import driver
    from onefit.systems.cholesky import Cholesky, CurvedFactor

    return [
        (Batch, "step", "Newton steps, all of them"),
        (Cholesky, "solve", "their systems"),
        (CurvedFactor, "__init__", "parts of K, and factors"),
        (CurvedFactor, "solve", "triangular solves"),
        (DeviceGram, "matmul", "products with K"),
        (driver, "certify", "certificates of folds"),
    ]


def losses(flags) -> list[dict]:
    """Every loss by method "exact" on the device and on the host, 3 lams x 10 folds."""
    from onefit.heldout import Exact
    from onefit.kernels import Gaussian
    from onefit.losses import (
        LOSSES,
        EpsilonInsensitive,
        EpsilonQuadratic,
        Expectile,
        Huber,
        Quantile,
    )

    n = 300 if flags.quick else 2000
    X, target = sample(n)
    there, folds, kernel = torch.tensor(X, device=flags.device), folds_of(n), Gaussian(0.1)
    lams, found = np.logspace(-4, -2, 3), []
    given = (
        Huber(0.3),
        EpsilonInsensitive(epsilon=0.1, delta=0.1),
        EpsilonQuadratic(0.1),
        Quantile(0.8, delta=0.1),
        Expectile(0.8),
    )
    losses = {name: kind() for name, kind in LOSSES.items()} | {one.name: one for one in given}
    for name, loss in losses.items():
        if time.perf_counter() - flags.start > flags.budget:
            found.append({"loss": name, "seconds": "not begun: time is up"})
            continue
        y = np.sign(target) if loss.task == "classification" else target

        def on_device(y=y, loss=loss):
            problem = problem_of(kernel, there, y, True, loss)
            return Exact().prepare(problem, folds).predict(lams)

        def on_host(y=y, loss=loss):
            return Exact().prepare(problem_of_host(kernel, X, y, loss), folds).predict(lams)

        if not found:
            on_device()
        seconds, peak, path = timed(on_device)
        host_seconds, _, other = timed(on_host)
        scale = 1.0 if loss.task == "classification" else y.std()
        gap = np.abs(path.values - other.values).max() / scale
        found.append(
            {
                "loss": name,
                "n": f"{n:,}",
                "seconds": f"{seconds:.2f}",
                "on the host": f"{host_seconds:.2f}",
                "largest difference / scale": f"{gap:.1e}",
                "within 1e-8": "yes" if gap <= 1e-8 else "no",
                "exact, both": f"{100 * path.exact.mean():.0f} %, {100 * other.exact.mean():.0f} %",
                "peak GiB": f"{peak:.2f}",
            }
        )
        print(found[-1], flush=True)
    return found


def cupy(flags) -> list[dict]:
    """Arrays of CuPy against NumPy's."""
    try:
        import cupy as lib
    except ImportError:
        return [{"what": "CuPy is not installed"}]
    from onefit.heldout import Block, Eigen, Exact, Iterative
    from onefit.kernels import Gaussian, Laplace
    from onefit.losses import Huber, Squared

    n = 300 if flags.quick else 2000
    X, y = sample(n)
    folds, lams, found = folds_of(n), np.logspace(-4, -1, 4), []
    squared = [Block(), Eigen(), Iterative(tol=1e-9)]
    cases = [
        (kernel, Squared(), one) for kernel in (Gaussian(0.1), Laplace(0.1)) for one in squared
    ]
    cases.append((Gaussian(0.1), Huber(0.3), Exact()))
    pool = lib.get_default_memory_pool()
    for kernel, loss, method in cases:
        pool.free_all_blocks()
        own = Exact() if loss != Squared() else Block()
        wanted = own.prepare(problem_of_host(kernel, X, y, loss), folds).predict(lams)
        start = time.perf_counter()
        there = lib.asarray(X)
        path = method.prepare(problem_of(kernel, there, y, True, loss), folds).predict(lams)
        lib.cuda.Device().synchronize()
        gap = np.abs(path.values - wanted.values).max() / y.std()
        found.append(
            {
                "kernel": type(kernel).__name__,
                "loss": loss.name,
                "method": method.name,
                "n": f"{n:,}",
                "seconds, the first time": f"{time.perf_counter() - start:.2f}",
                "largest difference / scale": f"{gap:.1e}",
                "within 1e-8": "yes" if gap <= 1e-8 else "no",
                "pool GiB": f"{pool.total_bytes() / 2**30:.2f}",
            }
        )
        print(found[-1], flush=True)
    return found
