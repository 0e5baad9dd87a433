"""Run a paper's tables and figures again, and set its numbers beside ours.

An interrupted run continues when the same command is given again.
"""

from __future__ import annotations

import argparse

from onefit_papers.run import PAPERS, reproduce

#: exit codes, those of the command ``onefit``
UNEXPECTED, USAGE, INTERRUPTED = 1, 2, 130


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="onefit-papers", description=__doc__)
    parser.add_argument("paper", choices=[*PAPERS, "all"])
    modes = parser.add_mutually_exclusive_group()
    for mode, what in (("quick", "a few sets and splits (default)"), ("full", "everything")):
        modes.add_argument(
            f"--{mode}", action="store_const", dest="mode", const=mode, default="quick", help=what
        )
    add = parser.add_argument
    add("--data", dest="data_dir", metavar="DIR",
        help="folder of data sets; else ONEFIT_DATA_DIR, else OpenML")  # fmt: skip
    add("--jobs", type=int, default=1, metavar="N", help="units measured in parallel")
    add("--out", metavar="DIR", help="where results go; experiments/PAPER by default")
    add("--replicates", type=int, metavar="N",
        help="at most so many random splits of a data set, or trials of a timing")  # fmt: skip
    add("--allow-dirty", action="store_true", help="full runs from changes that are in no commit")
    add("--traceback", action="store_true", help="show where an error arose")
    given = vars(parser.parse_args(arguments))
    traceback = given.pop("traceback")
    try:
        reproduce(**given)
    except (KeyboardInterrupt, OSError, RuntimeError, ValueError) as error:
        if traceback:
            raise
        parser.exit(*_end(error))


def _end(error: BaseException) -> tuple[int, str]:
    """Exit code and sentence of an error."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED, "onefit-papers: interrupted; the same command continues\n"
    code = UNEXPECTED if isinstance(error, RuntimeError) else USAGE
    return code, f"onefit-papers: {error}\n"


if __name__ == "__main__":
    main()
