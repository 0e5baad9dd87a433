"""The commands: each calls one function and prints what it returns."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from onefit.cli.errors import USAGE, clear_errors
from onefit.cli.options import make_parser, parameters_of
from onefit.cli.output import Outputs, check_file

if TYPE_CHECKING:
    from onefit.tables import Roles

__all__ = ["run"]


def run(words: Sequence[str], begun: float | None = None) -> None:
    """Run a command.

    Parameters
    ----------
    words : sequence of str
        Its name and options.
    begun : float, default=None
        When it began, by :func:`time.monotonic`: before its imports, which count for a time limit.
    """
    parser = make_parser()
    given, unknown = parser.parse_known_args(words)
    if unknown:
        from onefit._validation import suggest

        known = [f"--{name.replace('_', '-')}" for name in vars(given)]
        parser.error(f"unknown argument {unknown[0]}{suggest(unknown[0], known)}")
    if given.command is None:
        parser.print_help()
        sys.exit(USAGE)
    begun = monotonic() if begun is None else begun
    commands = {"select": _select, "explain": _explain, "predict": _predict, "demo": _demo}
    data = getattr(given, "data", None)
    with clear_errors(given.traceback) as notes, _as_file(data) as given.data:
        commands[given.command](given, notes, begun)


def _select(given: Namespace, notes: list[str], begun: float) -> None:
    from onefit.cli.select import select_file

    outputs = Outputs(given.report, given.model, given.journal)
    found = select_file(given.data, _roles(given), parameters_of(given), outputs, begun, notes)
    if given.format == "json":
        from onefit.cli.show import as_json, document

        print(as_json(document(found)))
    else:
        from onefit.cli.show import show

        show(found)


def _explain(given: Namespace, notes: list[str], begun: float) -> None:
    from onefit.cli.select import explain_file

    print(explain_file(given.data, _roles(given), parameters_of(given)))


def _predict(given: Namespace, notes: list[str], begun: float) -> None:
    output = None if given.output == Path("-") else given.output
    if output is not None:
        check_file("output", output)
        if output.exists() and given.data.exists() and output.samefile(given.data):
            raise ValueError(f"--output {output} is the file of the rows; name another one")
    from onefit.cli.model import load_model
    from onefit.cli.predict import Predictions

    found = Predictions(load_model(given.model), given.data, given.id, given.level, given.dayfirst)
    if output is not None:
        found.write(output)
    elif given.format == "json":
        from onefit.cli.show import as_json

        print(as_json(found.document))
    else:
        found.print_csv()
    found.show_notes()


def _demo(given: Namespace, notes: list[str], begun: float) -> None:
    from sklearn.datasets import load_diabetes

    from onefit import AutoKernelRegressor
    from onefit.cli.select import select_table
    from onefit.cli.show import show
    from onefit.tables import Table

    outputs = Outputs(report=given.report)
    outputs.check()
    bunch = load_diabetes(as_frame=True, scaled=False)
    table = Table(bunch.data, bunch.target.to_numpy(float), "progression")
    print(f"{AutoKernelRegressor().explain(table.X, table.y)}\n")
    show(select_table(table, "diabetes", None, {}, outputs, notes))


def _roles(given: Namespace) -> Roles:
    from onefit.tables import Roles

    return Roles(
        given.target, tuple(given.drop), given.groups, given.sample_weight, given.time,
        given.dayfirst,
    )  # fmt: skip


@contextmanager
def _as_file(data: Path | None) -> Iterator[Path | None]:
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
