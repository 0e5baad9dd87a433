"""Standard errors of cross-validated scores, and what the best of them is worth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

Array = NDArray[Any]

__all__ = ["optimism_note", "standard_errors"]


def standard_errors(search: Any, metric: str = "score") -> Array:
    """The standard error of every candidate's mean score, from its splits.

    std(scores of the k splits) / sqrt(k), as if splits were independent draws. They share training
    rows, so this is too small, by a factor that no estimate is unbiased for (Bengio and
    Grandvalet 2004); :func:`nested_cv` gives an honest width.

    Parameters
    ----------
    search : a fitted search
    metric : str, default="score"
        Its name in ``cv_results_``.

    Returns
    -------
    array of shape (n_candidates,)
    """
    check_is_fitted(search, "cv_results_")
    table = search.cv_results_
    columns = [f"split{i}_test_{metric}" for i in range(search.n_splits_)]
    if columns[0] not in table:
        known = [name[len("mean_test_") :] for name in table if name.startswith("mean_test_")]
        raise ValueError(f"metric={metric!r} is not in cv_results_; it has {', '.join(known)}")
    scores = np.column_stack([table[name] for name in columns])
    if scores.shape[1] < 2:
        raise ValueError("a standard error needs two splits at least, and the search had one")
    return np.asarray(scores.std(axis=1, ddof=1) / np.sqrt(scores.shape[1]))


def optimism_note(search: Any) -> str:
    """One sentence for whoever reads ``best_score_`` as the winner's accuracy."""
    check_is_fitted(search, "cv_results_")
    tried = len(search.cv_results_["params"])
    if tried == 1:
        return "best_score_ is the score of the one candidate there was: nothing was selected."
    return (
        f"best_score_ is the best of {tried} scores on the same splits, and therefore optimistic "
        "for the winner's accuracy on new rows; nested_cv(search, X, y) estimates that accuracy, "
        "with the selection inside."
    )
