"""The gallery: its pages and scripts belong together, and scripts run when they must."""

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
MARKS = {
    "results", "headlines", "verdicts", "coverage", "claims", "part", "reference", "table", "chart",
    "speed",
}  # fmt: skip
SCRIPT = """
import sys
from pathlib import Path
folder = Path(sys.argv[1])
(folder / "a.svg").write_text("<svg/>")
with (folder.parent / "runs").open("a") as file:
    file.write(Path(__file__).stem + "\\n")
"""


@pytest.fixture(scope="module", autouse=True)
def scripts():
    """The modules of the documentation can be imported."""
    sys.path.insert(0, str(DOCS))
    yield
    sys.path.remove(str(DOCS))


@pytest.fixture(scope="module")
def drawing(scripts):
    return importlib.import_module("drawing")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_is_what_its_script_makes(page):
    text = page.read_text(encoding="utf-8")
    script = (GALLERY / "figures" / f"{page.stem}.py").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^\]]+\]\((\w+)/(\w+)\.svg\)", text)
    parts = re.findall(r"<!-- part: (\w+)/(\w+)\.md -->", text)
    assert pictures
    assert text.count("![") == len(pictures)
    assert {folder for folder, _ in pictures + parts} == {page.stem}
    assert all(f'"{name}"' in script for _, name in pictures)
    assert set(re.findall(r'out / "(\w+)\.md"', script)) == {name for _, name in parts}


def test_every_paper_has_a_page_and_every_page_a_place_in_the_contents():
    papers = importlib.import_module("findings").PAPERS
    assert {page.stem for page in PAGES} == {"toy", *papers}
    contents = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in PAGES:
        assert f"gallery/{page.name}" in contents


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.stem)
def test_every_mark_is_known(page):
    marks = re.findall(r"<!-- (\w+)", page.read_text(encoding="utf-8"))
    assert set(marks) <= MARKS


@pytest.fixture
def tree(tmp_path):
    """A project with two scripts and a module."""
    figures = tmp_path / "docs" / "gallery" / "figures"
    figures.mkdir(parents=True)
    for name in ("one", "two"):
        (figures / f"{name}.py").write_text(SCRIPT)
    (figures / "common.py").write_text("shared = 1\n")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "module.py").write_text("x = 1\n")
    return tmp_path


def _runs(tree):
    path = tree / "build" / "gallery" / "runs"
    found = path.read_text().split()
    path.unlink()
    return found


def test_scripts_are_run_once(drawing, tree):
    folder = tree / "build" / "gallery"
    made = drawing.draw_all(tree)
    assert made == {f"{n}/a.svg": folder / n / "a.svg" for n in ("one", "two")}
    assert _runs(tree) == ["one", "two"]
    assert drawing.draw_all(tree) == made
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("docs/gallery/figures/one.py", ["one"]),
        ("docs/gallery/figures/common.py", ["one", "two"]),
        ("src/module.py", ["one", "two"]),
        ("papers/experiments/two/results.csv", ["two"]),
        ("papers/src/onefit_papers/published/one.csv", ["one"]),
    ],
)
def test_scripts_run_again_when_something_they_read_changes(drawing, tree, changed, expected):
    drawing.draw_all(tree)
    _runs(tree)
    path = tree / changed
    path.parent.mkdir(parents=True, exist_ok=True)
    old = path.read_text() if path.exists() else ""
    path.write_text(old + "# changed\n")
    drawing.draw_all(tree)
    assert _runs(tree) == expected


def test_results_taken_back_take_their_pictures_along(drawing, tree):
    results = tree / "papers" / "experiments" / "one" / "results.csv"
    results.parent.mkdir(parents=True)
    results.write_text("a\n")
    drawing.draw_all(tree)
    (tree / "build" / "gallery" / "one" / "of_the_results.svg").write_text("<svg/>")
    results.unlink()
    assert "one/of_the_results.svg" not in drawing.draw_all(tree)


def test_a_script_that_fails_stops_the_build_and_is_run_again(drawing, tree):
    script = tree / "docs" / "gallery" / "figures" / "one.py"
    script.write_text(SCRIPT + "raise SystemExit(3)\n")
    for _ in range(2):
        with pytest.raises(drawing.subprocess.CalledProcessError):
            drawing.draw_all(tree)
    assert _runs(tree) == ["one", "one"]
