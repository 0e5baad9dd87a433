"""Rows that are not vectors, arrays of gamma, and parameters that do nothing."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from registries import sample
from sklearn.metrics import brier_score_loss, make_scorer
from sklearn.model_selection import GridSearchCV

from onefit import (
    KernelClassifier,
    KernelRegressor,
    KernelSearchCV,
    heldout_predict,
    predict_interval,
)
from onefit.diagnostics import influence
from onefit.estimators.unused import UnusedParameterWarning
from onefit.kernels import CallableKernel, Gaussian, WeightedSum
from onefit.losses import EpsilonInsensitive


def letters(n=40, seed=0):
    """Words, and whether they are of the second alphabet."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return ["".join(random.choice(list("abc" if i else "bcd"), 5)) for i in y], y


def matches(A, B):
    """How many letters two words share, place by place: a sum of kernels of single letters."""
    return np.array([[sum(p == q for p, q in zip(a, b, strict=True)) for b in B] for a in A]) / 5.0


def shared(A, B):
    return np.array([[len(a & b) for b in B] for a in A], dtype=float)


FORMS = {
    "list": list,
    "array": np.array,
    "objects": lambda words: np.array(words, dtype=object),
    "series": pd.Series,
}


@pytest.mark.parametrize("form", FORMS)
def test_words(form):
    words, y = letters()
    X, K = FORMS[form](words), matches(words, words)
    options = {"loss": "smoothed_hinge", "lam": 0.1, "scaling": "total"}
    model = KernelClassifier(kernel=matches, **options).fit(X, y)
    given = KernelClassifier(kernel="precomputed", **options).fit(K, y)
    new, _ = letters(9, seed=1)
    assert model.decision_function(FORMS[form](new)) == pytest.approx(
        given.decision_function(matches(new, words))
    )
    held = heldout_predict(model, X, y)
    assert held.values == pytest.approx(heldout_predict(given, K, y).values)
    grid = {"lam": [1e-2, 1e-1, 1.0]}
    ours = KernelSearchCV(model, grid, cv=4).fit(X, y)
    theirs = GridSearchCV(given, grid, cv=4).fit(K, y)
    scores = [one.cv_results_["mean_test_score"] for one in (ours, theirs)]
    assert scores[0] == pytest.approx(scores[1])
    assert ours.predict(FORMS[form](new)).shape == (9,)


def test_sets_and_tables_of_words():
    words, y = letters()
    sets = [set(word) for word in words]
    model = KernelClassifier(kernel=shared).fit(sets, y)
    assert model.predict(sets[:3]).shape == (3,)
    table = pd.DataFrame({"first": [w[:2] for w in words], "rest": [w[2:] for w in words]})

    def both(A, B):
        assert A.shape[1] == B.shape[1] == 2
        return sum(_equal(A[:, j], B[:, j]) for j in (0, 1))

    assert KernelClassifier(kernel=both).fit(table, y).predict(table.head(2)).shape == (2,)


def _equal(a, b):
    return (a[:, None] == b[None, :]).astype(float)


def test_rows_of_other_shapes():
    """Sequences of several lengths, and small images."""
    random = np.random.default_rng(0)
    y = random.normal(size=20)
    ragged = [random.normal(size=3 + i % 4).tolist() for i in range(20)]
    model = KernelRegressor(kernel=lambda A, B: np.outer([sum(a) for a in A], [sum(b) for b in B]))
    assert model.fit(ragged, y).predict(ragged[:2]).shape == (2,)
    images = random.normal(size=(20, 3, 3))

    def trace(A, B):
        return np.array([[np.vdot(a, b) for b in B] for a in A])

    flat = images.reshape(20, 9)
    assert KernelRegressor(kernel=trace).fit(images, y).predict(images) == pytest.approx(
        KernelRegressor(kernel="linear").fit(flat, y).predict(flat)
    )


class Graph:
    """What looks like a sequence to NumPy, and is none."""

    def __init__(self, edges):
        self.edges = edges

    def __len__(self):
        return len(self.edges)

    def __getitem__(self, node):
        raise KeyError(node)


def test_graphs():
    random = np.random.default_rng(0)
    edges = [
        {tuple(sorted(random.integers(0, 5, 2).tolist())) for _ in range(6)} for _ in range(30)
    ]
    y = np.array([len(one) for one in edges], dtype=float)

    def common(A, B):
        return np.array([[len(a.edges & b.edges) for b in B] for a in A], dtype=float)

    graphs = [Graph(one) for one in edges]
    search = KernelSearchCV(KernelRegressor(kernel=common), {"lam": [1e-3, 1e-2]}).fit(graphs, y)
    assert search.cv_results_["exact"].all()
    assert search.predict(graphs[:4]).shape == (4,)


def test_kernel_objects_of_functions():
    words, y = letters()
    one = CallableKernel(matches)
    double = KernelRegressor(kernel=WeightedSum([one, one], [0.5, 0.5])).fit(words, y)
    assert double.predict(words) == pytest.approx(
        KernelRegressor(kernel=one).fit(words, y).predict(words)
    )
    with pytest.raises(ValueError, match="could not convert string to float"):
        KernelRegressor(kernel=WeightedSum([one, Gaussian(1.0)], [1.0, 1.0])).fit(words, y)
    with pytest.raises(ValueError, match="could not convert string to float"):
        KernelRegressor().fit(np.array(words)[:, None], y)
    with pytest.raises(TypeError, match="points are not vectors of numbers"):
        Gaussian(1.0)(np.array(words, dtype=object))


def test_intervals_and_influence_of_words(tmp_path):
    words, y = letters()
    model = KernelRegressor(kernel=matches, lam=0.01)
    found = predict_interval(model, words, y.astype(float), words[:3])
    assert (found.lower <= found.upper).all()
    alone = influence(model, words, y.astype(float), point=("aaaaa", 1.0))
    assert alone.shape == (40,)
    journal = tmp_path / "journal"
    first, again = (
        KernelSearchCV(model, {"lam": [0.01, 0.1]}, journal=journal).fit(words, y.astype(float))
        for _ in range(2)
    )
    assert first.best_params_ == again.best_params_


def test_numbers_are_still_checked_with_a_function():
    X, y = sample("regression")
    model = KernelRegressor(kernel=lambda A, B: A @ B.T)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        KernelRegressor(kernel=matches).fit(["a"], [1.0])


def test_a_gamma_for_each_column():
    X, y = sample("regression", d=3)
    scales = np.array([1.0, 0.2, 0.0])
    model = KernelRegressor(gamma=scales).fit(X, y)
    plain = KernelRegressor(gamma=1.0).fit(X * np.sqrt(scales), y)
    assert model.predict(X) == pytest.approx(plain.predict(X * np.sqrt(scales)))
    grid = {"gamma": [scales, np.ones(3), 2.0], "lam": [1e-3, 1e-2]}
    search = KernelSearchCV(KernelRegressor(), grid).fit(X, y)
    each = [
        KernelSearchCV(KernelRegressor(gamma=gamma), {"lam": grid["lam"]}).fit(X, y).best_score_
        for gamma in grid["gamma"]
    ]
    assert search.best_score_ == pytest.approx(max(each))
    with pytest.raises(ValueError, match="gamma has 3 values, one for each column, but X has 2"):
        KernelRegressor(gamma=scales).fit(X[:, :2], y)
    with pytest.raises(ValueError, match="kernel 'poly' takes a single gamma"):
        KernelRegressor(kernel="poly", gamma=scales).fit(X, y)


NOTHING = [
    ({"kernel": "linear", "gamma": 2.0}, "gamma", "kernel='linear'"),
    ({"kernel": lambda A, B: A @ B.T, "gamma": 2.0}, "gamma", "kernel=<function"),
    ({"kernel": Gaussian(1.0), "gamma": np.ones(2)}, "gamma", r"kernel=Gaussian\(gamma=1.0\)"),
]


@pytest.mark.parametrize(("parameters", "name", "why"), NOTHING, ids=lambda p: str(p)[:30])
def test_parameters_that_do_nothing(parameters, name, why):
    X, y = sample("regression")
    with pytest.warns(UnusedParameterWarning, match=f"'{name}' does nothing with {why}"):
        KernelRegressor(**parameters).fit(X, y)
    with pytest.warns(UnusedParameterWarning, match=f"'{name}' does nothing with {why}"):
        KernelSearchCV(KernelRegressor(**parameters), {"lam": [0.1]}).fit(X, y)
    value = parameters.pop(name)
    grid = {name: [value], "lam": [0.1]}
    with pytest.raises(ValueError, match=f"names '{name}', but '{name}' does nothing with {why}"):
        KernelSearchCV(KernelRegressor(**parameters), grid).fit(X, y)


def test_precomputed_kernels_have_no_gamma():
    X, y = sample("regression")
    K = Gaussian(1.0)(X)
    with pytest.warns(UnusedParameterWarning, match="gamma=2.0 was set"):
        KernelRegressor(kernel="precomputed", gamma=2.0).fit(K, y)


def test_a_parameter_that_serves_one_of_several_kernels_is_none_of_them():
    X, y = sample("regression")
    grid = {"kernel": ["linear", "rbf"], "gamma": [0.5, 1.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnusedParameterWarning)
        KernelSearchCV(KernelRegressor(), grid).fit(X, y)
        two = [{"kernel": ["linear"], "lam": [0.1]}, {"gamma": [0.5], "lam": [0.1]}]
        KernelSearchCV(KernelRegressor(), two).fit(X, y)
    with pytest.raises(ValueError, match="'gamma' does nothing with kernel='linear'"):
        KernelSearchCV(KernelRegressor(), [{"kernel": ["linear"], "gamma": [1.0]}]).fit(X, y)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("C", r"lam = 1 / \(2 n C\) .*lam = 1 / \(2 C\)"),
        ("alpha", r"lam = alpha / n .*lam = alpha"),
    ],
)
def test_other_names_of_the_penalty_are_converted(name, words):
    X, y = sample("regression")
    with pytest.raises(ValueError, match=rf"names '{name}', which .* does not have; .*{words}"):
        KernelSearchCV(KernelRegressor(), {name: [1.0]}).fit(X, y)


def test_plain_words_for_labels_and_scores():
    X, y = sample("classification")
    names = np.where(y > 0, "yes", "no")
    for labels in (names, names.astype(object)):
        with pytest.raises(ValueError, match=r"f1_score asks .*'no', 'yes'.*pos_label='yes'"):
            KernelSearchCV(KernelClassifier(), {"lam": [0.1]}, scoring="f1").fit(X, labels)
    search = KernelSearchCV(KernelClassifier("log"), {"lam": [0.1]}, scoring="neg_brier_score")
    with pytest.raises(ValueError, match=r"brier.*make_scorer\((.*)\) with") as raised:
        search.fit(X, names)
    advice = re.search(r"make_scorer\(.*?\)", str(raised.value))[0]
    scorer = eval(advice, {"make_scorer": make_scorer, "brier_score_loss": brier_score_loss})
    assert -0.25 < search.set_params(scoring=scorer).fit(X, names).best_score_ < 0.0
    with pytest.raises(
        ValueError, match=r"continuous.*numbers that are not whole.*KernelRegressor"
    ):
        KernelSearchCV(KernelClassifier(), {"lam": [0.1]}).fit(X, X[:, 0])
    with pytest.raises(TypeError, match="predict_interval"):
        KernelRegressor().fit(X, y).predict(X, return_std=True)
    with pytest.raises(TypeError, match="predict_interval"):
        KernelSearchCV(KernelRegressor(), {"lam": [0.1]}).fit(X, y).predict(X, return_std=True)


def test_support_is_the_rows_with_a_coefficient():
    X, y = sample("classification", n=60)
    model = KernelClassifier("smoothed_hinge", lam=0.01).fit(X, y)
    margin = y * model.decision_function(X)
    assert model.support_.tolist() == np.flatnonzero(margin < 1.1).tolist()
    assert model.n_support_.tolist() == [(y[model.support_] == label).sum() for label in (-1, 1)]
    X, y = sample("regression", n=60)
    tube = KernelRegressor(EpsilonInsensitive(epsilon=0.2, delta=0.1), lam=1e-4).fit(X, y)
    assert tube.support_.tolist() == np.flatnonzero(np.abs(y - tube.predict(X)) > 0.2).tolist()
    assert 0 < tube.n_support_[0] == tube.support_.size < 60
