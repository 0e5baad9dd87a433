"""What MkDocs adds to the pages while building: committed result tables, and the criteria.

The pages name no benchmark and no criterion module by hand, so that they stay true as these come
and go. ``mkdocs.yml`` lists this file under ``hooks``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, InclusionLevel

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
CRITERIA = ROOT / "src" / "onefit" / "criteria"
ROLE = re.compile(r":(?:class|func|meth|attr|data|mod):(?=<code)")


def committed() -> list[Path]:
    """The result tables, quick runs left out."""
    return sorted(path for path in RESULTS.glob("*.md") if "_quick" not in path.stem)


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add the result tables and their pictures to the site, under ``results/``."""
    pictures = [path for path in sorted(RESULTS.glob("*.png")) if "_quick" not in path.stem]
    for path in [*committed(), *pictures]:
        files.append(
            File.generated(
                config,
                f"results/{path.name}",
                abs_src_path=str(path),
                inclusion=InclusionLevel.NOT_IN_NAV,
            )
        )
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill in the two marks that pages may carry."""
    return markdown.replace("<!-- results -->", results()).replace("<!-- criteria -->", criteria())


def on_page_content(html: str, **_: Any) -> str:
    """Docstrings carry Sphinx roles, which mean nothing here."""
    return ROLE.sub("", html)


def results() -> str:
    """A list of links to the result tables."""
    if not committed():
        return "No table is committed at this version."
    lines = []
    for path in committed():
        title = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        lines.append(f"- [{title}](results/{path.name})")
    return "\n".join(lines)


def criteria() -> str:
    """Reference directives for every public module of ``onefit.criteria``."""
    modules = sorted(path.stem for path in CRITERIA.glob("[a-z]*.py"))
    options = "    options:\n      show_root_toc_entry: true\n      heading_level: 2\n"
    return "\n\n".join(f"::: onefit.criteria.{name}\n{options}" for name in modules)
