"""From a problem that fails to the smallest one that still does.

Greedy: each change that keeps the failure is kept, from the coarse (one fold, no path, no weights)
to the fine (a row less), until none does.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onefit.folds import Folds
from onefit.problem import Problem

__all__ = ["shrink", "snippet"]


def shrink(case, fails, show=True):
    """The smallest case found for which ``fails(case)`` is true; its source is printed."""
    case = replace(case, kind=case.kind + ", shrunk")
    found = True
    while found:
        found = False
        for smaller in _smaller(case):
            if _still(fails, smaller):
                case, found = smaller, True
                break
    if show:
        print(snippet(case))
    return case


def _still(fails, case):
    try:
        return bool(fails(case))
    except Exception:
        return False


def _smaller(case):
    """Every simpler case one change away, the boldest changes first."""
    problem, folds = case.problem, case.folds
    if len(folds) > 1:
        for k in range(len(folds)):
            yield replace(case, folds=Folds(folds.n, [folds.train[k]], [folds.test[k]]))
    if len(case.lams) > 1:
        yield replace(case, lams=(case.lam,))
    if (problem.s != 1.0).any():
        yield _with(case, s=np.ones_like(problem.s))
        yield _with(case, s=(problem.s > 0).astype(problem.s.dtype))
    if problem.fit_intercept:
        yield _with(case, fit_intercept=False)
    if problem.scaling == "mean":
        yield _with(case, scaling="total")
    size = problem.n // 2
    while size:
        for first in range(0, problem.n, size):
            yield from _without(case, np.arange(first, min(first + size, problem.n)))
        size //= 2
    yield from _rounded(case)


def _with(case, **changes):
    return replace(case, problem=replace(case.problem, **changes))


def _without(case, rows):
    """The case without some rows, where every split keeps two rows to train on and one to test."""
    problem = case.problem
    kept = np.setdiff1d(np.arange(problem.n), rows)
    place = np.full(problem.n, -1)
    place[kept] = np.arange(kept.size)
    pairs = []
    for train, test in case.folds:
        a, b = place[train], place[test]
        a, b = a[a >= 0], b[b >= 0]
        if (problem.s[kept][a] > 0).sum() < 2 or b.size == 0:
            return
        pairs.append((a, b))
    smaller = Problem(
        problem.K.matrix[np.ix_(kept, kept)].copy(), problem.Y[kept], problem.s[kept], problem.loss,
        problem.fit_intercept, problem.scaling,
    )  # fmt: skip
    yield replace(case, problem=smaller, folds=Folds.from_pairs(kept.size, pairs))


def _rounded(case):
    """The case with numbers that are shorter to write."""
    power = 10.0 ** np.round(np.log10(case.lam))
    if power != case.lam and len(case.lams) <= 1:
        yield replace(case, lam=power, lams=(power,))
    for digits in (0, 2):
        Y = np.array([float(f"{y:.{digits}e}") for y in case.problem.Y.ravel()])
        Y = Y.reshape(case.problem.Y.shape).astype(case.problem.Y.dtype)
        if not np.array_equal(Y, case.problem.Y):
            yield _with(case, Y=Y)


def snippet(case):
    """Python source that makes the case again."""
    problem, kind = case.problem, case.problem.K.dtype.name
    pairs = [(train.tolist(), test.tolist()) for train, test in case.folds]
    return "\n".join(
        [
            f"# seed {case.seed}: {case.kind}",
            "import numpy as np",
            "from onefit.folds import Folds",
            "from onefit.losses import *",
            "from onefit.problem import Problem",
            f"K = np.array({problem.K.matrix.tolist()}, dtype=np.{kind})",
            f"Y = np.array({problem.Y.tolist()}, dtype=np.{kind})",
            f"s = np.array({problem.s.tolist()}, dtype=np.{kind})",
            f"problem = Problem(K, Y, s, {problem.loss!r}, {problem.fit_intercept}, "
            f"{problem.scaling!r})",
            f"folds = Folds.from_pairs({problem.n}, {pairs})",
            f"lams = np.array({case.path.tolist()})",
        ]
    )
