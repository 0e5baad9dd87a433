"""Everything that can be wrong with the parameters of a search, without looking at the data."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier
from sklearn.metrics import get_scorer_names

from onefit._validation import check_choice, suggest
from onefit.estimators.accepted import check_accepted
from onefit.scoring.aggregate import AGGREGATES, RULES
from onefit.search.all_rows import all_rows_of
from onefit.search.criterion import get_criterion
from onefit.search.preprocess import is_wrapped
from onefit.search.race import racing

__all__ = ["check_settings"]

KEEP = ("best", "all", "none")


def check_settings(search: Any) -> None:
    """Refuse parameters that are unknown or do not go together."""
    if not is_wrapped(search.estimator):
        check_accepted(search.estimator, "KernelSearchCV")
        if all_rows_of(search.method):
            raise ValueError(
                "method='all_rows' is for a Pipeline, and says where its steps are fitted; "
                f"{type(search.estimator).__name__} has no steps, leave it out"
            )
    check_choice("aggregate", search.aggregate, AGGREGATES)
    check_choice("rule", search.rule, RULES)
    check_choice("keep_heldout", search.keep_heldout, KEEP)
    get_criterion(search.criterion)
    _check_scoring(search.scoring)
    if search.rule == "one_se" and callable(search.refit):
        raise ValueError("rule='one_se' and a callable refit both choose the winner; use one")
    if racing(search.method) and (callable(search.refit) or search.criterion != "cv"):
        raise ValueError(
            "method='race' repairs the candidates with the best scores; it goes with "
            "criterion='cv' and a refit that is not a function"
        )
    if search.lam_per_target and is_classifier(search.estimator):
        raise ValueError("lam_per_target=True is for regressors; a classifier has one lam")


def _check_scoring(scoring: Any) -> None:
    names = [scoring] if isinstance(scoring, str) else scoring
    if not isinstance(names, (list, tuple, set)):
        return
    for name in names:
        if isinstance(name, str) and name not in get_scorer_names():
            raise ValueError(
                f"scoring={name!r} is not known{suggest(name, get_scorer_names())} "
                "sklearn.metrics.get_scorer_names() lists what is"
            )
