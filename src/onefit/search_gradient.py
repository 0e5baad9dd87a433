"""Kernel parameters by the gradient of the cross-validated score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onefit.heldout import HeldOutMethod
from onefit.search.criterion import CriterionLike
from onefit.search_cv import KernelSearchCV

__all__ = ["KernelGradientSearchCV"]


class KernelGradientSearchCV(KernelSearchCV):
    """Choose kernel parameters by following the exact gradient of the cross-validated score.

    From the best candidates of a coarse grid L-BFGS-B follows the gradient of the score, or of k-KS
    (``criterion=KernelStability(eta)``). The results are scored like other candidates, so the
    winner is never worse than that of the grid. See :mod:`onefit.search.descend`.

    Parameters
    ----------
    estimator : KernelRegressor or KernelClassifier
    param_grid : dict or list of dict
        With an :class:`onefit.search.Interval` for ``gamma``, one value or, with
        ``per_feature=True``, one per column; or a :class:`onefit.kernels.Bank` for ``kernel``,
        whose weights are learned. ``lam`` may be an interval too; other parameters are lists of
        values.
    starts : int, default=None
        Descents for each kind of kernel; None is 3 for many parameters and 1 for one gamma.
    steps : int, default=60
        Iterations of a descent, at most.
    prior : bool, default=True
        Whether gammas per column have the prior of Cawley and Talbot (JMLR 2007). Without it,
        cross-validation over-fits them on most data sets of a few hundred rows.
    early_stopping : bool, default=None
        Whether every other split is only monitored, and a descent ends where these splits are best.
        None does so for gammas per column and for banks of kernels.
    cv, scoring, criterion, method, refit, n_jobs, aggregate, journal, verbose
        As in :class:`KernelSearchCV`.

    Attributes
    ----------
    descents_ : list of Descent
        Start and end of each descent, and whether it converged; other attributes are those
        of :class:`KernelSearchCV`.

    Examples
    --------
    >>> import numpy as np
    >>> from onefit import KernelGradientSearchCV, KernelRegressor
    >>> from onefit.search import Interval
    >>> X = np.random.default_rng(0).normal(size=(80, 3))
    >>> grid = {"gamma": Interval(1e-3, 1e1, per_feature=True), "lam": Interval(1e-6, 1.0, 5)}
    >>> search = KernelGradientSearchCV(KernelRegressor(), grid).fit(X, np.sin(2 * X[:, 1]))
    >>> int(search.best_params_["gamma"].argmax())
    1
    """

    _descends = True
    #: every setting of the other parameters is tried, and a pipeline is refused
    n_iter, random_state, error_score = None, None, "raise"

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        starts: int | None = None,
        steps: int = 60,
        prior: bool = True,
        early_stopping: bool | None = None,
        cv: Any = 5,
        scoring: Any = None,
        criterion: str | CriterionLike = "cv",
        method: str | HeldOutMethod = "auto",
        refit: bool | str | Callable[..., int] = True,
        n_jobs: int | None = None,
        aggregate: str = "mean",
        journal: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.starts = starts
        self.steps = steps
        self.prior = prior
        self.early_stopping = early_stopping
        self.cv = cv
        self.scoring = scoring
        self.criterion = criterion
        self.method = method
        self.refit = refit
        self.n_jobs = n_jobs
        self.aggregate = aggregate
        self.journal = journal
        self.verbose = verbose
