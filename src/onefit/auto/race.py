"""A race on a sample of rows: kernels and bandwidths that the search on all rows still has to try.

No kernel is left out for the number of rows alone. The plan says how long a search over the whole
grid will take (:mod:`onefit.plan`); where that is longer than a race on a sample pays for, every
kernel and bandwidth is cross-validated on a random sample first. On all rows the search then
tries, of each kernel, the best bandwidth of the sample and its neighbours in the grid, with the
lams up to `LAM_FACTOR` times smaller and larger than the best one. (Where smaller lams gain next to
nothing, the best one is the largest that is as good.) A kernel whose best score on the sample is
further from the best one of all than ``MAX_STANDARD_ERRORS`` standard errors is left out.

The iteration for many rows spends most of its time on the smallest lams: of 18 lams from 1e-8 to 2
on 4,000 rows of the protein set, the two smallest take five sixths.

Ranks on a sample are estimates. The best bandwidth and lam change with the number of rows, but
slowly, and where the winner on all rows lies at the end of a narrowed list, the list grows again
(:mod:`onefit.auto.extend`).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)

from onefit._indexing import draw_rows
from onefit.auto.prepared import PreparedRows
from onefit.plan import duration
from onefit.report.facts import MIN_GAIN_IN_STANDARD_ERRORS
from onefit.search_cv import KernelSearchCV

__all__ = [
    "LAM_FACTOR", "SAMPLE_ROWS", "Raced", "beside", "narrow", "scores", "seconds_without_race",
    "splitter_of",
]  # fmt: skip

Array = NDArray[Any]

#: a search that is expected to take no longer tries every candidate on all rows
AFFORDED_SECONDS = 20.0
#: rows of the sample
SAMPLE_ROWS = 1500
#: a kernel further from the best one is left out; its standard error is that of the sample
MAX_STANDARD_ERRORS = 5.0
#: bandwidths on each side of the sample's best that are tried on all rows
NEIGHBOURS = 1
#: the smallest and largest lam that are tried on all rows, in units of the sample's best
LAM_FACTOR = 30.0
#: splitters that split any number of rows
SPLITTERS = (KFold, StratifiedKFold, GroupKFold, StratifiedGroupKFold, TimeSeriesSplit)


@dataclass(frozen=True)
class Raced:
    """A sample of the rows, and the best score of the candidates on it.

    Attributes
    ----------
    sample : PreparedRows
    best : float
        The larger the better.
    winner : dict
        A grid of the best candidate alone, with the lams next to its own.
    """

    sample: PreparedRows = field(repr=False)
    best: float
    winner: dict[str, Any]


def narrow(
    search: KernelSearchCV,
    data: PreparedRows,
    seed: int = 0,
    afforded_seconds: float = AFFORDED_SECONDS,
    sample_rows: int = SAMPLE_ROWS,
) -> tuple[list[dict[str, Any]], str, Raced] | None:
    """A smaller grid by a race on a sample, why, and the race; None if all candidates are tried.

    Parameters
    ----------
    search : KernelSearchCV
        Not fitted, and not changed. Its grid has a dict of lists for each kernel.
    data : PreparedRows
    seed : int, default=0
        For the sample.
    afforded_seconds : float
        No race where the plan of the search is below that.
    sample_rows : int
        No race below twice this number of rows.
    """
    n, grid = data.n, search.param_grid
    planned = seconds_without_race(search, data, afforded_seconds, sample_rows)
    if planned is None:
        return None
    sample = data.take(_draw(search, data, seed, sample_rows))
    raced = _race(search, sample)
    metric = "score" if "mean_test_score" in raced.cv_results_ else next(iter(raced.scorer_))
    values, errors = scores(raced, metric)
    kept, left_out, winner = [], list[str](), dict[str, Any]()
    for part, mine in zip(grid, _places(grid, raced.cv_results_["params"]), strict=True):
        best = mine[int(np.nanargmax(values[mine]))]
        apart = float(np.nanmax(values) - values[best])
        if apart == 0.0:
            params = raced.cv_results_["params"][best]
            winner = {name: [value] for name, value in params.items()}
            winner["lam"] = beside(part["lam"], params["lam"], 1)
        if apart > MAX_STANDARD_ERRORS * errors[best]:
            left_out += part["kernel"]
        else:
            kept.append(_near(part, raced.cv_results_["params"], values, errors, mine))
    words = ", ".join(
        f"{part['kernel'][0]} ({len(part['gamma'])} bandwidths, {len(part['lam'])} lams)"
        if "gamma" in part
        else f"{part['kernel'][0]} ({len(part['lam'])} lams)"
        for part in kept
    )
    without = f"; far behind and left out: {', '.join(left_out)}" if left_out else ""
    reason = (
        f"kernels were raced on {sample.n:,} of the {n:,} rows, because all candidates on all "
        f"rows would take about {duration(planned)}: all rows decide among {words}{without}"
    )
    return kept, reason, Raced(sample, float(np.nanmax(values)), winner)


def _draw(search: KernelSearchCV, data: PreparedRows, seed: int, size: int) -> Array:
    """Rows of the sample; some of every class."""
    return draw_rows(data.y if is_classifier(search.estimator) else None, data.n, size, seed)


def seconds_without_race(
    search: KernelSearchCV,
    data: PreparedRows,
    afforded_seconds: float = AFFORDED_SECONDS,
    sample_rows: int = SAMPLE_ROWS,
) -> float | None:
    """Seconds that the whole search is expected to take, if :func:`narrow` races; else None."""
    if data.n < 2 * sample_rows or search.estimator.approximation is not None:
        return None
    planned, _ = data.planned_seconds(search)
    return planned if planned > afforded_seconds else None


def _race(search: KernelSearchCV, sample: PreparedRows) -> KernelSearchCV:
    """The same search on a sample, without a winner's fit."""
    raced: KernelSearchCV = clone(search)
    raced.set_params(cv=splitter_of(search), refit=False, journal=None, verbose=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a sample that nobody asked for
        sample.fit(raced)
    return raced


def splitter_of(search: KernelSearchCV) -> Any:
    """The splitter of a search if it splits any number of rows, else five folds."""
    return search.cv if isinstance(search.cv, SPLITTERS) else 5


def scores(raced: KernelSearchCV, metric: str) -> tuple[Array, Array]:
    """The score that ranks the candidates, the larger the better, and its standard errors."""
    table = raced.cv_results_
    how = "mean" if raced.aggregate == "mean" else raced.aggregate
    values = np.asarray(table[f"{how}_test_{metric}"], dtype=np.float64)
    errors = np.asarray(table.get(f"se_test_{metric}", np.full(values.shape, np.inf)))
    return values, np.where(np.isfinite(errors), errors, np.inf)


def _places(grid: list[dict[str, Any]], params: list[dict[str, Any]]) -> list[Array]:
    """The candidates of each part of a grid, which come one part after the other."""
    sizes = [int(np.prod([len(values) for values in part.values()])) for part in grid]
    ends = np.cumsum(sizes)
    if ends[-1] != len(params):
        raise ValueError(f"the grid has {ends[-1]} candidates and {len(params)} were scored")
    return [np.arange(end - size, end) for end, size in zip(ends, sizes, strict=True)]


def _near(
    part: dict[str, Any], params: list[dict[str, Any]], values: Array, errors: Array, mine: Array
) -> dict[str, Any]:
    """A kernel's part of the grid, with the bandwidths and lams beside the best ones alone."""
    place = mine[int(np.nanargmax(values[mine]))]
    best, near = params[place], dict(part)
    error = errors[place] if np.isfinite(errors[place]) else 0.0
    least = values[place] - MIN_GAIN_IN_STANDARD_ERRORS * error
    lam = max(
        params[i]["lam"]
        for i in mine
        if values[i] >= least and params[i] | {"lam": best["lam"]} == best
    )
    near["lam"] = [one for one in part["lam"] if lam / LAM_FACTOR <= one <= lam * LAM_FACTOR]
    if "gamma" in part:
        near["gamma"] = beside(part["gamma"], best["gamma"], NEIGHBOURS)
    return near


def beside(values: Any, best: float, steps: int) -> list[float]:
    """The values of a grid at most ``steps`` places from the best one."""
    ordered = sorted(values)
    place = ordered.index(best)
    return ordered[max(0, place - steps) : place + steps + 1]
