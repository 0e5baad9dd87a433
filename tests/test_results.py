"""Results of functions: a sentence, a short repr, and a figure that a report shows too."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from onefit import KernelGradientSearchCV, KernelRegressor, KernelSearchCV, nested_cv
from onefit.learning import learning_curve
from onefit.permutation import permutation_test
from onefit.relevance import relevance
from onefit.report import write_report
from onefit.search import Interval
from onefit.uncertainty import novelty
from onefit.value import removal_values, shapley_values

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=40)
Y[7] += 9.0


@pytest.fixture(scope="module")
def search():
    cv = KFold(4, shuffle=True, random_state=0)
    return KernelSearchCV(KernelRegressor(), {"lam": [1e-2, 1e-1]}, cv=cv).fit(X, Y)


@pytest.fixture(scope="module")
def results(search):
    gammas = {"gamma": Interval(1e-2, 1.0, per_feature=True), "lam": [1e-2]}
    ard = KernelGradientSearchCV(KernelRegressor(), gammas, cv=3).fit(X, Y)
    return {
        "curve": learning_curve(search, X, Y),
        "test": permutation_test(search, X, Y, n_permutations=9),
        "removal": removal_values(search, X, Y),
        "shapley": shapley_values(search, X, Y, n_permutations=3),
        "relevance": relevance(ard, X, Y, cv=3),
        "nested": nested_cv(search, X, Y, cv=3, n_repeats=1),
        "novelty": novelty(search, 9.0 * X),
    }


DRAWN = ["curve", "test", "removal", "shapley", "relevance"]
SENTENCES = {
    "curve": "mean held-out score",
    "test": "p-value of the whole search",
    "removal": "unit 7 has the least value",
    "shapley": "of 40 units",
    "relevance": "the most relevant column is 0",
    "nested": "90% interval",
    "novelty": "of 40 rows are further",
}


@pytest.mark.parametrize("name", SENTENCES)
def test_each_has_a_sentence_and_a_short_repr(results, name):
    found = results[name]
    assert SENTENCES[name] in found.sentence
    assert len(repr(found)) < 500
    if name != "relevance":
        assert str(found) == found.sentence


@pytest.mark.parametrize("name", DRAWN)
def test_each_is_drawn_on_new_or_given_axes(results, name):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    drawn = results[name].plot()
    assert drawn.get_xlabel()
    _, given = pyplot.subplots()
    assert results[name].plot(given) is given
    assert given.get_xlabel() == drawn.get_xlabel()
    pyplot.close("all")


def test_a_report_shows_those_that_are_drawn(search, results, tmp_path):
    pytest.importorskip("matplotlib")
    page = write_report(search, tmp_path / "page.html", further=[results[name] for name in DRAWN])
    text = page.read_text(encoding="utf-8")
    for name in DRAWN:
        assert results[name].sentence[1:30] in text
