"""Chunks that are arrays of another library: the same sums, and the same search."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import dask
import numpy as np
import pandas as pd
import pytest
from rows_everywhere import K, in_blocks
from sklearn.base import clone

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV, linalg
from onefit.features import Nystrom
from onefit.features.fourier import fourier_map
from onefit.features.maps import nystrom_map
from onefit.features.moments import Centre, MomentSums
from onefit.kernels import Gaussian, Laplace
from onefit.rows import HashKFold, open_rows, run
from onefit.rows.accumulate import nbytes, to_host

N, P = 420, 3


@pytest.fixture(scope="module", params=["array_api_strict", "torch", "cupy"])
def there(request: pytest.FixtureRequest) -> Any:
    """From NumPy's arrays to those of a library: on its GPU, if it has one."""
    lib = pytest.importorskip(request.param)
    if request.param != "torch":
        return lib.asarray
    device = "cuda" if lib.cuda.is_available() else "cpu"
    return lambda x: lib.tensor(x, device=device)


@pytest.fixture(scope="module")
def Xy() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, P))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=N)


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Laplace(0.2)], ids=repr)
@pytest.mark.parametrize("kind", ["nystrom", "fourier"])
def test_features_and_products(there: Any, Xy: Any, kernel: Any, kind: str) -> None:
    X, _ = Xy
    made = nystrom_map(kernel, X[:40]) if kind == "nystrom" else fourier_map(kernel, P, 40, 0, True)
    Phi = made.apply(there(X))
    assert linalg.is_elsewhere(Phi)
    np.testing.assert_allclose(linalg.to_host(Phi), made.apply(X), atol=1e-9)
    A = made.coefficients(np.random.default_rng(0).normal(size=(made.size, 2)))
    found = made.evaluate(there(X), A)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, made.evaluate(X, A), atol=1e-9 * np.abs(A).sum())
    np.testing.assert_allclose(made.lengths(there(X)), made.lengths(X))


def test_sums_stay_on_the_device_until_the_end_of_a_piece(there: Any, Xy: Any) -> None:
    X, y = Xy
    features = nystrom_map(Gaussian(0.3), X[:40])
    gram = MomentSums(features, Centre.of(features, X[:50], y[:50, None]))
    weights = np.random.default_rng(1).uniform(size=N) * (np.arange(N) % 7 > 0)
    with dask.config.set(scheduler="synchronous"):
        source = open_rows(in_blocks(X, there), y, sample_weight=weights, cv=K)
        block = source.pieces[0].parts[0].compute()
        chunk = next(iter(open_rows(X[:170], y[:170], cv=K).pieces)).blocks(170)
        one = open_rows(X, y, cv=K).reading.chunk(next(chunk))
        state = gram.update(gram.init(), type(one)(block, one.Y, one.s, one.fold, one.row))
        assert all(linalg.is_elsewhere(sums.G) for sums in state.values())
        assert all(isinstance(sums.G, np.ndarray) for sums in to_host(state).values())
        assert nbytes(to_host(state)) >= K * 8 * features.size**2
        found = run(gram, source)
    expected = run(gram, open_rows(X, y, sample_weight=weights, cv=K))
    for k, sums in expected.folds.items():
        np.testing.assert_allclose(np.tril(found.folds[k].G), np.tril(sums.G), atol=1e-9)
        np.testing.assert_allclose(found.folds[k].B, sums.B, atol=1e-9)


class Stopping(MomentSums):
    """Notes how many rows it is given, and stops at a chunk as Ctrl-C would."""

    seen: ClassVar[list[int]] = []
    stop: ClassVar[int] = -1

    def update(self, state: Any, chunk: Any) -> Any:
        Stopping.seen.append(chunk.row.size)
        if len(Stopping.seen) == Stopping.stop:
            raise KeyboardInterrupt
        return super().update(state, chunk)


def test_a_pass_whose_rows_are_moved_to_a_device(there: Any, Xy: Any, tmp_path: Path) -> None:
    """By this process, without Dask; and once more from where it was interrupted."""
    X, y = Xy
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    features = nystrom_map(Gaussian(0.3), X[:40])
    gram = Stopping(features, Centre.of(features, X[:50], y[:50, None]))
    rows = open_rows(tmp_path / "rows.parquet", "y", cv=K)
    source = rows.transformed(lambda X: there(X.to_pandas().to_numpy()), P)
    Stopping.seen, Stopping.stop = [], 4
    with pytest.raises(KeyboardInterrupt):
        run(gram, source, journal=tmp_path / "kept", chunk_rows=60)
    Stopping.seen, Stopping.stop = [], -1
    found = run(gram, source, journal=tmp_path / "kept", chunk_rows=60)
    assert sum(Stopping.seen) == N - 100  # one piece of two chunks was kept
    for k, sums in run(gram, rows).folds.items():
        assert isinstance(found.folds[k].G, np.ndarray)
        assert found.folds[k].rows == sums.rows
        np.testing.assert_allclose(np.tril(found.folds[k].G), np.tril(sums.G), atol=1e-9)


@pytest.mark.parametrize("loss", ["squared", "log"])
def test_a_search(there: Any, Xy: Any, loss: str) -> None:
    X, y = Xy
    kind = KernelClassifier if loss == "log" else KernelRegressor
    y = np.sign(y) if loss == "log" else y
    machine = kind(loss=loss, approximation=Nystrom(25), gamma=0.3)
    search = KernelSearchCV(machine, {"lam": [1e-3, 1e-1]}, cv=HashKFold(3))
    with dask.config.set(scheduler="synchronous"):
        found = clone(search).fit(in_blocks(X, there), y).cv_results_
    expected = search.fit(X, y).cv_results_
    for name in ("mean_test_score", "split0_test_score"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-7)
    np.testing.assert_array_equal(found["exact"], expected["exact"])


def test_a_value_that_is_no_number_is_named(there: Any, Xy: Any) -> None:
    X = Xy[0].copy()
    X[401, 2] = np.inf
    source = open_rows(in_blocks(X, there), cv=K)
    words = r"column 2 holds inf in row 401 \(block 2 of the Dask collection, row 61 of it\)"
    features = fourier_map(Gaussian(0.3), P, 10, 0, True)
    with dask.config.set(scheduler="synchronous"), pytest.raises(ValueError, match=words):
        run(MomentSums(features, Centre.zero(10, 0)), source)
