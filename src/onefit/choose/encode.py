"""Columns to numbers: scaled, filled in, and categories spread over indicator columns.

The encoder is fitted to all rows, before the splits are drawn: medians, scales and categories know
the held-out rows, their targets do not enter. In the pipeline it stands between the reader of the
raw table and the estimator.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    OneHotEncoder,
    StandardScaler,
)

from onefit._validation import check_choice
from onefit.tables import is_sparse

__all__ = ["describe", "make_encoder", "make_pipeline", "number_columns"]

#: a column of text has at most so many indicator columns; the rarest values share the last
MOST_CATEGORIES = 50
#: what stands in a column of text where a value is missing
MISSING = "(missing)"


def make_encoder(X: Any, scale: str = "auto") -> Any:
    """The encoder for a table's features, not fitted yet.

    Parameters
    ----------
    X : DataFrame of floats and text, array of numbers, or sparse matrix
        A sparse matrix is scaled only, so that it stays sparse.
    scale : {"auto", "none"}, default="auto"
        Whether numbers are brought to one scale.
    """
    check_choice("scale", scale, ("auto", "none"))
    scaled = scale == "auto"
    if is_sparse(X):
        return MaxAbsScaler() if scaled else FunctionTransformer(accept_sparse=True)
    # by place: scikit-learn takes a time of columns squared to find them by name
    kinds = X.dtypes if hasattr(X, "dtypes") else [X.dtype] * X.shape[1]
    floats = np.array([kind.kind == "f" for kind in kinds], dtype=bool)
    numbers, texts = np.flatnonzero(floats), np.flatnonzero(~floats)
    fill = ("fill", SimpleImputer(strategy="median"))
    number = Pipeline([fill, ("scale", StandardScaler())] if scaled else [fill])
    text = Pipeline(
        [
            ("fill", SimpleImputer(strategy="constant", fill_value=MISSING)),
            (
                "spread",
                OneHotEncoder(
                    handle_unknown="infrequent_if_exist",
                    max_categories=MOST_CATEGORIES,
                    sparse_output=False,
                ),
            ),
        ]
    )
    parts = [("numbers", number, numbers), ("texts", text, texts)]
    return ColumnTransformer([part for part in parts if part[2].size])


def make_pipeline(reader: Any, encoder: Any, machine: Any) -> Pipeline:
    """The fitted model that takes the raw table; arrays and sparse matrices have no reader."""
    read = [] if reader is None else [("read", reader)]
    return Pipeline([*read, ("columns", encoder), ("machine", machine)])


def describe(encoder: Any) -> str:
    """What an encoder does, in a sentence."""
    if isinstance(encoder, MaxAbsScaler):
        return "columns divided by their largest absolute value"
    if isinstance(encoder, FunctionTransformer):
        return "none"
    scaled = any("scale" in one.named_steps for kind, one, _ in encoder.transformers if kind)
    then = ", then standardised" if scaled else ""
    words = {
        "numbers": f"numbers (columns: {{}}): gaps filled with the median{then}",
        "texts": "texts (columns: {}): a gap is a category of its own, then one-hot",
    }
    parts = [(kind, len(places)) for kind, _, places in encoder.transformers if len(places)]
    said = "; ".join(words[kind].format(count) for kind, count in parts)
    return f"{said}; learnt from all rows, without the target"


def number_columns(encoder: Any, names: Any) -> set[Any]:
    """Those of the named columns that the fitted encoder takes as numbers."""
    for kind, _, places in getattr(encoder, "transformers_", ()):
        if kind == "numbers":
            return set(np.asarray(names)[places])
    return set()
