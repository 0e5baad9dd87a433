"""The Python on every page of the documentation runs, and prints what the page says it prints.

The ```python blocks of a page run in order in one fresh namespace. A block fenced
```text title="output" holds what the block before it prints ("..." stands for anything). Any other
```text block is not run.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import re
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
#: pages as written; the build makes others, in folders
PAGES = sorted(DOCS.glob("*.md"))
FENCE = re.compile(r"^```(?P<head>[^\n]*)\n(?P<body>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
LANGUAGES = {"python", "text", 'text title="output"', "sh"}
DIRECTIVES = {"{eval-rst}", "{include}", "{toctree}"}
#: words that parameters of these names have elsewhere: calibration, intervals, pipelines, criteria
ELSEWHERE = {"sigmoid", "isotonic", "full", "all_rows", "auto", "race", "cv", "precomputed"}
ELSEWHERE |= {"zero_one", "negative_margin", "absolute"}
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
    page = DOCS / "quickstart_python.md"
    assert sum(block.head == "python" for block in blocks(page)) > 5
    with pytest.raises(ZeroDivisionError):
        run(Block("python", "1 / 0\n", 3), page, {})


def test_names_of_losses_kernels_criteria_and_methods_exist():
    from onefit.criteria import CRITERIA
    from onefit.heldout import METHODS
    from onefit.kernels import KERNELS
    from onefit.losses import LOSSES

    known = {"loss": LOSSES, "kernel": KERNELS, "criterion": CRITERIA, "method": METHODS}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for parameter, registry in known.items():
            named = set(re.findall(rf'(?<!LinearSVR\()\b{parameter}="(\w+)"', text))
            assert named <= {*registry, *ELSEWHERE}, name(page)


@pytest.mark.parametrize(
    ("page", "title", "registry"),
    [
        ("searching.md", "Criteria", "onefit.criteria.CRITERIA"),
        ("exactness.md", "The methods", "onefit.heldout.METHODS"),
        ("losses.md", "Names and objects", "onefit.losses.LOSSES"),
    ],
)
def test_a_table_is_complete(page, title, registry):
    module, _, name = registry.rpartition(".")
    there = set(getattr(importlib.import_module(module), name)) - {"cv"}
    section = (DOCS / page).read_text("utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]
    listed = set(re.findall(r'^\| `"?(\w+)"?` \|', section, re.MULTILINE))
    assert listed - {"auto", "race"} == there


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_that_a_page_names_exist(page):
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"`((?:tests|benchmarks|papers|docs|src|tools)/[\w/.]+)`", text)
    root = DOCS.parent
    made: tuple[str, ...] = ("docs/results", "benchmarks/results")
    if not (root / "papers").is_dir():  # a distribution of its own
        made = (*made, "papers")
    assert not [one for one in named if not (root / one).exists() and not one.startswith(made)]


def links(page: str) -> set[str]:
    """The links of a page to other pages, with their anchors."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return set(re.findall(r"\]\(([\w/]+\.md(?:#[\w-]+)?)\)", text))


@pytest.mark.parametrize(
    "answer",
    [
        "calibration.md#probabilities",
        "calibration.md#prediction-intervals",
        "searching.md#splits-groups-and-time",
        "exactness.md#why-is-a-score-not-exact",
        "after_search.md#add-and-remove-rows",
        "losses.md#outliers",
    ],
)
def test_an_answer_is_at_most_two_clicks_from_the_landing_page(answer):
    page, _, anchor = answer.partition("#")
    titles = re.findall(r"^#+ (.+)$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert anchor in {re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in titles}
    first = {link for link in links("index.md") if "/" not in link}  # written, not built
    second = {link for one in first for link in links(one.partition("#")[0])}
    assert answer in first | second


def test_pages_of_results_have_different_titles():
    pages = (DOCS.parent / "benchmarks" / "results").glob("*.md")
    titles = [page.read_text(encoding="utf-8").partition("\n")[0] for page in pages]
    assert len(set(titles)) == len(titles)
