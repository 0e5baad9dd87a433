"""Two versions of the package on the same searches, in turn: does a change cost speed?

``--other DIR`` is a checkout of the version to compare with (``git worktree add DIR COMMIT``). Both
versions are imported from their ``src`` folders, each in a process of its own; the least processor
time of the rounds counts, with one worker and one thread.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import _harness as harness
import ablation
import numpy as np
from _harness import Contestant, Row

HERE = str(Path(__file__).resolve().parents[1])


def build(task: Row, checkout: str):
    sys.path.insert(0, f"{checkout}/src")
    import onefit

    assert Path(onefit.__file__).is_relative_to(checkout), onefit.__file__
    return ablation.build(task, ablation.BASE)


def main() -> None:
    parser, rows = ablation.parser(__doc__), []
    parser.add_argument("--other", type=Path, required=True, help="checkout of another version")
    flags = ablation.arguments(parser)
    for search, task in ablation.searches(flags).items():
        print(search, flush=True)
        rivals = [
            Contestant(name, "1 worker x 1 thread", partial(build, checkout=str(checkout)))
            for name, checkout in (("this", HERE), ("other", flags.other.resolve()))
        ]
        warm = {**task, "n": 60}
        mine, other = harness.compete(rivals, task, warm, flags.rounds, clock="process_time")
        gap = np.abs(np.asarray(mine.value["scores"]) - np.asarray(other.value["scores"]))
        rows.append(
            {
                "search": search,
                "this s": mine.best,
                "other s": other.best,
                "this / other": mine.best / other.best,
                "certified": f"{100 * mine.value['exact']:.1f} %",
                "certified by other": f"{100 * other.value['exact']:.1f} %",
                "score differs by": float(np.nanmax(gap)),
            }
        )
        print(harness.table(rows[-1:]), flush=True)
    name = harness.stem("versions", flags.quick)
    harness.write_csv(flags.out, name, rows)
    harness.write_report(flags.out, name, "Times of two versions", [("Times", harness.table(rows))])


if __name__ == "__main__":
    main()
