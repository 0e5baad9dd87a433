"""Bytes that travel in a pass over Dask blocks: five ways to bind a block to the task that sums it.

A cluster of two worker processes, one of them slowed on purpose, so that the other looks for work.
Adjacent blocks are dealt to one worker, as in ``onefit.rows.dask_tree``. The ways:

tasks
    A block is a task, its sum another one.
fused
    The sum is a ``dask.array.blockwise`` of the block, which Dask fuses with how the block is made.
copied
    As fused, with a copy of the accumulator in every task: one that several tasks depend on keeps
    Dask from fusing chains.
pinned
    As tasks, but no worker may take the blocks of another.
recipe
    The sum makes the block, as ``onefit.rows`` does.

Shown are bytes that workers send during a pass, as a share of those of all rows, and blocks that
the slow worker sums up: half of them when nobody helps it. The largest of the rounds counts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import _harness as harness
import numpy as np
from _harness import Row

BLOCKS, COLUMNS, PAUSE_SECONDS = 20, 10, 1.0


@dataclass(frozen=True)
class Sums:
    """Second moments of the rows, and how many blocks the slow worker has seen."""

    slow: str

    def init(self) -> Any:
        return np.zeros((COLUMNS + 1, COLUMNS))

    def update(self, state: Any, chunk: Any) -> Any:
        return self.add(state, chunk.X, chunk.Y)

    def add(self, state: Any, X: Any, Y: Any) -> Any:
        from distributed import get_worker

        if get_worker().address == self.slow:
            time.sleep(PAUSE_SECONDS)
            state[-1, 0] += 1
        width = X.shape[1]
        state[:width, :width] += X.T @ X
        state[0, -1] += Y.sum()
        return state

    def merge(self, one: Any, other: Any) -> Any:
        return one + other

    def finish(self, state: Any) -> Any:
        return state


def collections(n: int) -> dict[str, tuple[Any, Any]]:
    """Features and targets by the way their blocks are made."""
    import dask.array as da

    def table(columns: int = COLUMNS) -> Any:
        chunks = (n // BLOCKS, columns)
        return da.random.default_rng(0).normal(size=(n, COLUMNS), chunks=chunks)

    whole, put = table(), table(COLUMNS // 2).rechunk({1: COLUMNS})
    return {
        "a map of blocks": (table() + 1.0, None),
        "one table cut into features and targets": (whole[:, :-1], whole[:, -1]),
        "columns put together": (put, None),
    }


def leaf(X: Any, y: Any, accumulator: Any) -> Any:
    return accumulator.add(accumulator.init(), X, np.zeros(len(X)) if y is None else y)


def packed(X: Any, y: Any = None, accumulator: Any = None) -> Any:
    """The leaf as a block of an array of objects."""
    out = np.empty(1, dtype=object)
    out[0] = leaf(X[0] if isinstance(X, list) else X, y, accumulator)
    return out


def as_tasks(X: Any, y: Any, accumulator: Any) -> list[Any]:
    from dask import delayed

    blocks = np.ravel(X.to_delayed())
    targets = [None] * len(blocks) if y is None else np.ravel(y.to_delayed())
    one = delayed(leaf, pure=False)
    return [one(*parts, accumulator) for parts in zip(blocks, targets, strict=True)]


def as_fused(X: Any, y: Any, accumulator: Any) -> list[Any]:
    import dask.array as da

    beside = () if y is None else (y, "i")
    sums = da.blockwise(
        packed,
        "i",
        *(X, "ij", *beside),
        accumulator=accumulator,
        dtype=object,
        meta=np.empty(0, dtype=object),
        adjust_chunks={"i": 1},
    )
    return list(sums.to_delayed())


def dealt(
    make: Any,
    client: Any,
    accumulator: Any,
    X: Any,
    y: Any,
    alone: bool = False,
    copy: bool = False,
) -> float:
    from dask import delayed

    shared = accumulator if copy else delayed(accumulator, pure=False, traverse=False)
    leaves = make(X, y, shared)
    names = sorted(client.nthreads())
    share = -(-len(leaves) // len(names))
    futures = []
    for i, name in enumerate(names):
        own = leaves[i * share : (i + 1) * share]
        futures += client.compute(own, workers=[name], allow_other_workers=not alone)
    states = (one[0] if one.dtype == object else one for one in client.gather(futures))
    return float(sum(states)[-1, 0])


def with_recipe(client: Any, accumulator: Any, X: Any, y: Any) -> float:
    from onefit.rows import open_rows, run

    return float(run(accumulator, open_rows(X, y), client=client, chunk_rows=X.shape[0])[-1, 0])


def sent(client: Any) -> int:
    def count(dask_worker: Any) -> int:
        return int(dask_worker.transfer_outgoing_bytes_total)

    return sum(client.run(count).values())


DESIGNS = {
    "tasks": partial(dealt, as_tasks),
    "fused": partial(dealt, as_fused),
    "copied": partial(dealt, as_fused, copy=True),
    "pinned": partial(dealt, as_tasks, alone=True),
    "recipe": with_recipe,
}


def measure(client: Any, n: int, rounds: int) -> list[Row]:
    accumulator = Sums(min(client.nthreads()))
    found: dict[tuple[str, str], Row] = {}
    for _ in range(rounds):
        for kind, (X, y) in collections(n).items():
            for design, work in DESIGNS.items():
                before = sent(client)
                slow = work(client, accumulator, X, y)
                share = (sent(client) - before) / (8 * n * COLUMNS)
                row = found.setdefault((kind, design), {"moved / rows": share, "slow blocks": slow})
                row["moved / rows"] = max(row["moved / rows"], share)
                row["slow blocks"] = max(row["slow blocks"], slow)
                print(f"{kind}, {design}: {share:.4f}, {slow:.0f}", flush=True)
    return [{"rows": kind, "design": design, **row} for (kind, design), row in found.items()]


def main() -> None:
    from distributed import Client, LocalCluster

    flags = harness.parser(__doc__, rounds=3).parse_args()
    n = BLOCKS * (1_000 if flags.quick else 25_000)
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        rows = measure(client, n, flags.rounds)
    about = (
        f"{n:,} rows of {COLUMNS} columns in {BLOCKS} blocks, two workers, one of which sleeps "
        f"{PAUSE_SECONDS} s per block. Largest of {flags.rounds} rounds."
    )
    text = f"{about}\n\n{harness.table(rows)}"
    print(text)
    name = harness.stem("dask_designs", flags.quick)
    harness.write_csv(flags.out, name, rows)
    harness.write_report(flags.out, name, "Ways to sum blocks of rows on Dask", [("Results", text)])


if __name__ == "__main__":
    main()
