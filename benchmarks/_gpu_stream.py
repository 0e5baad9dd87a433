"""Part stream of benchmarks/gpu.py: a search over rows in a file, chunk by chunk on the device."""

from __future__ import annotations

import tempfile
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from _gpu import timed

from onefit.features import Nystrom

FOLDS, COLUMNS, GAMMA = 5, 20, 0.02
LAMS = np.logspace(-6, 0, 20)
#: rows of a block of a Dask collection
BLOCK = 100_000


def there(device: str, X):
    """Rows on the device, in double precision."""
    return torch.tensor(np.asarray(X), dtype=torch.float64, device=device)


def rows_in_file(folder: str, n: int):
    """The path of an .npy file with n rows, and targets."""
    random = np.random.default_rng(0)
    path = Path(folder) / f"rows_{n}.npy"
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(n, COLUMNS))
    y = np.empty(n)
    for first in range(0, n, BLOCK):
        some = slice(first, min(n, first + BLOCK))
        X[some] = random.normal(size=(some.stop - first, COLUMNS))
        noise = 0.3 * random.normal(size=y[some].size)
        y[some] = np.sin(X[some, 0]) + X[some, 1] * X[some, 2] + noise
    X.flush()
    return path, y


def searched(source, features: int, loss: str = "squared", criterion: str = "cv", lams=LAMS):
    """A streamed search, fitted."""
    from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
    from onefit.rows import HashKFold

    kind = KernelClassifier if loss == "log" else KernelRegressor
    machine = kind(loss=loss, approximation=Nystrom(features), gamma=GAMMA)
    search = KernelSearchCV(machine, {"lam": lams}, cv=HashKFold(FOLDS), criterion=criterion)
    return search.fit(source)


def opened(path, y, device: str | None):
    """Rows of the file, on the host or brought to a device."""
    from onefit.rows import open_rows

    source = open_rows(path, y)
    return source if device is None else source.transformed(partial(there, device), COLUMNS)


def agreement(folder: str, device: str, n: int, features: int) -> list[dict]:
    """Scores and criteria of chunks on the device beside those of the host."""
    path, y = rows_in_file(folder, n)
    cases = {
        "squared": (y, "squared", "cv", LAMS),
        "squared, criterion 'loo'": (y, "squared", "loo", LAMS),
        "log": (np.sign(y), "log", "cv", np.array([1e-3, 1e-1])),
    }
    found = []
    for label, (target, loss, criterion, lams) in cases.items():
        column = "mean_test_score" if criterion == "cv" else "criterion"
        seconds, peak, one = timed(
            lambda t=target, o=(features, loss, criterion, lams): searched(
                opened(path, t, device), *o
            )
        )
        two = searched(opened(path, target, None), features, loss, criterion, lams)
        ours, theirs = (x.cv_results_[column] for x in (one, two))
        gap = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
        found.append(
            {
                "what": f"{label}: device against host",
                "rows": f"{n:,}",
                "features": features,
                "largest difference / largest": f"{gap:.1e}",
                "within 1e-8": "yes" if gap <= 1e-8 else "NO",
                "same winner": "yes" if one.best_params_ == two.best_params_ else "NO",
                "seconds": f"{seconds:.2f}",
                "rows / s": f"{n / seconds:,.0f}",
                "peak GiB": f"{peak:.2f}",
            }
        )
        print(found[-1], flush=True)
    return found


def speed(folder: str, device: str, n: int, features: int) -> list[dict]:
    """Rows per second of a whole search, on the device and on the processors of its machine."""
    path, y = rows_in_file(folder, n)
    found = []
    for where in (device, None):
        seconds, peak, _ = timed(lambda w=where: searched(opened(path, y, w), features))
        found.append(
            {
                "what": f"{FOLDS} folds x {LAMS.size} lams on {where or 'the host'}",
                "rows": f"{n:,}",
                "features": features,
                "seconds": f"{seconds:.2f}",
                "rows / s": f"{n / seconds:,.0f}",
                "peak GiB": f"{peak:.2f}" if where else "",
            }
        )
        print(found[-1], flush=True)
    return found


def workers(folder: str, device: str, n: int, features: int) -> list[dict]:
    """The same on Dask, one and two worker processes that share the device."""
    if find_spec("distributed") is None:
        return [{"what": "1 and 2 worker processes: Dask is not installed"}]
    import dask.array as da
    from distributed import Client, LocalCluster

    from onefit.rows import open_rows

    path, y = rows_in_file(folder, n)
    expected = searched(opened(path, y, None), features).cv_results_["mean_test_score"]
    found = []
    for count in (1, 2):
        with (
            LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster),
        ):
            X = da.from_array(np.load(path, mmap_mode="r"), chunks=(BLOCK // 10, COLUMNS))
            blocks = X.map_blocks(partial(there, device), meta=np.empty((0, 0)))
            seconds, _, one = timed(lambda b=blocks: searched(open_rows(b, y), features))
        gap = np.abs(one.cv_results_["mean_test_score"] - expected).max() / np.abs(expected).max()
        found.append(
            {
                "what": f"{count} worker process(es) of Dask on one device",
                "rows": f"{n:,}",
                "features": features,
                "largest difference / largest": f"{gap:.1e}",
                "within 1e-8": "yes" if gap <= 1e-8 else "NO",
                "seconds": f"{seconds:.2f}",
                "rows / s": f"{n / seconds:,.0f}",
            }
        )
    return found


def stream(flags) -> list[dict]:
    """All of it: small for agreement, then large for speed."""
    quick = flags.quick
    with tempfile.TemporaryDirectory() as folder:
        agreement(folder, flags.device, 500, 20)  # libraries start
        found = agreement(folder, flags.device, 2_000 if quick else 20_000, 50 if quick else 500)
        for features in (60,) if quick else (1_000, 2_000):
            found += speed(folder, flags.device, 3_000 if quick else 1_000_000, features)
        found += workers(folder, flags.device, 2_000 if quick else 200_000, 60 if quick else 1_000)
    return found
