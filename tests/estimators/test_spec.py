"""The spec of an estimator: one frozen value that says what is solved and what values mean."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sklearn.datasets import load_iris

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.columns.fit import fit
from onefit.features import Nystrom
from onefit.kernels import Gaussian
from onefit.losses import Huber, Quantile
from onefit.rows import open_rows
from onefit.spec import Spec

X, LABELS = load_iris(return_X_y=True)
X, LABELS = X[::3], np.array(["red", "green", "blue"])[LABELS[::3]]
Y = np.sin(X[:, 0]) + X[:, 3]
S = np.linspace(0.5, 1.5, len(X))
REGRESSORS = {
    "squared": KernelRegressor(lam=1e-2),
    "total": KernelRegressor(loss=Huber(0.3), scaling="total", fit_intercept=False),
    "levels": KernelRegressor(loss=Quantile([0.2, 0.8], delta=0.1), lam=1e-2),
}
CLASSIFIERS = {
    "rest": KernelClassifier(loss="log", lam=1e-2, class_weight="balanced"),
    "pairs": KernelClassifier(loss="log", lam=1e-2, multi_class="ovo"),
    "weighted pairs": KernelClassifier(
        loss="log", lam=1e-2, multi_class="ovo", class_weight={"red": 2.0, "green": 1.0, "blue": 3}
    ),
}
CASES = {name: (model, Y) for name, model in REGRESSORS.items()} | {
    name: (model, LABELS) for name, model in CLASSIFIERS.items()
}


@pytest.mark.parametrize("case", CASES)
def test_its_problem_is_that_of_the_fit(case):
    model, y = CASES[case]
    model.fit(X, y, sample_weight=S)
    spec = pickle.loads(pickle.dumps(model.spec()))  # as workers get it
    coded = y[:, None] if y is Y else np.where(y[:, None] == model.classes_, 1.0, -1.0)
    weights = spec.coding.weights(coded, S)
    kernel = spec.resolve_kernel(X, weights)
    assert kernel == model.kernel_
    problem = spec.problem(kernel(X), coded, S)
    np.testing.assert_array_equal(problem.s, weights)
    solution = fit(problem, spec.lam)
    own = model.dual_coef_.reshape(len(X), -1)
    np.testing.assert_allclose(solution.a, own, atol=1e-9 * np.abs(own).max())


@pytest.mark.parametrize("case", CLASSIFIERS)
def test_it_decodes_decision_values_as_the_estimator_does(case):
    model = CLASSIFIERS[case].fit(X, LABELS)
    coding = pickle.loads(pickle.dumps(model.spec())).coding
    values = model.kernel_(X) @ model.dual_coef_ + model.intercept_
    np.testing.assert_array_equal(coding.labels(values), model.predict(X))
    np.testing.assert_allclose(coding.probabilities(values), model.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(coding.by_class(values), model.decision_function(X), atol=1e-9)
    coded = np.where(LABELS[:, None] == model.classes_, 1.0, -1.0)
    np.testing.assert_array_equal(coding.targets(coded), LABELS)


def test_it_cannot_be_changed_and_changes_nothing():
    state = np.random.RandomState(0)
    model = KernelRegressor(approximation=Nystrom(5), random_state=state)
    before, drawn = dict(vars(model)), state.get_state()[1].copy()
    spec = model.spec()
    assert isinstance(spec, Spec)
    assert vars(model) == before
    np.testing.assert_array_equal(state.get_state()[1], drawn)
    with pytest.raises(FrozenInstanceError):
        spec.lam = 1.0
    with pytest.raises(FrozenInstanceError):
        spec.coding.single = False


def test_it_knows_classes_once_targets_were_seen():
    model = KernelClassifier(multi_class="ovo")
    assert model.spec().coding.columns_are_targets
    model.fit(X, LABELS)
    assert list(model.spec().coding.classes) == ["blue", "green", "red"]
    assert not model.spec().coding.columns_are_targets


def test_words_are_of_meanings():
    named = KernelRegressor(loss=Huber(0.3), approximation="nystrom")
    given = KernelRegressor(Huber(0.3), Gaussian(), approximation=Nystrom())
    assert named.spec().words() == given.spec().words()
    other = (
        KernelRegressor(loss=Huber(0.4), approximation=Nystrom(landmarks="pivoted")).spec().words()
    )
    differ = {name for name, words in named.spec().words().items() if other[name] != words}
    assert differ == {"loss", "approximation"}


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(3)])
def test_streamed_features_take_one_seed_of_a_random_state(random_state):
    """Machines of one random state share a sample, and the maps are made by the seed of it."""
    model = KernelRegressor(approximation=Nystrom(10), random_state=random_state)
    search = KernelSearchCV(model, {"gamma": [0.1, 1.0], "lam": [1e-3, 1e-2]}, cv=3)
    search.fit(open_rows(X, Y, cv=3))
    best = search.best_estimator_
    np.testing.assert_array_equal(X[best.landmark_indices_], best.landmarks_)
    np.testing.assert_allclose(
        best.predict(X), best.kernel_(X, best.landmarks_) @ best.dual_coef_ + best.intercept_
    )
