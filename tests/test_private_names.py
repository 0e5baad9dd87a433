"""Names of scikit-learn that carry no promise: which of them are used here, and that they exist.

When scikit-learn moves one, the test's name says which, and the message where it is used. The upper
bound on scikit-learn in pyproject.toml is raised once all of them are found in the new version.
"""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest
from sklearn.model_selection._search import BaseSearchCV

import onefit

SOURCE = Path(onefit.__file__).parent
#: names written as text, such as the types that a model file may hold
WRITTEN = re.compile(r"sklearn(?:\.\w+)*\._\w+")
#: methods of scikit-learn's search that ours calls or replaces
INHERITED = (
    "_check_refit_for_multimetric",
    "_get_routed_params_for_fit",
    "_get_scorers",
    "_html_repr",
    "_init_callback_context",
    "_select_best_index",
)


def private(module: str, name: str) -> bool:
    return name.startswith("_") or any(part.startswith("_") for part in module.split("."))


def names_of(path: Path) -> set[tuple[str, str]]:
    """Module and name of every private one that a file imports or writes out."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sklearn":
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


@pytest.mark.parametrize("name", INHERITED)
def test_a_private_method_is_still_inherited(name):
    assert hasattr(BaseSearchCV, name), f"scikit-learn moved BaseSearchCV.{name}"


def test_the_scan_sees_imports_and_text(tmp_path):
    file = tmp_path / "one.py"
    file.write_text(
        "from sklearn.utils import _a, b\nfrom sklearn._c import d\nT = 'sklearn.e._F'\n"
    )
    expected = {("sklearn.utils", "_a"), ("sklearn._c", "d"), ("sklearn.e", "_F")}
    assert names_of(file) == expected
    assert ("sklearn.utils.validation", "_num_samples") in USED
