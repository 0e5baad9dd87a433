"""The options of the commands, those that belong together in one dataclass.

Values are listed here as text, because the modules that know them take long to import; a test
compares them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onefit.choose.options import Options

if TYPE_CHECKING:
    from onefit.files import CsvFormat
    from onefit.tables import Roles

__all__ = ["Choice", "Columns", "Data", "Format", "Printing", "Sample", "Text", "Writing"]

LOSSES = (
    "squared; huber, epsilon_insensitive, epsilon_quadratic, quantile, expectile, logistic for "
    "amounts; smoothed_hinge, squared_hinge, log for classes"
)
KERNELS = "rbf, laplacian, matern12, matern32, matern52, poly, linear"
CRITERIA = (
    "cv, loo, cv_hat, gcv, influence_loo, kernel_stability, bayes_loo, gacv, span, sv_count, "
    "radius_margin"
)
METHODS = "auto, refit, block, eigen, influence, limit, exact, iterative, race"


class Format(StrEnum):
    """How results are printed on stdout."""

    table = "table"
    json = "json"


Data = Annotated[
    Path,
    typer.Argument(
        help="CSV, Parquet or LIBSVM file, or - for CSV on stdin; with --approximation also a "
        "folder of Parquet files.",
        show_default=False,
    ),
]


def _option(*names: str, panel: str, **options: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, show_default=False, **options)


@dataclass(frozen=True)
class Columns:
    """Which columns are what."""

    target: Annotated[
        str | None, _option(help="Column to predict; needless for LIBSVM.", panel="Columns")
    ] = None
    drop: Annotated[
        list[str] | None,
        _option("--drop", "--exclude", help="Column to leave out; may be repeated.",
                panel="Columns"),
    ] = None  # fmt: skip
    id: Annotated[
        str | None,
        _option(help="Column that names the rows: no feature, and kept with predictions.",
                panel="Columns"),
    ] = None  # fmt: skip
    groups: Annotated[
        str | None,
        _option(help="Column of groups, each of which stays on one side of a split.",
                panel="Columns"),
    ] = None  # fmt: skip
    time: Annotated[
        str | None,
        _option(help="Column of times: splits train on earlier rows and test on later ones.",
                panel="Columns"),
    ] = None  # fmt: skip
    weights: Annotated[
        str | None, _option(help="Column of weights of the rows.", panel="Columns")
    ] = None

    @property
    def left_out(self) -> tuple[str, ...]:
        """Columns to leave out."""
        return tuple(self.drop or ())

    @property
    def roles(self) -> Roles:
        """Columns that are neither features nor the target."""
        from onefit.tables import Roles

        return Roles(self.groups, self.weights, self.time, self.id)


@dataclass(frozen=True)
class Text:
    """How a CSV file is written; None for what a model remembers, or the usual."""

    delimiter: Annotated[
        str | None,
        _option("--delimiter", "--sep", help="Of a CSV file; a comma, or a tab for .tsv, by "
                "default. A model remembers it.", panel="File"),
    ] = None  # fmt: skip
    encoding: Annotated[
        str | None, _option(help="Of a CSV file; utf-8 by default.", panel="File")
    ] = None
    no_header: Annotated[
        bool,
        _option("--no-header", help="The first line of a CSV file is a row; columns are called 1, "
                "2, 3 ...", panel="File"),
    ] = False  # fmt: skip
    dayfirst: Annotated[
        bool | None,
        _option("--dayfirst/--monthfirst", help="What 01/02/2021 means: 1 February, or 2 January. "
                "Asked for only where no date of the column settles it.", panel="File"),
    ] = None  # fmt: skip

    def reading(self, remembered: CsvFormat | None = None) -> CsvFormat:
        """What was said, then what is remembered."""
        from onefit.files import CsvFormat

        known = remembered or CsvFormat()
        delimiter = "\t" if self.delimiter == "\\t" else self.delimiter
        return CsvFormat(
            known.delimiter if delimiter is None else delimiter,
            self.encoding or known.encoding,
            known.header and not self.no_header,
        )


@dataclass(frozen=True)
class Sample:
    """A sample of the rows."""

    rows: Annotated[
        int | None,
        _option(min=10, help="Choose on a random sample of so many rows; the model is then fitted "
                "to all of them.", panel="Rows"),
    ] = None  # fmt: skip
    rows_only: Annotated[
        bool, _option("--rows-only", help="Fit the model to the sample alone.", panel="Rows")
    ] = False


@dataclass(frozen=True)
class Choice:
    """What to choose from, and by."""

    task: Annotated[str, _option(help="auto, regression or classification.", panel="Choice")] = (
        "auto"
    )
    metric: Annotated[
        str | None,
        _option(help="What candidates are judged by: any scorer of scikit-learn, or mae, rmse, "
                "auc ...; root mean squared error or accuracy by "
                "default.", panel="Choice"),
    ] = None  # fmt: skip
    loss: Annotated[
        str | None, _option(help=f"Loss: {LOSSES}; squared by default.", panel="Choice")
    ] = None
    kernel: Annotated[
        list[str] | None,
        _option("--kernel", help=f"Kernel: {KERNELS}; may be repeated.", panel="Choice"),
    ] = None
    gammas: Annotated[
        str | None,
        _option(help="Bandwidths to try, with commas between: 0.1,1,10.", panel="Choice"),
    ] = None
    lams: Annotated[
        str | None, _option(help="Values of lam to try, with commas between.", panel="Choice")
    ] = None
    grid: Annotated[
        Path | None,
        _option(help="JSON file of candidates: a param_grid, or a list of them.", panel="Choice"),
    ] = None
    class_weight: Annotated[
        str | None,
        _option(help="balanced: each class counts as much as any other; or weights by class: "
                "yes=3,no=1.", panel="Choice"),
    ] = None  # fmt: skip
    criterion: Annotated[str, _option(help=f"What to choose by: {CRITERIA}.", panel="Choice")] = (
        "cv"
    )
    compare: Annotated[
        str | None,
        _option(help="Criteria to set beside it, with commas between, or 'none'; a report of at "
                "most 1000 rows has cheap ones by default.", panel="Choice"),
    ] = None  # fmt: skip
    method: Annotated[
        str,
        _option(help=f"How held-out predictions are computed: {METHODS}.", panel="Choice"),
    ] = "auto"
    tol: Annotated[
        float | None,
        _option(help="Error bound that --method iterative has to reach, in units of the target's "
                "standard deviation; 1e-6 by default.", panel="Choice"),
    ] = None  # fmt: skip
    calibrate: Annotated[
        str | None,
        _option(help="Give the model probabilities of classes, whatever its loss: sigmoid, or "
                "isotonic for a thousand rows and more.", panel="Choice"),
    ] = None  # fmt: skip
    approximation: Annotated[
        str | None,
        _option(help="nystrom or fourier: features in place of the kernel matrix, for many rows. "
                "Parquet files, and folders of them, are then streamed, never loaded.",
                panel="Cost"),
    ] = None  # fmt: skip
    components: Annotated[
        int | None, _option(min=1, help="Features of --approximation; 2000 by default.",
                            panel="Cost"),
    ] = None  # fmt: skip
    minutes: Annotated[
        float | None,
        _option(help="Time that all of it may take: features replace the kernel matrix where the "
                "plan takes longer, and optional checks are left out.", panel="Cost"),
    ] = None  # fmt: skip
    folds: Annotated[
        int, _option(help="Splits of the cross-validation; 5 by default.", panel="Choice")
    ] = 5
    seed: Annotated[
        int, _option(help="Of the splits, and of --rows; 0 by default.", panel="Choice")
    ] = 0
    jobs: Annotated[int | None, _option(help="Kernels evaluated side by side.", panel="Cost")] = (
        None
    )
    device: Annotated[
        str | None,
        _option(
            help="Where to compute: cuda, cuda:1, or cuda:0,cuda:1; the processor by default.",
            panel="Cost",
        ),
    ] = None

    @property
    def options(self) -> Options:
        """As the rules take them."""
        return Options(
            task=self.task, loss=self.loss, kernels=tuple(self.kernel or ()),
            criterion=self.criterion, compare=_listed(self.compare), method=self.method,
            folds=self.folds, seed=self.seed, jobs=self.jobs, tol=self.tol,
            calibrate=self.calibrate, approximation=self.approximation,
            components=self.components, device=self.device, minutes=self.minutes,
            metric=self.metric, gammas=_numbers("--gammas", self.gammas),
            lams=_numbers("--lams", self.lams), grid=_grid(self.grid),
            class_weight=_class_weight(self.class_weight),
        )  # fmt: skip


@dataclass(frozen=True)
class Writing:
    """Files to write."""

    report: Annotated[Path | None, _option(help="HTML report to write.", panel="Output")] = None
    model: Annotated[
        Path | None,
        _option(help="Model to write (skops): a plain scikit-learn pipeline.", panel="Output"),
    ] = None
    results: Annotated[
        Path | None, _option(help="All candidates: .parquet, .csv or .json.", panel="Output")
    ] = None
    journal: Annotated[
        Path | None,
        _option(help="Folder that keeps finished work, for --resume.", panel="Output"),
    ] = None
    resume: Annotated[bool, _option("--resume", help="Continue --journal.", panel="Output")] = False


@dataclass(frozen=True)
class Printing:
    """What is printed, and how."""

    keep_formulas: Annotated[
        bool,
        _option("--keep-formulas", help="Write texts that begin like a formula (=, +, -, @) to CSV "
                "without an apostrophe.", panel="Output"),
    ] = False  # fmt: skip
    format_: Annotated[Format, _option("--format", help="How to print.", panel="Output")] = (
        Format.table
    )
    traceback: Annotated[
        bool, _option("--traceback", help="Show where an error arose.", panel="Output")
    ] = False


def _listed(names: str | None) -> tuple[str, ...] | None:
    """Names with commas between them; None stands for the default, "none" for none."""
    if names is None:
        return None
    found = tuple(name.strip() for name in names.split(",") if name.strip())
    return () if found == ("none",) else found


def _numbers(flag: str, text: str | None) -> tuple[float, ...]:
    if text is None:
        return ()
    try:
        return tuple(float(one) for one in text.split(","))
    except ValueError:
        raise ValueError(
            f"{flag} {text!r} must be numbers with commas between, such as 0.1,1,10"
        ) from None


def _class_weight(text: str | None) -> Any:
    """A word, or a weight for each class named."""
    if text is None or "=" not in text:
        return text
    pairs = [one.rpartition("=") for one in text.split(",")]
    try:
        return {name.strip(): float(weight) for name, _, weight in pairs}
    except ValueError:
        raise ValueError(
            f"--class-weight {text!r} must be 'balanced', or classes and their weights with commas "
            "between, such as yes=3,no=1"
        ) from None


def _grid(path: Path | None) -> Any:
    if path is None:
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"--grid: cannot read {str(path)!r}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"--grid: {path.name} is not JSON: {error}") from None
    parts = found if isinstance(found, list) else [found]
    right = parts and all(
        isinstance(one, dict) and all(isinstance(v, list) for v in one.values()) for one in parts
    )
    if not right:
        raise ValueError(
            f'--grid: {path.name} must hold lists of values by name, such as {{"kernel": ["rbf"], '
            '"gamma": [0.1, 1], "lam": [0.01]}, or a list of such'
        )
    return parts
