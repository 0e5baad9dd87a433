import numpy as np
import pytest
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    permutation_test_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from watched import Refused

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.config import config_context
from onefit.features import Nystrom
from onefit.losses import Huber, Quantile
from onefit.permutation import PermutationTest, permutation_test
from onefit.scoring import Metric
from onefit.search import Interval

RNG = np.random.default_rng(0)
X = RNG.normal(size=(48, 3))
U = np.sin(2 * X[:, 0]) + 0.7 * X[:, 1] + RNG.normal(size=48)
CLASSES = np.array(["a", "b", "c"])[np.digitize(U, [-0.6, 0.6])]
CUBED = Metric("cubed_error", "regression", lambda y, u: np.abs(y - u) ** 3)
GRID = {"gamma": [0.1, 1.0], "lam": [1e-3, 1e-1, 1.0]}
ALL = np.arange(48)
GROUPS = ALL % 3


def search(model, cv=None, **options):
    return KernelSearchCV(model, GRID, cv=KFold(4) if cv is None else cv, **options)


def best_score(fitted, X, y):
    """What the test with cv=None is of, as a scorer."""
    return fitted.best_score_


def check(found, expected):
    if isinstance(expected, PermutationTest):
        expected = expected.score, expected.permutation_scores, expected.pvalue
    np.testing.assert_allclose(found.score, expected[0], atol=1e-9)
    np.testing.assert_allclose(found.permutation_scores, expected[1], atol=1e-9)
    assert found.pvalue == expected[2]


@pytest.mark.parametrize(
    ("model", "y", "options", "groups"),
    [
        (KernelRegressor(), U, {}, None),
        (KernelRegressor(fit_intercept=False, scaling="total"), U, {"aggregate": "median"}, None),
        (KernelRegressor(), U, {"scoring": "neg_root_mean_squared_error", "aggregate": "pooled"},
         GROUPS),
        (KernelRegressor(), U, {"scoring": CUBED}, None),
        (KernelRegressor(), np.column_stack([U, X[:, 2] ** 2]), {"cv": KFold(5)}, GROUPS),
        (KernelRegressor(), U, {"cv": ShuffleSplit(3, test_size=0.3, random_state=0)}, None),
        (KernelRegressor(), U, {"cv": [(ALL[:9], ALL[9:]), (ALL[9:], ALL[:9])]}, GROUPS),
        (KernelRegressor(), U, {"cv": [(ALL, ALL[:9])]}, None),
        (KernelClassifier("squared"), CLASSES, {"scoring": "balanced_accuracy"}, GROUPS),
        (KernelClassifier("squared"), U > 0, {}, None),
    ],
)  # fmt: skip
def test_the_best_score_is_that_of_a_search_per_permutation(model, y, options, groups):
    one = search(model, **options)
    found = permutation_test(one, X, y, groups=groups, n_permutations=9, random_state=1)
    check(
        found,
        permutation_test_score(
            one, X, y, groups=groups, cv=[(ALL, ALL)], scoring=best_score, n_permutations=9,
            random_state=1,
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("model", "y", "cv", "groups"),
    [
        (KernelRegressor(), U, KFold(3), None),
        (KernelRegressor(), np.column_stack([U, X[:, 2]]), KFold(3), ALL % 2),
        (KernelRegressor(scaling="total", fit_intercept=False), U, GroupKFold(3), ALL // 6),
        (KernelClassifier("squared"), CLASSES, KFold(3), None),
        (KernelClassifier("squared"), U > 0, KFold(4, shuffle=True, random_state=0), None),
    ],
)
def test_nested_scores_are_those_of_scikit_learn(model, y, cv, groups):
    one = search(model)
    options = {"groups": groups, "cv": cv, "n_permutations": 6, "random_state": 2}
    check(permutation_test(one, X, y, **options), permutation_test_score(one, X, y, **options))


@pytest.mark.parametrize("groups", [None, ALL % 2])
def test_with_stratified_folds_labels_are_permuted_within_the_folds(groups):
    y = U > 0.2
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    found = permutation_test(
        search(KernelClassifier("squared"), cv=folds), X, y, groups=groups, n_permutations=9
    )
    drawn = list(folds.split(X, y))
    number = np.empty(48, dtype=int)
    for k, (_, test) in enumerate(drawn):
        number[test] = k
    cells = number if groups is None else 4 * groups + number
    check(
        found,
        permutation_test_score(
            search(KernelClassifier("squared"), cv=drawn), X, y, groups=cells, cv=[(ALL, ALL)],
            scoring=best_score, n_permutations=9, random_state=0,
        ),
    )  # fmt: skip


def test_a_precomputed_kernel_is_that_of_the_rows():
    K = X @ X.T
    one = KernelSearchCV(KernelRegressor("squared", kernel="precomputed"), {"lam": [0.1, 1.0, 9.0]})
    whole = permutation_test(one, K, U, n_permutations=20, cv=KFold(3))
    linear = KernelSearchCV(KernelRegressor(kernel="linear"), {"lam": [0.1, 1.0, 9.0]})
    check(permutation_test(linear, X, U, n_permutations=20, cv=KFold(3)), whole)


def test_splits_may_be_iterators():
    outer, inner = KFold(3), list(KFold(4).split(X[:32]))
    expected = permutation_test(search(KernelRegressor(), inner), X, U, cv=outer, n_permutations=3)
    one = search(KernelRegressor(), iter(inner))
    check(permutation_test(one, X, U, cv=outer.split(X), n_permutations=3), expected)


def test_permutations_that_take_more_than_one_block():
    """10,000 permutations of 300 rows exceed a chunk and are halved; 9,000 do not."""
    random = np.random.default_rng(0)
    rows, target = random.normal(size=(300, 2)), random.normal(size=300)
    one = KernelSearchCV(KernelRegressor(), {"lam": [0.1]}, cv=3)
    few, many = (permutation_test(one, rows, target, n_permutations=n) for n in (9000, 10000))
    assert many.permutation_scores.size == 10000
    np.testing.assert_allclose(
        many.permutation_scores[:9000], few.permutation_scores, rtol=0, atol=1e-9
    )


def test_p_values_are_valid_without_a_relation_and_small_with_one():
    random = np.random.default_rng(1)
    one = KernelSearchCV(
        KernelClassifier("squared"), {"gamma": [0.1, 1.0], "lam": [0.01, 1.0]}, cv=4
    )
    found = np.array(
        [
            permutation_test(one, X, random.permutation(ALL % 2), n_permutations=19).pvalue
            for _ in range(50)
        ]
    )
    assert 0.4 < found.mean() < 0.65
    assert (found <= 0.2).mean() < 0.34
    assert permutation_test(one, X, X[:, 0] > 0, n_permutations=99).pvalue == 0.01


def test_ties_count_against_the_search():
    found = permutation_test(
        search(KernelRegressor()), X, np.repeat(U[:16], 3), groups=ALL // 3, n_permutations=9
    )
    np.testing.assert_array_equal(found.permutation_scores, found.score)
    assert found.pvalue == 1.0


def test_processes_and_progress(capsys):
    one = search(KernelRegressor())
    alone = permutation_test(one, X, U, n_permutations=5, verbose=1)
    assert capsys.readouterr().out.startswith("[1/2] ")
    check(permutation_test(one, X, U, n_permutations=5, n_jobs=2), alone)


def test_what_does_not_fit_into_memory_is_refused_before_a_kernel_matrix_is_built():
    one = KernelSearchCV(KernelRegressor(kernel=Refused(1.0)), {"lam": [0.1, 1.0]}, cv=3)
    with (
        config_context(memory_bytes=8.0 * 48**2),
        pytest.raises(MemoryError, match="on n=48 rows needs"),
    ):
        permutation_test(one, X, U, n_permutations=3)


@pytest.mark.parametrize(
    ("one", "options", "message"),
    [
        (search(KernelRegressor(Huber(1.0))), {}, "needs loss='squared', got loss=Huber"),
        (
            search(KernelRegressor(Quantile([0.2, 0.8]))),
            {},
            "needs loss='squared', got loss=Quantile",
        ),
        (search(KernelRegressor(), scoring="neg_max_error"), {}, "neg_max_error"),
        (search(KernelRegressor()), {"n_permutations": 0}, "n_permutations"),
        (search(KernelRegressor(), criterion="gcv"), {}, "criterion"),
        (KernelSearchCV(KernelRegressor(), {"lam": Interval(1e-3, 1.0)}), {}, "intervals"),
        (search(KernelRegressor(approximation=Nystrom(9))), {}, "approximation"),
        (KernelSearchCV(make_pipeline(StandardScaler(), KernelRegressor()), {}), {}, "Pipeline"),
        (search(KernelRegressor(), scoring="r2"), {"cv": KFold(48)}, "undefined"),
    ],
)
def test_refusals_say_what_to_do(one, options, message):
    with pytest.raises(ValueError, match=message):
        permutation_test(one, X, U, **{"n_permutations": 3, **options})


@pytest.mark.parametrize(
    ("model", "cv", "options", "message"),
    [
        (KernelClassifier("squared", class_weight="balanced"), 4, {}, "class_weight"),
        (KernelClassifier("squared"), 4, {"cv": KFold(3)}, "KFold"),
        (KernelClassifier("squared"), KFold(4), {"cv": 3}, "KFold"),
        (KernelClassifier("squared"), RepeatedStratifiedKFold(), {}, "StratifiedKFold"),
        (KernelClassifier("squared"), KFold(2), {"n_permutations": 200}, "no row of class"),
        (
            KernelClassifier("squared"),
            KFold(2),
            {"n_permutations": 99, "cv": KFold(9)},
            "no row of class",
        ),
    ],
)
def test_refusals_for_classes(model, cv, options, message):
    y = np.arange(48) % 12 == 0
    with pytest.raises(ValueError, match=message):
        permutation_test(search(model, cv=cv), X, y, **options)


def test_pairs_of_classes_are_refused():
    one = search(KernelClassifier("squared", multi_class="ovo"))
    with pytest.raises(ValueError, match="a column per class, got multi_class='ovo'"):
        permutation_test(one, X, CLASSES)


def test_only_a_search_is_tested():
    with pytest.raises(TypeError, match=r"KernelSearchCV\(model, \{\}\)"):
        permutation_test(KernelRegressor(), X, U)
