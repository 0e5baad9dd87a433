"""One lam for each target."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.model_selection import KFold

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV

X, y = make_friedman1(50, random_state=0)
rng = np.random.default_rng(0)
Y = np.column_stack([y, y + 8.0 * rng.normal(size=50), rng.normal(size=50)])
LAMS = [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0]
GAMMAS = [0.1, 0.5]
CV = KFold(5, shuffle=True, random_state=0)


@pytest.mark.parametrize(
    ("how", "loss"), [("mean", "squared"), ("pooled", "squared"), ("mean", "huber")]
)
def test_each_target_gets_the_lam_of_its_own_search(how, loss):
    options = {"cv": CV, "aggregate": how, "method": "refit" if loss == "huber" else "auto"}
    machine = KernelRegressor(loss=loss)
    weights = rng.uniform(0.5, 2.0, 50)
    weights[3] = 0.0
    grid = {"gamma": GAMMAS, "lam": LAMS}
    joint = KernelSearchCV(machine, grid, lam_per_target=True, **options)
    joint.fit(X, Y, sample_weight=weights)
    best = {}
    for gamma in GAMMAS:
        single = [
            KernelSearchCV(machine, {"gamma": [gamma], "lam": LAMS}, **options).fit(
                X, Y[:, j], sample_weight=weights
            )
            for j in range(3)
        ]
        best[gamma] = single
    means = {gamma: np.mean([one.best_score_ for one in found]) for gamma, found in best.items()}
    winner = max(means, key=means.get)
    assert joint.best_params_["gamma"] == winner
    np.testing.assert_array_equal(joint.best_lam_, [s.best_params_["lam"] for s in best[winner]])
    np.testing.assert_allclose(joint.best_target_scores_, [s.best_score_ for s in best[winner]])
    assert len(set(joint.best_lam_)) > 1
    expected = np.column_stack([one.predict(X) for one in best[winner]])
    np.testing.assert_allclose(joint.predict(X), expected, rtol=1e-7, atol=1e-9)


def test_a_metric_without_targets_is_refused():
    search = KernelSearchCV(
        KernelRegressor(), {"lam": LAMS}, lam_per_target=True, scoring="explained_variance"
    )
    with pytest.raises(ValueError, match=r"lam_per_target=True needs a metric.*r2_score"):
        search.fit(X, Y)


def test_classifiers_are_refused():
    with pytest.raises(ValueError, match="lam_per_target=True is for regressors"):
        KernelSearchCV(KernelClassifier(), {"lam": LAMS}, lam_per_target=True).fit(X, y > 14)
