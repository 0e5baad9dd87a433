"""The commands. A parameter here is an option there; each command calls one function and prints."""

from __future__ import annotations

import json
import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from onefit.cli.compare import compare
from onefit.cli.errors import clear_errors
from onefit.cli.options import Options

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


class Format(StrEnum):
    """How results are printed on stdout."""

    table = "table"
    json = "json"


Data = Annotated[
    Path,
    typer.Argument(
        help="CSV, Parquet or LIBSVM file; with --approximation also a folder of Parquet files.",
        show_default=False,
    ),
]
Target = Annotated[
    str | None, typer.Option(help="Column to predict; needless for LIBSVM.", show_default=False)
]
Delimiter = Annotated[
    str | None, typer.Option(help="Of a CSV file; a comma, or a tab for .tsv, by default.")
]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")]
Rows = Annotated[int | None, typer.Option(min=10, help="Use a random sample of so many rows.")]
Task = Annotated[str, typer.Option(help="auto, regression or classification.")]
Loss = Annotated[str | None, typer.Option(help="Loss; the squared loss by default.")]
Kernels = Annotated[list[str] | None, typer.Option("--kernel", help="Kernel; may be repeated.")]
CriterionOption = Annotated[str, typer.Option(help="What to choose by.")]
Compare = Annotated[
    str | None,
    typer.Option(
        help="Criteria to set beside it, with commas between, or 'none'; a report of at most 1000 "
        "rows has cheap ones by default.",
        show_default=False,
    ),
]
Method = Annotated[str, typer.Option(help="How held-out predictions are computed.")]
Tol = Annotated[
    float | None,
    typer.Option(
        help="Error bound that --method iterative has to reach, in units of the target's standard "
        "deviation; 1e-6 by default.",
        show_default=False,
    ),
]
Calibrate = Annotated[
    str | None,
    typer.Option(
        help="Give the model probabilities of classes, whatever its loss: sigmoid, or isotonic for "
        "a thousand rows and more.",
        show_default=False,
    ),
]
Approximation = Annotated[
    str | None,
    typer.Option(
        help="nystrom or fourier: features in place of the kernel matrix, for many rows. Parquet "
        "files, and folders of them, are then streamed, never loaded.",
        show_default=False,
    ),
]
Components = Annotated[
    int | None,
    typer.Option(min=1, help="Features of --approximation; 2000 by default.", show_default=False),
]
Minutes = Annotated[
    float | None,
    typer.Option(
        help="Time there is: where the plan takes longer, features stand in for the kernel matrix.",
        show_default=False,
    ),
]
NFolds = Annotated[int, typer.Option(help="Splits of the cross-validation.")]
Seed = Annotated[int, typer.Option(help="Of the splits, and of --rows.")]
Jobs = Annotated[int | None, typer.Option(help="Kernels evaluated side by side.")]
Device = Annotated[
    str | None,
    typer.Option(
        help="Where to compute: cuda, cuda:1, or cuda:0,cuda:1; the processor by default."
    ),
]
KeepFormulas = Annotated[
    bool,
    typer.Option(
        "--keep-formulas",
        help="Write texts that begin like a formula (=, +, -, @) to CSV without an apostrophe.",
    ),
]
Output = Annotated[Format, typer.Option("--format", help="How to print.")]
Traceback = Annotated[bool, typer.Option("--traceback", help="Show where an error arose.")]


@app.callback()
def root() -> None:
    """Choose kernel machines by cross-validation, without refitting the splits."""


@app.command()
def select(
    data: Data,
    target: Target = None,
    report: Annotated[Path | None, typer.Option(help="HTML report to write.")] = None,
    model: Annotated[Path | None, typer.Option(help="Model to write (skops).")] = None,
    results: Annotated[
        Path | None, typer.Option(help="All candidates: .parquet, .csv or .json.")
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(help="File (folder for streamed rows) that keeps what is done, for --resume."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with --journal.")] = False,
    task: Task = "auto",
    loss: Loss = None,
    kernel: Kernels = None,
    criterion: CriterionOption = "cv",
    compare: Compare = None,
    method: Method = "auto",
    tol: Tol = None,
    calibrate: Calibrate = None,
    approximation: Approximation = None,
    components: Components = None,
    minutes: Minutes = None,
    folds: NFolds = 10,
    seed: Seed = 0,
    jobs: Jobs = None,
    device: Device = None,
    rows: Rows = None,
    delimiter: Delimiter = None,
    drop: Drop = None,
    keep_formulas: KeepFormulas = False,
    format_: Output = Format.table,
    traceback: Traceback = False,
) -> None:
    """Choose, fit and judge a kernel machine for a table.

    Columns are scaled, gaps filled in and categories encoded on all rows before the splits are
    drawn; the model holds the encoder too.
    """
    with clear_errors(traceback):
        from onefit.cli.run import Diary, Outputs, select_model

        kernels, criteria = tuple(kernel or ()), _listed(compare)
        options = Options(
            task, loss, kernels, criterion, criteria, method, folds, seed, jobs, tol, calibrate,
            approximation, components, device, minutes,
        )  # fmt: skip
        outputs = Outputs(report, model, results, keep_formulas, _command())
        streamed = _streamed(data, approximation, rows)
        diary = Diary(journal, resume, folder=streamed)
        if streamed:
            from onefit.cli.streamed import select_streamed

            left_out = tuple(drop or ())
            summary = select_streamed(data, target, left_out, options, outputs, diary)
            _print_selection(summary, outputs.written, format_)
            return
        table = _read(data, target, delimiter, drop, rows, seed, options.whole)
        summary = select_model(table, options, data.name, outputs, diary)
        _print_selection(summary, outputs.written, format_)


@app.command()
def explain(
    data: Data,
    target: Target = None,
    task: Task = "auto",
    loss: Loss = None,
    kernel: Kernels = None,
    method: Method = "auto",
    tol: Tol = None,
    folds: NFolds = 10,
    jobs: Jobs = None,
    device: Device = None,
    rows: Rows = None,
    delimiter: Delimiter = None,
    drop: Drop = None,
    format_: Output = Format.table,
    traceback: Traceback = False,
) -> None:
    """Say what select would do and cost, without doing it."""
    with clear_errors(traceback):
        from onefit.cli.run import explain_plan

        options = Options(
            task,
            loss,
            tuple(kernel or ()),
            method=method,
            folds=folds,
            jobs=jobs,
            tol=tol,
            device=device,
        )
        table = _read(data, target, delimiter, drop, rows, options.seed)
        document = explain_plan(table, options)
        if format_ is Format.json:
            _print_json(document)
            return
        typer.echo("\n".join([*document["reasons"], "", document["text"]]))


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="Model that select wrote.", show_default=False)],
    data: Data,
    output: Annotated[
        Path | None, typer.Option(help="CSV or Parquet file to write, instead of stdout.")
    ] = None,
    level: Annotated[
        float,
        typer.Option(min=0.0, max=0.999, help="Of a regression's intervals; 0 for none."),
    ] = 0.9,
    delimiter: Delimiter = None,
    keep_formulas: KeepFormulas = False,
    format_: Output = Format.table,
    traceback: Traceback = False,
) -> None:
    """Predict the target of new rows: as CSV on stdout, as JSON, or into a file.

    A regression gets intervals by CV+ (columns lower and upper), made from the training rows that
    the model holds. About --level of new targets lie inside if rows are exchangeable.
    """
    with clear_errors(traceback):
        from onefit.cli.run import check_output, predict_rows, write_predictions
        from onefit.cli.spreadsheet import write_csv

        check_output(output)
        if output is not None:
            from onefit.cli.streamed import predict_to_file

            count = predict_to_file(model, data, output, level, keep_formulas)
            if count is not None:
                typer.echo(f"{count} predictions written to {output}", err=True)
                return
        frame = predict_rows(model, data, _unescaped(delimiter), level)
        if output is not None:
            write_predictions(frame, output, keep_formulas)
            typer.echo(f"{len(frame)} predictions written to {output}", err=True)
        elif format_ is Format.json:
            _print_json({"predictions": frame.to_dict(orient="records")})
        else:
            typer.echo(write_csv(frame, keep_formulas=keep_formulas), nl=False)


@app.command()
def demo(
    report: Annotated[Path, typer.Option(help="HTML report to write.")] = Path("onefit-demo.html"),
    traceback: Traceback = False,
) -> None:
    """Run a full model selection on a bundled data set, and write its report."""
    with clear_errors(traceback):
        from onefit.cli.demo import run

        run(report)


@app.command()
def reproduce(
    paper: Annotated[
        str, typer.Argument(help="jmlr2008, icml2014, ecml2014, ins2016, ieice2019 or all.")
    ],
    full: Annotated[
        bool, typer.Option("--full/--quick", help="Everything, or a few sets and splits.")
    ] = False,
    data: Annotated[
        Path | None, typer.Option(help="Folder of data sets; else ONEFIT_DATA_DIR, else OpenML.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Units measured side by side.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Where results go; experiments/PAPER by default.")
    ] = None,
    replicates: Annotated[
        int | None, typer.Option(min=1, help="The most random splits of a data set.")
    ] = None,
    allow_dirty: Annotated[
        bool, typer.Option("--allow-dirty", help="Full runs from changes that are in no commit.")
    ] = False,
    traceback: Traceback = False,
) -> None:
    """Run a paper's tables and figures again, and set its numbers beside ours.

    An interrupted run goes on where it was when it is started again.
    """
    with clear_errors(traceback):
        from onefit.reproduce import reproduce as run

        run(paper, "full" if full else "quick", data, jobs, out, replicates, allow_dirty)


app.command()(compare)


def _read(
    data: Path,
    target: str | None,
    delimiter: str | None,
    drop: list[str] | None,
    rows: int | None,
    seed: int,
    whole: bool = True,
) -> Any:
    from onefit.cli.recipe import check_rows
    from onefit.tables import read_table

    # of a sample, and for features, all rows are read
    check = check_rows if rows is None and whole else None
    table = read_table(data, target, _unescaped(delimiter), tuple(drop or ()), check)
    return table if rows is None else table.sample(rows, seed)


def _command() -> str:
    """The command line of this process."""
    return shlex.join(["onefit", *sys.argv[1:]])


def _streamed(data: Path, approximation: str | None, rows: int | None) -> bool:
    from onefit.cli.streamed import is_streamed

    return rows is None and is_streamed(data, approximation)


def _listed(names: str | None) -> tuple[str, ...] | None:
    """Names with commas between them; None stands for the default, "none" for none."""
    if names is None:
        return None
    found = tuple(name.strip() for name in names.split(",") if name.strip())
    return () if found == ("none",) else found


def _unescaped(delimiter: str | None) -> str | None:
    return "\t" if delimiter == "\\t" else delimiter


def _print_selection(summary: dict[str, Any], files: dict[str, str], format_: Format) -> None:
    if format_ is Format.json:
        _print_json(summary | {"files": files})
        return
    from onefit.cli.show import show_summary

    show_summary(summary, files)


def _print_json(document: dict[str, Any]) -> None:
    from onefit.cli.summary import as_json

    typer.echo(json.dumps(as_json(document), indent=2, allow_nan=False, ensure_ascii=False))
