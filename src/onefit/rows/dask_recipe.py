"""How a block of a Dask collection is made: by the task that sums it up, so that it never travels.

Were a block a task of its own, an idle worker could take the sum alone, and would have the block
sent. Dask fuses a block with its sum only in maps of blocks, not where a table is cut into features
and targets or columns are put together (benchmarks/dask_designs.py). So a block's tasks travel
within the sum: those that no other block needs. What several blocks need (a mean of all rows, an
open file) and what workers hold already remains with Dask, which provides it. So does a task with a
future among its arguments, which Dask alone can resolve. Without recipes about half of the rows
travel, where tests/rows/test_dask.py allows a fiftieth.

A task belongs to a block if all tasks that need it do. In an order in which every task comes after
those that need it, that takes one look at each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from graphlib import TopologicalSorter
from typing import Any

__all__ = ["BlockRecipe", "recipes"]

#: owner of inputs that several blocks need
SHARED_OWNER = -1


class BlockRecipe:
    """Parts of a block, made from inputs that Dask provides.

    It is no dataclass, because Dask looks into dataclasses, and would run the tasks by itself.

    Parameters
    ----------
    tasks : dict
        Those that are the block's own, by their keys.
    inputs : list of keys
        What these start from.
    parts : list of keys
        None for a part that Dask does not have.
    """

    def __init__(self, tasks: dict[Any, Any], inputs: list[Any], parts: list[Any]) -> None:
        self.tasks = tasks
        self.inputs = inputs
        self.parts = parts

    def make(self, values: Sequence[Any]) -> list[Any]:
        """The parts, from the values of the inputs."""
        from dask import get

        # a tuple is a task: values are called for, so that none is taken for a task itself
        graph = self.tasks | {key: (values.__getitem__, i) for i, key in enumerate(self.inputs)}
        made = iter(get(graph, [key for key in self.parts if key is not None]))
        return [None if key is None else next(made) for key in self.parts]


def recipes(
    blocks: Sequence[Sequence[Any]], futures: dict[Any, Any]
) -> Iterator[tuple[BlockRecipe, list[Any]]]:
    """The recipe of each block, and promises of its inputs.

    Parameters
    ----------
    blocks : list of lists
        Of each block the parts: Delayed objects, and anything else where Dask has none.
    futures : dict
        What workers hold, by its keys.

    Yields
    ------
    recipe : BlockRecipe
    promises : list of Delayed or Future
    """
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    wanted = [[one.key if isinstance(one, Delayed) else None for one in own] for own in blocks]
    graph = _graph([one for own in blocks for one in own if isinstance(one, Delayed)], futures)
    needs = _needs(graph, futures)
    known = graph.keys() | futures.keys()
    owner = _owners(needs, wanted, known)
    # other names of something, which cost nothing: blocks of persisted frames have two
    names = {key for key, task in graph.items() if hasattr(task, "target") and needs[key] <= known}
    name = "shared-by-blocks"
    whole = HighLevelGraph.from_collections(name, graph)
    for number, keys in enumerate(wanted):
        own, inputs = _cut(needs, owner, names, number, keys)
        recipe = BlockRecipe({key: graph[key] for key in own}, inputs, keys)
        promises = [
            Delayed(key, whole, layer=name) if key in graph else futures[key] for key in inputs
        ]
        yield recipe, promises


def _graph(promises: list[Any], futures: dict[Any, Any]) -> dict[Any, Any]:
    """All tasks; the keys of futures are among what they depend on, not among them."""
    graphs = {id(one.__dask_graph__()): one.__dask_graph__() for one in promises}
    merged: dict[Any, Any] = {}
    for graph in graphs.values():
        merged |= graph
    return {key: task for key, task in merged.items() if key not in futures}


def _needs(graph: dict[Any, Any], futures: dict[Any, Any]) -> dict[Any, set[Any]]:
    """Keys that each task depends on, also of futures that are not declared."""
    from dask.core import get_dependencies

    known = graph | futures
    return {
        # a task that is a tuple has no such attribute
        key: set(getattr(task, "dependencies", None) or get_dependencies(known, key))
        for key, task in graph.items()
    }


def _owners(needs: dict[Any, set[Any]], wanted: list[list[Any]], known: set[Any]) -> dict[Any, int]:
    """The one block that needs a key, or SHARED_OWNER, also of tasks with unknown dependencies."""
    owner = {key: SHARED_OWNER for key, own in needs.items() if not own <= known}

    def need(key: Any, block: int) -> None:
        owner[key] = block if owner.get(key, block) == block else SHARED_OWNER

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
    owner: dict[Any, int],
    names: set[Any],
    number: int,
    keys: list[Any],
) -> tuple[list[Any], list[Any]]:
    """Own tasks and names, which any block may copy; the other keys are inputs."""
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
