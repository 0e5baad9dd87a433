"""Methods of a fitted search over classifiers: probabilities, thresholds, decisions by cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from onefit.decide.calibrate import CalibratedKernelClassifier
from onefit.decide.cost import MinimumCostClassifier
from onefit.decide.threshold import THRESHOLD_AGGREGATES, neyman_pearson, tune_threshold
from onefit.estimators.accepted import unwrap
from onefit.heldout import HeldOut
from onefit.search.preprocess import kernel_estimator

__all__ = ["Decisions"]


class Decisions:
    """Methods of a search over classifiers, from the held-out values of its winner."""

    def calibrate(self, method: str = "sigmoid") -> CalibratedKernelClassifier:
        """Calibrate the winner on its held-out decision values, without refits.

        The same as ``CalibratedClassifierCV(winner, method=method, cv=splits, ensemble=False)``.
        The winner was chosen by the same values, so the probabilities are slightly overconfident
        (:mod:`onefit.decide.calibrate`).

        Parameters
        ----------
        method : {"sigmoid", "isotonic"}, default="sigmoid"
            "sigmoid" has two parameters per class, for few rows; "isotonic" is any increasing map,
            for a thousand rows or more.

        Returns
        -------
        CalibratedKernelClassifier
            Fitted. Its ``predict`` is the most probable class.
        """
        return CalibratedKernelClassifier.from_heldout(*self._winner_and_heldout(), method)

    def tune_threshold(
        self,
        scoring: Any = "balanced_accuracy",
        *,
        thresholds: Any = 100,
        aggregate: str | None = None,
        max_rate: float = 0.05,
        confidence: float | None = 0.95,
    ) -> Any:
        """The winner with another threshold between its two classes, without refits.

        Parameters
        ----------
        scoring : str or callable, default="balanced_accuracy"
            The metric, as in ``TunedThresholdClassifierCV``; or "neyman_pearson": as few rows of
            the second class as possible are missed while the rate of false alarms, rows of the
            first class labelled as of the second, is bounded.
        thresholds : int or array, default=100
            For a metric: their number, or their values.
        aggregate : {"mean", "pooled"}, default=None
            For a metric: the mean over the splits, or all held-out rows together; that of the
            search by default.
        max_rate, confidence : float
            For "neyman_pearson": the bound, and the probability with which it holds on new rows
            (None bounds the rate of the held-out rows), see :mod:`onefit.decide.threshold`.

        Returns
        -------
        TunedThresholdClassifierCV, or FixedThresholdClassifier for "neyman_pearson"
            Fitted, around the winner.
        """
        model, held = self._winner_and_heldout()
        if isinstance(scoring, str) and scoring == "neyman_pearson":
            return neyman_pearson(model, held, max_rate, confidence)
        own = getattr(self, "aggregate", "mean")
        chosen = aggregate or (own if own in THRESHOLD_AGGREGATES else "mean")
        return tune_threshold(model, held, scoring, thresholds, chosen)

    def minimise_cost(
        self, costs: Any, calibration: str | None = "sigmoid"
    ) -> MinimumCostClassifier:
        """The winner, with decisions of the smallest expected cost.

        Parameters
        ----------
        costs : array of shape (K, K), or dict {truth: {decision: cost}}
            In the order of ``classes_``, rows are true classes, columns decisions.
        calibration : {"sigmoid", "isotonic"} or None, default="sigmoid"
            Calibration of the probabilities; None takes those of the winner (loss="log").

        Returns
        -------
        MinimumCostClassifier
            Fitted.
        """
        winner = self._winner_and_heldout()[0]
        if calibration is None and not hasattr(winner, "predict_proba"):
            raise ValueError(
                f"loss={kernel_estimator(winner).loss!r} gives no probabilities; "
                "use calibration='sigmoid' or 'isotonic'"
            )
        model = winner if calibration is None else self.calibrate(calibration)
        return MinimumCostClassifier.from_fitted(model, costs)

    def _winner_and_heldout(self) -> tuple[Any, HeldOut]:
        check_is_fitted(self)
        search: Any = self
        if not is_classifier(search.estimator):
            raise ValueError(
                "the search is over regressors; predict_interval has intervals for them"
            )
        if not hasattr(search, "best_estimator_"):
            raise ValueError("the search has no best_estimator_; fit it with refit=True")
        held: HeldOut = search.heldout_
        unknown = np.flatnonzero(np.isnan(held.folds.largest(held.values)).any(axis=1))
        if unknown.size:
            raise ValueError(
                f"the winner has no held-out values on split {unknown[0]}, where a step of the "
                "pipeline failed (error_score); correct the step and search again"
            )
        return unwrap(search.best_estimator_), held
