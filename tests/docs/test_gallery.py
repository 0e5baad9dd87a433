"""Figures of the papers: the page shows what the scripts of papers/figures draw."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^:::\{figure\} figures/(\w+)/(\w+)\.svg\n\w", PAGE, re.MULTILINE)

pytestmark = pytest.mark.skipif(
    not (ROOT / "papers").is_dir(), reason="papers/ is a distribution of its own"
)


def test_every_figure_of_the_page_is_drawn_by_a_script():
    assert PAGE.count(":::{figure}") == len(SHOWN) > 5
    for folder, name in SHOWN:
        script = (ROOT / "papers" / "figures" / f"{folder}.py").read_text(encoding="utf-8")
        assert f'"{name}"' in script


def test_every_script_has_a_figure_on_the_page():
    scripts = {path.stem for path in (ROOT / "papers" / "figures").glob("*.py")} - {"common"}
    assert {folder for folder, _ in SHOWN} == scripts
