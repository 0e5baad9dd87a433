"""Recipes of the blocks of a Dask collection: the task that sums a block up computes it, too.

If a block were a task of its own, an idle worker could take the sum alone, and the block would be
sent to it. Dask fuses a block with its sum only in maps of blocks, not where a table is divided
into features and targets or columns are put together (benchmarks/dask_designs.py). So the tasks
that only one block needs are part of the task of its sum. Dask provides what several blocks need (a
mean of all rows, an open file), data that workers hold, and the results of tasks with a future
among their arguments, which Dask alone can resolve. Without recipes about half of the rows are sent
between workers; tests/rows/test_dask.py allows a fiftieth.

A task belongs to a block if all tasks that need it do. Visiting every task after those that need it
decides that in one pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from graphlib import TopologicalSorter
from typing import Any

__all__ = ["BlockRecipe", "recipes"]


class BlockRecipe:
    """The tasks of the parts of a block, from inputs that Dask provides.

    It is not a dataclass: Dask traverses dataclasses, and would run the tasks by itself.

    Parameters
    ----------
    tasks : dict
        The tasks that only this block needs, by their keys.
    inputs : list of keys
    parts : list of keys
        None for a part that is not of Dask.
    """

    def __init__(self, tasks: dict[Any, Any], inputs: list[Any], parts: list[Any]) -> None:
        self.tasks = tasks
        self.inputs = inputs
        self.parts = parts

    def make(self, values: Sequence[Any]) -> list[Any]:
        """The parts, from the values of the inputs."""
        from dask import get

        # Dask would run a value that is a tuple as a task, so tasks return the values
        graph = self.tasks | {key: (values.__getitem__, i) for i, key in enumerate(self.inputs)}
        made = iter(get(graph, [key for key in self.parts if key is not None]))
        return [None if key is None else next(made) for key in self.parts]


def recipes(
    blocks: Sequence[Sequence[Any]], futures: dict[Any, Any]
) -> Iterator[tuple[BlockRecipe, list[Any]]]:
    """The recipe of each block, and its inputs.

    Parameters
    ----------
    blocks : list of lists
        The parts of each block: Delayed objects, or anything else for parts that are not of Dask.
    futures : dict
        Futures of data that workers hold, by keys.

    Yields
    ------
    recipe : BlockRecipe
    inputs : list of Delayed or Future
    """
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    wanted = [[one.key if isinstance(one, Delayed) else None for one in own] for own in blocks]
    graph = _graph([one for own in blocks for one in own if isinstance(one, Delayed)], futures)
    needs = _needs(graph, futures)
    known = graph.keys() | futures.keys()
    owner = _owners(needs, wanted, known)
    # aliases, which cost nothing: blocks of persisted frames have two names
    names = {key for key, task in graph.items() if hasattr(task, "target") and needs[key] <= known}
    name = "shared-by-blocks"
    whole = HighLevelGraph.from_collections(name, graph)
    for number, keys in enumerate(wanted):
        own, inputs = _cut(needs, owner, names, number, keys)
        recipe = BlockRecipe({key: graph[key] for key in own}, inputs, keys)
        provided = [
            Delayed(key, whole, layer=name) if key in graph else futures[key] for key in inputs
        ]
        yield recipe, provided


def _graph(parts: list[Any], futures: dict[Any, Any]) -> dict[Any, Any]:
    """All tasks; futures are dependencies, not tasks."""
    graphs = {id(one.__dask_graph__()): one.__dask_graph__() for one in parts}
    merged: dict[Any, Any] = {}
    for graph in graphs.values():
        merged |= graph
    return {key: task for key, task in merged.items() if key not in futures}


def _needs(graph: dict[Any, Any], futures: dict[Any, Any]) -> dict[Any, set[Any]]:
    """Keys that each task depends on, also of futures that the task does not declare."""
    from dask.core import get_dependencies

    known = graph | futures
    return {
        # a task that is a tuple has no such attribute
        key: set(getattr(task, "dependencies", None) or get_dependencies(known, key))
        for key, task in graph.items()
    }


def _owners(
    needs: dict[Any, set[Any]], wanted: list[list[Any]], known: set[Any]
) -> dict[Any, int | None]:
    """The one block that needs a key; None for several, and for tasks with unknown dependencies."""
    owner: dict[Any, int | None] = {key: None for key, own in needs.items() if not own <= known}

    def need(key: Any, block: int | None) -> None:
        owner[key] = block if owner.get(key, block) == block else None

    for number, keys in enumerate(wanted):
        for key in keys:
            if key is not None:
                need(key, number)
    for key in reversed([*TopologicalSorter(needs).static_order()]):
        if key in owner and key in needs:
            for one in needs[key]:
                need(one, owner[key])
    return owner


def _cut(
    needs: dict[Any, set[Any]],
    owner: dict[Any, int | None],
    names: set[Any],
    number: int,
    keys: list[Any],
) -> tuple[list[Any], list[Any]]:
    """The tasks of a block with the aliases that it needs, and its inputs."""
    own: dict[Any, None] = {}
    inputs: dict[Any, None] = {}
    ahead = [key for key in reversed(keys) if key is not None]
    while ahead:
        one = ahead.pop()
        if one not in names and (one not in needs or owner[one] != number):
            inputs[one] = None
        elif one not in own:
            own[one] = None
            ahead += needs[one]
    return list(own), list(inputs)
