"""Parts of benchmarks/gpu.py: features, criteria, and several processes on one device."""

from __future__ import annotations

import time

import numpy as np
import torch
from _gpu import clocks, sample, timed
from sklearn.model_selection import KFold

from onefit.features import Nystrom
from onefit.losses import Huber

CV = KFold(10, shuffle=True, random_state=0)


def _columns(n: int, seed: int = 0):
    """Twenty columns of which a few matter, and a target with noise."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 20))
    y = np.sin(X[:, :8] @ random.normal(size=(8, 3)) / 2.0).sum(axis=1)
    return X, y + 0.3 * random.normal(size=n)


def _machine(loss: str, components: int):
    from onefit import KernelClassifier, KernelRegressor

    shared = {"approximation": Nystrom(components), "gamma": 0.02, "loss": loss}
    if loss == "squared":
        return KernelRegressor(**shared)
    return KernelClassifier(**shared)


def _searched(loss: str, components: int, lams, X, y):
    from onefit import KernelSearchCV

    search = KernelSearchCV(_machine(loss, components), {"lam": lams}, cv=CV, refit=False)
    return search.fit(X, np.sign(y) if loss != "squared" else y)


def features(flags) -> list[dict]:
    """Machines in feature space: seconds on many rows, and agreement on fewer."""
    few, components = (600, 60) if flags.quick else (20_000, 500)
    found = [_agreement(flags, loss, few, components) for loss in LOSSES]
    large = [(600, 60), (600, 60)] if flags.quick else [(1_000_000, 2000), (100_000, 2000)]
    for loss in LOSSES:
        n, components = large[loss != "squared"]
        lams = np.logspace(-2, -6, 20) if loss == "squared" else np.logspace(-3, -5, 3)
        if time.perf_counter() - flags.start > flags.budget:
            found.append({"loss": loss, "n": f"{n:,}", "seconds": "not begun: time is up"})
            continue
        X, y = _columns(n)
        there, spent = torch.tensor(X, device=flags.device), {}

        def run(loss=loss, lams=lams, components=components, there=there, y=y):
            return _searched(loss, components, lams, there, y)

        with clocks(_whole() + (_phases() if flags.clocks else []), spent):
            seconds, peak, search = timed(run)
        engine = sum(sum(spent.pop(label)) for label in {label for *_, label in _whole()})
        found.append(
            {
                "loss": loss,
                "n": f"{n:,}",
                "features": components,
                "lams x folds": f"{lams.size} x 10",
                "seconds": f"{seconds:.2f}",
                "of these, values and bounds": f"{engine:.2f}",
                "exact": f"{100 * np.mean(search.cv_results_['exact']):.0f} %",
                "largest bound": f"{np.nanmax(search.cv_results_['error']):.1e}",
                "peak GiB": f"{peak:.1f}",
            }
        )
        print(found[-1], flush=True)
        for name, each in spent.items():
            found.append({"loss": f"- {name}", "seconds": f"{sum(each):.2f} in {len(each)} calls"})
    return found


LOSSES = ("squared", "log", "smoothed_hinge")


def _agreement(flags, loss: str, n: int, components: int) -> dict:
    """The device against NumPy."""
    X, y = _columns(n)
    there, lams = torch.tensor(X, device=flags.device), np.logspace(-2, -5, 3)
    _searched(loss, 50, lams[:1], there[:500], y[:500])  # libraries start
    seconds, peak, mine = timed(lambda: _searched(loss, components, lams, there, y))
    host_seconds, _, other = timed(lambda: _searched(loss, components, lams, X, y))
    scale = y.std() if loss == "squared" else 1.0
    gap = np.abs(mine.heldout_.values - other.heldout_.values).max() / scale
    # values of a loss other than the squared one end within their bounds, each where it may
    bounds = sum(np.nanmax(one.heldout_.error) for one in (mine, other)) / scale
    print(loss, gap, bounds, flush=True)
    return {
        "loss": loss,
        "n": f"{n:,}",
        "features": components,
        "lams x folds": f"{lams.size} x 10",
        "seconds": f"{seconds:.2f}",
        "on the host": f"{host_seconds:.2f}",
        "exact": f"{100 * np.mean(mine.cv_results_['exact']):.0f} %",
        "largest bound": f"{np.nanmax(mine.cv_results_['error']):.1e}",
        "largest difference / scale": f"{gap:.1e}",
        "within 1e-8": "yes" if gap <= 1e-8 else "no",
        "within bounds": "yes" if gap <= bounds else "NO",
        "peak GiB": f"{peak:.2f}",
    }


def _whole():
    """Landmarks, features, machines, held-out values and bounds; the rest are checks and scores."""
    from onefit.features.held_out import PreparedFeatures
    from onefit.search import job

    return [(job, "_matrix", "landmarks"), (PreparedFeatures, "predict", "held-out values")]


def _phases():
    """Where the time of a search in feature space may go."""
    from onefit.features import feature_gram, held_out, side_by_side
    from onefit.features.hessian import HessianFactor
    from onefit.features.passes import Second
    from onefit.features.ridge import Ridge
    from onefit.features.split_problem import SplitProblem
    from onefit.search import setup

    return [
        (setup, "draw_folds", "drawing the splits"),
        (held_out, "partitions", "parts of the rows"),
        (held_out, "moments", "features and their sums"),
        (Ridge, "__init__", "small matrices: one reduction a split"),
        (Ridge, "models", "their models"),
        (feature_gram.FeatureGram, "values", "predictions"),
        (SplitProblem, "whole", "fits to all rows"),
        (Second, "update", "gradients and Hessians"),
        (HessianFactor, "__init__", "factors of Hessians"),
        (side_by_side, "_newton", "steps of the splits"),
        (side_by_side, "step_lengths", "line searches of the splits"),
        (side_by_side, "certify", "bounds of the splits"),
    ]


def criteria(flags) -> list[dict]:
    """Every criterion on the device and on the host."""
    from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
    from onefit.criteria import CRITERIA

    small, large = (100, 300) if flags.quick else (400, 2000)
    squared, any_loss = ("squared",), ("squared", "huber")
    own = {
        "loo": any_loss, "influence_loo": any_loss, "kernel_stability": any_loss,
        "gacv": ("smoothed_hinge",), "sv_count": ("smoothed_hinge",),
        "span": ("squared_hinge",), "radius_margin": ("squared_hinge",),
    }  # fmt: skip
    cases = [(name, loss) for name in CRITERIA for loss in own.get(name, squared)]
    grid, found = {"gamma": [0.05, 0.2], "lam": [1e-4, 1e-2]}, []
    for name, loss in cases:
        if time.perf_counter() - flags.start > flags.budget:
            found.append({"criterion": name, "seconds": "not begun: time is up"})
            continue
        # a system for each row, or two products of whole matrices for each lam
        n = large if loss in ("squared", "smoothed_hinge", "squared_hinge") else small
        X, y = sample(n)
        there = torch.tensor(X, device=flags.device)
        kind = KernelClassifier if "hinge" in loss else KernelRegressor
        settings = {"criterion": name}
        target = np.sign(y) if "hinge" in loss else y

        def run(rows, kind=kind, loss=loss, settings=settings, target=target):
            # the influence series expands around one loss, whose width has to be a number
            own = Huber(0.5) if loss == "huber" else loss
            search = KernelSearchCV(kind(loss=own), grid, cv=CV, refit=False, **settings)
            return search.fit(rows, target)

        if not found:
            run(there)  # libraries start
        seconds, peak, mine = timed(lambda run=run, there=there: run(there))
        host_seconds, _, other = timed(lambda run=run, X=X: run(X))
        gap = _gap(mine, other)
        found.append(
            {
                "criterion": name,
                "loss": loss,
                "n": f"{n:,}",
                "seconds": f"{seconds:.2f}",
                "on the host": f"{host_seconds:.2f}",
                "largest relative difference": f"{gap:.1e}",
                "within 1e-8": "yes" if gap <= 1e-8 else "no",
                "peak GiB": f"{peak:.2f}",
            }
        )
        print(found[-1], flush=True)
    return found


def _gap(mine, other) -> float:
    """The largest relative difference of what two searches chose by."""
    name = "criterion" if "criterion" in mine.cv_results_ else "mean_test_score"
    one, two = (search.cv_results_[name] for search in (mine, other))
    return float(np.abs(one - two).max() / np.abs(two).max())


def side_by_side(flags) -> list[dict]:
    """Two processes that each have the device and a kernel at a time."""
    from onefit import KernelRegressor, KernelSearchCV
    from onefit.config import config_context

    n = 300 if flags.quick else 10_000
    X, y = sample(n)
    name = flags.named or "torch:cpu"
    grid = {"gamma": [0.03, 0.1, 0.3, 1.0], "lam": np.logspace(-5, -1, 10)}
    ways = {"one process": name, "two processes": [name, name], "NumPy": None}
    found, known = [], {}
    for label, device in ways.items():
        if label == "NumPy" and not flags.quick:
            # the host is slow with this many rows; the parts above have compared it
            continue

        def run(device=device):
            with config_context(device=device):
                return KernelSearchCV(KernelRegressor(), grid, cv=CV).fit(X, y)

        times = []
        for _ in range(2):  # processes, libraries and contexts start in the first turn
            seconds, peak, search = timed(run)
            times.append(seconds)
        known[label] = search.cv_results_["mean_test_score"]
        gap = np.abs(known[label] - known["one process"]).max()
        found.append(
            {
                "who": label,
                "n": f"{n:,}",
                "kernels x lams x folds": "4 x 10 x 10",
                "seconds, the first time": f"{times[0]:.2f}",
                "seconds": f"{times[1]:.2f}",
                "method": ", ".join(sorted({one.method for one in search.plan_})),
                "largest difference of scores": f"{gap:.1e}",
                "the winner": str({k: f"{v:.2g}" for k, v in search.best_params_.items()}),
                "peak GiB of this process": f"{peak:.1f}",
            }
        )
        print(found[-1], flush=True)
    return found
