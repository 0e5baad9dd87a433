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
from onefit.cli.arguments import Choice, Columns, Data, Format, Printing, Sample, Text, Writing
from onefit.cli.errors import clear_errors
from onefit.cli.grouped import grouped
from onefit.cli.standard import Source, as_file

__all__ = ["app"]

app = typer.Typer(
    name="onefit",
    help="Choose kernel machines by cross-validation, without refitting the splits.",
    epilog="Exit codes: 0 done, 1 unexpected error, 2 wrong usage, 3 bad data, 4 too large for the "
    "memory, 5 a journal of other data or settings, 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


Traceback = Annotated[bool, typer.Option("--traceback", help="Show where an error arose.")]


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
) -> None:
    """Choose kernel machines by cross-validation, without refitting the splits."""


@app.command()
@grouped
def select(
    data: Data,
    columns: Columns,
    text: Text,
    choice: Choice,
    sample: Sample,
    writing: Writing,
    printing: Printing,
) -> None:
    """Choose, fit and judge a kernel machine for a table.

    Columns are scaled, gaps filled in and categories encoded on all rows before the splits are
    drawn; the model is a scikit-learn pipeline that holds the encoder too.
    """
    begun = started()
    with clear_errors(printing.traceback), as_file(data) as path:
        from onefit.cli.run import JournalOption, Outputs, select_model

        options = choice.options
        outputs = Outputs(
            writing.report, writing.model, writing.results, printing.keep_formulas, _command()
        )
        streamed = _streamed(path, options.approximation, sample.rows)
        journal = JournalOption(writing.journal, writing.resume)
        if streamed:
            from onefit.cli.streamed import select_streamed

            summary = select_streamed(path, columns, text, options, outputs, journal)
        else:
            # of a sample, and for features, all rows are read
            table = _read(path, columns, text, sample.rows is None and options.whole)
            some = table if sample.rows is None else table.sample(sample.rows, choice.seed)
            whole = None if sample.rows_only or some is table else table
            source = Source(path.name, text.reading(), whole)
            summary = select_model(some, options, source, outputs, journal, begun)
        _print_selection(summary, outputs.written, printing.format_)


@app.command()
@grouped
def explain(
    data: Data, columns: Columns, text: Text, choice: Choice, sample: Sample, printing: Printing
) -> None:
    """Say what select would do and cost, without doing it."""
    with clear_errors(printing.traceback), as_file(data) as path:
        from onefit.cli.run import explain_plan

        table = _read(path, columns, text, sample.rows is None)
        if sample.rows is not None:
            table = table.sample(sample.rows, choice.seed)
        document = explain_plan(table, choice.options)
        if printing.format_ is Format.json:
            _print_json(document)
            return
        typer.echo("\n".join([*document["reasons"], "", document["text"]]))


@app.command()
@grouped
def predict(
    model: Annotated[Path, typer.Argument(help="Model that select wrote.", show_default=False)],
    data: Data,
    text: Text,
    printing: Printing,
    output: Annotated[
        Path | None,
        typer.Option(help="CSV or Parquet file to write, instead of stdout (-).",
                     show_default=False),
    ] = None,
    level: Annotated[
        float,
        typer.Option(min=0.0, max=0.999, help="Of a regression's intervals; 0 for none."),
    ] = 0.9,
) -> None:  # fmt: skip
    """Predict the target of new rows: as CSV on stdout, as JSON, or into a file.

    A regression gets intervals (columns lower and upper) from the held-out residuals of the
    training rows, on the splits of select: about --level of new targets lie inside, for rows of
    new groups if select had --groups, for later rows if it had --time. Predictions
    have the id of their row if --id named one to select, and are scored on stderr if the new rows
    have the target too. Rows unlike the training rows (column novelty above 1: further from them
    than any of these from the others) have a note in the column unfamiliar.
    """
    with clear_errors(printing.traceback), as_file(data) as path:
        from onefit.cli.predict import check_output, predict_rows, show_scores, show_unfamiliar

        output = None if output == Path("-") else output
        check_output(output)
        if output is not None:
            from onefit.cli.predict_streamed import predict_to_file

            done = predict_to_file(model, path, output, level, text, printing.keep_formulas)
            if done is not None:
                typer.echo(f"{done[0]} predictions written to {output}", err=True)
                show_unfamiliar(done[2])
                show_scores(done[1])
                return
        found = predict_rows(model, path, text, level)
        found.write(output, printing.format_ is Format.json, printing.keep_formulas)


@app.command()
def demo(
    report: Annotated[Path, typer.Option(help="HTML report to write.")] = Path("onefit-demo.html"),
    traceback: Traceback = False,
) -> None:
    """Run a full model selection on a bundled data set, and write its report."""
    with clear_errors(traceback):
        from onefit.cli.demo import run

        run(report)


def _read(path: Path, columns: Columns, text: Text, checked: bool) -> Any:
    """The table; where that is asked for, too many rows are refused before they are read."""
    from onefit.choose.size import check_rows
    from onefit.tables import read_table

    check = check_rows if checked else None
    return read_table(
        path, columns.target, text.reading(), columns.left_out, check, columns.roles, text.dayfirst
    )  # fmt: skip


def _command() -> str:
    """The command line of this process."""
    return shlex.join(["onefit", *sys.argv[1:]])


def _streamed(data: Path, approximation: str | None, rows: int | None) -> bool:
    from onefit.cli.streamed import is_streamed

    return rows is None and is_streamed(data, approximation)


def _print_selection(summary: dict[str, Any], files: dict[str, str], format_: Format) -> None:
    if format_ is Format.json:
        _print_json(summary | {"files": files})
        return
    from onefit.cli.show import show_summary

    show_summary(summary, files)


def _print_json(document: dict[str, Any]) -> None:
    from onefit.cli.document import as_json

    typer.echo(json.dumps(as_json(document), indent=2, allow_nan=False, ensure_ascii=False))
