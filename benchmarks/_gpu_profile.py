"""Parts of benchmarks/gpu.py: where the time goes, and rows against seconds."""

from __future__ import annotations

import csv

import numpy as np
import torch
from _gpu import HERE, clocks, folds_of, problem_of, sample, timed

CURVE = HERE / "results" / "gpu_curve.csv"


def profile(flags) -> list[dict]:
    """Phases of method "iterative" at n = 100,000, every one ended by a synchronisation."""
    from onefit import kernels
    from onefit.gram import DeviceGram
    from onefit.heldout import Iterative
    from onefit.heldout import iterative as method
    from onefit.inverse.krylov import Decomposed, Ridged
    from onefit.inverse.low_rank import LowRank

    n = 3000 if flags.quick else 100_000
    X, y = sample(n)
    there, folds, lams = torch.tensor(X, device=flags.device), folds_of(n), np.logspace(-2, -6, 20)
    kernel = getattr(kernels, flags.kernels[0])(0.1)
    spent: dict[str, list[float]] = {}
    phases = [
        (DeviceGram, "_whole", "kernel matrix, formed once"),
        (DeviceGram, "_product", "products K V"),
        (DeviceGram, "_precise_product", "precise products"),
        (LowRank, "_grow", "columns of the low-rank factor"),
        (Ridged, "prepare", "small matrices, decompositions among them"),
        (Decomposed, "of", "decompositions"),
        (Ridged, "precondition", "preconditioner"),
        (method._SquaredModels, "certify", "residuals and bounds"),
        (method, "conjugate_gradients", "conjugate gradients, all of it"),
    ]
    with clocks(phases, spent):
        seconds, peak, path = timed(
            lambda: (
                Iterative().prepare(problem_of(kernel, there, y, flags.hold), folds).predict(lams)
            )
        )
    about = f"{100 * path.exact.mean():.0f} % exact, {path.steps.max()} steps, peak {peak:.1f} GiB"
    found = [{"phase": f"all: {about}", "calls": 1, "seconds": f"{seconds:.2f}"}]
    found += [
        {"phase": name, "calls": len(each), "seconds": f"{sum(each):.2f}"}
        for name, each in spent.items()
    ]
    return found + _city_blocks(flags)


def _city_blocks(flags) -> list[dict]:
    """Ways to a tile of city-block distances."""
    from onefit.kernels import Gaussian, Laplace
    from onefit.linalg import arrays_of

    side = 512 if flags.device == "cpu" else 8192
    X = torch.tensor(sample(side)[0], device=flags.device)

    def by_column():
        out, gap = torch.zeros((side, side), dtype=X.dtype, device=X.device), None
        gap = torch.empty_like(out)
        for x in X.T:
            out += torch.sub(x[:, None], x[None, :], out=gap).abs_()
        return out

    ways = {
        "torch.cdist": lambda: torch.cdist(X, X, p=1.0),
        "column by column": by_column,
        "onefit": lambda: arrays_of(X).city_block(X, X),
    }
    if flags.device != "cpu":
        code = "template <typename T> T add_gap(T t, T x, T y) { return t + abs(x - y); }"
        fused = torch.cuda.jiterator._create_jit_fn(code)

        def by_fused_column():
            out = torch.zeros((side, side), dtype=X.dtype, device=X.device)
            for x in X.T:
                out = fused(out, x[:, None].expand(side, side), x[None, :].expand(side, side))
            return out

        ways["column by column, fused (jiterator)"] = by_fused_column
        from onefit.linalg.triton_arrays import manhattan

        ways["Triton"] = lambda: manhattan(X, X)
        gaussian = Gaussian(0.1)
        ways["the whole Gaussian matrix, for comparison"] = lambda: gaussian(X)
        laplace = Laplace(0.1)
        ways["the whole Laplace matrix, by Triton, for comparison"] = lambda: laplace(X)
    found = []
    for name, way in ways.items():
        try:
            way()
            seconds = min(timed(way)[0] for _ in range(3))
            shown = f"{seconds / side**2 * 1e12:.0f} ps an entry"
        except Exception as error:
            shown = f"{type(error).__name__}: {error}"[:80]
        found.append(
            {
                "phase": name if name.startswith("the whole") else f"city-block distances, {name}",
                "calls": 1,
                "seconds": shown,
            }
        )
    return found


def curve(flags) -> list[dict]:
    """10 folds x 10 lams of one Gaussian kernel, rows against seconds, until one takes too long."""
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV, KFold

    from onefit import KernelRegressor, KernelSearchCV
    from onefit.config import config_context

    sizes = [500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000]
    sizes = sizes[:3] if flags.quick else sizes
    lams, cv = np.logspace(-5, -1, 10), KFold(10, shuffle=True, random_state=0)

    def onefit(device, X, y):
        machine = KernelRegressor(gamma=0.1)
        with config_context(device=device):
            return KernelSearchCV(machine, {"lam": lams}, cv=cv, refit=False).fit(X, y)

    def grid(X, y):
        alphas = {"alpha": 0.9 * len(y) * lams}
        return GridSearchCV(
            KernelRidge(kernel="rbf", gamma=0.1), alphas, cv=cv, refit=False, n_jobs=-1
        ).fit(X, y)

    ways = {
        "GPU": lambda X, y: onefit(flags.named, X, y),
        "CPU": lambda X, y: onefit(None, X, y),
        "GridSearchCV": grid,
    }
    found = _known()
    for who in flags.who:
        ways[who](*sample(300))
        for n in sizes:
            seconds, peak, fitted = timed(lambda n=n, who=who: ways[who](*sample(n)))
            found[who, n] = {
                "who": who,
                "n": n,
                "seconds": f"{seconds:.3f}",
                "peak GiB": f"{peak:.2f}" if who == "GPU" else "",
                "method": fitted.plan_[0].method if hasattr(fitted, "plan_") else "",
            }
            print(found[who, n], flush=True)
            grown = 6.0 * seconds  # of the next size, at least
            if grown > flags.budget / len(flags.who):
                break
    rows = [found[key] for key in sorted(found)]
    if flags.save:
        with CURVE.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, ["who", "n", "seconds", "peak GiB", "method"])
            writer.writeheader()
            writer.writerows(rows)
    return rows


def _known() -> dict:
    """Rows of earlier runs, of other contestants for instance."""
    if not CURVE.is_file():
        return {}
    with CURVE.open(encoding="utf-8", newline="") as file:
        rows = [{"method": ""} | row | {"n": int(row["n"])} for row in csv.DictReader(file)]
    return {(row["who"], row["n"]): row for row in rows}
