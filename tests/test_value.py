import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    ShuffleSplit,
    cross_val_predict,
)
from watched import Refused

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.config import config_context
from onefit.losses import Huber
from onefit.value import removal_values, shapley_values

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
U = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * RNG.normal(size=30)
LABELS = np.array(["a", "b", "c"])[np.digitize(U, [-0.5, 0.5])]
PATIENTS = np.arange(30) // 3 % 8


def signs(y, classes):
    found = np.where(np.asarray(y)[:, None] == classes, 1.0, -1.0)
    return found if len(classes) > 2 else found[:, 1]


def refit_score(model, X, y, train, test, scoring):
    fitted = clone(model).fit(X[train], y[train])
    if scoring is not None:
        return np.mean(fitted.predict(X[test]) == y[test])
    if isinstance(model, KernelClassifier):
        return -np.square(
            signs(y[test], fitted.classes_) - fitted.decision_function(X[test])
        ).mean()
    return -np.square(y[test] - fitted.predict(X[test])).mean()


def refit_cv(model, X, y, splits, without, scoring):
    """The score by honest refits on the data without some rows."""
    found = []
    for train, test in splits:
        train, test = (rows[~np.isin(rows, without)] for rows in (train, test))
        if test.size:
            found.append(refit_score(model, X, y, train, test, scoring))
    return np.mean(found)


REGRESSION = KernelRegressor(gamma=0.7, lam=0.02)
ONE_SPLIT = [(np.arange(20), np.arange(20, 30))]
TOTAL = KernelRegressor(gamma=0.7, lam=0.3, scaling="total", fit_intercept=False)
CLASSES = KernelClassifier("squared", gamma=0.7, lam=0.02)


@pytest.mark.parametrize("units", [None, PATIENTS])
@pytest.mark.parametrize(
    ("model", "y", "cv", "scoring"),
    [
        (REGRESSION, U, KFold(4), None),
        (TOTAL, np.column_stack([U, X[:, 1] ** 2]), LeaveOneOut(), None),
        (REGRESSION, U, ShuffleSplit(3, test_size=0.2, train_size=0.5, random_state=0), None),
        (CLASSES, LABELS, KFold(3), None),
        (CLASSES, LABELS, KFold(3), "accuracy"),
        (CLASSES, U > 0, KFold(3), None),
    ],
)
def test_removal_equals_refits_without_the_rows(units, model, y, cv, scoring):
    splits = list(cv.split(X))
    found = removal_values(model, X, y, cv=splits, units=units, scoring=scoring)
    whole = refit_cv(model, X, y, splits, [], scoring)
    member = np.arange(30) if units is None else units
    np.testing.assert_allclose(found.score, whole, atol=1e-10)
    np.testing.assert_array_equal(found.units, np.unique(member))
    for label, value in list(zip(found.units, found.values, strict=True))[
        :: 3 if units is None else 1
    ]:
        without = np.flatnonzero(member == label)
        expected = whole - refit_cv(model, X, y, splits, without, scoring)
        np.testing.assert_allclose(value, expected, atol=1e-10)


@pytest.mark.parametrize("units", [None, PATIENTS])
@pytest.mark.parametrize("model", [REGRESSION, TOTAL])
def test_shapley_values_equal_refits_of_every_leading_part(units, model):
    train, test = np.arange(20), np.arange(20, 30)
    options = {"cv": [(train, test)], "units": units, "n_permutations": 3}
    found = shapley_values(model, X, U, random_state=0, **options)
    random, member = np.random.RandomState(0), np.arange(30) if units is None else units
    lam = model.lam * (20 if model.scaling == "mean" else 1)
    fixed = clone(model).set_params(scaling="total", lam=lam)
    each = np.zeros((3, found.units.size))
    start = U[train].mean() if model.fit_intercept else 0.0
    for one in each:
        rows, before = np.empty(0, dtype=int), -np.square(U[test] - start).mean()
        for unit in random.permutation(np.unique(member[train])):
            rows = np.concatenate([rows, train[member[train] == unit]])
            double = np.repeat(rows, 2) if rows.size == 1 else rows  # a fit needs two rows
            after = refit_score(
                fixed.set_params(lam=lam * double.size / rows.size), X, U, double, test, None
            )
            one[found.units == unit], before = after - before, after
    trained = np.isin(found.units, member[train])
    np.testing.assert_allclose(found.values[trained], each.mean(axis=0)[trained], atol=1e-9)
    errors = each.std(axis=0, ddof=1) / np.sqrt(3)
    np.testing.assert_allclose(found.standard_errors[trained], errors[trained], atol=1e-9)
    assert np.isnan(found.values[~trained]).all()
    np.testing.assert_allclose(found.score, refit_score(model, X, U, train, test, None), atol=1e-9)


@pytest.mark.parametrize("scoring", [None, "accuracy"])
def test_shapley_values_of_classes_add_up_to_the_score(scoring):
    options = {"cv": ONE_SPLIT, "scoring": scoring, "n_permutations": 4, "random_state": 0}
    found = shapley_values(CLASSES, X, LABELS, **options)
    Y = signs(LABELS, np.unique(LABELS))
    none = Y[:20].mean(axis=0)
    empty = -np.square(Y[20:] - none).mean()
    if scoring:
        empty = np.mean(Y[20:].argmax(axis=1) == none.argmax())
    np.testing.assert_allclose(np.nansum(found.values), found.score - empty, atol=1e-10)
    np.testing.assert_allclose(
        found.score, refit_score(CLASSES, X, LABELS, *ONE_SPLIT[0], scoring), atol=1e-10
    )


def test_truncated_rows_add_nothing():
    options = {"cv": ONE_SPLIT, "n_permutations": 1, "random_state": 0}
    whole, part = (
        shapley_values(REGRESSION, X, U, min_rows=least, max_rows=most, **options).values
        for least, most in [(0, None), (3, 7)]
    )
    order = np.random.RandomState(0).permutation(20)
    np.testing.assert_allclose(part[order[3:7]], whole[order[3:7]], atol=1e-12)
    assert not part[order[:3]].any()
    assert not part[order[7:]].any()


def test_a_search_lends_its_winner_and_its_splits():
    cv = KFold(3, shuffle=True, random_state=1)
    search = KernelSearchCV(REGRESSION, {"lam": [1e-3, 1e-1]}, cv=cv).fit(X, U)
    best = clone(REGRESSION).set_params(**search.best_params_)
    found, expected = removal_values(search, X, U), removal_values(best, X, U, cv=cv)
    np.testing.assert_allclose(found.values, expected.values)
    predicted = cross_val_predict(best, X, U, cv=cv)
    np.testing.assert_allclose(found.score, -np.square(U - predicted).mean(), atol=1e-10)


@pytest.mark.parametrize("values", [removal_values, shapley_values])
def test_groups_are_for_the_splitter(values):
    options = {} if values is removal_values else {"n_permutations": 2, "random_state": 0}
    found = values(REGRESSION, X, U, cv=GroupKFold(3), groups=PATIENTS, **options)
    splits = list(GroupKFold(3).split(X, U, PATIENTS))
    expected = values(REGRESSION, X, U, cv=splits, **options)
    np.testing.assert_array_equal(found.values, expected.values)


def test_flipped_labels_have_the_least_values():
    random = np.random.default_rng(1)
    rows = random.normal(size=(120, 2))
    y = rows[:, 0] > 0
    flipped = random.choice(120, 6, replace=False)
    y[flipped] ^= True
    for values in (removal_values, shapley_values):
        options = {} if values is removal_values else {"n_permutations": 100, "random_state": 0}
        model = KernelClassifier("squared", gamma=0.2, lam=0.1)
        found = values(model, rows, y, **options)
        assert np.isin(found.worst[:12], flipped).sum() >= 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: removal_values(KernelRegressor(Huber(1.0)), X, U), "loss='squared'"),
        (lambda: removal_values(REGRESSION, X, U, units=[1, 2]), "2 labels"),
        (lambda: removal_values(REGRESSION, X, U, scoring="neg_max_error"), "neg_max_error"),
        (lambda: removal_values(REGRESSION, X, U, cv=[(np.arange(30), [0])]), "trains on"),
        (lambda: removal_values(CLASSES, X, LABELS, units=LABELS), "lacks a class"),
        (
            lambda: removal_values(
                REGRESSION, X, U, cv=ONE_SPLIT, units=np.minimum(np.arange(30), 20)
            ),
            "without the unit of row 20 no split has test rows",
        ),
        (
            lambda: removal_values(REGRESSION, X, U, cv=15, scoring="r2"),
            "r2 is undefined on a set of one row",
        ),
        (
            lambda: shapley_values(REGRESSION, X, U, cv=LeaveOneOut(), scoring="r2"),
            "r2 is undefined on a set of one row",
        ),
        (
            lambda: shapley_values(KernelClassifier("squared", multi_class="ovo"), X, LABELS),
            "got multi_class='ovo'; use multi_class='ovr'",
        ),
        (lambda: shapley_values(REGRESSION, X, U, n_permutations=0), "n_permutations"),
        (lambda: shapley_values(REGRESSION, X, U, min_rows=5, max_rows=5), "max_rows=5"),
        (
            lambda: shapley_values(KernelSearchCV(REGRESSION, {"lam": [1.0]}), X, U),
            "fit the search first",
        ),
    ],
)
def test_refusals_say_what_to_do(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_progress_is_a_line_for_each_split_and_order(capsys):
    removal_values(TOTAL, X, U, cv=3, verbose=1)
    shapley_values(TOTAL, X, U, cv=2, n_permutations=2, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    counts = [line.split()[0] for line in lines]
    assert counts == ["[1/3]", "[2/3]", "[3/3]", "[1/4]", "[2/4]", "[3/4]", "[4/4]"]


@pytest.mark.parametrize("values", [removal_values, shapley_values])
def test_what_does_not_fit_into_memory_is_refused_before_a_kernel_matrix_is_built(values):
    refused = r"on n=30 rows needs .* a subsample of at most \d+ rows"
    with config_context(memory_bytes=8.0 * 30**2), pytest.raises(MemoryError, match=refused):
        values(KernelRegressor(kernel=Refused(1.0)), X, U)
