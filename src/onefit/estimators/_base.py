"""Base of the estimators: from X and parameters to a problem, and back to predictions."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.utils import gen_batches
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from onefit import linalg, plan
from onefit._types import Array, Indices
from onefit._validation import check_choice, check_positive, check_weights, first_not_finite
from onefit.columns.fit import SOLVERS, FitError, certified_fit, solve
from onefit.estimators.components import NestedParams
from onefit.estimators.device import check_place, model_to_device, to_host
from onefit.estimators.unused import warn_of_unused
from onefit.features.approximation import Approximation, get_approximation
from onefit.features.feature_gram import FeatureGram
from onefit.features.fold_models import FeatureFit
from onefit.features.in_memory import fit_features
from onefit.features.maps import FeatureMap, NystromMap
from onefit.heldout.iterative import fit_on_device
from onefit.heldout.squared import DEVICE_BLOCK_MATRICES
from onefit.kernels import (
    Geometry,
    Kernel,
    as_rows,
    check_precomputed,
    is_objects,
    is_precomputed,
    needs_vectors,
    number_type,
)
from onefit.kernels.on_device import points_of
from onefit.losses import Loss
from onefit.problem import SCALINGS, Problem, Solution
from onefit.spec import LabelCoding, Spec, TargetCoding
from onefit.updates import UpdatesRows

__all__ = ["KernelEstimator"]

#: fitted attributes that describe rows and targets, not a solution
DATA_ATTRIBUTES = ("n_features_in_", "feature_names_in_", "classes_", "_y_ndim")


class KernelEstimator(UpdatesRows, NestedParams):
    """Base of the estimators: kernel, problem, prediction. Subclasses have targets and loss.

    The rest of the package reads :meth:`spec`. Of the private methods it uses those that change an
    estimator, which users have ``fit`` for:

    - ``_validate_X``, ``_code_targets``, ``_check_rows``, ``_check_data``: check rows and targets;
    - ``_prepare``, ``_make_problem``: build the problem;
    - ``_solve``, ``_adopt``: set the fitted attributes;
    - ``_decision``: decision values, a column for each of the problem;
    - ``_with_params``, ``_with_decision``, ``_with_support``: copies.
    """

    dual_coef_: Any
    intercept_: Any
    error_: float
    kernel: Any
    gamma: Any
    lam: Any
    fit_intercept: Any
    scaling: Any
    approximation: Any
    solver: Any
    random_state: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        precomputed = is_precomputed(self.kernel)
        tags.input_tags.sparse = not precomputed
        tags.input_tags.pairwise = precomputed
        tags.array_api_support = needs_vectors(self.kernel) and not precomputed
        return tags

    def spec(self) -> Spec:
        """Return what the parameters mean, as one frozen value.

        Returns
        -------
        Spec
            Kernel parameters, loss, lam, intercept, scaling, solver, coding of the targets and
            approximation. A classifier knows its classes once it was given targets.
        """
        return Spec(
            self.kernel,
            self.gamma,
            self._make_loss(),
            self.lam,
            self.fit_intercept,
            self.scaling,
            self.solver,
            self._coding(),
            self._approximation(),
        )

    def _approximation(self) -> Approximation | None:
        """The approximation of the kernel matrix; None for the whole matrix."""
        return get_approximation(self.approximation, self.random_state)

    def _with_params(self, **params: Any) -> Self:
        """An unfitted copy with other parameters, for the same rows and targets."""
        found: Self = clone(self).set_params(**params)
        found._copy_data_attributes(self)
        return found

    def _copy_data_attributes(self, other: KernelEstimator) -> None:
        """Copy the attributes that describe rows and targets: columns, names, classes."""
        for name in DATA_ATTRIBUTES:
            if name in vars(other):
                setattr(self, name, getattr(other, name))

    def _with_decision(self, decision: Callable[[Any], Array]) -> Self:
        """A copy whose decision values come from a function."""
        found: Any = copy.copy(self)
        found._decision = decision
        return found  # type: ignore[no-any-return]

    def _with_support(self) -> Self:
        """A copy that predicts the same from the training rows with a coefficient alone."""
        small = copy.copy(self)
        if is_precomputed(self.kernel) or self.approximation is not None:
            return small
        coef = small.dual_coef_
        rows = np.flatnonzero(coef.reshape(coef.shape[0], -1).any(axis=1))
        rows = rows if rows.size else np.arange(1)
        small.X_fit_, small.dual_coef_ = small.X_fit_[rows], coef[rows]
        small.support_ = np.arange(rows.size)
        return small

    def _check_parameters(self) -> None:
        check_positive("lam", self.lam, "the penalty must be positive, try 1e-12 for almost none")
        check_choice("scaling", self.scaling, SCALINGS)
        check_choice("solver", self.solver, SOLVERS)
        if self._approximation() is None:
            return
        if is_precomputed(self.kernel):
            raise ValueError(
                "approximation is for kernels of rows, but with kernel='precomputed' X is the "
                "kernel matrix; pass the rows and the kernel's name, or approximation=None"
            )
        if self.solver not in ("auto", "newton"):
            raise ValueError(
                f"solver={self.solver!r} works on the whole kernel matrix; with an approximation "
                "use solver='auto'"
            )

    def _make_loss(self) -> Loss:
        raise NotImplementedError

    def _coding(self) -> TargetCoding | LabelCoding:
        raise NotImplementedError

    def _check_given(self, y: Any) -> None:
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, "
                "but the target y is None."
            )

    def _check_weighted(self, Y: Array, s: Array) -> None:
        """Refuse weights that leave nothing to be fitted."""

    def _code_targets(self, y: Any, dtype: Any) -> Array:
        """Check y, remember what predictions need, and return the (n, q) matrix of targets."""
        raise NotImplementedError

    def _validate_device_X(self, X: Any, reset: bool = True) -> Any:
        """Check an array on a device as scikit-learn checks an array of NumPy."""
        X = points_of(X, "X")
        if not X.shape[0] or not X.shape[1]:
            raise ValueError(f"Found array with shape {tuple(X.shape)}: rows and columns needed.")
        if reset and X.shape[0] < 2:
            raise ValueError("Found array with 1 sample(s) while a minimum of 2 is required.")
        lib = linalg.arrays_of(X).lib
        if not bool(lib.all(lib.isfinite(X))):
            raise ValueError("Input X contains NaN or infinity; clean it on its device first.")
        validate_data(self, X, reset=reset, skip_check_array=True)
        return X

    def _validate_X(self, X: Any, **options: Any) -> Any:
        if linalg.is_elsewhere(X):
            return self._validate_device_X(X, options.get("reset", True))
        if not needs_vectors(self.kernel):
            X = as_rows(X)
            if is_objects(X):
                if self.approximation is not None:
                    raise ValueError(
                        f"approximation={self.approximation!r} takes rows that are vectors of "
                        "numbers, and those of X are not; use approximation=None"
                    )
                return _check_objects(X, int(options.get("ensure_min_samples", 1)))
        try:
            return validate_data(
                self,
                X,
                accept_sparse=False if is_precomputed(self.kernel) else "csr",
                accept_large_sparse=False,
                dtype=[np.float64, np.float32],
                **options,
            )
        except ValueError as error:
            where = first_not_finite(X) if re.search("NaN|infinity", str(error)) else None
            if where is None:
                raise
            row, column = where
            raise ValueError(f"{error}\nThe first is in row {row}, column {column}.") from error

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to rows X with targets, or labels of any type, y.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or (n, n) when precomputed
        y : array of shape (n,); targets also (n, q)
        sample_weight : array of shape (n,), default=None

        Returns
        -------
        self
        """
        self._finish(self._fit(X, y, sample_weight))
        self._to_device_of(X)
        return self

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Problem:
        """Everything of a fit but the solve."""
        X, Y, s = self._check_data(X, y, sample_weight)
        if not linalg.is_elsewhere(X):
            plan.check_method(self._workload(Y, s), "fit")
        return self._make_problem(X, Y, s)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Loss:
        """Solve in the way that the plan finds best, and return the loss."""
        X, Y, s = self._check_data(X, y, sample_weight)
        self._check_weighted(Y, s)
        if linalg.is_elsewhere(X):
            device: Any = linalg.arrays_of(X)
            with device.within_memory(f"a fit to {X.shape[0]} rows"):
                return self._solve(self._make_problem(X, Y, s))
        solver, form = plan.choose_fit(self._workload(Y, s), self.solver)
        return self._solve(self._make_problem(X, Y, s, form), solver)

    def _check_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array]:
        """Rows, columns and weights of a fit, checked; nothing of the size of K is made yet."""
        self._check_parameters()
        self._make_loss()
        warn_of_unused(self)
        X, Y, s = self._check_rows(X, y, sample_weight)
        return X, self._coding().columns(Y), self._weights(Y, s)

    def _check_rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array]:
        """Rows, targets and sample weights, which estimators that differ in parameters share."""
        X = self._validate_X(X, ensure_min_samples=2)
        rows = X
        if linalg.is_elsewhere(X):
            y = to_host(y, linalg.arrays_of(X), "y")
            sample_weight = to_host(sample_weight, linalg.arrays_of(X), "sample_weight")
            rows = np.empty((X.shape[0], 1), number_type(X))  # for its shape
        Y = self._code_targets(y, number_type(X))
        check_consistent_length(rows, Y)
        return X, Y, check_weights(sample_weight, rows)

    def _weights(self, Y: Array, s: Array) -> Array:
        """Weights of the rows in the fit."""
        return self._coding().weights(Y, s)

    def _workload(self, Y: Array, s: Array) -> plan.Workload:
        """The sizes that determine the memory of a fit; rows of weight zero are left out."""
        idle, spec = Y.shape[0] - np.count_nonzero(s), self.spec()
        return plan.Workload(
            n=Y.shape[0],
            lams=1,
            removed=(idle,) if idle else (),
            targets=Y.shape[1],
            itemsize=Y.dtype.itemsize,
            loss=spec.loss.name,
            quadratic=spec.quadratic,
            given=spec.precomputed,
            features=spec.n_features(Y.shape[0] - idle),
        )

    def _make_problem(self, X: Any, Y: Array, s: Array, form: str = "matrix") -> Problem:
        """The problem of checked data.

        Parameters
        ----------
        form : {"matrix", "held", "tiles"}, default="matrix"
            The form of K: as the kernel makes it, on a device by tiles where K and its factors do
            not fit; the same, made by tiles in all threads; or not at all, for problems of which
            only products with K are needed.
        """
        spec = self.spec()
        if spec.precomputed and not linalg.is_elsewhere(X):
            check_precomputed(X)
        self.kernel_ = kernel = spec.resolve_kernel(X, s)
        if spec.approximation is not None:
            K: Any = spec.approximation.expand(kernel, X, s)
            return spec.coded_problem(K, Y, s, definite=True)
        self.X_fit_, self._Y_fit, self._s_fit, self._loss_fit = X, Y, s, spec.loss
        arrays: Any = linalg.arrays_of(X)
        if arrays.on_host and (form == "matrix" or spec.precomputed):
            K = kernel.matrix(Geometry(X, keep=False))
        else:
            K, nbytes = kernel.tiles(X), DEVICE_BLOCK_MATRICES * Y.dtype.itemsize * X.shape[0] ** 2
            if form == "held" or (form == "matrix" and nbytes <= arrays.room()):
                K = K.hold()
        return spec.coded_problem(K, Y, s, definite=kernel.definite)

    def _solve(self, problem: Problem, solver: str | None = None) -> Loss:
        """Solve on the rows of positive weight, set the fitted attributes, return the loss."""
        if problem.K.features is not None:
            return self._solve_features(problem)
        solver = solver or self.solver
        if problem.quadratic and not problem.K.arrays.on_host:
            found = fit_on_device(problem, float(self.lam))
        else:
            problem = problem.resolved
            found = solve(problem, float(self.lam), solver)
        self._check_finite(found.a, found.b)
        solution, error = certified_fit(problem, float(self.lam), found)
        self._remember(solution, error)
        return problem.loss

    def _solve_features(self, problem: Problem) -> Loss:
        """The same in feature space."""
        found, problem = fit_features(problem, float(self.lam))
        self._check_finite(found.W, found.b)
        rows: FeatureGram = problem.K
        self._remember_features(rows.features, rows.landmarks, found)
        return problem.loss

    def _adopt(
        self, kernel: Kernel, features: FeatureMap, landmarks: Indices | None, found: FeatureFit
    ) -> None:
        """Become the model in feature space that was fitted elsewhere."""
        self.kernel_ = kernel
        self._remember_features(features, landmarks, found)
        self._finish(self._make_loss())

    def _remember_features(
        self, features: FeatureMap, landmarks: Indices | None, found: FeatureFit
    ) -> None:
        self.feature_map_, self.coef_, self.intercept_ = features, found.W, found.b
        self.n_iter_, self.error_ = found.steps, found.error
        if isinstance(features, NystromMap):
            self.dual_coef_ = features.coefficients(found.W)
            self.landmarks_ = features.points
            used = features.order[: features.size]
            self.landmark_indices_ = None if landmarks is None else landmarks[used]

    def _finish(self, loss: Loss) -> None:
        """Give the fitted attributes the shape of y, and set those that follow from others."""
        raise NotImplementedError

    def _check_finite(self, *parts: Array) -> None:
        if not all(np.isfinite(part).all() for part in parts):
            raise FitError(
                f"the solution at lam={self.lam:g} is not finite; raise lam, or scale X and y"
            )

    def _remember(self, solution: Solution, error: Array) -> None:
        self.error_ = float(error.max())
        self.dual_coef_ = solution.a
        self.support_ = np.flatnonzero(solution.a.any(axis=1))
        self.intercept_ = solution.b
        self.n_iter_ = solution.steps

    def _decision(self, X: Any) -> Array:
        """K(X, X_fit_) a + b as an (m, q) array, a block of rows at a time."""
        check_is_fitted(self)
        X = self._validate_X(X, reset=False)
        if self.approximation is not None:
            return self._feature_decision(X)
        if linalg.is_elsewhere(X) or linalg.is_elsewhere(self.X_fit_):
            return self._device_decision(X)  # type: ignore[no-any-return]
        coef = self.dual_coef_.reshape(self.X_fit_.shape[0], -1)
        if is_precomputed(self.kernel):
            return np.asarray(linalg.matmul(np.ascontiguousarray(X), coef) + self.intercept_)
        rows = max(1, int(get_config()["working_memory"] * 2**20 // (16 * coef.shape[0])))
        values = [
            linalg.matmul(self.kernel_.matrix(Geometry(X[block], self.X_fit_, keep=False)), coef)
            for block in gen_batches(X.shape[0], rows)
        ]
        return np.asarray(np.concatenate(values) + self.intercept_)

    def _feature_decision(self, X: Any) -> Array:
        """phi(X)'w + b, a block of rows at a time."""
        check_place(X, self.coef_)
        coef, xp = linalg.to_host(self.coef_), linalg.arrays_of(X)
        coefficients = self.feature_map_.coefficients(coef.reshape(self.feature_map_.size, -1))
        rows = max(1, int(get_config()["working_memory"] * 2**20 // (16 * self.feature_map_.size)))
        values = np.concatenate(
            [
                self.feature_map_.evaluate(xp.rows(X, some), coefficients)
                for some in gen_batches(X.shape[0], rows)
            ]
        )
        values = (values + linalg.to_host(self.intercept_)).astype(number_type(X), copy=False)
        return xp.asarray(values)  # type: ignore[no-any-return]

    def _device_decision(self, X: Any) -> Any:
        check_place(X, self.X_fit_)
        xp: Any = linalg.arrays_of(X)
        coef = xp.lib.reshape(self.dual_coef_, (self.X_fit_.shape[0], -1))
        rows = max(1, int(min(xp.room() / 5.0, 2**33) // (8 * coef.shape[0])))
        values = [
            self.kernel_.matrix(Geometry(X[block, :], self.X_fit_, keep=False)) @ coef
            for block in gen_batches(X.shape[0], rows)
        ]
        intercept = self.intercept_
        if not linalg.is_elsewhere(intercept):
            intercept = xp.asarray(np.atleast_1d(intercept))
        return xp.lib.concat(values, axis=0) + xp.astype(intercept, number_type(coef))

    def _to_device_of(self, X: Any) -> None:
        """Move the fitted arrays to where X is."""
        if linalg.is_elsewhere(X):
            model_to_device(self, linalg.arrays_of(X))  # type: ignore[arg-type]

    def _like(self, values: Array, X: Any) -> Any:
        """Predictions as arrays where X is, if they are numbers."""
        if not linalg.is_elsewhere(X) or values.dtype.kind not in "fiub":
            return values
        return linalg.arrays_of(X).asarray(values)


def _check_objects(X: Array, least: int) -> Array:
    """Rows that only a user's function understands: all that can be checked is their number."""
    if X.shape[0] < least:
        raise ValueError(
            f"Found array with {X.shape[0]} sample(s) (shape={X.shape}) while a minimum of {least} "
            "is required."
        )
    return X
