"""Data that make cross-validation too optimistic: copies of rows, columns that leak the target.

A copy of a held-out row in the training part, or a column that is the target in another unit, makes
held-out errors smaller than those of new rows. Both are looked for before the search. Copies are
kept on one side of every split; a column is named, for the user to judge.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import rankdata
from sklearn.model_selection import TimeSeriesSplit

from onefit._frames import listed, place_of, shown
from onefit.auto.rules import is_count
from onefit.heldout.base import HeldOut
from onefit.kernels.distances import is_sparse
from onefit.tables import names_the_rows

Array = NDArray[Any]

__all__ = [
    "Copies",
    "explained",
    "find_copies",
    "shares_of_columns",
    "suspicious",
    "together",
    "warn_of_columns",
]

#: from this share of the target on, explained by one column on held-out rows, the column is named
#: if the winner explains hardly more; and from this one in any case (benchmarks/data_checks.py)
STRONG_SHARE, WHOLE_SHARE = 0.95, 0.999
#: interpolation between noisy targets has an error of up to twice the variance of the noise
INTERPOLATION_LOSS = 2.0
#: largest number of rows and columns checked, and number of held-out parts
MAX_CHECKED_ROWS, MAX_CHECKED_COLUMNS, PARTS = 2000, 1000, 5


@dataclass(frozen=True)
class Copies:
    """Rows that are there more than once.

    Attributes
    ----------
    first : array of shape (n,)
        The first row that each row equals in features and target, itself if it equals none.
    left_out : list of str
        Columns that name the rows, in which copies may differ.
    """

    first: Array
    left_out: list[str]

    @property
    def count(self) -> int:
        """Number of rows that are copies of an earlier one."""
        return int((self.first != np.arange(self.first.size)).sum())

    def note(self, X: Any, why_apart: str) -> str:
        """A sentence about the copies."""
        n, k = self.first.size, self.count
        row = int(np.flatnonzero(self.first != np.arange(n))[0])
        places = [place_of(X, i) for i in (row, int(self.first[row]))]
        but = f" but {listed(self.left_out)}" if self.left_out else ""
        text = (
            f"{k} of {n} rows {'is a copy' if k == 1 else 'are copies'} of an earlier row, equal "
            f"in the target and all columns{but} (for example {places[0]} equals {places[1]})"
        )
        if why_apart:
            return (
                f"{text}; {why_apart}, so that copies are in training and test parts, and the "
                "errors are too small unless new rows are copies too; remove them, or give groups"
            )
        return f"{text}; copies are kept on one side of every split"


def find_copies(X: Any, y: Array) -> Copies:
    """Rows that equal an earlier one in features and target."""
    names = _left_out(X)
    seen: dict[bytes, int] = {}
    targets = np.unique(y, return_inverse=True)[1].reshape(len(y), -1)
    first = np.array(
        [
            seen.setdefault(blake2b(row + target.tobytes(), digest_size=16).digest(), i)
            for i, (row, target) in enumerate(zip(_rows_as_bytes(X, names), targets, strict=True))
        ]
    )
    return Copies(first, [str(name) for name in names])


def _left_out(X: Any) -> list[Any]:
    """Columns that name the rows, if there are others."""
    names = names_the_rows(X) if hasattr(X, "columns") else []
    return names if len(names) < X.shape[1] else []


def _rows_as_bytes(X: Any, left_out: list[Any]) -> Iterator[bytes]:
    if is_sparse(X):
        rows = X.tocsr().sorted_indices()
        for begin, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
            yield rows.indices[begin:end].tobytes() + rows.data[begin:end].tobytes()
        return
    values = _as_numbers(X.drop(columns=left_out) if left_out else X) + 0.0  # -0.0 is 0.0
    values[np.isnan(values)] = np.nan  # of which there are many
    for row in values:
        yield row.tobytes()


def _as_numbers(X: Any) -> Array:
    """Numbers as they are, texts as codes."""
    if not hasattr(X, "columns"):
        return np.asarray(X, dtype=float)
    import pandas as pd

    texts = np.array([kind.kind != "f" for kind in X.dtypes], dtype=bool)
    found = np.empty(X.shape)
    found[:, ~texts] = X.loc[:, ~texts].to_numpy()
    for place in np.flatnonzero(texts):
        found[:, place] = pd.factorize(X.iloc[:, place])[0]
    return found


def together(copies: Copies, given: Any, y: Array, task: str, cv: Any) -> tuple[Array | None, str]:
    """Groups that keep copies and given groups on one side of a split, and the reason."""
    if isinstance(cv, TimeSeriesSplit):
        return given, "splits are in order of time"
    if not is_count(cv):
        return given, "the splits are given"
    n, groups = copies.first.size, copies.first
    if given is not None:
        labels = np.unique(np.asarray(given), return_inverse=True)[1]
        edges = coo_array((np.ones(n), (groups, n + labels)), shape=(2 * n, 2 * n))
        groups = connected_components(edges, directed=False)[1][groups]
    found, sizes = np.unique(groups, return_counts=True)
    needed = 2 if cv == n else cv
    enough = found.size >= needed and 2 * sizes.max() < n
    if enough and task == "classification":
        enough = all(np.unique(groups[y == one]).size > 1 for one in np.unique(y))
    if not enough:
        return given, f"only {found.size} of them are different, too few to keep them apart"
    return groups, ""


def warn_of_columns(shares: list[tuple[Any, float]], search: Any, y: Array, task: str) -> list[str]:
    """A note, and a warning, for each column that alone explains the target."""
    whole = explained(search, y, task)
    beside = "" if np.isnan(whole) else f", {whole:.4f} with all columns"
    notes = [
        f"column {shown(name)} alone explains {share:.2%} of the target on held-out rows (R² "
        f"{'of its ranks' if task == 'regression' else 'of the labels'} {share:.4f}{beside}); if "
        "it is not known when predictions are made, or is the target in another form, leave it "
        "out: with it the errors are too small"
        for name, share in shares
        if suspicious(share, whole)
    ]
    for note in notes:
        warnings.warn(note, stacklevel=4)
    return notes


def suspicious(share: float, whole: float) -> bool:
    """Whether a column that explains a share of the target leaves nothing to the others.

    ``whole`` is the share that the winner explains with all columns, NaN where it is not known. A
    strong predictor that others add to is not suspicious.
    """
    alone = (1.0 - share) <= INTERPOLATION_LOSS * (1.0 - whole)
    return share >= WHOLE_SHARE or (share >= STRONG_SHARE and bool(alone))


def explained(search: Any, y: Array, task: str) -> float:
    """The share of the target that the winner explains on held-out rows; NaN where not known.

    In ranks, or of labels, as in :func:`shares_of_columns`; the largest of several targets, and of
    an average and its best candidate.
    """
    held = getattr(search, "heldout_", None)
    if held is None or len(held.predictions) != len(y):
        return np.nan
    if hasattr(search, "stack_"):
        best = search.heldout(search.best_index_)
        return max(_share_explained(one, y, task) for one in (held, best))
    return _share_explained(held, y, task)


def _share_explained(held: HeldOut, y: Array, task: str) -> float:
    if task == "classification":
        labels = np.asarray(held.labels)
        there = np.isin(labels, np.unique(y))
        Y = _as_targets(y[there], task)
        wrong = 2.0 * (labels[there] != y[there]).sum()
        return float(1.0 - wrong / np.square(Y).sum())
    shares = []
    columns = zip(y.reshape(len(y), -1).T, held.predictions.reshape(len(y), -1).T, strict=True)
    for truth, found in columns:
        there = np.isfinite(found)
        ranks = rankdata(truth[there])
        values, place = np.unique(truth[there], return_index=True)
        wrong = _squares(ranks - np.interp(found[there], values, ranks[place]), True).sum()
        shares.append(1.0 - wrong / np.square(ranks - ranks.mean()).sum())
    return float(max(shares))


def shares_of_columns(
    X: Any, y: Array, task: str, groups: Array | None, ordered: bool = False
) -> list[tuple[Any, float]]:
    """The share of the target that each column alone explains of held-out rows, by its name.

    The target is taken in ranks, labels as indicators. A column of numbers predicts by the means at
    its values in the training part, and linearly between them; a text by the mean of its category.
    The share is 1 less the squared error (beyond one rank) over that of the mean. A single column
    is not judged. Of many rows a sample is used, of many columns those with the largest
    correlation.
    """
    n, d = X.shape
    if d < 2:
        return []
    rows = np.arange(n)
    if n > MAX_CHECKED_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(n, MAX_CHECKED_ROWS, replace=False))
    part = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
    Y = _as_targets(y[rows], task)
    folds = _parts(rows.size, None if groups is None else groups[rows], ordered)
    found = []
    for name, values, is_text in _columns(part, Y):
        share = _share(values, Y, folds, is_text, task == "classification")
        found.append((name, share))
    return found


def _as_targets(y: Array, task: str) -> Array:
    """Ranks of amounts, indicators of labels, less their mean."""
    if task == "regression":
        Y = np.asarray(rankdata(y.reshape(len(y), -1), axis=0))
    else:
        Y = (y[:, None] == np.unique(y)).astype(float)
    return np.asarray(Y - Y.mean(axis=0))


def _parts(n: int, groups: Array | None, ordered: bool) -> list[tuple[Array, Array]]:
    """Training and test rows: parts of the groups, or of the time."""
    if ordered:
        place = np.arange(n) * (PARTS + 1) // n
        return [
            (np.flatnonzero(place < i), np.flatnonzero(place == i)) for i in range(1, PARTS + 1)
        ]
    labels = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    place = np.random.default_rng(0).permutation(labels.max() + 1)[labels] % PARTS
    return [(np.flatnonzero(place != i), np.flatnonzero(place == i)) for i in range(PARTS)]


def _columns(X: Any, Y: Array) -> Iterator[tuple[Any, Array, bool]]:
    """Name, values and whether they are codes of texts, of the columns that are looked at."""
    names = list(X.columns) if hasattr(X, "columns") else list(range(X.shape[1]))
    places: Any = range(len(names))
    numbers: Any = X.tocsc() if is_sparse(X) else _as_numbers(X)
    if len(names) > MAX_CHECKED_COLUMNS:
        places = np.argsort(-_correlations(numbers, Y))[:MAX_CHECKED_COLUMNS]
    kinds = X.dtypes if hasattr(X, "dtypes") else None
    for j in places:
        values = numbers[:, [j]].toarray()[:, 0] if is_sparse(X) else numbers[:, j]
        yield names[j], values, kinds is not None and kinds.iloc[j].kind != "f"


def _correlations(values: Any, Y: Array) -> Array:
    """The largest absolute correlation of each column with a target; gaps count as 0."""
    if not is_sparse(values):
        values = np.nan_to_num(values - np.nanmean(values, axis=0))
    squares = values.multiply(values) if is_sparse(values) else values**2
    sizes = np.sqrt(np.asarray(squares.sum(axis=0)).ravel())
    products = np.abs(np.asarray(values.T @ Y)).max(axis=1)
    return np.asarray(products / np.where(sizes > 0, sizes, np.inf))


def _share(
    x: Array, Y: Array, folds: list[tuple[Array, Array]], is_text: bool, joint: bool
) -> float:
    """The share of Y that x alone explains of held-out rows; of several amounts, the largest."""
    wrong, whole = np.zeros(Y.shape[1]), np.zeros(Y.shape[1])
    for train, test in folds:
        if train.size == 0 or test.size == 0:
            continue
        mean = Y[train].mean(axis=0)
        errors = Y[test] - _predicted(x, Y, train, test, is_text)
        wrong += _squares(errors, not joint).sum(axis=0)
        whole += np.square(Y[test] - mean).sum(axis=0)
    if joint:
        wrong, whole = wrong.sum(keepdims=True), whole.sum(keepdims=True)
    return float((1.0 - wrong / np.where(whole > 0, whole, np.inf)).max())


def _squares(errors: Array, ranks: bool) -> Array:
    """Squared errors; of ranks beyond one, which interpolation cannot resolve."""
    sizes = np.maximum(np.abs(errors) - 1.0, 0.0) if ranks else errors
    return np.asarray(np.square(sizes))


def _predicted(x: Array, Y: Array, train: Array, test: Array, is_text: bool) -> Array:
    """Predictions by the means of Y at the values of x, interpolated if x holds numbers."""
    codes = np.where(np.isnan(x), -1.0, x) if is_text else x
    there = train[~np.isnan(codes[train])]
    found = np.tile(Y[train].mean(axis=0), (test.size, 1))
    if there.size == 0:
        return found
    values, place, counts = np.unique(codes[there], return_inverse=True, return_counts=True)
    known = np.flatnonzero(~np.isnan(codes[test]))
    if is_text:
        known = known[np.isin(codes[test[known]], values)]
    for q in range(Y.shape[1]):
        means = np.bincount(place, weights=Y[there, q]) / counts
        found[known, q] = np.interp(codes[test[known]], values, means)
    return found
