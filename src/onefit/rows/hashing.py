"""64-bit hashes of keys, the same in every process, on every machine, in every order.

The word of a whole number from -2^63 to 2^64 is the number modulo 2^64, that of another number the
bits of its double, and that of a text, or of bytes, the first eight bytes of its BLAKE2b digest.
Words are spread by the output function of SplitMix64 (Steele, Lea, Flood 2014), a bijection, after
the spread seed was added to them bit by bit. Equal values have equal words, whatever their type: 7,
7.0, an int8 of 7.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np

from onefit._types import Array
from onefit._validation import DataError
from onefit.rows.columns import as_array

__all__ = ["hash_keys", "spread"]


def hash_keys(keys: Any, seed: int = 0) -> Array:
    """A word for each key: numbers, truth values, times, texts or bytes, none of them missing."""
    values = as_array(keys)
    if values.ndim != 1:
        raise DataError(f"keys must be one column, got an array of shape {values.shape}")
    return spread(_words(values) ^ spread(np.array([seed % 2**64], dtype=np.uint64)))


def spread(words: Array) -> Array:
    """SplitMix64's next number after the state ``words``."""
    z = words + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def _words(values: Array) -> Array:
    kind = values.dtype.kind
    if kind in "biu":
        return values.astype(np.uint64)
    if kind == "f":
        return _words_of_floats(values.astype(np.float64))
    if kind in "mM":
        return _words_of_times(values)
    words = (_word(key, row) for row, key in enumerate(values.tolist()))
    return np.fromiter(words, np.uint64, values.size)


def _words_of_floats(values: Array) -> Array:
    _refuse(~np.isfinite(values), values)
    whole = (values == np.floor(values)) & (values >= -(2.0**63)) & (values < 2.0**64)
    size = np.abs(np.where(whole, values, 0.0)).astype(np.uint64)
    word = np.where(values < 0.0, np.uint64(0) - size, size)
    return np.where(whole, word, values.view(np.uint64))


def _words_of_times(values: Array) -> Array:
    """Nanoseconds, whatever unit they are stored in."""
    _refuse(np.isnat(values), values)
    fine = values.astype(f"{values.dtype.kind}8[ns]")
    _refuse(fine.astype(values.dtype) != values, values)
    return fine.view(np.uint64)


def _word(key: Any, row: int) -> int:
    """A text or bytes by its digest, another value as an array of its own kind."""
    if isinstance(key, str):
        key = key.encode()
    if isinstance(key, bytes):
        return int.from_bytes(blake2b(key, digest_size=8).digest(), "little")
    try:
        one = np.array([key])
        if one.ndim == 1 and one.dtype.kind in "biufmM":
            return int(_words(one)[0])
    except (ValueError, TypeError, OverflowError):
        pass
    raise DataError(
        f"the key {key!r} in row {row} is not a number, text or time; give every row one, as a "
        "column of whole numbers or texts"
    )


def _refuse(bad: Array, values: Array) -> None:
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"the key {values[row]} in row {row} is missing or out of range; every row needs a key"
        )
