"""A pass on Dask: each worker sums up its rows, and sums are joined in a tree.

A leaf is the sum over some pieces, taken where they are read, so rows never travel; what travels
is states, whose size does not depend on the number of rows. Pieces of files are dealt out in a few
leaves per thread, whatever their number; a block of a collection is a leaf of its own, and is let
go of as soon as it is in a sum. On a cluster, adjacent leaves are dealt to one worker, which joins
its states before one of them leaves it. That is a wish, not a condition: the leaves of a worker
that dies are computed by others, from the rows again, and idle workers take leaves from busy ones.
The tree is fixed before anything runs, so a pass that loses workers gives the same bits.

The accumulator travels in the graph, not scattered: what is scattered is lost with its worker.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from onefit.stream.accumulate import Accumulator
from onefit.stream.checkpoint import Keeper
from onefit.stream.needs import needed
from onefit.stream.one_pass import absorb
from onefit.stream.source import Source, groups_of

__all__ = ["reduce_on_dask"]

#: states that are joined at once
FAN = 8
#: leaves of files per thread: more spread the work better, and let more states travel
LEAVES = 4
#: leaves per thread between two checkpoints
BETWEEN = 16


def reduce_on_dask(
    accumulator: Accumulator[Any, Any], source: Source, client: Any, keeper: Keeper, rows: int
) -> Any:
    """The state of all rows, on a client or on whatever scheduler is active."""
    needed("dask", "dask", "passes on Dask")
    workers = _workers(client)
    threads = sum(workers.values())
    state, done = keeper.begin(accumulator)
    for pieces in _sections(source.pieces[done:], threads, keeper):
        leaves = _leaves(accumulator, source, pieces, rows, threads)
        found = _compute(accumulator, leaves, client, workers).state
        state = found if done == 0 else accumulator.merge(state, found)
        done += len(pieces)
        keeper.keep(state, done, last=done == len(source.pieces))
    return state


def _workers(client: Any) -> dict[str, int]:
    """Threads of every worker by its address; of this machine without a client."""
    if client is None:
        from dask.system import CPU_COUNT

        return {"": CPU_COUNT}
    client.wait_for_workers(1)
    return dict(sorted(client.nthreads().items()))


def _sections(pieces: Sequence[Any], threads: int, keeper: Keeper) -> list[Sequence[Any]]:
    """What is done between two checkpoints: everything, if there are none."""
    size = BETWEEN * threads if keeper.path is not None else len(pieces)
    return [pieces[i : i + size] for i in range(0, len(pieces), size or 1)]


def _leaves(
    accumulator: Any, source: Source, pieces: Sequence[Any], rows: int, threads: int
) -> list[Any]:
    from dask import delayed

    shared = delayed(accumulator, pure=False, traverse=False)
    bare = replace(source, pieces=(), about={})
    if source.lazy:
        groups = [[piece] for piece in pieces]
    else:
        total = sum(piece.rows for piece in pieces)
        groups = groups_of(pieces, -(-total // (LEAVES * threads)))
    leaf = delayed(_leaf, pure=False, traverse=False)
    return [
        leaf(shared, bare, [replace(one, parts=None) for one in group], rows, *group[0].parts)
        if source.lazy
        else leaf(shared, bare, group, rows)
        for group in groups
    ]


@dataclass(frozen=True)
class _Held:
    """A state, which tells Dask how large it is, so that Dask knows what moving it costs."""

    state: Any

    def __sizeof__(self) -> int:
        return _nbytes(self.state)


def _nbytes(value: Any) -> int:
    """Bytes of all arrays in a state."""
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if isinstance(value, dict):
        return sum(map(_nbytes, value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(_nbytes, value))
    if is_dataclass(value):
        return sum(_nbytes(getattr(value, one.name)) for one in fields(value))
    return 0


def _leaf(accumulator: Any, source: Source, pieces: list[Any], rows: int, *parts: Any) -> _Held:
    """The state of some pieces; the one piece of a collection gets its parts from Dask."""
    if parts:
        pieces = [replace(pieces[0], parts=list(parts))]
    return _Held(absorb(accumulator, source, pieces, rows, accumulator.init()))


def _compute(accumulator: Any, leaves: list[Any], client: Any, workers: dict[str, int]) -> Any:
    if client is None:
        return _tree(accumulator, leaves).compute()
    futures: list[Any] = []
    try:
        with _large_graphs():
            for name, own in _dealt(client, leaves, list(workers)).items():
                tree = _tree(accumulator, own)
                futures.append(client.compute(tree, workers=[name], allow_other_workers=True))
            futures.append(client.compute(_tree(accumulator, futures)))
        return futures[-1].result()
    except BaseException:
        client.cancel(futures)
        raise


def _dealt(client: Any, leaves: list[Any], names: list[str]) -> dict[str, list[Any]]:
    """Leaves by worker: where their rows lie if they are persisted, else adjacent ones together."""
    from distributed import futures_of, wait

    held = [futures_of(leaf) for leaf in leaves]
    if all(held):
        wait(held)
        holders = client.who_has([own[0] for own in held])
        places = [next(iter(holders[own[0].key]), names[0]) for own in held]
    else:
        share = -(-len(leaves) // len(names))
        places = [names[i // share] for i in range(len(leaves))]
    dealt: dict[str, list[Any]] = {}
    for place, leaf in zip(places, leaves, strict=True):
        dealt.setdefault(place, []).append(leaf)
    return dealt


def _tree(accumulator: Any, states: Sequence[Any]) -> Any:
    """The state of all, joined by groups and these by groups again."""
    from dask import delayed

    join: Callable[..., Any] = delayed(_join, pure=False, traverse=False)
    shared = delayed(accumulator, pure=False, traverse=False)
    while len(states) > 1:
        groups = [states[i : i + FAN] for i in range(0, len(states), FAN)]
        states = [join(shared, *group) if len(group) > 1 else group[0] for group in groups]
    return delayed(states[0])


def _join(accumulator: Any, first: _Held, *others: _Held) -> _Held:
    """All states in one; of copies, since joining reuses them and Dask may need them again."""
    state = deepcopy(first.state)
    for other in others:
        state = accumulator.merge(state, deepcopy(other.state))
    return _Held(state)


@contextmanager
def _large_graphs() -> Iterator[None]:
    """The accumulator is in the graph for a reason, which Dask need not warn of."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        yield
