"""A pass on Dask: each worker sums up its rows, and sums are joined in a tree.

A leaf is the sum over some pieces, which the same task reads or makes, so their rows do not travel
(onefit.rows.dask_recipe: except for rows that several blocks are made from); what travels is
states, whose size does not depend on the number of rows. Pieces of files are dealt out in a few
leaves per thread, whatever their number; a block of a collection is a leaf of its own, and is let
go of as soon as it is in a sum. On a cluster, adjacent leaves are dealt to one worker, which joins
its states before one of them leaves it. That is a wish, not a condition: idle workers take leaves
from busy ones, and the leaves of a worker that dies are computed by others, from the rows again.

Blocks that were persisted lie on a worker already. Their leaves are for that worker alone, so that
no idle one fetches a block. Dask would wait for a worker that has died, so this process looks after
them: the leaves of one that is gone are given to whoever is there.

The tree is fixed before anything runs, so a pass that loses workers gives the same bits. The
accumulator travels in the graph, not scattered: what is scattered is lost with its worker.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

from onefit.rows.accumulate import Accumulator, nbytes, to_host
from onefit.rows.chunks import BlockReader
from onefit.rows.one_pass import Progress
from onefit.rows.source import Source, groups_of, needed

__all__ = ["reduce_on_dask"]

#: states that are joined at once
MAX_JOINED_STATES = 8
#: leaves of files per thread: with more, the work is more even and more states are sent
LEAVES_PER_THREAD = 4
#: leaves per thread between two entries of a journal
JOURNAL_PIECES_PER_THREAD = 16
#: seconds between two checks that workers are alive
WORKER_POLL_SECONDS = 1.0


def reduce_on_dask(
    accumulator: Accumulator[Any, Any], source: Source, client: Any, progress: Progress, rows: int
) -> Any:
    """The state of all rows, on a client or on whatever scheduler is active."""
    needed("dask", "dask", "passes on Dask")
    workers = _workers(client)
    threads = sum(workers.values())
    state, done = progress.begin(accumulator)
    for pieces in _sections(source.pieces[done:], threads, progress):
        leaves = _leaves(source, pieces, rows, threads)
        found = _compute(accumulator, leaves, client, workers).state
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


def _leaves(source: Source, pieces: Sequence[Any], rows: int, threads: int) -> list[_Leaf]:
    from dask import delayed

    def leaf(group: list[Any], inputs: Sequence[Any] = (), held: Sequence[Any] = ()) -> _Leaf:
        # what is bound is not looked into by Dask, which would run a block's own tasks by itself
        take: Any = delayed(partial(_take, source.reading, group, rows), pure=False, traverse=False)
        return _Leaf(partial(take, *inputs), list(held))

    if source.lazy:
        return [leaf([one.unmade], one.inputs, one.held) for one in pieces]
    total = sum(piece.rows for piece in pieces)
    return [leaf(group) for group in groups_of(pieces, -(-total // (LEAVES_PER_THREAD * threads)))]


@dataclass(frozen=True)
class _Leaf:
    """Rows that are summed up in one go.

    Attributes
    ----------
    task : callable
        Gives a new promise of the sum, for a promise of the accumulator.
    held : list of futures
        What workers hold of the rows.
    """

    task: Callable[..., Any]
    held: list[Any]


@dataclass(frozen=True)
class _Held:
    """A state, which tells Dask how large it is, so that Dask knows what moving it costs."""

    state: Any

    def __sizeof__(self) -> int:
        return nbytes(self.state)


def _take(
    reading: BlockReader, pieces: list[Any], rows: int, *inputs: Any, accumulator: Any
) -> _Held:
    """The state of some pieces; the one piece of a collection is made here, from its inputs."""
    state = accumulator.init()
    for piece in pieces:
        made = piece.made(inputs) if hasattr(piece, "made") else piece
        for block in made.blocks(rows):
            state = accumulator.update(state, reading.chunk(block))
    return _Held(to_host(state))


def _compute(accumulator: Any, leaves: list[_Leaf], client: Any, workers: dict[str, int]) -> Any:
    if client is None:
        return _summed(accumulator, leaves).compute()
    with _large_graphs():
        branches = _dealt(accumulator, client, leaves, list(workers))
        try:
            for branch in branches:
                branch.begin(client)
            return _joined(accumulator, client, branches)
        except BaseException:
            client.cancel([one.future for one in branches if one.future is not None])
            raise


@dataclass
class _Branch:
    """The leaves of one worker, joined.

    Attributes
    ----------
    accumulator : Accumulator
    leaves : list of _Leaf
    place : str or None
        Its address; None for any.
    alone : bool
        Whether no other worker may have them.
    future : distributed.Future or None
    """

    accumulator: Any
    leaves: list[_Leaf]
    place: str | None
    alone: bool
    future: Any = None

    def begin(self, client: Any) -> None:
        """Compute it, once more if it was begun before.

        Only its own tasks are for its worker: what blocks of several branches need would be lost
        with the worker of one of them.
        """
        from dask import annotate

        where = {"workers": [self.place], "allow_other_workers": not self.alone}
        with annotate(**(where if self.place else {})):
            tree = _summed(self.accumulator, self.leaves)
        self.future = client.compute(tree)


def _joined(accumulator: Any, client: Any, branches: list[_Branch]) -> Any:
    """The state of all branches, those of workers that die meanwhile computed by others."""
    while True:
        root = client.compute(_tree(_promise(accumulator), [one.future for one in branches]))
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
    """Wait for the root; branches whose worker is gone before that, if there are any."""
    from distributed import wait

    while branches and not root.done():
        alive = client.nthreads()
        gone = [one for one in branches if one.place not in alive]
        if gone:
            return gone
        with suppress(TimeoutError), client.as_current():
            wait(root, timeout=WORKER_POLL_SECONDS)
    return []


def _dealt(accumulator: Any, client: Any, leaves: list[_Leaf], names: list[str]) -> list[_Branch]:
    """Leaves by worker: where their rows lie if they are persisted, else adjacent ones together."""
    from distributed import wait

    alone = all(leaf.held for leaf in leaves)
    if alone:
        with client.as_current():
            wait([one for leaf in leaves for one in leaf.held])
        holders = client.who_has([leaf.held[0] for leaf in leaves])
        places = [next(iter(holders.get(leaf.held[0].key, ())), names[0]) for leaf in leaves]
    else:
        share = -(-len(leaves) // len(names))
        places = [names[i // share] for i in range(len(leaves))]
    dealt: dict[str, list[_Leaf]] = {}
    for place, leaf in zip(places, leaves, strict=True):
        dealt.setdefault(place, []).append(leaf)
    return [_Branch(accumulator, own, place, alone) for place, own in dealt.items()]


def _promise(accumulator: Any) -> Any:
    """The accumulator in a graph, under a name of its own each time.

    A name that several branches had in common would be bound to the worker of one of them, and be
    lost with it for all.
    """
    from dask import delayed

    return delayed(accumulator, pure=False, traverse=False)


def _summed(accumulator: Any, leaves: list[_Leaf]) -> Any:
    """The state of some leaves."""
    shared = _promise(accumulator)
    return _tree(shared, [leaf.task(accumulator=shared) for leaf in leaves])


def _tree(shared: Any, states: Sequence[Any]) -> Any:
    """The state of all, joined by groups and these by groups again."""
    from dask import delayed

    join: Callable[..., Any] = delayed(_join, pure=False, traverse=False)
    while len(states) > 1:
        groups = [
            states[i : i + MAX_JOINED_STATES] for i in range(0, len(states), MAX_JOINED_STATES)
        ]
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
