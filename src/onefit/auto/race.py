"""A race on a sample of rows: kernels and bandwidths that the search on all rows still has to try.

No kernel is left out for the number of rows alone. The plan says how long a search over the whole
grid will take (:mod:`onefit.plan`); where that is longer than a race on a sample pays for, every
candidate is cross-validated on a random sample first.

**Kernels of the rows as they are.** If nothing is learned, a kernel is left out whose best score on
the sample is further from the best one of all than ``MAX_STANDARD_ERRORS`` standard errors. On all
rows the search tries, of each other kernel, the best bandwidth of the sample and its neighbours in
the grid, with the lams up to `LAM_FACTOR` times smaller and larger than the best one. (Where
smaller lams gain next to nothing, the best one is the largest that is as good.)

**Learned metrics and scales** (``onefit.auto.learned``) are raced on the same sample and splits.
All candidates together are averaged there (:mod:`onefit.stack_weights`), and the average says which
of them have something to add: all rows try the kernels whose lams together have at least the weight
``MIN_WEIGHT``, up to ``MAX_LEARNED`` learned ones. Where no kernel of the rows as they are has that
weight, all rows try their best candidate alone.

The iteration for many rows spends most of its time on the smallest lams: of 18 lams from 1e-8 to 2
on 4,000 rows of the protein set, the two smallest take five sixths.

Ranks on a sample are estimates. The best bandwidth and lam change with the number of rows, but
slowly, and where the winner on all rows lies at the end of a narrowed list, the list grows again
(:mod:`onefit.auto.extend`).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
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

from onefit._format import count
from onefit._indexing import draw_rows
from onefit.auto.learned import learned_grid, over_transformed
from onefit.auto.prepared import PreparedRows
from onefit.config import config_context
from onefit.plan import duration
from onefit.report.facts import MIN_GAIN_IN_STANDARD_ERRORS
from onefit.search_cv import KernelSearchCV
from onefit.spec.coding import encode_labels
from onefit.stack_candidates import same_but_lam
from onefit.stack_weights import stack_weights

__all__ = ["SAMPLE_ROWS", "Narrowed", "beside", "narrow", "seconds_without_race"]

Array = NDArray[Any]

#: a search that is expected to take no longer tries every candidate on all rows
AFFORDED_SECONDS = 20.0
#: the sample has half of the rows, at most the second number; no race where that is below the first
SAMPLE_ROWS = (750, 1500)
#: a kernel further from the best one is left out; its standard error is that of the sample
MAX_STANDARD_ERRORS = 5.0
#: bandwidths on each side of the sample's best that are tried on all rows
NEIGHBOURS = 1
#: the smallest and largest lam that are tried on all rows, in units of the sample's best
LAM_FACTOR = 30.0
#: weight of a kernel in the average on the sample, and number of learned kernels, on all rows
#: (benchmarks/race_members.py)
MIN_WEIGHT, MAX_LEARNED = 0.1, 4
#: splitters that split any number of rows
SPLITTERS = (KFold, StratifiedKFold, GroupKFold, StratifiedGroupKFold, TimeSeriesSplit)


@dataclass(frozen=True)
class Narrowed:
    """What a race leaves.

    Attributes
    ----------
    grid, learned : lists of dict
        Of the rows as they are, and of transformed rows; the latter may be empty.
    reason : str
    """

    grid: list[dict[str, Any]]
    learned: list[dict[str, Any]]
    reason: str


def narrow(
    search: KernelSearchCV,
    data: PreparedRows,
    seed: int = 0,
    learning: bool = False,
    afforded_seconds: float = AFFORDED_SECONDS,
    sample_rows: tuple[int, int] = SAMPLE_ROWS,
) -> Narrowed | None:
    """Smaller grids by a race on a sample; None if all candidates are tried.

    Parameters
    ----------
    search : KernelSearchCV
        Not fitted, and not changed. Its grid has a dict of lists for each kernel.
    data : PreparedRows
    seed : int, default=0
        For the sample.
    learning : bool, default=False
        Whether learned metrics and scales are raced, too.
    afforded_seconds : float
        No race where the plan of the search is below that.
    sample_rows : tuple of int
        Least and largest number of rows of the sample.
    """
    planned = seconds_without_race(search, data, afforded_seconds, sample_rows[0])
    if planned is None:
        return None
    size = min(data.n // 2, sample_rows[1])
    labels = data.y if is_classifier(search.estimator) else None
    sample = data.take(draw_rows(labels, data.n, size, seed))
    raced = _race(search, sample)
    values, errors = _scores(raced)
    params, grid = raced.cv_results_["params"], search.param_grid
    places = _places(grid, params)
    best = [int(mine[np.nanargmax(values[mine])]) for mine in places]
    near = [
        _near(part, params, values, errors, mine) for part, mine in zip(grid, places, strict=True)
    ]
    behind = np.nanmax(values) - values[best]
    stays, learned = behind <= MAX_STANDARD_ERRORS * errors[best], list[dict[str, Any]]()
    if learning:
        others = _race(over_transformed(search, learned_grid()), sample, splitter_of(search))
        weights = _average(raced, others, sample)
        learned = _heaviest(others, weights[1])
        stays = np.array([weights[0][mine].sum() >= MIN_WEIGHT for mine in places])
    if stays.any():
        kept = [part for part, one in zip(near, stays, strict=True) if one]
    else:
        stays = behind == 0.0
        winner = int(np.argmax(stays))
        kept = [_alone(grid[winner], params[best[winner]])]
    left_out = [part["kernel"][0] for part, one in zip(grid, stays, strict=True) if not one]
    reason = _reason(sample.n, data.n, planned, kept, learned, left_out)
    return Narrowed(kept, learned, reason)


def _reason(
    m: int, n: int, planned: float, kept: list[Any], learned: list[Any], left_out: list[str]
) -> str:
    words = [
        f"{part['kernel'][0]} ({len(part['gamma'])} bandwidths, {len(part['lam'])} lams)"
        if "gamma" in part
        else f"{part['kernel'][0]} ({len(part['lam'])} lams)"
        for part in kept
    ]
    if learned:
        words.append(f"{count(len(learned), 'kernel')} with a learned metric or scales")
    without = f"; left out: {', '.join(left_out)}" if left_out else ""
    return (
        f"kernels were raced on {m:,} of the {n:,} rows, because all candidates on all rows would "
        f"take about {duration(planned)}: all rows decide among {', '.join(words)}{without}"
    )


def _average(plain: KernelSearchCV, learned: KernelSearchCV, sample: PreparedRows) -> list[Array]:
    """The weight of every candidate of two searches in their average on the sample."""
    Y = np.reshape(sample.y, (sample.n, -1))
    if is_classifier(plain.estimator):
        Y = encode_labels(np.unique(sample.y), sample.y)
    s = np.ones(sample.n) if sample.sample_weight is None else sample.sample_weight
    tested = plain.heldout(0).tested
    F = [
        one.heldout(i).predictions.reshape(sample.n, -1)[tested]
        for one in (plain, learned)
        for i in range(len(one.cv_results_["params"]))
    ]
    kernels = same_but_lam(plain)
    kernels = np.concatenate([kernels, kernels.max() + 1 + same_but_lam(learned)])
    found = stack_weights(np.stack(F, axis=2) - Y[tested, :, None], s[tested], kernels=kernels)
    return np.split(found, [len(plain.cv_results_["params"])])


def _heaviest(search: KernelSearchCV, weights: Array) -> list[dict[str, Any]]:
    """The learned kernels with the largest weights, each with the lams around its heaviest one."""
    kernels, params = same_but_lam(search), search.cv_results_["params"]
    total = np.bincount(kernels, weights)
    found = []
    for kernel in np.argsort(-total, kind="stable")[:MAX_LEARNED]:
        if total[kernel] < MIN_WEIGHT:
            break
        best = params[int(np.argmax(np.where(kernels == kernel, weights, -1.0)))]
        lams = _around(search.param_grid[0]["model__lam"], best["model__lam"])
        found.append({name: [value] for name, value in best.items()} | {"model__lam": lams})
    return found


def _around(lams: Any, best: float) -> list[float]:
    """The lams up to a factor from the best one."""
    return [one for one in lams if best / LAM_FACTOR <= one <= best * LAM_FACTOR]


def _alone(part: dict[str, Any], best: dict[str, Any]) -> dict[str, Any]:
    """A grid of one candidate, with the lams next to its own."""
    return {name: [value] for name, value in best.items()} | {
        "lam": beside(part["lam"], best["lam"], 1)
    }


def seconds_without_race(
    search: KernelSearchCV,
    data: PreparedRows,
    afforded_seconds: float = AFFORDED_SECONDS,
    least_sample_rows: int = SAMPLE_ROWS[0],
) -> float | None:
    """Seconds that the whole search is expected to take, if :func:`narrow` races; else None."""
    if data.n < 2 * least_sample_rows or search.estimator.approximation is not None:
        return None
    planned, _ = data.planned_seconds(search)
    return planned if planned > afforded_seconds else None


def _race(search: KernelSearchCV, sample: PreparedRows, cv: Any = None) -> KernelSearchCV:
    """The same search on a sample, without a winner's fit; on the host, since it is small."""
    raced: KernelSearchCV = clone(search)
    cv = splitter_of(search) if cv is None else cv
    raced.set_params(cv=cv, refit=False, journal=None, verbose=0)
    with warnings.catch_warnings(), config_context(device=None):
        warnings.simplefilter("ignore", UserWarning)  # of a sample that nobody asked for
        sample.fit(raced)
    return raced


def splitter_of(search: KernelSearchCV) -> Any:
    """The splitter of a search if it splits any number of rows, else five folds."""
    return search.cv if isinstance(search.cv, SPLITTERS) else 5


def _scores(raced: KernelSearchCV) -> tuple[Array, Array]:
    """The score that ranks the candidates, the larger the better, and its standard errors."""
    table = raced.cv_results_
    metric = "score" if "mean_test_score" in table else next(iter(raced.scorer_))
    values = np.asarray(table[f"{raced.aggregate}_test_{metric}"], dtype=np.float64)
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
    near["lam"] = _around(part["lam"], lam)
    if "gamma" in part:
        near["gamma"] = beside(part["gamma"], best["gamma"], NEIGHBOURS)
    return near


def beside(values: Any, best: float, steps: int) -> list[float]:
    """The values of a grid at most ``steps`` places from the best one."""
    ordered = sorted(values)
    place = ordered.index(best)
    return ordered[max(0, place - steps) : place + steps + 1]
