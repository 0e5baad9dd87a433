"""The options of the commands, by argparse.

Names of losses and kernels are listed here as text, because the modules that define them take long
to import; a test compares them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from onefit._version import __version__

__all__ = ["make_parser", "parameters_of"]

LOSS_NAMES = (
    "squared; huber, epsilon_insensitive, epsilon_quadratic, quantile, expectile, logistic for "
    "quantities; smoothed_hinge, squared_hinge, log for classes"
)
KERNEL_NAMES = "rbf, laplacian, matern12, matern32, matern52, poly, linear"
SELECT = (
    "It is the choice of onefit.select in Python. Columns are scaled, missing values filled and "
    "categories encoded on all rows before the splits are drawn; the model is a scikit-learn "
    "pipeline that includes these steps."
)
PREDICT = (
    "Prints CSV on stdout, or JSON, or writes a file. A regression gets intervals (columns lower "
    "and upper) from the held-out residuals of the training rows, on the splits of select: about "
    "--level of new targets lie inside, for rows of new groups if select had --groups, for later "
    "rows if it had --time. Predictions are scored on stderr if the new rows have the target too. "
    "Rows unlike the training rows (column novelty above 1: further from them than any of these "
    "from the others) have a note in the column unfamiliar."
)
DATA = (
    "CSV, Excel, Parquet or LIBSVM file, or - for CSV on stdin; with features also a folder of "
    "Parquet files"
)
COLUMNS = {
    "--target": "column to predict; not needed for LIBSVM",
    "--groups": "column of groups, each of which stays on one side of a split",
    "--time": "column of times: splits train on earlier rows and test on later ones",
    "--sample-weight": "column of weights of the rows",
}
DAYFIRST = {
    "--dayfirst": "whether the day comes first in dates such as 01/02/2021; needed only if no date "
    "of the column decides it"
}
CHOICE = {
    "--scoring": "score: that of any scorer of scikit-learn, or mae, rmse, auc ...; R² or accuracy "
    "by default",
    "--loss": f"{LOSS_NAMES} (squared)",
    "--calibrate": "probabilities of classes for any loss: sigmoid, or isotonic for a thousand "
    "rows and more",
}
CLASS_WEIGHT = {
    "--class-weight": "balanced: classes have equal weight; or weights by class: yes=3,no=1"
}
STACK = {
    "--stack": "average the candidates instead of choosing one: often a smaller error. The default "
    "of a regression, if kernels, loss and scoring are left to the rules"
}
APPROXIMATION = {
    "--approximation": "nystrom or fourier: features instead of the kernel matrix, for many rows. "
    "Parquet files, and folders of them, are then streamed, never loaded"
}
MINUTES = {
    "--minutes": "time limit for the whole command: features replace the kernel matrix where the "
    "plan takes longer, and optional checks are left out"
}
FILES = {
    "--report": "HTML report to write",
    "--model": "model to write (skops): a scikit-learn pipeline",
    "--journal": "folder that keeps finished work: after an interrupt the same command resumes "
    "from it",
}
FORMAT = {"--format": "how to print (%(default)s)"}
LEVEL = {"--level": "level of the intervals of a regression (%(default)s); 0 for none"}
#: options that are parameters of :func:`onefit.select`
PARAMETERS = (
    "task", "scoring", "cv", "loss", "kernels", "class_weight", "calibrate", "stack",
    "approximation", "minutes",
)  # fmt: skip
EPILOG = (
    "Exit codes: 0 done, 1 unexpected error, 2 wrong usage, 3 bad data, 4 too large for the "
    "memory, 5 a journal of other data or settings, 130 interrupted."
)


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands; what it returns has the name of the command as ``command``."""
    about = "Choose kernel models by cross-validation, without refitting the splits."
    parser = argparse.ArgumentParser("onefit", None, about, EPILOG, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"onefit {__version__}")
    parser.add_argument("--traceback", action="store_true", help="show where an error arose")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")

    def command(name: str, given: str, about: str, more: str = "") -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            usage=f"onefit {name} [options] {given}",
            help=about,
            description=f"{about[:1].upper()}{about[1:]}. {more}",
            allow_abbrev=False,
        )

    select = command("select", "data", "choose, fit and evaluate a kernel model", SELECT)
    explain = command("explain", "data", "print what select would do, its time and memory")
    for one in (select, explain):
        one.add_argument("data", type=Path, help=DATA)
        _add_columns(one)
        _add_choice(one)
    _add_outputs(select)
    _add_predict(command("predict", "model data", "predict the target of new rows", PREDICT))
    demo = command("demo", "", "select a model for a bundled data set, and write its report")
    _add(demo, {"--report": "HTML report to write (%(default)s)"}, type=Path, metavar="FILE",
         default=Path("onefit-demo.html"))  # fmt: skip
    return parser


def parameters_of(given: argparse.Namespace) -> dict[str, Any]:
    """Parameters of :func:`onefit.select` that were given."""
    found = {name: getattr(given, name) for name in PARAMETERS}
    return {name: value for name, value in found.items() if value is not None}


def _add(group: Any, options: dict[str, str], **settings: Any) -> None:
    """Add options that differ in their names and help only."""
    for name, text in options.items():
        group.add_argument(name, help=text, **settings)


def _add_columns(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("columns")
    _add(group, COLUMNS, metavar="NAME")
    _add(group, {"--drop": "column to leave out; may be repeated"}, metavar="NAME",
         action="append", default=[])  # fmt: skip
    _add(group, DAYFIRST, action=argparse.BooleanOptionalAction)


def _add_choice(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("choice")
    _add(group, {"--task": "auto, regression or classification (%(default)s)"}, default="auto")
    _add(group, {"--cv": "splits of the cross-validation (%(default)s)"}, type=int, default=5)
    _add(group, CHOICE, metavar="NAME")
    _add(group, {"--kernels": f"kernels, separated by commas: {KERNEL_NAMES}"}, type=_names)
    _add(group, CLASS_WEIGHT, type=_class_weight)
    _add(group, STACK, action=argparse.BooleanOptionalAction)
    group = command.add_argument_group("cost")
    _add(group, APPROXIMATION, metavar="NAME")
    _add(group, MINUTES, type=float)


def _add_outputs(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("output")
    _add(group, FILES, type=Path, metavar="PATH")
    _add(group, FORMAT, choices=("table", "json"), default="table")


def _add_predict(command: argparse.ArgumentParser) -> None:
    command.add_argument("model", type=Path, help="model that select wrote")
    command.add_argument("data", type=Path, help=DATA)
    _add(command, {"--output": "CSV or Parquet file to write, instead of stdout (-)"}, type=Path)
    _add(command, {"--id": "column that names the rows, to be kept with their predictions"})
    _add(command, LEVEL, type=_level, default=0.9)
    _add(command, DAYFIRST, action=argparse.BooleanOptionalAction)
    _add(command, FORMAT, choices=("table", "json"), default="table")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _level(text: str) -> float:
    level = float(text)
    if not 0.0 <= level <= 0.999:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 0.999")
    return level


def _class_weight(text: str) -> Any:
    """A word, or a weight for each class named."""
    if "=" not in text:
        return text
    pairs = [one.rpartition("=") for one in text.split(",")]
    try:
        return {name.strip(): float(weight) for name, _, weight in pairs}
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be 'balanced', or weights by class separated by commas, such as "
            "yes=3,no=1"
        ) from None
