"""Recipes of blocks: which tasks are a block's own, and that all of them together give the rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import futures_of
from rows_everywhere import K
from sums import FoldSums

from onefit.rows import open_rows, run
from onefit.rows.dask_recipe import BlockRecipe, recipes

X = np.random.default_rng(0).normal(size=(600, 4))
FOUR = (150, 4)


class Lazy:
    """An array that is read when it is sliced, as of a file."""

    shape, dtype, ndim = X.shape, X.dtype, 2

    def __getitem__(self, index: Any) -> Any:
        return X[index]


def collections() -> dict[str, tuple[Any, int | None]]:
    """Arrays of the same rows in four blocks, and how much is inputs for each of these."""
    rows = da.from_array(X, chunks=FOUR)
    return {
        "memory": (rows, 0),
        "a chain": (((rows + 1.0).map_blocks(lambda block: block * 2.0) / 2.0) - 1.0, 0),
        "columns apart": (da.from_array(X, chunks=(150, 2)).rechunk({1: 4}), 0),
        "an open file": (da.from_array(Lazy(), chunks=FOUR), 1),
        "a diamond": (rows.map_blocks(np.abs) * rows.map_blocks(np.sign), 0),
        "less a mean": (rows - rows.mean(axis=0) + X.mean(axis=0), 3),
        # blocks of 200 rows lie across the ends of those of 150
        "blocks that lie across": (da.from_array(X, chunks=(200, 4)).rechunk(FOUR), None),
    }


@pytest.mark.parametrize("name", list(collections()))
def test_a_block_is_made_from_its_own_tasks_and_its_inputs(name: str) -> None:
    collection, count = collections()[name]
    blocks = [[one[0], None] for one in collection.to_delayed()]
    found = list(recipes(blocks, {}))
    for i, (recipe, promises) in enumerate(found):
        assert count is None or len(promises) == count
        made, none = recipe.make(dask.compute(*promises, scheduler="synchronous"))
        np.testing.assert_allclose(made, X[150 * i : 150 * (i + 1)], atol=1e-12)
        assert none is None
    own = Counter(key for recipe, _ in found for key in recipe.tasks)
    assert set(own.values()) == {1}
    assert not set(own) & {key for recipe, _ in found for key in recipe.inputs}


@pytest.mark.parametrize("name", list(collections()))
def test_sums_are_those_of_the_rows(name: str, cluster: Any) -> None:
    expected = run(FoldSums(K, 4, 0), open_rows(X, cv=K))
    collection, _ = collections()[name]
    for client in (None, cluster):
        with dask.config.set(scheduler="threads" if client is None else None):
            found = run(FoldSums(K, 4, 0), open_rows(collection, cv=K), client=client)
        np.testing.assert_array_equal(found["rows"], expected["rows"])
        np.testing.assert_allclose(found["G"], expected["G"], atol=1e-10)


def test_what_all_blocks_need_is_computed_once() -> None:
    runs = []

    def seen(block: Any) -> Any:
        runs.append(block.shape)
        return block

    mean = da.from_array(X, chunks=FOUR).map_blocks(seen, meta=X[:0]).mean(axis=0)
    rows = da.from_array(X, chunks=FOUR) - mean
    with dask.config.set(scheduler="synchronous"):
        run(FoldSums(K, 4, 0), open_rows(rows, cv=K))
    assert runs == [FOUR] * 4


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_persisted_rows_less_their_mean(cluster: Any, kind: str) -> None:
    """The mean lies under every block, but what a block is held by is its own rows."""
    with cluster.as_current():
        if kind == "array":
            rows = cluster.persist(da.from_array(X, chunks=FOUR))
        else:
            rows = cluster.persist(dd.from_pandas(pd.DataFrame(X), npartitions=4))
        own = [one.key for one in futures_of(rows)]
        source = open_rows(rows - rows.mean(axis=0), cv=K)
        assert sorted(one.key for piece in source.pieces for one in piece.held) == sorted(own)
        assert [len(piece.held) for piece in source.pieces] == [1] * 4
        del rows
        found = run(FoldSums(K, 4, 0), source, client=cluster)
    expected = run(FoldSums(K, 4, 0), open_rows(X - X.mean(axis=0), cv=K))
    np.testing.assert_allclose(found["G"], expected["G"], atol=1e-10)


def _half(rows: Any, i: int) -> Any:
    return rows[300 * i : 300 * (i + 1)]


@pytest.mark.parametrize("how", ["scattered", "submitted", "of a future"])
def test_blocks_that_are_futures_or_made_from_one(cluster: Any, how: str) -> None:
    if how == "scattered":
        halves = cluster.scatter([X[:300], X[300:]])
    elif how == "submitted":
        halves = [cluster.submit(_half, X, i) for i in range(2)]
    else:
        whole = cluster.scatter(X)
        halves = [dask.delayed(_half)(whole, i) for i in range(2)]
    with cluster.as_current():
        rows = da.concatenate([da.from_delayed(one, (300, 4), float) for one in halves])
        found = run(FoldSums(K, 4, 0), open_rows(rows, cv=K), client=cluster)
    expected = run(FoldSums(K, 4, 0), open_rows(X, cv=K))
    np.testing.assert_allclose(found["G"], expected["G"], atol=1e-10)


def test_nothing_is_made_from_nothing() -> None:
    assert BlockRecipe({}, [], [None, None]).make([]) == [None, None]
