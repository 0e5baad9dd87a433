"""Every public name of the package is in the API reference, with a docstring."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

import onefit

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TEXT = (DOCS / "api.md").read_text(encoding="utf-8")
FIRST, _, REST = TEXT.partition("\n## Modules\n")
NAMES = set(re.findall(r"^   ~onefit\.(\w+)$", FIRST, re.MULTILINE))
MODULES, DERIVATIONS = (
    re.findall(r"^   (onefit[\w.]*)$", part, re.MULTILINE) for part in REST.split("## Derivations")
)


def documented():
    """Public names of the modules of the reference."""
    return {f"{name}.{one}" for name in MODULES for one in importlib.import_module(name).__all__}


def imported(text):
    """Names of the package that a piece of Python imports."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("onefit"):
            yield from (f"{node.module}.{one.name}" for one in node.names if not one.name.isupper())


def test_names_of_the_package_are_in_the_reference():
    names = {name for name in onefit.__all__ if callable(getattr(onefit, name))}
    assert names == NAMES


@pytest.mark.parametrize("module", [*MODULES, *DERIVATIONS])
def test_a_listed_module_exists_and_is_documented(module):
    assert (importlib.import_module(module).__doc__ or "").strip()


def test_public_names_have_docstrings():
    """The build stops where one has none (docs/conf.py)."""
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            assert not callable(value) or value.__doc__, f"{module.__name__}.{name}"


def test_what_pages_and_examples_import_is_in_the_reference():
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "examples").glob("*.py")]
    for page in set(DOCS.glob("*.md")) - {DOCS / "extending.md"}:
        texts += re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    known = documented() | {f"onefit.{name}" for name in NAMES}
    assert {name for text in texts for name in imported(text)} <= known
