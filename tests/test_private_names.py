"""Names of scikit-learn and Dask that carry no promise: which are used, and that they exist.

None is used that has a public equivalent, so the list is short, and a new one is noticed here. When
scikit-learn moves one, the test's name says which, and the message where it is used.
"""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest
from sklearn.metrics import get_scorer

import onefit

SOURCE = Path(onefit.__file__).parent
PACKAGES = ("sklearn", "dask", "distributed")
#: names written as text, such as the types that a model file may hold
WRITTEN = re.compile(r"(?:sklearn|dask|distributed)(?:\.\w+)*\._\w+")
#: all that may be used: types of a calibrated model, which a saved model names
ALLOWED = {
    ("sklearn.calibration", "_CalibratedClassifier"),
    ("sklearn.calibration", "_SigmoidCalibration"),
}
#: what a scorer computes, which scikit-learn tells by no other means
OF_SCORERS = ("_kwargs", "_response_method", "_score_func", "_sign")


def private(module: str, name: str) -> bool:
    return name.startswith("_") or any(part.startswith("_") for part in module.split("."))


def names_of(path: Path) -> set[tuple[str, str]]:
    """Module and name of every private one that a file imports or writes out."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            found |= {(str(node.module), one.name) for one in node.names}
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            full = WRITTEN.fullmatch(node.value)
            found |= {tuple(full[0].rsplit(".", 1))} if full else set()
    return {pair for pair in found if private(*pair)}


def used() -> dict[tuple[str, str], list[str]]:
    """Private names, and the files that use each."""
    places: dict[tuple[str, str], list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for pair in names_of(path):
            places.setdefault(pair, []).append(str(path.relative_to(SOURCE)))
    return dict(sorted(places.items()))


USED = used()


@pytest.mark.parametrize(("module", "name"), USED, ids=[".".join(pair) for pair in USED])
def test_a_private_name_is_where_it_was(module, name):
    try:
        found = hasattr(importlib.import_module(module), name)
    except ModuleNotFoundError:
        found = False
    assert found, f"scikit-learn moved {module}.{name}, used in {', '.join(USED[module, name])}"


def test_no_other_private_name_is_used():
    assert set(USED) == ALLOWED


@pytest.mark.parametrize("name", OF_SCORERS)
def test_a_scorer_tells_what_it_computes(name):
    assert hasattr(get_scorer("r2"), name), f"scikit-learn moved {name} of scorers"


def test_the_scan_sees_imports_and_text(tmp_path):
    file = tmp_path / "one.py"
    file.write_text("from sklearn.utils import _a, b\nfrom dask._c import d\nT = 'sklearn.e._F'\n")
    expected = {("sklearn.utils", "_a"), ("dask._c", "d"), ("sklearn.e", "_F")}
    assert names_of(file) == expected
