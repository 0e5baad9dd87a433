"""Scales of columns by the evidence: from a sample of the rows, and from blocks of neighbours.

First split of the literature's larger sets. `EvidenceScales` gets at most 8,000 training rows and
learns from 500 of them, or from these and blocks of at most 125, 250 or 500 neighbours, cut once or
twice. Then models with a Matern kernel are fitted to 2,000 transformed rows, with the best of
2 kernels x 3 gammas x 4 lams by 1,000 other training rows. "error" is their root mean squared error
on the test rows over the standard deviation of the targets; "none" is without scales. Seconds are
processor time of `EvidenceScales.fit`, one thread.
"""

from __future__ import annotations

import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import _harness as harness
import numpy as np
from _data import data_folder
from _sets import LARGE, TableSet

FIT_ROWS, VALIDATION_ROWS, LEARNING_ROWS = 2000, 1000, 8000
LAMS = (1e-3, 1e-4, 1e-5, 1e-6)
#: rows that are used, and constants of the module
VARIANTS: dict[str, tuple[int, dict[str, int]]] = {
    "500 rows": (500, {}),
    "blocks of 250, cut once": (LEARNING_ROWS, {"CUTS": 1}),
    "blocks of 250, cut twice": (LEARNING_ROWS, {}),
    "blocks of 125, cut twice": (LEARNING_ROWS, {"NEIGHBOUR_ROWS": 125}),
    "blocks of 500, cut twice": (LEARNING_ROWS, {"NEIGHBOUR_ROWS": 500}),
}


def learned(kernel: str, variant: str, X: Any, y: Any) -> tuple[Any, float]:
    """Scales, and the processor seconds that they took."""
    from onefit import evidence_scales

    max_rows, constants = VARIANTS[variant]
    usual = {name: getattr(evidence_scales, name) for name in constants}
    try:
        for name, value in constants.items():
            setattr(evidence_scales, name, value)
        start = time.process_time()
        found = evidence_scales.EvidenceScales(kernel, max_rows).fit(X, y)
        return found.scales_, time.process_time() - start
    finally:
        for name, value in usual.items():
            setattr(evidence_scales, name, value)


def error(X: Any, y: Any, X_test: Any, y_test: Any) -> float:
    """Of the model with the smallest error on the validation rows."""
    from onefit import KernelRegressor

    rows = np.random.default_rng(1).permutation(len(X))
    fit, check = rows[:FIT_ROWS], rows[FIT_ROWS : FIT_ROWS + VALIDATION_ROWS]
    smallest, best = np.inf, np.nan
    for kernel, gamma, lam in product(("matern12", "matern32"), (0.3, 1.0, 3.0), LAMS):
        model = KernelRegressor(kernel=kernel, gamma=gamma, lam=lam).fit(X[fit], y[fit])
        off = float(np.mean((model.predict(X[check]) - y[check]) ** 2))
        if off < smallest:
            smallest, best = off, np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)) / y.std()
    return float(best)


def main() -> None:
    flags = harness.parser(__doc__, rounds=1)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags.add_argument("--sets", nargs="+", default=list(LARGE))
    flags = flags.parse_args()
    folder, name = data_folder(flags.data), harness.stem("evidence_rows", flags.quick)
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    for one in ["power"] if flags.quick else flags.sets:
        X, X_test, y, y_test = TableSet(one, "literature").split(folder, 0)
        kept = np.random.default_rng(0).permutation(len(X))[:LEARNING_ROWS]
        X, y = X[kept], y[kept]
        unit = np.sqrt(2.0 * X.var(axis=0).sum())
        plain = {"set": one, "kernel": "", "scales": "none", "seconds": 0.0}
        rows.append(plain | {"error": error(X / unit, y, X_test / unit, y_test)})
        for kernel, variant in product(("matern12", "matern32"), VARIANTS):
            scales, seconds = learned(kernel, variant, X, y)
            found = {"set": one, "kernel": kernel, "scales": variant, "seconds": seconds}
            rows.append(found | {"error": error(X * scales, y, X_test * scales, y_test)})
            print(rows[-1], flush=True)
            harness.write_csv(flags.out, name, rows)
    text = (__doc__ or "").partition("\n\n")[2]
    sections = [("Results", f"{text}\n\n{harness.table(rows)}")]
    harness.write_report(flags.out, name, "Scales of columns from many rows", sections)


if __name__ == "__main__":
    main()
