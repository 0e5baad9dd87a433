"""The decision lists of docs/choosing.md name only what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from onefit.criteria import CRITERIA
from onefit.heldout import METHODS
from onefit.kernels import KERNELS
from onefit.losses import LOSSES

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "choosing.md").read_text(encoding="utf-8")
KNOWN = {
    "The loss": {*LOSSES, "mad"},
    "The kernel and its grid": {*KERNELS, "precomputed"},
    "The criterion": {*CRITERIA, "cv"},
    "The method": {*METHODS, "auto", "race"},
}


def decisions(title):
    """The list that follows the question at the beginning of a section."""
    section = TEXT.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return section.partition("?\n\n")[2].partition("\n\n")[0]


@pytest.mark.parametrize("title", KNOWN)
def test_a_decision_names_what_exists(title):
    found = decisions(title)
    assert len(found.splitlines()) > 5
    assert all(line.lstrip().startswith("- ") for line in found.splitlines())
    quoted = set(re.findall(r'"(\w+)"', found))
    assert quoted
    assert quoted <= KNOWN[title]
