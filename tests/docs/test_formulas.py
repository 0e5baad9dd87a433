"""Every place named in docs/formulas.md exists: the file, and the object in it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLACE = re.compile(r"`([\w/]+\.py): ([\w.]+)`")
TEXT = (ROOT / "docs" / "formulas.md").read_text(encoding="utf-8")
PLACES = sorted(set(PLACE.findall(TEXT)))
MISPRINT = re.compile(r"^\| (JMLR|ICML|ECML|2016)\b", re.MULTILINE)


def path_of(name: str) -> Path:
    first = name.partition("/")[0]
    return (ROOT if first in ("benchmarks", "papers", "tests") else ROOT / "src" / "onefit") / name


@cache
def names(path: Path) -> frozenset[str]:
    """Functions, classes, their members, and names imported, as dotted names."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{m.name}" for m in node.body if isinstance(m, ast.FunctionDef)}
    return frozenset(found)


@pytest.mark.parametrize(("file", "name"), PLACES, ids=lambda part: part)
def test_the_place_exists(file, name):
    path = path_of(file)
    assert path.is_file(), f"docs/formulas.md names {file}, which does not exist"
    assert name in names(path), f"docs/formulas.md names {name}, which {file} does not define"


def test_no_place_is_written_in_another_way():
    """What looks like a file in a table is one of the places above."""
    loose = re.findall(r"[\w/]+\.py", re.sub(PLACE, "", TEXT))
    assert set(loose) <= {"tests/docs/test_formulas.py"}


def numbers(section: str) -> set[int]:
    """The equation numbers that the first column of a section's table covers."""
    covered: set[int] = set()
    for row in re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE):
        ends = [int(n) for n in re.findall(r"\((\d+)\)", row)]
        covered |= set(ends)
        if " to (" in row:
            covered |= set(range(ends[-2], ends[-1] + 1))
    return covered


@pytest.mark.parametrize(
    ("paper", "last"),
    [("JMLR 2008", 24), ("ICML 2014", 13), ("ECML PKDD 2014", 6), ("Information Sciences 2016", 8),
     ("IEICE 2019", 21)],
)  # fmt: skip
def test_every_numbered_equation_is_covered(paper, last):
    section = TEXT.partition(f"## {paper}\n")[2].partition("\n## ")[0]
    assert numbers(section) == set(range(1, last + 1))


def test_the_misprints_are_listed():
    assert len(MISPRINT.findall(TEXT.partition("## Misprints")[2])) >= 13
