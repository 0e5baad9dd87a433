"""The outcomes of all models as scikit-learn's table, and the winner by it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.ma import MaskedArray
from numpy.typing import NDArray

from onefit.scoring.aggregate import rank, standard_error
from onefit.search.inputs import winner_of
from onefit.search.outcome import LEFT_OUT, Outcome

Array = NDArray[Any]

__all__ = ["find_winner", "split_scores", "tabulate", "warn_of_failures"]


def tabulate(
    candidates: list[dict[str, Any]],
    outcomes: list[Outcome],
    names: list[str],
    k: int,
    how: str,
) -> dict[str, Any]:
    """``cv_results_``: every outcome in its candidates' rows.

    Besides scikit-learn's columns: ``se_test_<metric>`` (the standard error of the mean over the
    splits, as if they were independent), ``<aggregate>_test_<metric>`` where the aggregate is not
    the mean (it is what the rank follows), ``method``, ``exact`` (whether all splits are),
    ``error`` (the largest bound on a held-out value's error), ``reason`` (why a candidate has
    no score), ``low_test_<metric>`` and ``high_test_<metric>`` (:mod:`onefit.search.scorers`).
    """
    C = len(candidates)
    table: dict[str, Any] = {}
    for kind in ("fit", "score"):
        seconds = np.zeros(C)
        for outcome in outcomes:
            seconds[list(outcome.indices)] = getattr(outcome, f"{kind}_seconds") / k
        table[f"mean_{kind}_time"], table[f"std_{kind}_time"] = seconds, np.zeros(C)
    table |= dict(_parameter_columns(candidates))
    table["params"] = candidates
    for name in names:
        split = np.full((C, k), np.nan)
        total = np.full(C, np.nan)
        for outcome in outcomes:
            rows = list(outcome.indices)
            if name in outcome.scores:
                split[rows], total[rows] = outcome.scores[name], outcome.totals[name]
        table |= {f"split{i}_test_{name}": split[:, i] for i in range(k)}
        table[f"mean_test_{name}"] = split.mean(axis=1)
        table[f"std_test_{name}"] = split.std(axis=1)
        table[f"se_test_{name}"] = standard_error(split)
        if how != "mean":
            table[f"{how}_test_{name}"] = total
        table[f"rank_test_{name}"] = rank(table[f"{how}_test_{name}"])
    table |= _trust_columns(C, outcomes)
    for outcome in outcomes:
        for name, ends in outcome.ends.items():
            for side, end in zip(("low", "high"), ends.T, strict=True):
                column = table.setdefault(f"{side}_test_{name}", np.full(C, np.nan))
                column[list(outcome.indices)] = end
    return table


def split_scores(table: dict[str, Any], metric: str, splits: int) -> Array:
    """Scores of all candidates in every split, (C, k)."""
    return np.stack([table[f"split{i}_test_{metric}"] for i in range(splits)], axis=1)


def _parameter_columns(candidates: list[dict[str, Any]]) -> Iterable[tuple[str, Any]]:
    """Masked arrays of the values of each parameter, masked where a candidate does not have it."""
    for name in dict.fromkeys(name for candidate in candidates for name in candidate):
        present = [i for i, candidate in enumerate(candidates) if name in candidate]
        values = [candidates[i][name] for i in present]
        column = np.empty(len(candidates), dtype=_column_type(values))
        masked = np.ones(len(candidates), dtype=bool)
        masked[present] = False
        for i, value in zip(present, values, strict=True):
            column[i] = value
        yield f"param_{name}", MaskedArray(column, mask=masked)


def _column_type(values: list[Any]) -> Any:
    if not all(isinstance(value, (bool, int, float, np.number, np.bool_)) for value in values):
        return object
    return np.array(values).dtype


def _trust_columns(C: int, outcomes: list[Outcome]) -> dict[str, Any]:
    method, reason = np.empty(C, dtype=object), np.empty(C, dtype=object)
    exact, error = np.zeros(C, dtype=bool), np.full(C, np.nan)
    criterion = np.full(C, np.nan)
    for outcome in outcomes:
        rows = list(outcome.indices)
        method[rows] = outcome.method
        reason[rows] = outcome.reasons
        exact[rows] = outcome.exact.all(axis=1)
        error[rows] = outcome.error.max(axis=1)
        if outcome.criterion is not None:
            criterion[rows] = outcome.criterion
    columns: dict[str, Any] = {"method": method, "exact": exact, "error": error, "reason": reason}
    if any(outcome.criterion is not None for outcome in outcomes):
        columns |= {"criterion": criterion, "rank_criterion": rank(-criterion)}
    return columns


def warn_of_failures(table: dict[str, Any], names: list[str], how: str) -> None:
    """Warn of candidates without any score, but for those that lost the first lap of a race."""
    unscored = np.all([np.isnan(table[f"{how}_test_{name}"]) for name in names], axis=0)
    unscored &= table["method"] != LEFT_OUT
    found = [reason for reason in table["reason"][unscored] if reason]
    if not found:
        return
    if len(found) == unscored.size:
        raise FloatingPointError(f"no candidate could be evaluated: {found[0]}")
    warnings.warn(
        f"{len(found)} of {unscored.size} candidates have no score, see cv_results_['reason']; "
        f"the first reason is: {found[0]}",
        stacklevel=5,
    )


def find_winner(search: Any, table: dict[str, Any], metric: Any, splits: int) -> int:
    """The index of the winner, by refit, criterion or metric of a search.

    Parameters
    ----------
    search : KernelSearchCV
    table : dict
        ``cv_results_``.
    metric : str or None
    splits : int
        Number of splits.
    """
    if callable(search.refit):
        return winner_of(search.refit, table)
    by_criterion = "criterion" in table
    total = f"{search.aggregate}_test_{metric}"
    values = np.asarray(-table["criterion"] if by_criterion else table[total])
    if np.isfinite(values).any():
        return int(np.nanargmax(values))
    if by_criterion:
        reason = next(filter(None, table["reason"]), "no finite value")
        raise ValueError(f"criterion={search.criterion!r} refused every candidate: {reason}")
    _warn_of_undefined(split_scores(table, metric, splits), search.aggregate)
    return 0


def _warn_of_undefined(scores: Array, how: str) -> None:
    """Say why no candidate has a score: the metric is not defined on a split."""
    splits = np.isnan(scores).all(axis=0)
    where = (
        f" on {splits.sum()} of {splits.size} splits (the first is split {np.argmax(splits)})"
        if how != "pooled" and splits.any()
        else ""
    )
    warnings.warn(
        f"the scores of all candidates are NaN, because the metric is not defined{where}; the "
        "first candidate is taken. Test rows of a single class have no area under a ROC curve, for "
        "example: use StratifiedKFold, or aggregate='pooled', which scores all rows together",
        stacklevel=6,
    )
