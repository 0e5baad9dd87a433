"""The package as a whole: its version, and what importing it brings along."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from importlib.resources import files

import pytest

import onefit
from onefit.config import config_context, get_config, set_config

OPTIONAL = [
    "torch",
    "dask",
    "distributed",
    "pyarrow",
    "fsspec",
    "matplotlib",
    "rich",
    "pandas",
]

IMPORT = f"""
import sys

asked = set()

def package(frame):
    return frame.f_globals.get("__name__", "").partition(".")[0]

class Absent:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] not in {OPTIONAL}:
            return
        frame = sys._getframe(1)
        while frame and package(frame) not in ("sklearn", "onefit"):
            frame = frame.f_back
        if frame is None or package(frame) == "onefit":
            asked.add(name.partition(".")[0])
        raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent)
import onefit
for name in onefit.__all__:
    getattr(onefit, name)
print("asked", *asked)
print("loaded", *sys.modules)
"""


@pytest.fixture(scope="module")
def fresh() -> dict[str, set[str]]:
    """All of onefit's names without the optional packages: what was asked for, what was loaded.

    scikit-learn asks for pandas and rich by itself.
    """
    program = [sys.executable, "-c", IMPORT]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    asked, loaded = (set(line.split()[1:]) for line in done.stdout.splitlines())
    return {"asked": asked, "loaded": loaded}


def test_version_equals_the_installed_metadata() -> None:
    try:
        installed = metadata.version("onefit")
    except metadata.PackageNotFoundError:
        pytest.skip("onefit is on the path but not installed, so it has no metadata")
    assert onefit.__version__ == installed


@pytest.mark.parametrize("name", OPTIONAL)
def test_import_leaves_optional_packages_alone(name: str, fresh: dict[str, set[str]]) -> None:
    assert name not in fresh["asked"]


def test_import_works_without_the_optional_packages(fresh: dict[str, set[str]]) -> None:
    assert "onefit" in fresh["loaded"]
    assert not fresh["loaded"].intersection(OPTIONAL)


def test_the_package_is_marked_as_typed() -> None:
    assert files("onefit").joinpath("py.typed").is_file()


def test_every_public_name_exists() -> None:
    missing = [name for name in onefit.__all__ if not hasattr(onefit, name)]
    assert not missing


def test_import_alone_loads_no_numerical_library() -> None:
    program = "import sys, onefit; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert not {"numpy", "scipy", "sklearn"}.intersection(done.stdout.split())


def test_the_app_knows_its_options_without_the_engine() -> None:
    program = "import sys, onefit.cli.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    loaded = done.stdout.split()
    assert "argparse" in loaded
    assert not {"numpy", "scipy", "sklearn", "pandas"}.intersection(loaded)


def test_the_top_level_is_short() -> None:
    names = [name for name in onefit.__all__ if callable(getattr(onefit, name))]
    assert len(names) == 12


def test_names_are_listed_and_unknown_ones_refused() -> None:
    assert set(onefit.__all__) <= set(dir(onefit))
    with pytest.raises(AttributeError, match="no_such_name"):
        onefit.no_such_name  # noqa: B018


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), "8GB", [1e9]])
def test_memory_is_a_positive_number(value):
    with pytest.raises(ValueError, match="memory_bytes must be a positive number or None, got"):
        set_config(memory_bytes=value)
    with config_context(memory_bytes=float("inf")):
        assert get_config()["memory_bytes"] == float("inf")
    assert get_config()["memory_bytes"] is None
