"""Adding and removing rows, against retraining."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from watched import Refused

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV, heldout_predict
from onefit.config import config_context
from onefit.losses import LOSSES, EpsilonInsensitive, EpsilonQuadratic, Expectile, Huber, Quantile

random = np.random.default_rng(0)
n = 60
X = random.uniform(-2, 2, size=(n, 3))
y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * random.normal(size=n)
s = random.choice([0.5, 1.0, 2.0], size=n)
labels = np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, [0.4, 0.7]))]
X_new = random.uniform(-2, 2, size=(20, 3))
REGRESSION = {
    "huber": Huber(0.3),
    "epsilon_insensitive": EpsilonInsensitive(epsilon=0.1, delta=0.05),
    "epsilon_quadratic": EpsilonQuadratic(0.1),
    "quantile": Quantile(0.8, delta=0.05),
    "expectile": Expectile(0.8),
}
SETTINGS = [{}, {"scaling": "total", "lam": 0.1}, {"fit_intercept": False}]


def names_for(task):
    return [name for name, cls in LOSSES.items() if cls.task in (task, "any")]


def regressors():
    for loss in names_for("regression"):
        yield KernelRegressor(REGRESSION.get(loss, loss), gamma=0.5, lam=1e-2)


def classifiers():
    for loss in names_for("classification"):
        yield KernelClassifier(loss, gamma=0.5, lam=1e-2)


def check(model, retrained):
    """The predictions and fitted attributes of retraining."""
    decide = "decision_function" if hasattr(model, "classes_") else "predict"
    found, expected = (getattr(one, decide)(X_new) for one in (model, retrained))
    np.testing.assert_allclose(found, expected, atol=2e-6 * np.abs(y).max())
    assert model.error_ <= 1e-6 * max(1.0, np.abs(y).max())
    assert model.X_fit_.shape == retrained.X_fit_.shape
    assert model.dual_coef_.shape == retrained.dual_coef_.shape
    assert np.shape(model.intercept_) == np.shape(retrained.intercept_)


def test_every_loss_is_tested():
    assert {model.spec().loss.name for model in regressors()} >= {"squared", "huber", "quantile"}
    assert len(list(classifiers())) >= 2


@pytest.mark.parametrize("weights", [np.ones(n), s], ids=["plain", "weighted"])
@pytest.mark.parametrize("setting", SETTINGS, ids=repr)
@pytest.mark.parametrize("model", list(regressors()), ids=lambda model: model.spec().loss.name)
def test_regression_equals_retraining(model, setting, weights):
    model = clone(model).set_params(**setting).fit(X[:50], y[:50], sample_weight=weights[:50])
    model.add_rows(X[50:55], y[50:55], sample_weight=weights[50:55])
    check(model, clone(model).fit(X[:55], y[:55], sample_weight=weights[:55]))
    model.add_rows(X[55:], y[55:], sample_weight=weights[55:])
    model.remove_rows([0, 3, -1])
    rows = np.setdiff1d(np.arange(n), [0, 3, n - 1])
    check(model, clone(model).fit(X[rows], y[rows], sample_weight=weights[rows]))


@pytest.mark.parametrize("setting", [{}, {"multi_class": "ovo"}, {"class_weight": {"b": 3.0}}])
@pytest.mark.parametrize("model", list(classifiers()), ids=lambda model: model.spec().loss.name)
def test_classification_equals_retraining(model, setting):
    model = clone(model).set_params(**setting).fit(X[:50], labels[:50], sample_weight=s[:50])
    model.add_rows(X[50:], labels[50:], sample_weight=s[50:]).remove_rows([1, 2])
    rows = np.setdiff1d(np.arange(n), [1, 2])
    retrained = clone(model).fit(X[rows], labels[rows], sample_weight=s[rows])
    check(model, retrained)
    assert (model.predict(X_new) == retrained.predict(X_new)).all()
    assert model.n_support_.shape == retrained.n_support_.shape


def test_two_classes_and_several_targets_and_levels():
    two = np.where(y > 0, "high", "low")
    model = KernelClassifier("log", gamma=0.5).fit(X[:50], two[:50])
    check(model.add_rows(X[50:], two[50:]), clone(model).fit(X, two))
    Y = np.column_stack([y, X[:, 2]])
    model = KernelRegressor(gamma=0.5).fit(X[:50], Y[:50])
    check(model.add_rows(X[50:], Y[50:]), clone(model).fit(X, Y))
    model = KernelRegressor(Quantile([0.2, 0.8], delta=0.05), gamma=0.5).fit(X[:50], y[:50])
    check(model.add_rows(X[50:], y[50:]), clone(model).fit(X, y))


@pytest.mark.parametrize("model", [KernelRegressor(gamma=0.5), KernelRegressor("huber", gamma=0.5)])
def test_many_updates_stay_exact(model):
    """Rows go in and out until none of the first ones is left."""
    model = clone(model).set_params(lam=1e-3)
    if model.loss == "huber":
        model.set_params(loss__threshold=0.3)
    model.fit(X[:20], y[:20])
    for i in range(20, n):
        model.add_rows(X[[i]], y[[i]])
        if i % 2:
            model.remove_rows([0, 1])
    check(model, clone(model).fit(X[40:], y[40:]))


@pytest.mark.parametrize("setting", SETTINGS, ids=repr)
@pytest.mark.parametrize(
    "model", [KernelRegressor(gamma=0.5), KernelRegressor(Huber(0.3), gamma=0.5)]
)
def test_a_hundred_alternating_updates_equal_retraining(model, setting):
    """Rows leave in random order, and come back: predictions and held-out values follow."""
    model = clone(model).set_params(**{"lam": 1e-3, **setting}).fit(X[:30], y[:30])
    inside, chosen = list(range(30)), np.random.default_rng(1)
    for step in range(100):
        if step % 2 and len(inside) > 20:
            place = int(chosen.integers(len(inside)))
            model.remove_rows([place])
            del inside[place]
        else:
            new = int(chosen.choice(np.setdiff1d(np.arange(n), inside)))
            model.add_rows(X[[new]], y[[new]])
            inside.append(new)
        if step % 9 == 0:
            retrained = clone(model).fit(X[inside], y[inside])
            check(model, retrained)
            held = heldout_predict(model, cv=4)
            expected = heldout_predict(model, X[inside], y[inside], cv=4)
            assert held.exact.all()
            np.testing.assert_allclose(held.predictions, expected.predictions, atol=4e-6)


@pytest.mark.parametrize("weights", [None, s], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    ("model", "targets"),
    [
        *((model, y) for model in regressors()),
        (KernelRegressor(Quantile([0.2, 0.8], delta=0.05), gamma=0.5), y),
        (KernelRegressor(gamma=0.5), np.column_stack([y, X[:, 2]])),
        *((model, labels) for model in classifiers()),
        (KernelClassifier("log", gamma=0.5, multi_class="ovo"), labels),
        (KernelClassifier("squared", gamma=0.5, class_weight={"b": 3.0}), labels),
    ],
)
def test_held_out_values_follow(model, targets, weights):
    rows = np.setdiff1d(np.arange(n), [1, 2])
    given = [None if weights is None else weights[some] for some in (slice(50), slice(50, None))]
    model = clone(model).fit(X[:50], targets[:50], sample_weight=given[0])
    model.add_rows(X[50:], targets[50:], sample_weight=given[1]).remove_rows([1, 2])
    found = heldout_predict(model, cv=5)
    left = None if weights is None else weights[rows]
    expected = heldout_predict(model, X[rows], targets[rows], cv=5, sample_weight=left)
    np.testing.assert_allclose(found.values, expected.values, atol=4e-6)
    np.testing.assert_array_equal(found.targets, targets[rows])
    np.testing.assert_allclose(found.sample_weight, np.ones(n - 2) if left is None else left)
    if hasattr(model, "classes_"):
        np.testing.assert_array_equal(found.labels, expected.labels)


def test_the_winner_of_a_search_is_updated():
    search = KernelSearchCV(KernelRegressor(gamma=0.5), {"lam": [1e-3, 1e-1]}, cv=5)
    best = search.fit(X[:50], y[:50]).best_estimator_
    np.testing.assert_allclose(heldout_predict(best).values, search.heldout_.values, atol=1e-9)
    best.add_rows(X[50:], y[50:])
    check(best, clone(best).fit(X, y))
    expected = heldout_predict(clone(best), X, y).predictions
    np.testing.assert_allclose(heldout_predict(best).predictions, expected, atol=1e-9)


def test_a_small_ridge_and_equal_rows_are_certified():
    model = KernelRegressor(gamma=0.01, lam=1e-9).fit(X[:50], y[:50])
    model.add_rows(np.vstack([X[50:], X[:5]]), np.append(y[50:], y[:5]))
    again = clone(model).fit(np.vstack([X, X[:5]]), np.append(y, y[:5]))
    np.testing.assert_allclose(model.predict(X_new), again.predict(X_new), atol=1e-4)
    assert model.error_ <= 1e-6


def test_rows_of_weight_zero_and_float32_and_sparse():
    weights = np.where(np.arange(n) % 7 == 0, 0.0, 1.0)
    model = KernelRegressor(gamma=0.5).fit(X[:50], y[:50], sample_weight=weights[:50])
    model.add_rows(X[50:], y[50:], sample_weight=weights[50:])
    check(model, clone(model).fit(X, y, sample_weight=weights))
    single, targets = X.astype(np.float32), y.astype(np.float32)
    model = KernelRegressor(gamma=0.5, lam=1e-2).fit(single[:50], targets[:50])
    model.add_rows(single[50:], targets[50:])
    again = clone(model).fit(single, targets)
    assert model.dual_coef_.dtype == np.float32
    np.testing.assert_allclose(model.predict(single), again.predict(single), atol=1e-4)
    rows = sparse.csr_array(X)
    model = KernelRegressor(gamma=0.5).fit(rows[:50], y[:50]).add_rows(rows[50:], y[50:])
    check(model.remove_rows([2]), clone(model).fit(np.delete(X, 2, 0), np.delete(y, 2)))


def test_settings_from_the_data_stay_as_they_were():
    model = KernelRegressor("huber").fit(X[:30], y[:30])
    gamma, threshold = model.kernel_.gamma, model.threshold_
    model.add_rows(10 * X[30:], 10 * y[30:])
    assert (model.kernel_.gamma, model.threshold_) == (gamma, threshold)
    again = KernelRegressor(Huber(threshold), gamma=gamma)
    again.fit(np.vstack([X[:30], 10 * X[30:]]), np.append(y[:30], 10 * y[30:]))
    np.testing.assert_allclose(model.predict(X_new), again.predict(X_new), atol=1e-5)
    balanced = KernelClassifier("log", class_weight="balanced").fit(X[:30], labels[:30])
    weight = balanced.class_weight_
    assert (balanced.add_rows(X[30:], labels[30:]).class_weight_ == weight).all()


def test_a_new_fit_forgets_the_updates_and_pickles_hold_no_matrix():
    model = KernelRegressor(gamma=0.5).fit(X[:50], y[:50]).add_rows(X[50:], y[50:])
    assert len(pickle.dumps(model)) < 8 * n * n
    copied = pickle.loads(pickle.dumps(model)).remove_rows([0])
    check(copied, clone(model).fit(X[1:], y[1:]))
    model.fit(X[:20], y[:20]).add_rows(X[20:30], y[20:30])
    check(model, clone(model).fit(X[:30], y[:30]))


def test_a_copy_of_an_updated_model_keeps_the_settings_of_the_first_fit():
    model = (
        KernelRegressor(Huber("mad"), gamma=0.5).fit(X[:30], y[:30]).add_rows(X[30:], 9 * y[30:])
    )
    copied = pickle.loads(pickle.dumps(model)).remove_rows([0])
    assert copied.threshold_ == model.threshold_
    check(copied, model.remove_rows([0]))


def dented(A, B):
    """Distances enter with both signs: not a positive semidefinite kernel."""
    d = np.square(A[:, None] - B).sum(axis=2)
    return np.exp(-d) - 0.5 * np.exp(-0.25 * d)


def test_an_indefinite_kernel_is_measured_as_by_a_fit():
    few = 3.0 * np.arange(5.0)[:, None] + np.zeros(3)
    targets = few[:, 0]
    everything = np.vstack([few, X]), np.append(targets, y)
    model = KernelRegressor(kernel=dented, lam=1e-3, fit_intercept=False).fit(few, targets)
    for again in (clone(model).fit, lambda *_: model.add_rows(X, y)):
        with pytest.raises(ValueError, match="the kernel matrix is indefinite"):
            again(*everything)
    model.set_params(lam=0.1).fit(few, targets)  # so large that the problem has a minimiser
    model.add_rows(X, y)
    check(model, clone(model).fit(*everything))
    assert model.error_ >= 0.95 * clone(model).fit(*everything).error_


class _Interrupted(Huber):
    """Raises KeyboardInterrupt when its gradient is computed, once it is armed."""

    on = False

    def gradient(self, y, u):
        if self.on:
            raise KeyboardInterrupt
        return super().gradient(y, u)


@pytest.mark.parametrize("update", ["add_rows", "remove_rows"])
def test_an_interrupted_update_leaves_the_model_unchanged(update):
    model = KernelRegressor(_Interrupted(0.3), gamma=0.5).fit(X[:50], y[:50])
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    _Interrupted.on = True
    try:
        with pytest.raises(KeyboardInterrupt):
            model.add_rows(X[50:], y[50:]) if update == "add_rows" else model.remove_rows([0])
    finally:
        _Interrupted.on = False
    assert all(vars(model)[name] is value for name, value in before.items())
    check(model.add_rows(X[50:], y[50:]), clone(model).fit(X, y))


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_what_does_not_fit_into_memory_is_refused_before_a_kernel_matrix_is_built(loss):
    model = KernelRegressor(loss, gamma=1.0).fit(X, y)
    model.kernel_ = Refused(1.0)
    refused = r"an update on n=60 rows needs .* at most \d+ rows"
    with config_context(memory_bytes=8.0 * n**2), pytest.raises(MemoryError, match=refused):
        model.add_rows(X, y)


def fitted(**params):
    return KernelRegressor(**params).fit(X, y)


@pytest.mark.parametrize(
    ("update", "match"),
    [
        (lambda: fitted().remove_rows([n]), f"between -{n} and {n - 1}"),
        (lambda: fitted().remove_rows([0.5]), "row numbers"),
        (lambda: fitted().remove_rows(np.arange(n - 1)), "two rows"),
        (lambda: fitted().add_rows(X[:, :2], y), "features"),
        (lambda: fitted().add_rows(X, y[:5]), "inconsistent"),
        (lambda: fitted().add_rows(X[:1], y[:1], sample_weight=[1.0, 2.0]), r"expected \(1,\)"),
        (lambda: fitted().add_rows(X[:1], y[:1], sample_weight=[-1.0]), "negative"),
        (lambda: fitted().add_rows(X[:1], y[:1], sample_weight=[np.nan]), "NaN"),
        (lambda: fitted().add_rows(X, np.column_stack([y, y])), "same number of columns"),
        (lambda: fitted(approximation="nystrom").add_rows(X, y), "approximation"),
        (
            lambda: KernelRegressor(kernel="precomputed").fit(X @ X.T, y).add_rows(X @ X.T, y),
            "needs the rows themselves, got kernel='precomputed'",
        ),
        (lambda: heldout_predict(fitted(approximation="nystrom")), "approximation"),
        (lambda: heldout_predict(fitted(), None, y), "without X pass a fitted estimator alone"),
        (lambda: heldout_predict(KernelRegressor()), "not fitted"),
        (
            lambda: KernelClassifier().fit(X, labels).add_rows(X[:1], ["d"]),
            "label 'd', which is not one of the model's classes",
        ),
        (
            lambda: KernelClassifier().fit(X, labels).remove_rows(np.flatnonzero(labels == "c")),
            "no row of class 'c'",
        ),
        (
            lambda: (
                KernelClassifier()
                .fit(
                    X,
                    labels,
                    sample_weight=np.where(np.cumsum(labels == "c") > 2, labels != "c", 1),
                )
                .remove_rows(np.flatnonzero(labels == "c")[:2])
            ),
            "no row of class 'c'",  # whose other rows have weight zero
        ),
    ],
)
def test_refused(update, match):
    with pytest.raises(ValueError, match=match):
        update()


def test_one_row_with_a_weight_may_be_added():
    model = KernelRegressor(gamma=0.5, lam=1e-2).fit(X[:50], y[:50], sample_weight=s[:50])
    model.add_rows(X[50:51], y[50:51], sample_weight=[3.0])
    check(model, clone(model).fit(X[:51], y[:51], sample_weight=[*s[:50], 3.0]))
