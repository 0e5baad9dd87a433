"""The gallery: its pages and the scripts of papers/figures belong together."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GALLERY = DOCS / "gallery"
PAGES = [page for page in sorted(GALLERY.glob("*.md")) if page.stem != "index"]
FIGURES = ROOT / "papers" / "figures"
MARKS = {"headlines", "verdicts", "coverage", "claims", "table"}


@pytest.fixture(scope="module")
def findings():
    sys.path.insert(0, str(DOCS))
    yield importlib.import_module("findings")
    sys.path.remove(str(DOCS))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_is_what_its_script_makes(page):
    text = page.read_text(encoding="utf-8")
    script = (FIGURES / f"{page.stem}.py").read_text(encoding="utf-8")
    pictures = re.findall(r"^:::\{figure\} (\w+)/(\w+)\.svg\n\w", text, re.MULTILINE)
    parts = re.findall(r"```\{include\} (\w+)/(\w+)\.md\n", text)
    assert pictures
    assert text.count(":::{figure}") == len(pictures)
    assert "![" not in text
    assert {folder for folder, _ in pictures + parts} == {page.stem}
    assert all(f'"{name}"' in script for _, name in pictures)
    assert set(re.findall(r'out / "(\w+)\.md"', script)) == {name for _, name in parts}


def test_every_paper_has_a_page_and_every_page_a_place_in_the_contents(findings):
    assert {page.stem for page in PAGES} == set(findings.DRAWN)
    contents = (DOCS / "index.md").read_text(encoding="utf-8")
    for page in PAGES:
        assert f"<gallery/{page.stem}>" in contents


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.stem)
def test_every_mark_is_known(page):
    marks = re.findall(r"^<!-- (\w+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(marks) <= MARKS
