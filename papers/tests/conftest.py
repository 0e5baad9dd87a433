"""The data directory, for the tests that read real data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


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
