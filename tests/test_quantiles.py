"""Several levels of one target: as fits, in searches, their crossings and their loss."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import make_scorer, mean_pinball_loss
from sklearn.model_selection import LeaveOneOut

from onefit import (
    KernelGradientSearchCV,
    KernelRegressor,
    KernelSearchCV,
    heldout_predict,
    nested_cv,
    predict_interval,
)
from onefit.diagnostics import influence
from onefit.losses import Expectile, Quantile
from onefit.quantiles import (
    crossings,
    heldout_shift,
    levels_of,
    neg_pinball_loss,
    pinball_loss,
    rearrange,
)
from onefit.search.continuous import Interval

LEVELS = [0.1, 0.5, 0.9]


def data(n=60, seed=0):
    random = np.random.default_rng(seed)
    X = random.uniform(-2, 2, size=(n, 1))
    return X, np.sin(2 * X[:, 0]) + (0.1 + 0.2 * np.abs(X[:, 0])) * random.normal(size=n)


def machine(level, loss="quantile", delta="mad", **options):
    own = Quantile(level, delta=delta) if loss == "quantile" else Expectile(level)
    return KernelRegressor(own, gamma=1.0, lam=1e-3, **options)


@pytest.mark.parametrize("loss", ["quantile", "expectile"])
def test_several_levels_are_one_at_a_time(loss):
    X, y = data()
    several = machine(LEVELS, loss).fit(X, y)
    assert several.predict(X).shape == several.dual_coef_.shape == (60, 3)
    assert several.intercept_.shape == (3,)
    held = heldout_predict(several, X, y, cv=4)
    refit = heldout_predict(several, X, y, cv=4, method="refit")
    assert held.exact.all()
    assert held.values == pytest.approx(refit.values, abs=1e-7)
    for j, level in enumerate(LEVELS):
        alone = machine(level, loss).fit(X, y)
        assert alone.predict(X).shape == (60,)
        assert several.predict(X)[:, j] == pytest.approx(alone.predict(X), abs=1e-8)
        apart = heldout_predict(alone, X, y, cv=4)
        assert held.values[:, j] == pytest.approx(apart.values[:, 0], abs=1e-7)
        pull = influence(several, X, y)[:, :, j]
        assert pull == pytest.approx(influence(alone, X, y), abs=1e-6 * np.abs(pull).max())
    if loss == "quantile":
        assert several.delta_.shape == (3,)
        assert isinstance(alone.delta_, float)


def test_a_share_of_the_targets_is_below():
    """With a bias the rounded slopes add up to nothing: shares are right but for the corner."""
    X, y = data(300)
    P = KernelRegressor(Quantile(LEVELS, delta=1e-3), lam=1e-2).fit(X, y).predict(X)
    assert (y[:, None] < P).mean(axis=0) == pytest.approx(LEVELS, abs=0.04)


def test_the_rounded_machine_is_within_half_of_delta_of_the_best_pinball_loss():
    """V <= V_0 <= V + delta / 2, so that the minimiser of V is as near to the least of V_0."""
    X, y = data(40)
    lam = 1e-2

    def objective(delta):
        model = KernelRegressor(Quantile(0.8, delta=delta), gamma=1.0, lam=lam).fit(X, y)
        a, K = model.dual_coef_, model.kernel_(X)
        return pinball_loss(y, model.predict(X), 0.8) + lam * a @ K @ a

    best = objective(1e-6)
    for delta in (0.3, 0.1, 0.01):
        assert best - 1e-7 <= objective(delta) <= best + delta / 2


def test_several_expectiles_are_scored_by_their_own_loss():
    X, y = data()
    several = machine(LEVELS, "expectile").fit(X, y)
    P = several.predict(X)
    each = [Expectile(level).value(y, P[:, j]).mean() for j, level in enumerate(LEVELS)]
    assert several.score(X, y) == pytest.approx(-np.mean(each))
    search = KernelSearchCV(machine(LEVELS, "expectile"), {"lam": [1e-3, 1e-2]}, cv=3).fit(X, y)
    assert search.best_score_ < 0.0


def test_several_levels_take_one_target():
    X, y = data()
    with pytest.raises(ValueError, match=r"level has 3 values and y has 2 columns"):
        machine(LEVELS).fit(X, np.column_stack([y, y]))
    both = machine(0.8).fit(X, np.column_stack([y, -y]))
    assert both.predict(X)[:, 0] == pytest.approx(machine(0.8).fit(X, y).predict(X), abs=1e-8)


def test_one_level_in_a_list_is_one_level():
    X, y = data()
    assert machine([0.8]).fit(X, y).predict(X).shape == (60,)
    assert levels_of(KernelRegressor()) == ()
    assert levels_of(KernelRegressor(Quantile(0.3))) == (0.3,)


def test_pinball_loss_is_scikit_learns():
    X, y = data()
    P = np.column_stack([y + 0.1, X[:, 0], 0 * y])
    s = np.random.default_rng(0).uniform(0.1, 2.0, 60)
    for weight in (None, s):
        each = [
            mean_pinball_loss(y, P[:, j], alpha=LEVELS[j], sample_weight=weight) for j in (0, 1, 2)
        ]
        assert pinball_loss(y, P, LEVELS, weight) == pytest.approx(np.mean(each))
    with pytest.raises(ValueError, match="3 columns for 2 levels"):
        pinball_loss(y, P, [0.1, 0.9])


def test_searches_choose_by_the_pinball_loss():
    X, y = data()
    grid = {"lam": [1e-3, 1e-2, 1e-1, 1.0]}
    several = machine(LEVELS, delta=0.3)
    default = KernelSearchCV(several, grid, cv=3).fit(X, y)
    named = KernelSearchCV(several, grid, cv=3, scoring=neg_pinball_loss).fit(X, y)
    scores = default.cv_results_["mean_test_score"]
    np.testing.assert_array_equal(scores, named.cv_results_["mean_test_score"])
    assert default.cv_results_["exact"].all()
    by_hand = np.zeros(4)
    for level in LEVELS:
        scorer = make_scorer(mean_pinball_loss, alpha=level, greater_is_better=False)
        alone = machine(level, delta=0.3)
        alone = KernelSearchCV(alone, grid, cv=3, scoring=scorer).fit(X, y)
        by_hand += alone.cv_results_["mean_test_score"] / 3
    assert scores == pytest.approx(by_hand, abs=1e-8)
    assert default.predict(X).shape == (60, 3)
    assert default.score(X, y) == pytest.approx(default.best_estimator_.score(X, y))


def test_levels_and_widths_are_searched():
    X, y = data(30)
    grid = {"loss__level": [LEVELS, 0.5], "loss__delta": [0.01, 0.1], "lam": [1e-3, 1e-2]}
    base = KernelRegressor("quantile", gamma=1.0)
    search = KernelSearchCV(base, grid, cv=4, scoring=neg_pinball_loss)
    search.fit(X, y)
    for i, params in enumerate(search.cv_results_["params"]):
        held = search.heldout(i)
        alone = heldout_predict(base.set_params(**params), X, y, cv=4, method="refit")
        assert held.values == pytest.approx(alone.values, abs=1e-7)


def test_the_gradient_follows_the_rounded_loss_of_the_levels():
    X, y = data(24)
    ranges = {"gamma": Interval(0.3, 1.0), "lam": Interval(1e-2, 1e-1)}
    base = KernelRegressor(Quantile([0.2, 0.8], delta=0.2))
    search = KernelGradientSearchCV(base, ranges, cv=2).fit(X, y)
    assert search.descents_
    assert all(one.last <= one.first for one in search.descents_)


@pytest.mark.parametrize("scoring", ["r2", "neg_mean_absolute_error"])
def test_scores_of_one_prediction_a_row_are_refused(scoring):
    X, y = data()
    with pytest.raises(ValueError, match=r"onefit.quantiles.neg_pinball_loss, for several levels"):
        KernelSearchCV(machine(LEVELS), {"lam": [0.1]}, scoring=scoring).fit(X, y)
    with pytest.raises(ValueError, match="neg_pinball_loss needs a model with levels"):
        neg_pinball_loss(KernelRegressor().fit(X, y), X, y)


def test_intervals_begin_and_end_at_the_outer_levels():
    X, y = data()
    found = predict_interval(machine(LEVELS), X, y, X[:4])
    assert found.lower.shape == found.prediction.shape == (4,)
    assert found.width == "quantiles"


def test_crossings_are_told_and_mended():
    P = np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 2.5], [1.0, 1.0, 1.0]])
    found = crossings(P, LEVELS)
    assert found.rows.tolist() == [1]
    assert found.share == pytest.approx(1 / 3)
    assert found.largest == 1.0
    assert crossings(P[[0, 2]], LEVELS) == (pytest.approx([]), 0.0, 0.0)
    mended = rearrange(P, LEVELS)
    assert mended.tolist() == [[1, 2, 3], [2, 2.5, 3], [1, 1, 1]]
    assert crossings(mended, LEVELS).largest == 0.0


def test_levels_in_any_order():
    P = np.array([[3.0, 1.0, 2.0], [1.0, 2.0, 3.0]])
    level = [0.9, 0.1, 0.5]
    assert crossings(P, level).rows.tolist() == [1]
    assert rearrange(P, level).tolist() == [[3, 1, 2], [3, 1, 2]]
    with pytest.raises(ValueError, match="a column for each of the 2 levels"):
        rearrange(P, [0.1, 0.9])


def test_sorting_never_harms():
    """Chernozhukov et al.: the mean pinball loss over levels does not rise."""
    X, y = data(30)
    P = KernelRegressor(Quantile([0.4, 0.5, 0.6]), gamma=50.0, lam=1e-5).fit(X[:15], y[:15])
    P = P.predict(X)
    assert crossings(P, [0.4, 0.5, 0.6]).share > 0
    mended = rearrange(P, [0.4, 0.5, 0.6])
    assert pinball_loss(y, mended, [0.4, 0.5, 0.6]) <= pinball_loss(y, P, [0.4, 0.5, 0.6]) + 1e-12


@pytest.mark.parametrize("weighted", [False, True])
def test_a_shift_puts_a_levels_share_of_held_out_rows_below(weighted):
    X, y = data(83)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, 83) if weighted else None
    held = heldout_predict(machine(LEVELS), X, y, sample_weight=weight)
    shift = heldout_shift(held, LEVELS)
    below = y[:, None] <= held.predictions + shift + 1e-12
    share = np.average(below, axis=0, weights=weight)
    assert (np.abs(share - LEVELS) <= 2.0 / 83).all()
    loss = np.array(
        [
            pinball_loss(y, held.predictions[:, j] + step, level, weight)
            for j, level in enumerate(LEVELS)
            for step in (shift[j], shift[j] - 0.01, shift[j] + 0.01)
        ]
    ).reshape(3, 3)
    assert (loss.argmin(axis=1) == 0).all()
    with pytest.raises(ValueError, match="3 columns for 2 levels"):
        heldout_shift(held, [0.1, 0.9])


def test_nested_cross_validation_tells_the_pinball_loss():
    X, y = data(36)
    found = nested_cv(machine([0.2, 0.8], delta=0.3), X, y, cv=3, n_repeats=1)
    assert 0.0 < found.error < 0.3


@pytest.mark.parametrize(
    ("criterion", "delta"), [("loo", "mad"), ("loo", 0.3), ("influence_loo", 0.3)]
)
def test_criteria_judge_a_quantile_by_its_level(criterion, delta):
    """By the pinball loss where widths differ from lambda to lambda, else by the rounded one."""
    X, y = data(30)
    base = KernelRegressor(Quantile(0.9, delta=delta), gamma=1.0)
    options = {"cv": LeaveOneOut(), "scoring": neg_pinball_loss}
    search = KernelSearchCV(base, {"lam": [1e-2, 1e-1]}, criterion=criterion, **options).fit(X, y)
    pinball = [pinball_loss(y, search.heldout(i).predictions, 0.9) for i in range(2)]
    gap = pinball - search.cv_results_["criterion"]
    if delta == "mad":
        assert gap == pytest.approx(0.0, abs=1e-6)
    else:  # absolute errors would be far above
        assert (np.abs(gap) < 0.3 / 2).all()
