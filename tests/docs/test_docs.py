"""The Python on every page of the documentation runs, and prints what the page says it prints.

The ```python blocks of a page run in order in one fresh namespace. A block fenced
```text title="output" holds what the block before it prints ("..." stands for anything). Any other
```text block is not run.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
#: pages as written; the folders of results and of pieces of the gallery are made by the build
MADE = {
    DOCS / "results",
    DOCS / "examples",
    *(p for p in (DOCS / "gallery").iterdir() if p.is_dir()),
}
PAGES = sorted(page for page in DOCS.rglob("*.md") if not MADE & set(page.parents))
FENCE = re.compile(r"^```(?P<head>[^\n]*)\n(?P<body>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
LANGUAGES = {"python", "text", 'text title="output"', "sh"}
DIRECTIVES = {"{eval-rst}", "{include}", "{toctree}"}
SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    head: str
    body: str
    line: int


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, with the line on which their body begins."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(m["head"].strip(), m["body"], text.count("\n", 0, m.start()) + 2)
        for m in FENCE.finditer(text)
    ]


def run(block: Block, page: Path, namespace: dict[str, object]) -> str:
    """Execute a block, its errors naming the page's lines, and return what it prints."""
    code = compile("\n" * (block.line - 1) + block.body, str(page), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    return printed.getvalue()


def name(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_fence_is_of_a_known_kind(page):
    heads = {block.head for block in blocks(page)}
    assert {h.split()[0] if h.startswith("{") else h for h in heads} <= LANGUAGES | DIRECTIVES


@pytest.mark.parametrize(
    "page", [p for p in PAGES if any(b.head == "python" for b in blocks(p))], ids=name
)
def test_the_python_of_a_page_runs_and_prints_what_it_says(page):
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for block in blocks(page):
            if block.head == "python":
                printed = run(block, page, namespace)
            elif block.head.endswith('output"'):
                same = doctest.OutputChecker().check_output(block.body, printed, SAME)
                assert same, f"{name(page)}, line {block.line}: printed\n{printed}"


def test_the_blocks_are_seen_and_run():
    """A page that says something false is found out."""
    page = DOCS / "start.md"
    assert sum(block.head == "python" for block in blocks(page)) > 5
    with pytest.raises(ZeroDivisionError):
        run(Block("python", "1 / 0\n", 3), page, {})


def test_the_criteria_of_the_chart_are_those_there_are():
    from onefit.criteria import CRITERIA

    text = (DOCS / "choosing.md").read_text(encoding="utf-8")
    section = text.partition("## The criterion\n")[2].partition("\n## ")[0]
    assert set(re.findall(r'^\| `"(\w+)"` \|', section, re.MULTILINE)) | {"cv"} == set(CRITERIA)


def test_the_methods_of_the_table_are_those_there_are():
    from onefit.heldout import METHODS

    text = (DOCS / "methods.md").read_text(encoding="utf-8").partition("\n## ")[0]
    assert set(re.findall(r'^\| `"(\w+)"` \|', text, re.MULTILINE)) == {*METHODS, "race", "auto"}
