"""A full model selection on a bundled data set: ``onefit demo``."""

from __future__ import annotations

from pathlib import Path

from sklearn.datasets import load_diabetes

__all__ = ["run"]


def run(report: Path) -> None:
    """Choose a machine for the progression of diabetes, print the ranking, and write the report."""
    from onefit.choose.options import Options
    from onefit.cli.run import Outputs, explain_plan, select_model
    from onefit.cli.show import show_summary
    from onefit.cli.standard import Source
    from onefit.tables import ColumnReader, Table

    bunch = load_diabetes(as_frame=True, scaled=False)
    reader = ColumnReader(words="command")
    X = reader.fit_transform(bunch.data)
    table = Table(X, bunch.target.to_numpy(float), "progression", reader=reader)
    options = Options()
    print(explain_plan(table, options)["text"], end="\n\n")
    outputs = Outputs(report=report)
    show_summary(select_model(table, options, Source("diabetes"), outputs), outputs.written)


if __name__ == "__main__":
    run(Path("onefit-demo.html"))
