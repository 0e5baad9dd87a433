"""Run every benchmark, one after the other: ``python -m benchmarks [--quick] [--rounds R]``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPTS = (
    "exact_search",
    "scaling",
    "influence_path",
    "svm_search",
    "svm_rows",
    "svm_cells",
    "accuracy",
    "svm_limit",
    "final_fits",
    "outlier_rule",
    "data_checks",
    "ablation",
    "constants",
    "iterative",
    "gradient",
    "svr_search",
    "quantiles",
    "conformal",
    "updates",
    "permutation",
    "value",
    "learning",
    "features",
    "peeking",
    "pipelines",
    "fallback",
    "plan_choice",
    "plan_times",
    "minutes",
    "scaling_dask",
    "dask_designs",
    "startup",
    "how_good",
    "stacking",
    "stack_constants",
    "ard",
    "skewed_targets",
    "cells",
    "select_rows",
)
NEED_DATA = (
    "svm_search", "svm_rows", "ablation", "iterative", "gradient", "svr_search", "quantiles",
    "features", "peeking", "fallback", "minutes", "how_good", "data_checks",
    "stacking", "stack_constants", "ard", "skewed_targets", "cells",
    "select_rows",
)  # fmt: skip


def main() -> int:
    failed = []
    for script in SCRIPTS:
        if script in NEED_DATA and "ONEFIT_DATA_DIR" not in os.environ:
            print(f"{script} left out: set ONEFIT_DATA_DIR to the folder of the data sets")
            continue
        print(f"== {script}", flush=True)
        path = Path(__file__).with_name(f"{script}.py")
        if subprocess.run([sys.executable, str(path), *sys.argv[1:]]).returncode:
            failed.append(script)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
