"""The package as a whole: its version, and what importing it brings along."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from importlib.resources import files

import pytest

import onefit

OPTIONAL = ["torch", "dask", "plotly", "typer", "matplotlib", "rich", "pandas"]

HIDE_OPTIONAL = f"""
import sys

class Absent:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent)
"""


def modules_after(program: str) -> set[str]:
    """Names of the modules a fresh interpreter has loaded once it has run `program`."""
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def brought_along() -> set[str]:
    """What `import onefit` loads beyond the parts of scikit-learn it uses.

    scikit-learn loads pandas and rich by itself where they are installed.
    """
    loaded = modules_after("import onefit")
    assert "onefit" in loaded
    parts = sorted(name for name in loaded if name.partition(".")[0] == "sklearn")
    return loaded - modules_after("\n".join(f"import {name}" for name in parts))


def test_version_equals_the_installed_metadata() -> None:
    try:
        installed = metadata.version("onefit")
    except metadata.PackageNotFoundError:
        pytest.skip("onefit is on the path but not installed, so it has no metadata")
    assert onefit.__version__ == installed


@pytest.mark.parametrize("name", OPTIONAL)
def test_import_leaves_optional_packages_alone(name: str, brought_along: set[str]) -> None:
    assert name not in brought_along


def test_import_works_without_the_optional_packages() -> None:
    loaded = modules_after(f"{HIDE_OPTIONAL}\nimport onefit")
    assert "onefit" in loaded
    assert not loaded.intersection(OPTIONAL)


def test_the_package_is_marked_as_typed() -> None:
    assert files("onefit").joinpath("py.typed").is_file()


def test_every_public_name_exists() -> None:
    missing = [name for name in onefit.__all__ if not hasattr(onefit, name)]
    assert not missing
