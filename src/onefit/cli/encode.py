"""Columns to numbers: scaled, filled in, and categories spread over indicator columns.

The encoder is fitted to all rows, before the splits are drawn: medians, scales and categories know
the held-out rows, their targets do not enter. It is saved with the model, in one pipeline.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

from onefit.tables import DataError, is_sparse

__all__ = ["as_trained", "make_encoder"]

#: a column of text has at most so many indicator columns; the rarest values share the last
MOST_CATEGORIES = 50
#: what stands in a column of text where a value is missing
MISSING = "(missing)"


def make_encoder(X: Any) -> Any:
    """The encoder for a table's features, not fitted yet.

    Parameters
    ----------
    X : DataFrame of floats and text, or sparse matrix
        A sparse matrix is scaled only, so that it stays sparse.
    """
    if is_sparse(X):
        return MaxAbsScaler()
    numbers = [name for name in X.columns if X[name].dtype.kind == "f"]
    texts = [name for name in X.columns if X[name].dtype.kind != "f"]
    number = Pipeline([("fill", SimpleImputer(strategy="median")), ("scale", StandardScaler())])
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
    return ColumnTransformer([part for part in parts if part[2]])


def as_trained(encoder: Any, X: Any) -> Any:
    """Features of new rows, each column as the fitted encoder knows it: a number or a text."""
    if is_sparse(X):
        return X
    X = X.copy()
    numbers = [name for kind, _, names in encoder.transformers_ if kind == "numbers"
               for name in names]  # fmt: skip
    for name in X.columns:
        filled = X[name].dropna()
        if name not in numbers:
            X[name] = X[name].astype(object).map(_text, na_action="ignore")
        elif X[name].dtype.kind != "f":
            if filled.size:
                raise DataError(
                    f"column {name!r} holds {filled.iloc[0]!r} in row {filled.index[0]}, but the "
                    "model was made with numbers there; correct it, or leave it empty"
                )
            X[name] = X[name].astype(float)
    return X


def _text(value: Any) -> str:
    """A category that looks like a whole number was written as one."""
    if isinstance(value, (float, np.floating)) and value == int(value):
        return str(int(value))
    return str(value)
