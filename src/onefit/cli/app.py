"""The commands. A parameter here is an option there; each command calls one function and prints."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from onefit._version import __version__
from onefit.cli import started
from onefit.cli.arguments import (
    Choice,
    ColumnOptions,
    Data,
    DayFirst,
    Format,
    FormatOption,
    Writing,
)
from onefit.cli.errors import clear_errors, raise_errors
from onefit.cli.grouped import grouped
from onefit.cli.standard import as_file

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
@grouped
def select(
    data: Data,
    columns: ColumnOptions,
    choice: Choice,
    writing: Writing,
    format_: FormatOption = Format.table,
) -> None:
    """Choose, fit and judge a kernel model for a table, as onefit.select does in Python.

    Columns are scaled, missing values filled and categories encoded on all rows before the splits
    are drawn; the model is a scikit-learn pipeline that includes these steps.
    """
    begun = started()
    with clear_errors(), as_file(data) as path:
        from onefit.cli.run import Outputs, select_model

        outputs = Outputs(writing.report, writing.model, writing.journal, _command())
        found = select_model(path, columns, choice.parameters, outputs, begun)
        if format_ is Format.json:
            _print_json(found.document)
        else:
            from onefit.cli.show import show

            show(found)


@app.command()
@grouped
def explain(data: Data, columns: ColumnOptions, choice: Choice) -> None:
    """Say what select would do and cost, without doing it."""
    with clear_errors(), as_file(data) as path:
        from onefit.cli.run import explain_plan

        typer.echo(explain_plan(path, columns, choice.parameters))


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
        typer.Option(min=0.0, max=0.999, help="Of a regression's intervals; 0 for none."),
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
    with clear_errors(), as_file(data) as path:
        from onefit.cli.predict import New, check_output, predict_rows, show_scores, show_unfamiliar

        output = None if output == Path("-") else output
        check_output(output)
        rows = New(path, id, level, dayfirst)
        if output is not None:
            from onefit.cli.predict_streamed import predict_to_file

            done = predict_to_file(model, rows, output)
            if done is not None:
                typer.echo(f"{done[0]} predictions written to {output}", err=True)
                show_unfamiliar(done[2])
                show_scores(done[1])
                return
        predict_rows(model, rows).write(output, format_ is Format.json)


@app.command()
def demo(
    report: Annotated[Path, typer.Option(help="HTML report to write.")] = Path("onefit-demo.html"),
) -> None:
    """Run a full model selection on a bundled data set, and write its report."""
    with clear_errors():
        from onefit.cli.demo import run

        run(report)


def _command() -> str:
    """The command line of this process."""
    return shlex.join(["onefit", *sys.argv[1:]])


def _print_json(document: dict[str, Any]) -> None:
    from onefit.cli.document import as_json

    typer.echo(json.dumps(as_json(document), indent=2, allow_nan=False, ensure_ascii=False))
