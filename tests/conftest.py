"""Settings and fixtures that every test file shares."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default",
    max_examples=25,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
# pytest --hypothesis-profile=thorough: more examples, and new ones in each run.
settings.register_profile(
    "thorough",
    parent=settings.get_profile("default"),
    max_examples=300,
    derandomize=False,
    print_blob=True,
)
settings.load_profile("default")


def pytest_sessionstart() -> None:
    """No garbage collection during the collection of tests, where it takes a third of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Tests stay to the end, and are not searched for garbage."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that asks for the data directory."""
    for item in items:
        if "data_dir" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.data)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of `<name>.csv.gz` files that ONEFIT_DATA_DIR names."""
    value = os.environ.get("ONEFIT_DATA_DIR")
    if not value:
        pytest.skip("ONEFIT_DATA_DIR is not set: point it at a folder of <name>.csv.gz data sets")
    folder = Path(value)
    if not folder.is_dir():
        pytest.fail(f"ONEFIT_DATA_DIR={value!r} is not a folder: correct it or unset it")
    return folder


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A client of a Dask cluster of two worker processes, not the active one."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def free_memory(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the bytes of memory that the operating system reports as free."""

    def free(nbytes: float) -> None:
        found = psutil.virtual_memory()._replace(available=nbytes)
        monkeypatch.setattr(psutil, "virtual_memory", lambda: found)

    return free


@pytest.fixture
def without_module(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes a package look as if it were not installed."""

    def remove(name: str) -> None:
        loaded = [one for one in sys.modules if one.startswith(f"{name}.")]
        for one in [name, *loaded]:
            monkeypatch.setitem(sys.modules, one, None)

    return remove
