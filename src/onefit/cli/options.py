"""The options of the commands; options that belong together are one dataclass.

Values are listed here as text, because the modules that define them take long to import; a test
compares them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from onefit.cli.output import check_place

if TYPE_CHECKING:
    from onefit.tables import Roles

__all__ = [
    "Choice",
    "ColumnOptions",
    "Data",
    "DayFirst",
    "Format",
    "FormatOption",
    "Outputs",
    "flattened",
]

LOSSES = (
    "squared; huber, epsilon_insensitive, epsilon_quadratic, quantile, expectile, logistic for "
    "quantities; smoothed_hinge, squared_hinge, log for classes"
)
KERNELS = "rbf, laplacian, matern12, matern32, matern52, poly, linear"


class Format(StrEnum):
    """Output format of results on stdout."""

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


FormatOption = Annotated[Format, _option("--format", help="How to print.", panel="Output")]
DayFirst = Annotated[
    bool | None,
    _option(help="Whether the day comes first in dates such as 01/02/2021; needed only if no date "
            "of the column decides it.", panel="Columns"),
]  # fmt: skip


@dataclass(frozen=True)
class ColumnOptions:
    """The roles of columns."""

    target: Annotated[
        str | None, _option(help="Column to predict; not needed for LIBSVM.", panel="Columns")
    ] = None
    drop: Annotated[
        list[str] | None, _option(help="Column to leave out; may be repeated.", panel="Columns")
    ] = None
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
    sample_weight: Annotated[
        str | None, _option(help="Column of weights of the rows.", panel="Columns")
    ] = None
    dayfirst: DayFirst = None

    @property
    def roles(self) -> Roles:
        """Columns that are neither features nor the target."""
        from onefit.tables import Roles

        return Roles(self.groups, self.sample_weight, self.time)


@dataclass(frozen=True)
class Choice:
    """Parameters of the automatic estimators."""

    task: Annotated[str, _option(help="auto, regression or classification.", panel="Choice")] = (
        "auto"
    )
    scoring: Annotated[
        str | None,
        _option(help="Score: that of any scorer of scikit-learn, or mae, rmse, auc ...; R² or "
                "accuracy by default.", panel="Choice"),
    ] = None  # fmt: skip
    cv: Annotated[
        int, _option(help="Splits of the cross-validation; 5 by default.", panel="Choice")
    ] = 5
    loss: Annotated[
        str | None, _option(help=f"Loss: {LOSSES}; squared by default.", panel="Choice")
    ] = None
    kernels: Annotated[
        str | None, _option(help=f"Kernels, separated by commas: {KERNELS}.", panel="Choice")
    ] = None
    class_weight: Annotated[
        str | None,
        _option(help="balanced: classes have equal weight; or weights by class: yes=3,no=1.",
                panel="Choice"),
    ] = None  # fmt: skip
    calibrate: Annotated[
        str | None,
        _option(help="Probabilities of classes for any loss: sigmoid, or isotonic for a thousand "
                "rows and more.", panel="Choice"),
    ] = None  # fmt: skip
    stack: Annotated[
        bool | None,
        _option(help="Average the candidates instead of choosing one: often a smaller error, for a "
                "search of three times the time. The default of a regression up to 1,500 rows, if "
                "kernels, loss, scoring and cost are left to the rules.", panel="Choice"),
    ] = None  # fmt: skip
    approximation: Annotated[
        str | None,
        _option(help="nystrom or fourier: features instead of the kernel matrix, for many rows. "
                "Parquet files, and folders of them, are then streamed, never loaded.",
                panel="Cost"),
    ] = None  # fmt: skip
    minutes: Annotated[
        float | None,
        _option(help="Time limit for the whole command: features replace the kernel matrix where "
                "the plan takes longer, and optional checks are left out.", panel="Cost"),
    ] = None  # fmt: skip

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of :func:`onefit.select`."""
        kernels = None
        if self.kernels is not None:
            kernels = tuple(name.strip() for name in self.kernels.split(",") if name.strip())
        found = vars(self) | {
            "kernels": kernels,
            "class_weight": _class_weight(self.class_weight),
        }
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class Outputs:
    """Files that a selection writes, and its journal."""

    report: Annotated[Path | None, _option(help="HTML report to write.", panel="Output")] = None
    model: Annotated[
        Path | None,
        _option(help="Model to write (skops): a scikit-learn pipeline.", panel="Output"),
    ] = None
    journal: Annotated[
        Path | None,
        _option(help="Folder that keeps finished work: after an interrupt the same command "
                "resumes from it.", panel="Output"),
    ] = None  # fmt: skip

    @property
    def files(self) -> dict[str, Path]:
        """The files, by what they hold."""
        both = {"report": self.report, "model": self.model}
        return {what: path for what, path in both.items() if path is not None}

    def check(self) -> None:
        """Refuse what cannot be written, before any work is done."""
        for path in self.files.values():
            check_place(path)
        if self.journal is None or self.journal.is_dir():
            return
        if self.journal.is_file():
            raise ValueError(f"journal {self.journal} is a file, but a journal is a folder")
        check_place(self.journal)

    @contextmanager
    def on_interrupt(self) -> Iterator[None]:
        """Add to Ctrl-C how the selection is resumed."""
        try:
            yield
        except KeyboardInterrupt as error:
            if self.journal is None:
                raise
            message = f"; finished work is in {self.journal}, run the same command to resume"
            raise KeyboardInterrupt(message) from error


def _class_weight(text: str | None) -> Any:
    """A word, or a weight for each class named."""
    if text is None or "=" not in text:
        return text
    pairs = [one.rpartition("=") for one in text.split(",")]
    try:
        return {name.strip(): float(weight) for name, _, weight in pairs}
    except ValueError:
        raise ValueError(
            f"class_weight {text!r} must be 'balanced', or weights by class separated by commas, "
            "such as yes=3,no=1"
        ) from None


def flattened(function: Callable[..., None]) -> Callable[..., None]:
    """The function with a parameter, and so an option, for each field of its dataclasses."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: one for name, one in hints.items() if is_dataclass(one)}

    @wraps(function)
    def command(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{one.name: given.pop(one.name) for one in fields(group)})
        function(**given)

    flat: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        of = groups.get(name)
        own = [parameter] if of is None else inspect.signature(of).parameters.values()
        known = hints if of is None else get_type_hints(of, include_extras=True)
        flat += [
            one.replace(annotation=known[one.name], kind=inspect.Parameter.KEYWORD_ONLY)
            for one in own
        ]
    command.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in flat} | {"return": None}
    return command
