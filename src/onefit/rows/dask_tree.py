"""A pass on Dask: each worker sums up its rows, and the sums are merged in a tree.

A leaf is the sum over some pieces, which the same task reads or computes, so rows are not sent
between workers (except rows that several blocks are computed from, onefit.rows.dask_recipe), only
states, whose size does not depend on the number of rows. Pieces of files are distributed to a few
leaves per thread, whatever their number; a block of a collection is a leaf of its own, and is freed
as soon as it is summed. On a cluster, adjacent leaves are assigned to one worker, which merges its
states before it sends one of them. That is a preference: idle workers take leaves from busy ones,
and the leaves of a worker that dies are computed by others, from the rows again.

Blocks that were persisted are on a worker already. Their leaves are restricted to that worker, so
that no idle one fetches a block. Dask would wait for a worker that has died, so this process
watches the workers, and gives the leaves of one that is gone to any other.

The tree is fixed before anything runs, so a pass that loses workers gives the same bits. The
accumulator is in the graph, not scattered: scattered data are lost with their worker.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

from onefit.rows.accumulate import Accumulator, nbytes, to_host
from onefit.rows.chunks import BlockReader
from onefit.rows.one_pass import Progress
from onefit.rows.source import Source, groups_of, needed

__all__ = ["reduce_on_dask"]

#: pieces that one task sums up
_Leaf = list[Any]

#: states that are merged by one task
MAX_JOINED_STATES = 8
#: leaves of files per thread: with more, the work is more balanced and more states are sent
LEAVES_PER_THREAD = 4
#: pieces per thread between two entries of a journal
JOURNAL_PIECES_PER_THREAD = 16
#: seconds between two checks that workers are alive
WORKER_POLL_SECONDS = 1.0


def reduce_on_dask(
    accumulator: Accumulator[Any, Any], source: Source, client: Any, progress: Progress, rows: int
) -> Any:
    """The state of all rows, on a client or on the active scheduler."""
    needed("dask", "dask", "passes on Dask")
    workers = _workers(client)
    threads = sum(workers.values())
    summed = partial(_summed, accumulator, source.reading, rows)
    state, done = progress.begin(accumulator)
    for pieces in _sections(source.pieces[done:], threads, progress):
        found = _compute(accumulator, summed, _leaves(source, pieces, threads), client, workers)
        state = found if done == 0 else accumulator.merge(state, found)
        done += len(pieces)
        progress.keep(state, done, last=done == len(source.pieces))
    return state


def _workers(client: Any) -> dict[str, int]:
    """Threads of every worker by its address; of this machine without a client."""
    if client is None:
        from dask.system import CPU_COUNT

        return {"": CPU_COUNT}
    client.wait_for_workers(1)
    return dict(sorted(client.nthreads().items()))


def _sections(pieces: Sequence[Any], threads: int, progress: Progress) -> list[Sequence[Any]]:
    """Pieces between two entries of the journal: all, without a journal."""
    size = JOURNAL_PIECES_PER_THREAD * threads if progress.journal is not None else len(pieces)
    return [pieces[i : i + size] for i in range(0, len(pieces), size or 1)]


def _leaves(source: Source, pieces: Sequence[Any], threads: int) -> list[_Leaf]:
    if source.lazy:
        return [[one] for one in pieces]
    total = sum(piece.rows for piece in pieces)
    return groups_of(pieces, -(-total // (LEAVES_PER_THREAD * threads)))


@dataclass(frozen=True)
class _Held:
    """A state with its size, from which Dask estimates what it costs to send it."""

    state: Any

    def __sizeof__(self) -> int:
        return nbytes(self.state)


def _take(
    reading: BlockReader, pieces: list[Any], rows: int, *inputs: Any, accumulator: Any
) -> _Held:
    """The state of some pieces; the one piece of a collection is computed here, from its inputs."""
    state = accumulator.init()
    for piece in pieces:
        made = piece.made(inputs) if hasattr(piece, "made") else piece
        for block in made.blocks(rows):
            state = accumulator.update(state, reading.chunk(block))
    return _Held(to_host(state))


def _compute(
    accumulator: Any,
    summed: Callable[[list[_Leaf]], Any],
    leaves: list[_Leaf],
    client: Any,
    workers: dict[str, int],
) -> Any:
    """The state of some leaves."""
    if client is None:
        return summed(leaves).compute().state
    with warnings.catch_warnings():
        # the accumulator is in the graph on purpose
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        branches = _dealt(summed, client, leaves, list(workers))
        try:
            for branch in branches:
                branch.begin(client)
            return _joined(accumulator, client, branches).state
        except BaseException:
            client.cancel([one.future for one in branches if one.future is not None])
            raise


@dataclass
class _Branch:
    """The leaves of one worker, merged.

    Attributes
    ----------
    summed : callable
        From leaves to their Delayed state.
    leaves : list of leaves
    place : str or None
        Address of the worker; None for any.
    alone : bool
        Whether they are restricted to that worker.
    future : distributed.Future or None
    """

    summed: Callable[[list[_Leaf]], Any]
    leaves: list[_Leaf]
    place: str | None
    alone: bool
    future: Any = None

    def begin(self, client: Any) -> None:
        """Submit it, or submit it again.

        Only its own tasks are restricted to its worker: what blocks of several branches need would
        be lost with the worker of one of them.
        """
        from dask import annotate

        where = {"workers": [self.place], "allow_other_workers": not self.alone}
        with annotate(**(where if self.place else {})):
            tree = self.summed(self.leaves)
        self.future = client.compute(tree)


def _joined(accumulator: Any, client: Any, branches: list[_Branch]) -> Any:
    """The state of all branches; others compute the branches of workers that die meanwhile."""
    while True:
        root = client.compute(_tree(_delayed(accumulator), [one.future for one in branches]))
        try:
            gone = _watch(client, root, [one for one in branches if one.place and one.alone])
            if not gone:
                return root.result()
        except BaseException:
            client.cancel(root)
            raise
        client.cancel([root, *(one.future for one in gone)])
        for one in gone:
            one.place = None
            one.begin(client)


def _watch(client: Any, root: Any, branches: list[_Branch]) -> list[_Branch]:
    """Wait for the root, or until workers are gone; returns the branches of these."""
    from distributed import wait

    while branches and not root.done():
        alive = client.nthreads()
        gone = [one for one in branches if one.place not in alive]
        if gone:
            return gone
        with suppress(TimeoutError), client.as_current():
            wait(root, timeout=WORKER_POLL_SECONDS)
    return []


def _dealt(
    summed: Callable[[list[_Leaf]], Any], client: Any, leaves: list[_Leaf], names: list[str]
) -> list[_Branch]:
    """Leaves by worker: that which holds their rows, or else adjacent leaves for each."""
    from distributed import wait

    held = [getattr(first, "held", []) for first, *_ in leaves]
    alone = all(held)
    if alone:
        with client.as_current():
            wait([one for own in held for one in own])
        holders = client.who_has([own[0] for own in held])
        places = [next(iter(holders.get(own[0].key, ())), names[0]) for own in held]
    else:
        share = -(-len(leaves) // len(names))
        places = [names[i // share] for i in range(len(leaves))]
    dealt: dict[str, list[_Leaf]] = {}
    for place, leaf in zip(places, leaves, strict=True):
        dealt.setdefault(place, []).append(leaf)
    return [_Branch(summed, own, place, alone) for place, own in dealt.items()]


def _delayed(accumulator: Any) -> Any:
    """The accumulator in a graph, with a new name each time.

    A name that several branches shared would be bound to the worker of one of them, and be lost
    with it for all.
    """
    from dask import delayed

    return delayed(accumulator, pure=False, traverse=False)


def _summed(accumulator: Any, reading: BlockReader, rows: int, leaves: list[_Leaf]) -> Any:
    """The Delayed state of some leaves."""
    from dask import delayed

    shared, states = _delayed(accumulator), []
    for leaf in leaves:
        inputs = getattr(leaf[0], "inputs", ())
        pieces = [getattr(one, "unmade", one) for one in leaf]
        # Dask does not traverse bound arguments, so it does not run the tasks of a block by itself
        take: Any = delayed(partial(_take, reading, pieces, rows), pure=False, traverse=False)
        states.append(take(*inputs, accumulator=shared))
    return _tree(shared, states)


def _tree(shared: Any, states: Sequence[Any]) -> Any:
    """The state of all, merged in groups, and these in groups again."""
    from dask import delayed

    join: Callable[..., Any] = delayed(_join, pure=False, traverse=False)
    while len(states) > 1:
        groups = [
            states[i : i + MAX_JOINED_STATES] for i in range(0, len(states), MAX_JOINED_STATES)
        ]
        states = [join(shared, *group) if len(group) > 1 else group[0] for group in groups]
    return delayed(states[0])


def _join(accumulator: Any, first: _Held, *others: _Held) -> _Held:
    """All states in one; copies are merged, since Dask may need the states again."""
    state = deepcopy(first.state)
    for other in others:
        state = accumulator.merge(state, deepcopy(other.state))
    return _Held(state)
