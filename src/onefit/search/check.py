"""Everything that can be wrong with the parameters of a search, without looking at the data."""

from __future__ import annotations

from typing import Any

from sklearn.metrics import get_scorer_names

from onefit._validation import check_choice, suggest
from onefit.estimators.accepted import check_accepted
from onefit.scoring.aggregate import AGGREGATES
from onefit.scoring.careful import is_one_standard_error, one_standard_error
from onefit.search.all_rows import all_rows_of
from onefit.search.criterion import get_criterion
from onefit.search.preprocess import is_wrapped
from onefit.search.race import racing

__all__ = ["check_settings"]


def check_settings(search: Any) -> None:
    """Refuse parameters that are unknown or do not go together."""
    _ = search._descent  # checks its own settings
    if not is_wrapped(search.estimator):
        check_accepted(search.estimator, "KernelSearchCV")
        if all_rows_of(search.method):
            raise ValueError(
                "method='all_rows' is for a Pipeline, and says where its steps are fitted; "
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
                "sklearn.metrics.get_scorer_names() lists what is"
            )
