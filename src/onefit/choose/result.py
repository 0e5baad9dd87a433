"""What a selection returns: the model, the search it came from, and the reasons."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer
from sklearn.utils.metaestimators import available_if

from onefit.choose.data_checks import about_notes
from onefit.choose.encode import describe, make_pipeline
from onefit.choose.familiar import Familiar, RowNotes, Unfamiliar
from onefit.choose.recipe import Recipe
from onefit.report.facts import Facts
from onefit.search_cv import KernelSearchCV
from onefit.uncertainty import PredictionInterval, predict_interval

Array = NDArray[Any]

__all__ = ["Selection"]


def _has(name: str) -> Any:
    return available_if(lambda self: hasattr(self.pipeline.steps[-1][1], name))


class Selection:
    """A machine that was chosen for data, ready to predict.

    Attributes
    ----------
    pipeline : Pipeline
        Plain scikit-learn, fitted, for rows as they were given to select: of a table, step "read"
        turns columns into numbers and text; step "columns" encodes, step "machine" predicts.
    search : KernelSearchCV
        The fitted search over machines, on encoded columns.
    task : {"regression", "classification"}
    metric : str or callable
        What :attr:`best_score_` and :meth:`score` are.
    reasons : list of str
        What was chosen, and why, a sentence each.
    notes : list of str
        What a user should know of the data, a sentence each; also given as warnings.
    fallback_ : Fallback or None
        What was given up for lack of time (``minutes``).
    """

    def __init__(self, recipe: Recipe, gaps: Sequence[str] = ()) -> None:
        self.pipeline = make_pipeline(recipe.reader, recipe.encoder, recipe.search.best_estimator_)
        self.search: KernelSearchCV = recipe.search
        self.task, self.metric, self.reasons = recipe.task, recipe.metric, recipe.reasons
        self.notes = recipe.notes
        self.fallback_ = recipe.fallback
        self._y, self._Z, self._given, self._gaps = recipe.y, recipe.Z, recipe.params, gaps

    @property
    def best_params_(self) -> dict[str, Any]:
        """Kernel, lam and whatever else was chosen."""
        found: dict[str, Any] = self.search.best_params_
        return found

    @property
    def best_estimator_(self) -> Any:
        """The machine, which takes encoded columns; :attr:`pipeline` takes the data as they are."""
        return self.search.best_estimator_

    @property
    def best_score_(self) -> float:
        """The winner's score of all held-out rows together, by :attr:`metric`."""
        return float(self.search.best_score_)

    @property
    def cv_results_(self) -> dict[str, Any]:
        """All candidates."""
        found: dict[str, Any] = self.search.cv_results_
        return found

    @property
    def heldout_(self) -> Any:
        """The winner's held-out predictions."""
        return self.search.heldout_

    @property
    def headline_(self) -> Any:
        """What the choice is worth, by :attr:`metric`."""
        return self.search.headline_

    @property
    def relevance_(self) -> Any:
        """Of the columns, where ``relevance=True`` asked for it."""
        return self.search.relevance_

    @property
    def classes_(self) -> Array:
        """Labels."""
        found: Array = self.search.classes_
        return found

    @property
    def n_splits_(self) -> int:
        """Of the cross-validation."""
        return int(self.search.n_splits_)

    def predict(self, X: Any) -> Array:
        """Predictions for new rows, columns as in the data that were given to select."""
        found: Array = self.pipeline.predict(_rows(X))
        return found

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes."""
        found: Array = self.pipeline.predict_proba(_rows(X))
        return found

    @_has("decision_function")
    def decision_function(self, X: Any) -> Array:
        """Decision values of the classes."""
        found: Array = self.pipeline.decision_function(_rows(X))
        return found

    def predict_interval(self, X: Any, alpha: float = 0.1) -> PredictionInterval:
        """Intervals for new targets of a regression, on the splits of the selection.

        They are for rows of new groups if ``groups`` were given, and for later rows if the splits
        go forward in time; see :func:`onefit.predict_interval`.
        """
        rows = self.pipeline[:-1].transform(_rows(X))
        return predict_interval(self.search, self._Z, self._y, rows, alpha, **self._given)

    def unfamiliar(self, X: Any) -> RowNotes:
        """Rows unlike the training rows: far from them, of unknown categories, or with new gaps.

        See :mod:`onefit.uncertainty.novelty`.
        """
        found = Unfamiliar(self._familiar)
        reader = self.pipeline.named_steps.get("read")
        rows = _rows(X)
        novelty, notes = found.add(rows if reader is None else reader.transform(rows))
        return RowNotes(novelty, notes, found.told)

    @cached_property
    def _familiar(self) -> Familiar:
        encoder, groups = self.pipeline.named_steps["columns"], self._given.get("groups")
        return Familiar.of(self.best_estimator_, encoder, self._gaps, self.search.folds_, groups)

    def score(self, X: Any, y: Any) -> float:
        """The score of predictions for new rows, by :attr:`metric`."""
        scorer = get_scorer(self.metric) if isinstance(self.metric, str) else self.metric
        return float(scorer(self, X, y))

    def report(self, path: Any, **options: Any) -> Any:
        """Write the report as one HTML file; options are those of :func:`onefit.report`'s."""
        about = {"preprocessing": describe(self.pipeline.named_steps["columns"]), "task": self.task}
        about |= about_notes(self.notes)
        return self.search.report(path, **({"y": self._y, "about": about} | options))

    def __sklearn_tags__(self) -> Any:
        return self.pipeline.__sklearn_tags__()

    def _lines(self) -> list[str]:
        """The choice, its score beside the baseline, and the reasons."""
        facts = Facts(self.search)
        params = ", ".join(f"{k}={_short(v)}" for k, v in self.best_params_.items())
        low, high = facts.interval
        found, r2 = self.headline_, ""
        if found.r2 is not None and facts.scale.label != "R²":
            r2 = f"; R² {found.r2:.4g}"
        lines = [
            f"Selection: {type(self.best_estimator_).__name__}, {params}",
            f"{facts.scale.label} {facts.scale(self.search.best_score_):.4g}, 95% interval "
            f"{low:.4g} to {high:.4g}; {found.baseline_name}: {facts.baseline:.4g}{r2}",
        ]
        return lines + self.reasons + [f"Note: {note}" for note in self.notes]

    def __repr__(self) -> str:
        return "\n  ".join(self._lines())

    def _repr_html_(self) -> str:
        first, *others = (escape(line) for line in self._lines())
        listed = "".join(f"<li>{line}</li>" for line in others)
        return f"<div><strong>{first}</strong><ul>{listed}</ul>{self.search._repr_html_()}</div>"


def _rows(X: Any) -> Any:
    """Lists as an array; tables, arrays and sparse matrices as they are."""
    return X if hasattr(X, "shape") else np.asarray(X)


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
