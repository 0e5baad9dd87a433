"""Every public name of the package has an entry in the reference."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import onefit

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
TEXT = "".join(page.read_text(encoding="utf-8") for page in sorted(REFERENCE.glob("*.md")))
MODULE = re.compile(r"^\.\. automodule:: ([\w.]+)\n   :members:(.*)$", re.MULTILINE)
NAMES = [name for name in onefit.__all__ if callable(getattr(onefit, name))]


def documented():
    """Full names of the functions and classes that the pages document."""
    yield from re.findall(r"^\.\. auto(?:class|function):: ([\w.]+)$", TEXT, re.MULTILINE)
    for module, members in MODULE.findall(TEXT):
        names = members.split(",") if members.strip() else vars(importlib.import_module(module))
        yield from (f"{module}.{name.strip()}" for name in names)


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_in_the_reference(name):
    where = getattr(onefit, name).__module__
    assert {f"onefit.{name}", f"{where}.{name}"} & set(documented())
