r"""Permutation test of a whole search, tuning included, from one preparation per kernel.

**The test.** Under the null hypothesis that rows and targets are independent, targets can be
exchanged among the rows. The statistic T(y) is what the search finds: with ``cv=None`` the score of
its best candidate, ``best_score_``, so that every permutation has its own best candidate; with an
outer ``cv`` the mean score, over the outer splits, of the winner that a search inside the training
part chooses and fits (nested cross-validation, the value of scikit-learn's
``permutation_test_score`` with the search inside). With B random permutations

    p = (1 + #{b : T(y_b) >= T(y)}) / (B + 1)

is a valid p-value (Ojala and Garriga 2010, "Permutation tests for studying classifier
performance"). Choosing the best of many candidates raises T(y) and all T(y_b) alike, which is why
the tuning is accounted for.

**The cost.** For the squared loss the held-out residuals of a split that removes the rows S are

    y_S - u_S = (P_SS)^-1 (P y)_S                              (onefit.heldout.squared),

linear in y, and P depends on the rows, the kernel and lam alone. So B + 1 targets are columns of
one problem: kernel matrix and factors are computed once, and a candidate costs 2 n^2 (B + 1)
operations. A search of its own for every permutation would compute them B times.

**Folds that depend on the targets.** Stratified folds F(y) are drawn from y. T(y_b) with the folds
of y would compare a target whose classes are balanced over the folds with targets whose classes are
not, and the p-value would be too small. Given y, rows are exchangeable under the null hypothesis,
so that any permutation of rows with y and F(y) unchanged is valid. Permutations that map every fold
onto itself are permutations of the targets within the folds, which leave the folds unchanged. So
with stratified folds targets are permuted within the folds.

**Groups.** Targets are permuted within groups, as in scikit-learn, and the splitter gets the groups
too. If y is constant within every group, no permutation changes it and the p-value is 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy, deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state, indexable

from onefit._indexing import n_rows, select_rows, split_rows
from onefit._result import DrawnResult
from onefit._types import Array, Indices
from onefit.folds import Folds
from onefit.kernels import number_type
from onefit.many_targets import ScoredCandidates
from onefit.rows.open_rows import is_streamed
from onefit.search.preprocess import is_wrapped
from onefit.search_cv import KernelSearchCV

__all__ = ["PermutationTest", "permutation_test"]


@dataclass(frozen=True)
class PermutationTest(DrawnResult):
    """The numbers of scikit-learn's ``permutation_test_score``.

    Attributes
    ----------
    score : float
        Of the given targets.
    permutation_scores : (n_permutations,) array
    pvalue : float
    """

    score: float
    permutation_scores: Array = field(repr=False)
    pvalue: float

    @property
    def sentence(self) -> str:
        """The result in words."""
        return (
            f"p-value of the whole search {self.pvalue:.3g}: its score is {self.score:.4g}, and "
            f"the largest of {self.permutation_scores.size:,} searches for permuted targets is "
            f"{self.permutation_scores.max():.4g}"
        )

    def draw(self, axis: Any) -> None:
        """Draw the scores of permuted targets, and that of the given ones as a line."""
        axis.hist(self.permutation_scores, bins="auto", label="permuted targets")
        axis.axvline(self.score, color="C1", label="given targets")
        axis.set(xlabel="score", ylabel="searches")
        axis.legend()


def permutation_test(
    search: KernelSearchCV,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    cv: Any = None,
    n_permutations: int = 1000,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: int = 0,
) -> PermutationTest:
    """p-value of a search, including its choice of parameters.

    Parameters
    ----------
    search : KernelSearchCV
        Over estimators with the squared loss. It is not changed and need not be fitted. For a
        single model pass an empty grid. ``scoring`` must be accuracy, balanced accuracy, R^2, mean
        squared, root mean squared or mean absolute error, or a :class:`onefit.scoring.Metric`.
    X, y : rows and targets
    groups : array of shape (n,), default=None
        Targets are permuted within groups; splitters get the groups as well.
    cv : int, splitter or iterable of splits, default=None
        Outer splits for nested cross-validation; None tests ``best_score_``.
    n_permutations : int, default=1000
    n_jobs : int, default=None
        Processes that share the kernels.
    random_state : int, RandomState or None, default=0
        The permutations are those of scikit-learn's ``permutation_test_score``.
    verbose : int, default=0
        1 prints a line after each kernel.

    Returns
    -------
    PermutationTest

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import KFold
    >>> from onefit import KernelClassifier, KernelSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> folds = KFold(5, shuffle=True, random_state=0)
    >>> model = KernelClassifier("squared")
    >>> search = KernelSearchCV(model, {"lam": [1e-3, 1e-1]}, cv=folds)
    >>> round(permutation_test(search, X, y, n_permutations=99).pvalue, 2)
    0.01
    """
    if n_permutations < 1:
        raise ValueError(f"n_permutations must be at least 1, got {n_permutations!r}")
    _check_search(search, X)
    X, y, groups = indexable(X, y, groups)
    classifier = is_classifier(search.estimator)
    if isinstance(search.cv, Iterator):
        search = copy(search)
        search.cv = list(search.cv)
    cv = list(cv) if isinstance(cv, Iterator) else cv
    cells = _cells(search.cv, cv, X, y, groups, classifier)
    random = check_random_state(random_state)
    n = n_rows(X)
    orders = np.array([np.arange(n), *(_shuffled(n, cells, random) for _ in range(n_permutations))])
    candidates = partial(ScoredCandidates.of, search, n_jobs=n_jobs, verbose=verbose)
    Y = _targets(search.estimator, X, y)
    if cv is None:
        found = candidates(X, y, groups).scores(Y, orders).max(axis=0)
    else:
        outer = Folds.draw(cv, X, y, groups, classifier=classifier)

        def nested(train: Indices, test: Indices) -> Array:
            """Scores on the test rows of an outer split, (B,), by winners of a search inside."""
            X_own, y_own = split_rows(search.estimator, X, y, train, train)
            X_new, _ = split_rows(search.estimator, X, y, test, train)
            inner = candidates(X_own, y_own, select_rows(groups, train))
            return inner.winners_on(X_new, Y, orders, train, test)

        found = np.mean([nested(*split) for split in outer], axis=0)
    if not np.isfinite(found).all():
        raise ValueError(
            f"scoring={search.scoring!r} is undefined on a split; use larger test sets, or a "
            "metric that is defined there"
        )
    score, others = float(found[0]), found[1:]
    # means of the same numbers in another order differ by rounding
    ties = score - 16.0 * np.finfo(float).eps * max(1.0, abs(score))
    pvalue = float((1 + np.count_nonzero(others >= ties)) / (1 + n_permutations))
    return PermutationTest(score, others, pvalue)


def _check_search(search: Any, X: Any) -> None:
    """Refuse what is not a grid of candidates scored by cross-validation on rows in memory."""
    if not isinstance(search, KernelSearchCV):
        raise TypeError(
            f"permutation_test needs a KernelSearchCV, got {type(search).__name__}; for a single "
            "model pass KernelSearchCV(model, {}), for others use scikit-learn's "
            "permutation_test_score"
        )
    refused = {
        f"estimator={type(search.estimator).__name__}": is_wrapped(search.estimator),
        "rows that are streamed": is_streamed(X),
        f"criterion={search.criterion!r}": search.criterion != "cv",
        f"{type(search).__name__}": search._descends,
        "a refit that is a function": callable(search.refit),
    }
    for what, given in refused.items():
        if given:
            raise ValueError(
                f"permutation_test does not support {what}; use scikit-learn's "
                "permutation_test_score with the search inside"
            )


def _targets(estimator: Any, X: Any, y: Any) -> Array:
    """The matrix of targets of all rows."""
    model = clone(estimator)
    return model._code_targets(y, number_type(model._validate_X(X)))  # type: ignore[no-any-return]


def _shuffled(n: int, cells: Array | None, random: Any) -> Indices:
    """A permutation, within cells; the random numbers are used as scikit-learn does."""
    if cells is None:
        return np.asarray(random.permutation(n))
    order = np.arange(n)
    for cell in np.unique(cells):
        rows = np.flatnonzero(cells == cell)
        order[rows] = random.permutation(rows)
    return order


def _cells(inner: Any, outer: Any, X: Any, y: Any, groups: Any, classifier: bool) -> Array | None:
    """Sets of rows within which targets are permuted; None for all rows."""
    dependent = [
        name
        for name, cv in (("cv of the search", inner), ("cv", outer))
        if cv is not None and _follows_targets(cv, X, y, groups, classifier)
    ]
    if not dependent:
        return None if groups is None else np.asarray(groups)
    if outer is not None:
        raise ValueError(
            f"the {dependent[0]} draws its splits from the targets, which the permutations of a "
            "nested test change; pass splitters that do not, such as "
            "KFold(5, shuffle=True, random_state=0), both to the search and as cv"
        )
    folds = Folds.draw(inner, X, y, groups, classifier=classifier)
    if not folds.is_partition:
        raise ValueError(
            "the test sets of the search's cv depend on the targets and overlap, so that too few "
            "permutations keep them; use StratifiedKFold, or a splitter without targets"
        )
    number = np.empty(folds.n, dtype=np.intp)
    number[folds.rows] = np.repeat(np.arange(len(folds)), np.diff(folds.offsets))
    if groups is None:
        return number
    both = np.column_stack([np.unique(groups, return_inverse=True)[1], number])
    return np.asarray(np.unique(both, axis=0, return_inverse=True)[1]).ravel()


def _follows_targets(cv: Any, X: Any, y: Any, groups: Any, classifier: bool) -> bool:
    """Whether permuted targets give other splits."""
    splitter = check_cv(cv, y, classifier=classifier)

    def drawn(order: Indices) -> list[Any]:
        same = deepcopy(splitter)
        if getattr(same, "random_state", 0) is None:
            same.random_state = 0
        return [test for _, test in same.split(X, select_rows(y, order), groups)]

    n = n_rows(X)
    orders = np.arange(n), np.arange(n)[::-1], np.random.RandomState(0).permutation(n)
    first, *others = [drawn(order) for order in orders]
    return any(not all(map(np.array_equal, first, other)) for other in others)
