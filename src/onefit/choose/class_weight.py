"""Weights of the classes, by the labels that the target has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit._validation import check_choice, check_positive, suggest
from onefit.choose.options import Options
from onefit.files import listed, shown

Array = NDArray[Any]

__all__ = ["choose_class_weight"]


def choose_class_weight(y: Array, options: Options) -> Any:
    """None, "balanced", or a weight by label; classes that are not named count once.

    The command line knows labels as texts, whatever they are in the table.
    """
    asked, word = options.class_weight, options.word("class-weight")
    if asked is None:
        return None
    if not isinstance(asked, Mapping):
        check_choice(word, asked, ("balanced",))
        return asked
    labels = {one if options.python else str(one): one for one in np.unique(y).tolist()}
    found = {}
    for name, weight in asked.items():
        if name not in labels:
            near = suggest(str(name), map(str, labels))
            raise ValueError(
                f"{word}: the target has no class {shown(name)}{near} Its classes are "
                f"{listed(list(labels))}"
            )
        hint = "give each class a positive weight"
        found[labels[name]] = check_positive(f"{word} of {shown(name)}", weight, hint)
    return found
