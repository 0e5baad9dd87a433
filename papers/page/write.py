"""Write ``docs/papers.md`` from ``template.md`` and ``../experiments/*/results.csv``.

The story of the five papers is read in the repository as well as on the site, so its numbers stand
in the committed file. The template has a mark wherever one belongs:

========================================  =======================================================
``<!-- overview -->``                     the papers: claims that held, cells that agree
``<!-- cell: PAPER | TABLE | ... -->``    our number in a cell, and the paper's
``<!-- verdict: PAPER | CLAIM ... -->``   a verdict on the claim that starts so
``<!-- evidence: PAPER | CLAIM ... -->``  what it rests on
========================================  =======================================================

``make papers`` fills them in, and a test fails where the page and the results differ.
"""

from __future__ import annotations

import re
from pathlib import Path

import measured

HERE = Path(__file__).resolve().parent
TEMPLATE, PAGE = HERE / "template.md", HERE.parents[1] / "docs" / "papers.md"
MARK = re.compile(r"<!-- (cell|verdict|evidence): (.+?) -->")
FILL = {"cell": measured.cell, "verdict": measured.verdict, "evidence": measured.evidence}


def filled() -> str:
    """The page."""
    text = TEMPLATE.read_text(encoding="utf-8").replace("<!-- overview -->", measured.overview())
    return MARK.sub(lambda found: FILL[found[1]](*found[2].split(" | ")), text)


if __name__ == "__main__":
    PAGE.write_text(filled(), encoding="utf-8")
