"""Pages of the gallery as notebooks: text and code in turn, ready to be run.

Only what a reader can run goes in: printed output and the marks that the build fills in stay out.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^```(?P<head>[^\n]*)\n(?P<body>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
#: marks of the build, and pictures that it draws
MADE = re.compile(r"<!--.*?-->|^!\[[^\]]*\]\([^)]*\)$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|#)([^)]+)\)")


def notebook(markdown: str) -> dict[str, Any]:
    """The cells of a page, in the format that Jupyter reads (nbformat 4.5)."""
    cells: list[dict[str, Any]] = []
    place = 0
    for fence in FENCE.finditer(markdown):
        _add(cells, "markdown", markdown[place : fence.start()])
        if fence["head"].strip() == "python":
            _add(cells, "code", fence["body"])
        elif not fence["head"].strip().endswith('output"'):
            _add(cells, "markdown", fence[0])
        place = fence.end()
    _add(cells, "markdown", markdown[place:])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def _add(cells: list[dict[str, Any]], kind: str, text: str) -> None:
    if kind == "markdown":
        text = LINK.sub("]", MADE.sub("", text))  # a notebook has no pages beside it
        text = re.sub(r"\[([^\]]+)\](?!\()", r"\1", text)
    text = text.strip("\n")
    if not text.strip():
        return
    cell: dict[str, Any] = {
        "cell_type": kind,
        "id": f"cell-{len(cells)}",
        "metadata": {},
        "source": text.splitlines(keepends=True),
    }
    cells.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))


def notebooks(folder: Path) -> dict[str, str]:
    """File name and content for every page of a folder that has code."""
    found = {}
    for page in sorted(folder.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if "```python" in text:
            found[f"{page.stem}.ipynb"] = json.dumps(notebook(text), indent=1, ensure_ascii=False)
    return found
