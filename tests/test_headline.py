"""The numbers that a search is judged by."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import t as student
from sklearn.datasets import load_diabetes, load_iris
from sklearn.dummy import DummyRegressor
from sklearn.metrics import (
    balanced_accuracy_score,
    cohen_kappa_score,
    log_loss,
    make_scorer,
    r2_score,
    roc_auc_score,
)
from sklearn.metrics import root_mean_squared_error as rmse
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneOut,
    cross_val_predict,
)
from sklearn.preprocessing import scale

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV, select
from onefit.losses import Expectile, Huber, Quantile
from onefit.quantiles import neg_pinball_loss, pinball_loss
from onefit.scoring import one_standard_error
from onefit.uncertainty.score_interval import range_of, score_interval

X, y = load_diabetes(return_X_y=True, scaled=False)
X, y = scale(X)[:150], y[:150]
GRID = {"gamma": [0.0121, 0.05], "lam": [1e-3, 1e-2]}
ROOT = "neg_root_mean_squared_error"


def searched(**options):
    machine = options.pop("machine", KernelRegressor())
    labels = options.pop("labels", y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KernelSearchCV(machine, GRID, **options).fit(X, labels)


@pytest.mark.parametrize("cv", [KFold(5), KFold(50), LeaveOneOut()])
def test_a_root_mean_square_is_that_of_all_rows(cv):
    search = searched(cv=cv, scoring=ROOT)
    found = search.headline_
    held = search.heldout_.predictions
    assert found.score == pytest.approx(-rmse(y, held), rel=1e-6)
    assert found.r2 == pytest.approx(r2_score(y, held))
    assert found.mean_of_splits == pytest.approx(search.best_score_)
    dummy = cross_val_predict(DummyRegressor(), X, y, cv=cv)
    assert found.baseline == pytest.approx(-rmse(y, dummy))
    assert found.baseline_name == "always the mean"
    pooled = searched(cv=cv, scoring=ROOT, aggregate="pooled")
    assert pooled.best_score_ == pytest.approx(pooled.headline_.score, rel=1e-6)


def test_a_mean_over_tiny_splits_gets_a_warning():
    def fit(cv, **options):
        KernelSearchCV(KernelRegressor(), GRID, cv=cv, scoring=ROOT, **options).fit(X, y)

    with pytest.warns(UserWarning, match="not the score of all held-out rows together"):
        fit(LeaveOneOut())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(LeaveOneOut(), aggregate="pooled")
        fit(KFold(5))
        options = {"cv": LeaveOneOut(), "scoring": "neg_mean_squared_error"}  # a mean over rows
        KernelSearchCV(KernelRegressor(), GRID, **options).fit(X, y)


def test_standard_errors_of_pooled_scores_are_those_of_rows():
    search = searched(cv=LeaveOneOut(), scoring="neg_mean_squared_error", aggregate="pooled")
    squares = np.square(y - search.heldout_.predictions)
    expected = squares.std(ddof=1) / np.sqrt(y.size)
    table = search.cv_results_
    assert table["se_test_score"][search.best_index_] == pytest.approx(expected, rel=1e-5)
    one_se = searched(cv=LeaveOneOut(), scoring=ROOT, aggregate="pooled", refit=one_standard_error)
    assert one_se.best_params_["lam"] == 1e-2


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "roc_auc"])
def test_metrics_without_a_formula(scoring):
    labels = np.where(y > 150, "high", "low")
    search = searched(machine=KernelClassifier(), labels=labels, scoring=scoring, cv=KFold(10))
    found, held = search.headline_, search.heldout_
    if scoring == "roc_auc":
        expected = roc_auc_score(labels == "low", held.predictions)
        assert found.baseline_name == "the same score for every row"
    else:
        expected = balanced_accuracy_score(labels, held.labels)
        assert found.baseline_name == "always the most frequent class"
    assert found.baseline == pytest.approx(0.5)
    assert found.scoring == scoring
    assert found.score == pytest.approx(expected)
    assert found.shares == {
        name: pytest.approx((labels == name).mean()) for name in ("high", "low")
    }
    assert found.interval[0] < found.score < found.interval[1] <= 1.0
    bootstrap = np.random.default_rng(0)
    draws = [bootstrap.integers(y.size, size=y.size) for _ in range(200)]
    if scoring == "balanced_accuracy":
        spread = np.std([balanced_accuracy_score(labels[r], held.labels[r]) for r in draws])
        assert found.standard_error == pytest.approx(spread, rel=0.35)


def test_rare_rows_do_not_beat_the_baseline():
    labels = (np.arange(y.size) % 30 == 0).astype(int)
    search = searched(machine=KernelClassifier(), labels=labels, cv=5)
    found = search.headline_
    assert found.baseline == pytest.approx(1 - labels.mean())
    assert not found.beats_baseline
    assert "does not beat the baseline (always the most frequent class)" in found.verdict()
    shown = found.verdict(lambda score: 1.0 - score, "error rate")
    assert f"its error rate is {1 - found.score:.4g}" in shown
    good = searched(scoring=ROOT).headline_
    assert good.beats_baseline
    assert good.verdict() == ""


def test_the_lead_is_paired_by_rows():
    """Outliers that both miss by as much do not hide who is better."""
    wild = y + 3000.0 * (np.arange(y.size) % 25 == 0)
    search = searched(labels=wild, scoring="neg_mean_absolute_error", cv=KFold(5),
                      machine=KernelRegressor(loss=Huber(50.0)))  # fmt: skip
    found, held = search.headline_, search.heldout_.predictions
    dummy = cross_val_predict(DummyRegressor(strategy="median"), X, wild, cv=KFold(5))
    assert found.baseline_name == "always the median"
    gain = np.abs(wild - dummy) - np.abs(wild - held)
    assert found.score - found.baseline == pytest.approx(gain.mean(), rel=1e-5)
    half = (found.lead[1] - found.lead[0]) / 2
    expected = np.sqrt((1 + 1 / 0.8) * gain.var(ddof=1) / y.size + found.optimism**2)
    kurtosis = np.mean((gain - gain.mean()) ** 4) / gain.var() ** 2
    quantile = student.ppf(0.975, min(2 * y.size / (kurtosis - 1), y.size - 1))
    assert half / expected == pytest.approx(quantile, rel=1e-4)
    assert found.beats_baseline
    assert found.interval[0] < found.baseline  # which the score's own interval would not tell


def test_the_lead_is_less_the_optimism():
    noise = np.random.default_rng(0).normal(size=y.size)
    grid = {"gamma": [0.01, 0.1, 1.0, 10.0], "lam": [1e-4, 1e-3, 1e-2, 1e-1, 1.0]}
    search = KernelSearchCV(KernelRegressor(), grid, scoring="neg_mean_squared_error")
    found = search.fit(X, noise).headline_
    assert found.optimism > 0.0
    gain = found.score - found.baseline
    assert sum(found.lead) / 2 == pytest.approx(gain - found.optimism)


def test_select_warns_where_there_is_nothing_to_choose_by():
    draw = np.random.default_rng(0)
    noise = draw.normal(size=80)
    with pytest.warns(UserWarning, match="the baseline"):
        search = select(draw.normal(size=(80, 3)), noise, random_state=0)
    assert search.search_.aggregate == "pooled"
    assert search.best_score_ == pytest.approx(search.headline_.score, abs=1e-6)


def test_groups_make_the_interval_wider():
    """Ten copies of a row are not ten rows."""
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(20, 2))
    many, groups = np.repeat(rows, 10, axis=0), np.repeat(np.arange(20), 10)
    target = np.repeat(rows[:, 0] + draw.normal(size=20), 10)
    search = KernelSearchCV(KernelRegressor(), GRID, cv=GroupKFold(20), aggregate="pooled")
    apart = search.fit(many, target, groups=groups).headline_
    splits = list(GroupKFold(20).split(many, target, groups))
    alike = search.set_params(cv=splits).fit(many, target).headline_
    assert apart.score == alike.score
    assert apart.standard_error > 2.0 * alike.standard_error


@pytest.mark.parametrize(
    "cv",
    [
        GroupShuffleSplit(40, test_size=0.25, random_state=0),  # every group in about ten splits
        GroupKFold(5),
        KFold(5, shuffle=True, random_state=0),  # ignores the groups
    ],
)
@pytest.mark.parametrize("scoring", ["neg_mean_squared_error", "neg_max_error"])
@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
def test_the_blocks_of_a_grouped_search_are_its_groups(cv, scoring):
    """Standard error by leaving out one group at a time, whichever splits test its rows."""
    draw = np.random.default_rng(0)
    groups = np.repeat(np.arange(12), 3)
    rows = draw.normal(size=(36, 2))
    target = rows[:, 0] + draw.normal(size=12)[groups]
    search = KernelSearchCV(KernelRegressor(), GRID, cv=cv, scoring=scoring, aggregate="pooled")
    search.fit(rows, target, groups=np.array([f"g{g}" for g in groups]))
    held = search.heldout_
    errors, group = np.abs(target[held.folds.rows] - held.values[:, 0]), groups[held.folds.rows]
    score = {"neg_max_error": np.max, "neg_mean_squared_error": lambda e: np.mean(e**2)}[scoring]
    left = np.array([score(errors[group != g]) for g in range(12)])
    expected = np.sqrt(11 / 12 * np.square(left - left.mean()).sum())
    assert search.headline_.standard_error == pytest.approx(expected, rel=1e-4)
    if scoring == "neg_mean_squared_error":
        table = search.cv_results_["se_test_score"]
        assert table[search.best_index_] == pytest.approx(expected, rel=1e-4)


def test_a_scorer_that_does_not_take_the_baseline():
    def own(estimator, rows, target):
        return -float(np.abs(estimator.predict(rows) - target).mean()) * estimator.lam

    def classes(estimator, rows, target):
        return float((estimator.predict(rows) == target).mean()) + 0.0 * estimator.lam

    assert searched(scoring=own).headline_.baseline < 0.0  # a regressor is asked by its own class
    search = searched(machine=KernelClassifier(), labels=y > 150, scoring=classes, cv=3)
    assert np.isnan(search.headline_.baseline)
    assert "lam" in search.headline_.reason
    assert search.headline_.beats_baseline is None
    assert "not known whether the choice beats a baseline: the scorer" in search.headline_.verdict()


def test_a_scorer_that_does_not_take_all_rows():
    def few(estimator, rows, target):
        if len(rows) > 60:
            raise RuntimeError("too many rows")
        return -float(np.abs(estimator.predict(rows) - target).mean())

    with pytest.warns(UserWarning, match="no headline_.*too many rows"):
        search = KernelSearchCV(KernelRegressor(), GRID, cv=5, scoring=few).fit(X, y)
    assert not hasattr(search, "headline_")
    assert search.best_score_ < 0


def test_searches_without_a_headline():
    several = searched(scoring={"a": "r2", "b": ROOT}, refit="b").headline_
    assert several.score < -1.0


def test_a_headline_of_a_winner_by_a_function():
    chosen = searched(refit=lambda table: 0)
    assert chosen.headline_.score == pytest.approx(r2_score(y, chosen.heldout_.predictions))


def test_several_targets_and_weights_of_rows():
    both, weight = np.column_stack([y, -2 * y]), np.linspace(0.5, 2.0, y.size)
    search = KernelSearchCV(KernelRegressor(), GRID, cv=5, aggregate="pooled")
    search.fit(X, both, sample_weight=weight)
    found = search.headline_
    assert found.score == pytest.approx(search.best_score_, rel=1e-6)
    held = search.heldout_.predictions
    assert found.r2 == pytest.approx(r2_score(both, held, sample_weight=weight))
    assert found.interval[0] < found.score < 1.0


def test_the_range_of_a_score():
    from sklearn.metrics import get_scorer

    ranges = {
        "r2": (-np.inf, 1.0),
        "accuracy": (0.0, 1.0),
        "neg_log_loss": (-np.inf, 0.0),
        "roc_auc": (0.0, 1.0),
        "matthews_corrcoef": (-1.0, 1.0),
        "neg_brier_score": (-2.0, 0.0),
    }
    machine = KernelRegressor()
    for name, ends in ranges.items():
        assert range_of(get_scorer(name), machine) == ends
    adjusted = make_scorer(balanced_accuracy_score, adjusted=True)
    assert range_of(adjusted, machine) == (-1.0, 1.0)
    own = make_scorer(lambda a, b: 0.0)
    assert range_of(own, machine) == (-np.inf, np.inf)
    assert searched(machine=KernelClassifier(), labels=y > 150).headline_.interval[1] < 1.0


def jackknife(values):
    return (values.sum() - values) / (values.size - 1)


def test_intervals():
    draw = np.random.default_rng(0)
    hits = np.repeat([0.0, 1.0], 50)
    low, high = score_interval((0.0, 1.0), 0.5, jackknife(hits))
    assert (low + high) / 2 == pytest.approx(0.5)
    assert high - low == pytest.approx(2 * 1.984 * 0.0503, rel=0.03)
    twice = score_interval((-1.0, 1.0), 0.0, jackknife(2 * hits - 1))
    assert twice == pytest.approx((2 * low - 1, 2 * high - 1))

    normal = draw.normal(size=1000)
    for factor, optimism in ((1.0, 0.0), (4.0, 0.0), (2.0, 0.1)):
        found = score_interval(
            (-np.inf, np.inf), normal.mean(), jackknife(normal), factor=factor, optimism=optimism
        )
        half = 1.963 * np.hypot(np.sqrt(factor / 1000) * normal.std(ddof=1), optimism)
        middle = normal.mean() - optimism
        assert found == pytest.approx((middle - half, middle + half), rel=5e-3)

    assert score_interval((-np.inf, 0.0), 0.0, np.zeros(10)) == (0.0, 0.0)
    above = score_interval((-np.inf, 0.0), 0.0, np.r_[np.zeros(9), -0.1])
    assert above[0] < above[1] == 0.0
    assert np.isnan(score_interval((-np.inf, np.inf), np.nan, normal)).all()
    assert np.isnan(score_interval((-np.inf, np.inf), 1.0, normal[:1])).all()


def test_a_few_rows_that_make_most_of_the_error_leave_fewer_degrees_of_freedom():
    """Squared errors of the same standard error, without an outlier and with one."""
    even, wild = np.repeat([-1.0, 1.0], 50), np.zeros(100)
    wild[0] = 10.0
    wild -= wild.mean()
    wild *= even.std() / wild.std()
    ends = (-np.inf, np.inf)
    short, long = (np.diff(score_interval(ends, 0.0, jackknife(z)))[0] for z in (even, wild))
    assert long / short == pytest.approx(
        student.ppf(0.975, 2.04) / student.ppf(0.975, 99), rel=0.01
    )


def test_the_bias_of_a_ratio_is_taken_off():
    """A search whose winner is the mean has an R^2 below that of the mean, by a part of 1/n."""
    missed, found = [], []
    for seed in range(40):
        draw = np.random.default_rng(seed)
        rows, noise = draw.normal(size=(40, 2)), draw.normal(size=40)
        cv = KFold(10, shuffle=True, random_state=seed)
        search = KernelSearchCV(KernelRegressor(), {"lam": [1e4]}, cv=cv, aggregate="pooled")
        low, high = search.fit(rows, noise).headline_.interval
        truth = -(noise.mean() ** 2)  # of the mean on new rows of variance one
        missed.append(not low <= truth <= high)
        found.append((low + high) / 2)
    assert np.mean(missed) <= 0.15
    assert np.mean(found) == pytest.approx(-1 / 40, abs=0.02)


@pytest.mark.parametrize("cv", [LeaveOneOut(), KFold(10)])
def test_ranking_metrics_of_a_constant(cv):
    labels = (np.random.default_rng(3).uniform(size=60) < 0.3).astype(int)
    rows = np.random.default_rng(4).normal(size=(60, 3))
    expected = {"roc_auc": 0.5, "average_precision": labels.mean()}
    for scoring, constant in expected.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a split of one class has no such metric
            search = KernelSearchCV(
                KernelClassifier(), GRID, cv=cv, scoring=scoring, aggregate="pooled"
            )
            found = search.fit(rows, labels).headline_
        assert found.baseline == pytest.approx(constant)
        assert found.baseline_name == "the same score for every row"


def test_coins_do_not_beat_the_baseline():
    beaten = 0
    for seed in range(5):
        draw = np.random.default_rng(seed)
        rows, coins = draw.normal(size=(40, 3)), np.tile([0, 1], 20)
        for scoring in ("roc_auc", "accuracy", "balanced_accuracy"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                search = KernelSearchCV(
                    KernelClassifier(), GRID, cv=LeaveOneOut(), scoring=scoring, aggregate="pooled"
                )
                found = search.fit(rows, coins).headline_
            assert found.baseline == 0.5
            beaten += found.beats_baseline
    assert beaten <= 1


def test_the_best_label_is_the_baseline_of_a_metric_of_labels():
    labels = (np.arange(y.size) % 5 == 0).astype(int)
    search = searched(machine=KernelClassifier(), labels=labels, scoring="f1", cv=5)
    assert search.headline_.baseline == pytest.approx(1 / 3)  # always 1: precision 0.2, recall 1
    assert search.headline_.baseline_name == "always 1"


def test_a_label_without_a_score_leaves_the_others_as_baselines():
    """The precision of a class that is never predicted may be called undefined."""
    labels = np.where(y > 150, "high", "low")  # "low" is the most frequent one

    def precision(t, p):
        return np.nan if not (p == "high").any() else np.mean(t[p == "high"] == "high")

    search = KernelSearchCV(KernelClassifier(), GRID, cv=3, scoring=make_scorer(precision))
    found = search.fit(X, labels).headline_
    assert found.baseline_name == "always high"
    assert found.baseline == pytest.approx(np.mean(labels == "high"))


def test_pure_noise_does_not_beat_the_median():
    beaten = 0
    for seed in range(10):
        draw = np.random.default_rng(seed)
        rows, target = draw.normal(size=(80, 3)), np.exp(draw.normal(size=80))
        for machine in (KernelRegressor(), KernelRegressor(Huber(0.5))):
            search = KernelSearchCV(
                machine, GRID, cv=KFold(10), scoring="neg_mean_absolute_error", aggregate="pooled"
            )
            found = search.fit(rows, target).headline_
            assert found.baseline_name == "always the median"
            beaten += found.beats_baseline
    assert beaten <= 2


@pytest.mark.parametrize("scoring", [None, neg_pinball_loss])
def test_several_levels_are_judged_by_the_scorer_of_the_search(scoring):
    levels = [0.1, 0.5, 0.9]
    machine = KernelRegressor(Quantile(levels))
    search = KernelSearchCV(machine, GRID, cv=KFold(5), scoring=scoring, aggregate="pooled")
    found = search.fit(X, y).headline_
    assert found.scoring == "neg_pinball_loss"
    held = search.heldout_.predictions
    assert found.score == pytest.approx(-pinball_loss(y, held, levels))
    assert found.score == pytest.approx(search.best_score_)
    assert found.baseline_name == "always the quantiles 0.1, 0.5, 0.9"
    constant = [np.quantile(y, level) for level in levels]
    near = -pinball_loss(y, np.tile(constant, (y.size, 1)), levels)
    assert found.baseline == pytest.approx(near, rel=0.03)
    assert found.lead[0] < found.score - found.baseline < found.lead[1]
    assert found.beats_baseline


def test_pairs_of_classes_are_judged_by_their_votes():
    Z, three = load_iris(return_X_y=True)
    grid = {"multi_class": ["ovr", "ovo"], "lam": [1e-3], "gamma": [0.1]}
    search = KernelSearchCV(KernelClassifier(), grid, cv=KFold(5, shuffle=True, random_state=0))
    for chosen in (0, 1):
        search.set_params(param_grid={name: [v[chosen % len(v)]] for name, v in grid.items()})
        found = search.fit(Z, three)
        right = (found.heldout_.labels == three).mean()
        assert found.headline_.score == pytest.approx(right)
        assert found.headline_.baseline == pytest.approx(1 / 3)


def test_several_expectiles_are_judged_by_their_loss():
    search = searched(machine=KernelRegressor(Expectile([0.2, 0.8])), cv=KFold(5))
    found = search.headline_
    assert found.scoring == "neg_expectile_loss"
    assert found.score == pytest.approx(search.best_score_)
    assert found.baseline_name == "always the expectiles"
    assert found.baseline < found.score


def test_a_test_fold_of_one_class_has_no_area():
    """As in GridSearchCV the score is NaN, with advice."""
    order = np.argsort(y > 150, kind="stable")
    labels = (y > 150)[order]
    search = KernelSearchCV(KernelClassifier(), GRID, cv=KFold(5), scoring="roc_auc")
    with pytest.warns(UserWarning, match="not defined on .* of 5 splits.*StratifiedKFold"):
        search.fit(X[order], labels)
    assert np.isnan(search.best_score_)
    assert search.best_index_ == 0
    expected = roc_auc_score(labels, search.heldout_.predictions)
    assert search.headline_.score == pytest.approx(expected)


def test_log_loss_of_all_rows_left_out_one_by_one():
    labels = y > 150
    log = searched(
        machine=KernelClassifier("log"), labels=labels, cv=LeaveOneOut(), scoring="neg_log_loss",
        aggregate="pooled",
    )  # fmt: skip
    expected = -log_loss(labels, log.heldout_.proba)
    assert log.headline_.score == pytest.approx(expected)
    assert log.best_score_ == pytest.approx(expected)
    with pytest.warns(UserWarning, match="not defined on 150 of 150 splits"):
        KernelSearchCV(
            KernelClassifier("log"), {"lam": [1e-3]}, cv=LeaveOneOut(), scoring="neg_log_loss"
        ).fit(X, labels)


def test_the_interval_stays_in_the_range_of_the_metric():
    """A correlation near one, from a few rows."""
    draw = np.random.default_rng(0)
    labels = np.arange(30) % 2
    rows = labels[:, None] + 0.4 * draw.normal(size=(30, 1))
    for scoring in ("matthews_corrcoef", make_scorer(cohen_kappa_score)):
        search = KernelSearchCV(
            KernelClassifier(), GRID, cv=5, scoring=scoring, aggregate="pooled"
        ).fit(rows, labels)
        low, high = search.headline_.interval
        assert -1.0 <= low < search.headline_.score < 1.0
        assert search.headline_.score < high <= 1.0


@pytest.mark.parametrize("loss", ["squared", "log"])
def test_held_out_answers(loss):
    Z, three = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[three]
    search = KernelSearchCV(KernelClassifier(loss=loss), {"lam": [1e-3]}, cv=KFold(3, shuffle=True))
    held = search.fit(Z, names).heldout_
    np.testing.assert_array_equal(
        held.labels, np.array(["a", "b", "c"])[held.predictions.argmax(1)]
    )
    if loss == "squared":
        with pytest.raises(ValueError, match=r"search\.calibrate"):
            _ = held.proba
        return
    np.testing.assert_allclose(held.proba.sum(axis=1), 1.0)
    gamma = {"gamma": 1.0 / (4 * Z.var())}  # that of all rows, as in the search
    machine = search.best_estimator_.set_params(**gamma)
    expected = cross_val_predict(machine, Z, names, cv=list(held.folds), method="predict_proba")
    np.testing.assert_allclose(held.proba, expected, atol=1e-6)


def test_rows_that_no_split_tests_have_no_label():
    labels = y > 150
    half = [(np.arange(75), np.arange(75, 150))]
    held = searched(machine=KernelClassifier(loss="log"), labels=labels, cv=half).heldout_
    assert held.labels.mask.tolist() == [True] * 75 + [False] * 75
    assert np.isnan(held.proba[:75]).all()
    assert np.isfinite(held.proba[75:]).all()
    regression = searched().heldout_
    for name in ("labels", "proba"):
        with pytest.raises(ValueError, match="for classifiers"):
            getattr(regression, name)


@pytest.mark.parametrize("unit", [1e-25, 1e25])
@pytest.mark.parametrize("aggregate", ["mean", "pooled"])
def test_the_unit_of_the_target_changes_nothing(unit, aggregate):
    plain, other = (searched(labels=y * c, scoring="r2", aggregate=aggregate) for c in (1.0, unit))
    for name in ("score", "interval", "optimism", "baseline", "lead", "standard_error"):
        assert getattr(other.headline_, name) == pytest.approx(getattr(plain.headline_, name))
    se = plain.cv_results_["se_test_score"]
    assert other.cv_results_["se_test_score"] == pytest.approx(se)


@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy", "roc_auc", "r2"])
@pytest.mark.parametrize("gap", [0.0, 5.0])
def test_copies_of_rows_in_a_group_are_no_further_units(scoring, gap):
    """Not where the score is perfect either, whose interval comes from the number of units."""
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 2))
    X += gap * np.sign(X)
    y = X[:, 0] + (gap == 0.0) * random.normal(size=40)
    model, target = KernelRegressor(kernel="linear"), y
    if scoring != "r2":
        model, target = KernelClassifier("squared", kernel="linear"), (y > 0.0).astype(int)
    found = []
    for copies in (1, 4):
        groups = np.repeat(np.arange(40), copies)
        cv = GroupKFold(5, shuffle=True, random_state=0)
        search = KernelSearchCV(model, {"lam": [1e-6, 1.0]}, cv=cv, scoring=scoring)
        search.fit(X[groups], target[groups], groups=groups)
        found.append(search.headline_)
    assert found[0].score == 1.0 or scoring == "r2" or not gap
    for name in ("score", "interval", "standard_error", "optimism", "baseline", "lead"):
        one, many = (getattr(each, name) for each in found)
        np.testing.assert_allclose(many, one, rtol=1e-5, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("levels", [[0.03, 0.5], [0.2, 0.9, 0.99]])
def test_the_baseline_of_expectiles_has_the_least_asymmetric_error(levels):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(31, 2)), np.round(100.0 + 9.0 * random.normal(size=31))
    weight = random.integers(1, 4, size=31).astype(float)
    search = KernelSearchCV(KernelRegressor(Expectile(levels)), {"lam": [1e-2, 1.0]}, cv=3)
    found = search.fit(X, y, sample_weight=weight).headline_

    def error(constant, level):
        gap = y - constant
        return np.average(np.where(gap > 0.0, level, 1.0 - level) * gap**2, weights=weight)

    grid = np.linspace(y.min(), y.max(), 4001)
    least = np.mean([min(error(one, level) for one in grid) for level in levels])
    assert found.baseline == pytest.approx(-2.0 * least, rel=1e-5)  # the squared error at 0.5
