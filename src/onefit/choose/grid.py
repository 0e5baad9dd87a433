"""Kernels, bandwidths and lams to try."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from onefit._validation import check_choice, check_positive
from onefit.auto.rules import KERNELS, with_further_lams
from onefit.choose.options import Options
from onefit.files import DataError
from onefit.grids import default_grid
from onefit.kernels import KERNELS as KNOWN_KERNELS
from onefit.robust import mad

Array = NDArray[Any]

__all__ = ["choose_grid", "choose_kernels", "growing"]


def choose_kernels(Z: Any, options: Options) -> tuple[tuple[str, ...], str]:
    """Names of kernels, and why."""
    flag = options.word("kernel")
    if options.grid is not None:
        return (), "grid, as asked"
    for name in options.kernels:
        check_choice(flag, name, [one for one in KNOWN_KERNELS if one != "precomputed"])
    if options.kernels:
        return options.kernels, f"kernels {', '.join(options.kernels)}, as asked"
    kernels = tuple(one for one in KERNELS if one != "laplacian") if issparse(Z) else KERNELS
    return kernels, f"kernels {', '.join(kernels)} (change with {flag})"


def choose_grid(
    task: str, kernels: tuple[str, ...], Z: Any, y: Array, options: Options
) -> list[dict[str, Any]]:
    """The library's own grid with the values asked for, and thresholds of the loss."""
    if options.grid is not None:
        return options.grid if isinstance(options.grid, list) else [options.grid]
    labels = task == "classification"
    try:
        grids = default_grid(Z, y if labels else None, kernels, random_state=options.seed)
    except ValueError as error:
        if "are equal" not in str(error):
            raise
        raise DataError(
            "all rows have the same features, so that there is nothing to predict by; use other "
            "columns"
        ) from error
    for name, values in (("gammas", options.gammas), ("lams", options.lams)):
        for value in values:
            check_positive(options.word(name), value, f"give positive {name}")
    thresholds = {} if labels else _thresholds(options.loss or "squared", y)
    if not labels and options.approximation is None and options.loss in (None, "squared"):
        grids = [with_further_lams(grid) for grid in grids]
    return [_with_values(grid, options) | thresholds for grid in grids]


def growing(options: Options) -> tuple[str, ...]:
    """Parameters whose lists may grow: those that the caller did not give."""
    if options.grid is not None or options.approximation is not None:
        return ()
    asked = {"gamma": options.gammas, "lam": options.lams}
    return tuple(name for name, values in asked.items() if not values)


def _with_values(grid: dict[str, Any], options: Options) -> dict[str, Any]:
    asked = {"gamma": options.gammas, "lam": options.lams}
    return grid | {name: list(v) for name, v in asked.items() if v and name in grid}


def _thresholds(loss: str, y: Array) -> dict[str, Any]:
    """Values of threshold or epsilon in units of the spread of y, robustly measured."""
    spread = mad(np.ravel(y)) or float(y.std())
    if loss == "huber":
        return {"loss__threshold": spread * np.array([0.3, 1.0, 3.0])}
    if loss in ("epsilon_quadratic", "epsilon_insensitive"):
        return {"loss__epsilon": spread * np.array([0.03, 0.1, 0.3])}
    return {}
