"""Table 1 of JMLR 2008 as pictures, from the committed run."""

from __future__ import annotations

import sys
from pathlib import Path

import common
import numpy as np
from common import BLUE, RED, Results

COLUMNS = ("LOO", "CV", "C_IF5", "b=3", "b=2", "b=1", "b optimised")


def table1(results: Results, out: Path) -> None:
    """Mean squared test errors by set and by way of choosing, ours and the paper's."""
    paper, sets, at = common.published("jmlr2008"), results.rows("1"), np.arange(len(COLUMNS))
    figure, axes = common.panels(len(sets), 3, 2.0)
    for axis, row in zip(axes, sets, strict=True):
        ours = [results.values("1", row, column) for column in COLUMNS]
        means = [values.mean() for values in ours]
        errors = [values.std(ddof=1) / np.sqrt(values.size) for values in ours]
        theirs = [paper.get(("1", row, column), np.nan) for column in COLUMNS]
        axis.errorbar(at, means, errors, fmt="o", ms=4, color=BLUE, label="here, ± standard error")
        axis.plot(at, theirs, "x", ms=5, color=RED, label="paper")
        axis.set_xticks(at, ["LOO", "CV", "C_IF", "b=3", "2", "1", "opt."], fontsize=7)
        axis.set(title=row, ylim=(0.0, None))
    axes[0].legend(fontsize=7)
    common.save(figure, out, "table1")


if __name__ == "__main__":
    found = common.committed("jmlr2008")
    if found is not None:
        table1(found, Path(sys.argv[1]))
