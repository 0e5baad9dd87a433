"""``python -m onefit.reproduce PAPER [--quick | --full] [--data DIR] [--jobs N] [--out DIR]
[--replicates N] [--allow-dirty]``.
"""

from __future__ import annotations

import argparse

from onefit.reproduce.run import PAPERS, reproduce


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m onefit.reproduce", description=__doc__)
    parser.add_argument("paper", choices=[*PAPERS, "all"])
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--quick", action="store_const", dest="mode", const="quick", default="quick")
    mode.add_argument("--full", action="store_const", dest="mode", const="full")
    parser.add_argument(
        "--data", dest="data_dir", help="folder of data sets; default: the setting ONEFIT_DATA_DIR"
    )
    parser.add_argument("--jobs", type=int, default=1, help="units measured side by side")
    parser.add_argument("--out", help="where results go; default: experiments/PAPER")
    parser.add_argument("--replicates", type=int, help="the most replicates or trials")
    parser.add_argument(
        "--allow-dirty", action="store_true", help="full runs from changes that are in no commit"
    )
    given = parser.parse_args(arguments)
    reproduce(**vars(given))


if __name__ == "__main__":
    main()
