"""Rows in every place that they can be streamed from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from rows_everywhere import K, N, P, Rows, honest

from onefit.rows import HashKFold


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """6,000 rows in memory, in an .npy file, and in Parquet files of several row groups."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, P)), rng.normal(size=N)
    s, g = rng.uniform(size=N), rng.integers(0, 900, size=N)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["y"], frame["s"], frame["g"] = y, s, [f"g{one}" for one in g]
    place = tmp_path_factory.mktemp("rows")
    folder = place / "parts"
    folder.mkdir()
    for i, (first, last) in enumerate([(0, 1000), (1000, 4500), (4500, N)]):
        frame.iloc[first:last].to_parquet(folder / f"part-{i}.parquet", row_group_size=700)
    np.save(place / "X.npy", X)
    expected = honest(X, y, s, HashKFold(K).fold_of(np.arange(N)))
    return Rows(X, y, s, frame["g"].to_numpy(), frame, folder, place / "X.npy", expected)
