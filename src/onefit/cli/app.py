"""The commands. A parameter here is an option there; each command calls one function and prints."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from onefit._version import __version__
from onefit.cli import started
from onefit.cli.errors import clear_errors, raise_errors
from onefit.cli.options import (
    Choice,
    ColumnOptions,
    Data,
    DayFirst,
    Format,
    FormatOption,
    Outputs,
    flattened,
)
from onefit.cli.output import check_output

__all__ = ["app"]

app = typer.Typer(
    name="onefit",
    help="Choose kernel models by cross-validation, without refitting the splits.",
    epilog="Exit codes: 0 done, 1 unexpected error, 2 wrong usage, 3 bad data, 4 too large for the "
    "memory, 5 a journal of other data or settings, 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"onefit {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show where an error arose.")
    ] = False,
) -> None:
    """Choose kernel models by cross-validation, without refitting the splits."""
    raise_errors(traceback)


@app.command()
@flattened
def select(
    data: Data,
    columns: ColumnOptions,
    choice: Choice,
    outputs: Outputs,
    format_: FormatOption = Format.table,
) -> None:
    """Choose, fit and evaluate a kernel model for a table, as onefit.select does in Python.

    Columns are scaled, missing values filled and categories encoded on all rows before the splits
    are drawn; the model is a scikit-learn pipeline that includes these steps.
    """
    begun = started()
    with clear_errors() as notes, _as_file(data) as path:
        from onefit.cli.select import select_file
        from onefit.cli.show import as_json, document, show

        found = select_file(path, columns, choice.parameters, outputs, begun, notes)
        if format_ is Format.json:
            typer.echo(as_json(document(found)))
        else:
            show(found)


@app.command()
@flattened
def explain(data: Data, columns: ColumnOptions, choice: Choice) -> None:
    """Print what select would do, its time and memory, without running it."""
    with clear_errors(), _as_file(data) as path:
        from onefit.cli.select import explain_file

        typer.echo(explain_file(path, columns, choice.parameters))


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="Model that select wrote.", show_default=False)],
    data: Data,
    output: Annotated[
        Path | None,
        typer.Option(help="CSV or Parquet file to write, instead of stdout (-).",
                     show_default=False),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(help="Column that names the rows, to be kept with their predictions.",
                     show_default=False),
    ] = None,
    level: Annotated[
        float,
        typer.Option(min=0.0, max=0.999, help="Level of a regression's intervals; 0 for none."),
    ] = 0.9,
    dayfirst: DayFirst = None,
    format_: FormatOption = Format.table,
) -> None:  # fmt: skip
    """Predict the target of new rows: as CSV on stdout, as JSON, or into a file.

    A regression gets intervals (columns lower and upper) from the held-out residuals of the
    training rows, on the splits of select: about --level of new targets lie inside, for rows of
    new groups if select had --groups, for later rows if it had --time. Predictions are scored on
    stderr if the new rows have the target too. Rows unlike the training rows (column novelty above
    1: further from them than any of these from the others) have a note in the column unfamiliar.
    """
    with clear_errors(), _as_file(data) as path:
        output = None if output == Path("-") else output
        if output is not None:
            check_output(output)
        from onefit.cli.model import load_model
        from onefit.cli.predict import Predictions
        from onefit.cli.show import as_json

        found = Predictions(load_model(model), path, id, level, dayfirst)
        if output is not None:
            found.write(output)
        elif format_ is Format.json:
            typer.echo(as_json(found.document))
        else:
            found.print_csv()
        found.show_notes()


@app.command()
def demo(
    report: Annotated[Path, typer.Option(help="HTML report to write.")] = Path("onefit-demo.html"),
) -> None:
    """Run a full model selection on a bundled data set, and write its report."""
    with clear_errors() as notes:
        from sklearn.datasets import load_diabetes

        from onefit import AutoKernelRegressor
        from onefit.cli.select import select_table
        from onefit.cli.show import show
        from onefit.tables import Table

        outputs = Outputs(report=report)
        outputs.check()
        bunch = load_diabetes(as_frame=True, scaled=False)
        table = Table(bunch.data, bunch.target.to_numpy(float), "progression")
        typer.echo(f"{AutoKernelRegressor().explain(table.X, table.y)}\n")
        show(select_table(table, "diabetes", None, {}, outputs, notes))


@contextmanager
def _as_file(data: Path) -> Iterator[Path]:
    """The file itself; for -, a copy of what comes on stdin, as CSV, removed afterwards."""
    if str(data) != "-":
        yield data
        return
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stdin.csv"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path
