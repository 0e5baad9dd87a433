"""A full model selection on a bundled data set: ``onefit demo``."""

from __future__ import annotations

from pathlib import Path

from sklearn.datasets import load_diabetes

__all__ = ["run"]


def run(report: Path) -> None:
    """Choose a model for the progression of diabetes, print what was found, write the report."""
    from onefit import AutoKernelRegressor
    from onefit.cli.run import Outputs, select_table
    from onefit.cli.show import show
    from onefit.tables import Table

    bunch = load_diabetes(as_frame=True, scaled=False)
    table = Table(bunch.data, bunch.target.to_numpy(float), "progression")
    outputs = Outputs(report=report)
    outputs.check()
    print(AutoKernelRegressor().explain(table.X, table.y), end="\n\n")
    show(select_table(table, "diabetes", None, {}, outputs))
