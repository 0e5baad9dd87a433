"""How a block of a Dask collection is made: by the task that sums it up, so that it never travels.

Were a block a task of its own, an idle worker could take the sum alone, and would have the block
sent. So a block's tasks travel within the sum: those that no other block needs. What several
blocks need (a mean of all rows, an open file) and what workers hold already remains with Dask,
which brings it. So does a task with a future among its arguments, which Dask alone can resolve.

A task belongs to a block if all tasks that need it do. In an order in which every task comes after
those that need it, that takes one look at each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["Recipe", "recipes"]

#: the owner of what more than one block needs
SHARED = -1


class Recipe:
    """Parts of a block, made from what Dask brings.

    It is no dataclass, because Dask looks into dataclasses, and would run the tasks by itself.

    Parameters
    ----------
    tasks : dict
        Those that are the block's own, by their keys.
    brought : list of keys
        What these begin with.
    parts : list of keys
        None for a part that Dask does not have.
    """

    def __init__(self, tasks: dict[Any, Any], brought: list[Any], parts: list[Any]) -> None:
        self.tasks = tasks
        self.brought = brought
        self.parts = parts

    def make(self, values: Sequence[Any]) -> list[Any]:
        """The parts, with the values of what is brought."""
        from dask import get
        from dask._task_spec import DataNode

        given = zip(self.brought, values, strict=True)
        graph = self.tasks | {key: DataNode(key, value) for key, value in given}
        made = iter(get(graph, [key for key in self.parts if key is not None]))
        return [None if key is None else next(made) for key in self.parts]


def recipes(
    blocks: Sequence[Sequence[Any]], futures: dict[Any, Any]
) -> Iterator[tuple[Recipe, list[Any]]]:
    """The recipe of each block, and promises of what it is brought.

    Parameters
    ----------
    blocks : list of lists
        Of each block the parts: Delayed objects, and anything else where Dask has none.
    futures : dict
        What workers hold, by its keys.

    Yields
    ------
    recipe : Recipe
    promises : list of Delayed or Future
    """
    from dask._task_spec import Alias
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    wanted = [[one.key if isinstance(one, Delayed) else None for one in own] for own in blocks]
    graph = _graph([one for own in blocks for one in own if isinstance(one, Delayed)])
    known = graph.keys() | futures.keys()
    owner = _owners(graph, wanted, known)
    # other names of something, which cost nothing: blocks of persisted frames have two
    names = {
        key for key, task in graph.items() if isinstance(task, Alias) and task.dependencies <= known
    }
    name = "shared-by-blocks"
    whole = HighLevelGraph.from_collections(name, graph)
    for number, keys in enumerate(wanted):
        recipe = _recipe(graph, owner, names, number, keys)
        promises = [
            Delayed(key, whole, layer=name) if key in graph else futures[key]
            for key in recipe.brought
        ]
        yield recipe, promises


def _graph(promises: list[Any]) -> dict[Any, Any]:
    """All tasks; the keys of futures are among what they depend on, not among them."""
    from dask._task_spec import convert_legacy_graph

    graphs = {id(one.__dask_graph__()): one.__dask_graph__() for one in promises}
    merged: dict[Any, Any] = {}
    for graph in graphs.values():
        merged |= graph
    return dict(convert_legacy_graph(merged))


def _owners(graph: dict[Any, Any], wanted: list[list[Any]], known: set[Any]) -> dict[Any, int]:
    """The one block that needs a key, or SHARED: also for tasks that need what is not known."""
    from dask.core import toposort

    owner = {key: SHARED for key, task in graph.items() if not task.dependencies <= known}

    def need(key: Any, block: int) -> None:
        owner[key] = block if owner.get(key, block) == block else SHARED

    for number, keys in enumerate(wanted):
        for key in keys:
            if key is not None:
                need(key, number)
    within = {key: [one for one in graph[key].dependencies if one in graph] for key in graph}
    for key in reversed(toposort(graph, dependencies=within)):
        if key in owner:
            for one in within[key]:
                need(one, owner[key])
    return owner


def _recipe(
    graph: dict[Any, Any], owner: dict[Any, int], names: set[Any], number: int, keys: list[Any]
) -> Recipe:
    """Own tasks, and names, which whoever needs them may have; the rest is brought."""
    tasks: dict[Any, Any] = {}
    brought: dict[Any, None] = {}
    for key in keys:
        ahead = [] if key is None else [key]
        while ahead:
            one = ahead.pop()
            if one not in names and (one not in graph or owner[one] != number):
                brought[one] = None
            elif one not in tasks:
                tasks[one] = graph[one]
                ahead += graph[one].dependencies
    return Recipe(tasks, list(brought), keys)
