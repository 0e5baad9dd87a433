"""Inputs of a search other than X and y: settings, scorers and metadata."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from numbers import Integral
from typing import Any

from sklearn import get_config
from sklearn.metrics import get_scorer_names
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import process_routing

from onefit._validation import check_choice, suggest, takes_weight
from onefit.estimators.accepted import check_accepted
from onefit.scoring.aggregate import AGGREGATES
from onefit.scoring.careful import is_one_standard_error, one_standard_error
from onefit.search.criterion import get_criterion
from onefit.search.preprocess import is_wrapped
from onefit.search.race import racing
from onefit.search.scorers import Scorers

__all__ = [
    "check_refit", "check_settings", "choosing_metric", "is_multimetric",
    "only_weight", "resolve_scorers", "route", "winner_of",
]  # fmt: skip


def check_settings(search: Any) -> None:
    """Refuse parameters that are unknown or do not go together."""
    for name in ("starts", "steps") if search._descends else ():
        value, free = getattr(search, name), name == "starts"
        whole = isinstance(value, Integral) and not isinstance(value, bool) and int(value) > 0
        if not (whole or (free and value is None)):
            raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    if not is_wrapped(search.estimator):
        check_accepted(search.estimator, "KernelSearchCV")
        if search.method == "all_rows":
            raise ValueError(
                "method='all_rows' is for a Pipeline, whose steps it fits to all rows; "
                f"{type(search.estimator).__name__} has no steps, leave it out"
            )
    check_choice("aggregate", search.aggregate, AGGREGATES)
    get_criterion(search.criterion)
    _check_scoring(search.scoring)
    if is_one_standard_error(search.refit) and search.criterion != "cv":
        raise ValueError(
            "refit=one_standard_error compares cross-validated scores; it needs criterion='cv'"
        )
    own_choice = callable(search.refit) and search.refit is not one_standard_error
    if racing(search.method) and (own_choice or search.criterion != "cv"):
        raise ValueError(
            "method='race' leaves out candidates by their scores; it needs criterion='cv' "
            "and a refit that is not a function (except one_standard_error)"
        )


def _check_scoring(scoring: Any) -> None:
    names = [scoring] if isinstance(scoring, str) else scoring
    if not isinstance(names, (list, tuple, set)):
        return
    for name in names:
        if isinstance(name, str) and name not in get_scorer_names():
            raise ValueError(
                f"scoring={name!r} is not known{suggest(name, get_scorer_names())} "
                "sklearn.metrics.get_scorer_names() lists the known names"
            )


def resolve_scorers(search: Any) -> Scorers:
    """The scorers of a search; refuses several of which ``refit`` names none."""
    scorers = Scorers.of(search.estimator, search.scoring)
    if scorers.named:
        check_refit(search, scorers.table)
    return scorers


def check_refit(search: Any, names: Collection[str]) -> None:
    """Refuse a search over several metrics whose ``refit`` names none of them."""
    refit = search.refit
    if refit is False or callable(refit) or (isinstance(refit, str) and refit in names):
        return
    raise ValueError(
        f"refit={refit!r} does not say which metric chooses; for multi-metric scoring it must be "
        f"one of {', '.join(map(repr, names))}, a function of cv_results_, or False"
    )


def winner_of(choose: Any, results: dict[str, Any]) -> int:
    """The candidate that a function of cv_results_ chooses."""
    best = choose(results)
    if not isinstance(best, Integral):
        raise TypeError(f"refit returned {best!r}, and must return the index of a candidate")
    if not 0 <= int(best) < len(results["params"]):
        raise IndexError(f"refit returned {best}; there are {len(results['params'])} candidates")
    return int(best)


def route(search: Any, scorers: Scorers, params: dict[str, Any]) -> Any:
    """Metadata for ``estimator.fit``, ``splitter.split`` and ``scorer.score``."""
    if get_config()["enable_metadata_routing"]:
        return process_routing(search, "fit", **params)
    fit = {name: value for name, value in params.items() if name != "groups"}
    score = {}
    if fit.get("sample_weight") is not None and _any_takes_weight(search, scorers):
        score["sample_weight"] = fit["sample_weight"]
    return Bunch(
        estimator=Bunch(fit=fit),
        splitter=Bunch(split={"groups": params.get("groups")}),
        scorer=Bunch(score=score),
    )


def _any_takes_weight(search: Any, scorers: Scorers) -> bool:
    """Whether a scorer takes sample weights; warns of those that do not."""
    table = scorers.table
    without = [name for name, one in table.items() if not takes_weight(one)]
    for name in without:
        warnings.warn(
            f"the scorer {name}={table[name]} does not support sample_weight, so the scores of "
            f"this {type(search).__name__} count every row alike",
            UserWarning,
            stacklevel=7,
        )
    return len(without) < len(table)


def is_multimetric(scorers: Scorers, names: list[str]) -> bool:
    """Whether scorers give several scores, or one under a name of its own."""
    return scorers.named or names != ["score"]


def choosing_metric(search: Any, scorers: Scorers, names: list[str]) -> str | None:
    """The metric of the winner; None where a function or nobody chooses among several."""
    if not is_multimetric(scorers, names):
        return "score"
    check_refit(search, names)
    return search.refit if isinstance(search.refit, str) else None


def only_weight(params: dict[str, Any]) -> Any:
    """The sample weights among the parameters for the estimator's fit; there may be no others."""
    for name in params:
        if name != "sample_weight":
            raise TypeError(
                f"fit() got an unexpected argument {name!r}"
                f"{suggest(name, ('sample_weight', 'groups'))} It takes sample_weight and groups"
            )
    return params.get("sample_weight")
