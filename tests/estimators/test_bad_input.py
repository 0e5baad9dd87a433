"""Every refusal names the argument, what was found and what to do."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from registries import sample
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from onefit import KernelClassifier, KernelRegressor
from onefit.columns.fit import FitError
from onefit.kernels import Polynomial
from onefit.losses import EpsilonQuadratic, Huber, Log, SmoothedHinge

BOTH = [(KernelRegressor, "regression"), (KernelClassifier, "classification")]
both = pytest.mark.parametrize(("make", "task"), BOTH, ids=["regressor", "classifier"])


@both
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_not_finite(make, task, value):
    X, y = sample(task)
    broken = X.copy()
    broken[3, 1] = value
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        make().fit(broken, y)
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        make().fit(X, y).predict(broken)
    s = np.ones(30)
    s[4] = value
    with pytest.raises(ValueError, match=r"Input sample_weight contains (NaN|infinity)"):
        make().fit(X, y, s)
    y = y.astype(float)
    y[2] = value
    with pytest.raises(ValueError, match=r"Input (y )?contains (NaN|infinity)"):
        make().fit(X, y)


@pytest.mark.parametrize("label", ["a", 1, -1.0, True])
def test_one_class(label):
    X, _ = sample("classification")
    with pytest.raises(ValueError, match=r"y holds one class only, .*needs rows of at least two"):
        KernelClassifier().fit(X, np.full(30, label))


@both
def test_one_row(make, task):
    with pytest.raises(ValueError, match=r"1 sample.*minimum of 2 is required"):
        make().fit(np.ones((1, 2)), np.ones(1))
    with pytest.raises(ValueError, match=r"0 sample.*minimum of 2 is required"):
        make().fit(np.ones((0, 2)), np.ones(0))


@both
@pytest.mark.parametrize("lam", [0, -1.0, np.nan, np.inf, "small", None, True, [0.1]])
def test_lam(make, task, lam):
    with pytest.raises(ValueError, match=r"lam must be a positive finite number, got .*; the pen"):
        make(lam=lam).fit(*sample(task))


@both
def test_weights(make, task):
    X, y = sample(task)
    s = np.ones(30)
    with pytest.raises(ValueError, match="sample_weight"):
        make().fit(X, y, s[:-1])
    with pytest.raises(ValueError, match=r"[Ss]ample.weights? must be 1D"):
        make().fit(X, y, np.ones((30, 2)))
    s[7] = -0.5
    with pytest.raises(
        ValueError, match=r"sample_weight must not be negative, found -0.5 in row 7"
    ):
        make().fit(X, y, s)
    with pytest.raises(ValueError, match="sample_weight is positive in fewer than 2 rows"):
        make().fit(X, y, np.eye(30)[0])


def test_weights_that_leave_a_class_empty():
    X, y = sample("classification")
    with pytest.raises(ValueError, match="sample_weight is zero on every row of some class"):
        KernelClassifier().fit(X, y, (y > 0).astype(float))


@both
def test_lengths(make, task):
    X, y = sample(task)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        make().fit(X, y[:-1])
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        make().fit(X, None)


def test_targets_of_the_wrong_kind():
    X, y = sample("regression")
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        KernelClassifier().fit(X, y)
    with pytest.raises(ValueError, match="could not convert string to float"):
        KernelRegressor().fit(X, np.array(["a", "b"] * 15))


@both
def test_names(make, task):
    X, y = sample(task)
    with pytest.raises(ValueError, match="loss='sqared' is not known; did you mean 'squared'"):
        make(loss="sqared").fit(X, y)
    with pytest.raises(ValueError, match="kernel='rbff' is not known; did you mean 'rbf'"):
        make(kernel="rbff").fit(X, y)
    with pytest.raises(ValueError, match="scaling='means' is not known; did you mean 'mean'"):
        make(scaling="means").fit(X, y)
    with pytest.raises(ValueError, match=r"solver='newt' is not known.*'auto', 'newton', 'rew"):
        make(solver="newt").fit(X, y)
    with pytest.raises(TypeError, match="kernel must be a name, a Kernel object or a callable"):
        make(kernel=3).fit(X, y)
    with pytest.raises(ValueError, match="gamma must be"):
        make(gamma=-1.0).fit(X, y)
    with pytest.raises(TypeError, match="loss must be an object, got the class Huber: call it"):
        make(loss=Huber).fit(X, y)


def test_losses_of_the_other_task():
    X, y = sample("regression")
    with pytest.raises(ValueError, match="Known for regression"):
        KernelRegressor("log").fit(X, y)
    with pytest.raises(ValueError, match=r"loss=Log\(\) is for labels"):
        KernelRegressor(Log()).fit(X, y)
    with pytest.raises(ValueError, match="Known for classification"):
        KernelClassifier("huber").fit(X, np.sign(y))


def test_b_is_the_intercept_and_no_parameter():
    with pytest.raises(TypeError, match="unexpected keyword argument 'b'"):
        KernelRegressor("huber", b=1.0)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan])
def test_loss_parameters(value):
    X, y = sample("regression")
    with pytest.raises(ValueError, match="threshold must be a positive finite number"):
        KernelRegressor(Huber(value)).fit(X, y)
    with pytest.raises(ValueError, match="delta must be a positive finite number"):
        KernelClassifier(SmoothedHinge(value)).fit(X, np.sign(y))
    if value != 0.0:
        with pytest.raises(ValueError, match=r"epsilon must be a positive finite number.*or 0"):
            KernelRegressor(EpsilonQuadratic(value)).fit(X, y)


@both
def test_precomputed(make, task):
    X, y = sample(task)
    K = rbf_kernel(X)
    model = make(kernel="precomputed")
    with pytest.raises(ValueError, match=r"must be square.*got shape \(30, 29\)"):
        model.fit(K[:, :-1], y)
    lopsided = K.copy()
    lopsided[2, 5] += 0.25
    with pytest.raises(ValueError, match=r"not symmetric: max \|K - K'\| = 0.25 at \[2, 5\]"):
        model.fit(lopsided, y)
    with pytest.raises(ValueError, match=r"indefinite: its smallest eigenvalue is -"):
        model.fit(K - 0.5 * np.eye(30), y)
    with pytest.raises(TypeError, match=r"Sparse data was passed.*dense data is required"):
        model.fit(sp.csr_matrix(K), y)
    model.fit(K, y)
    with pytest.raises(ValueError, match=r"29 features, but .* is expecting 30"):
        model.predict(K[:, :-1])
    with pytest.raises(TypeError, match=r"Sparse data was passed.*dense data is required"):
        model.predict(sp.csr_matrix(K))


@both
def test_a_callable_that_is_no_kernel(make, task):
    X, y = sample(task)

    def bad(A, B):
        return np.ones(len(A))

    def hole(A, B):
        return np.full((len(A), len(B)), np.nan)

    with pytest.raises(ValueError, match=r"kernel bad returned an array of shape \(30,\)"):
        make(kernel=bad).fit(X, y)
    with pytest.raises(ValueError, match="kernel hole gave NaN or infinite values"):
        make(kernel=hole).fit(X, y)
    with pytest.raises(ValueError, match="kernel matrix is indefinite: its smallest eigenvalue"):
        make(kernel=lambda A, B: -np.abs(A @ B.T), lam=1e-6).fit(X, y)


@both
def test_prediction_before_the_fit_and_of_other_columns(make, task):
    X, y = sample(task)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        make().predict(X)
    with pytest.raises(ValueError, match=r"X has 1 features, but .* is expecting 2 features"):
        make().fit(X, y).predict(X[:, :1])


@both
def test_numbers_too_large_for_the_kernel(make, task):
    X, y = sample(task)
    with pytest.raises((ValueError, FloatingPointError), match=r"finite|infinite"):
        make(kernel=Polynomial(degree=9), gamma=1.0).fit(1e30 * X, y)


def test_predictions_that_are_all_rounding_are_an_error():
    """A linear kernel that cannot follow the targets, and a negligible penalty."""
    X, y = sample("regression")
    with pytest.raises(
        FitError, match=r"did not reach its minimum .* rounding errors of about .*; raise lam"
    ):
        KernelRegressor(kernel="linear", lam=1e-15).fit(X, y)


def test_an_ordinary_fit_says_nothing(recwarn):
    for make, task in BOTH:
        for lam in (1e-6, 1e-3, 1.0):
            make(lam=lam).fit(*sample(task))
            make(lam=lam, kernel="linear").fit(*sample(task))
    assert not recwarn.list
