"""What MkDocs adds to the pages while building.

``<!-- results -->`` becomes a list of the committed result tables, ``<!-- reference: onefit.a
onefit.b -->`` the reference of these modules, or of every public module of these packages, as far
as they exist. So the pages stay true as benchmarks and modules come and go. ``mkdocs.yml`` lists
this file under ``hooks``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, InclusionLevel

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
SOURCE = ROOT / "src"
REFERENCE = re.compile(r"<!-- reference: ([\w. ]+) -->")
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
    """Fill in the marks that a page may carry."""
    markdown = markdown.replace("<!-- results -->", results())
    return REFERENCE.sub(lambda found: reference(found[1].split()), markdown)


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


def reference(names: list[str]) -> str:
    """Reference directives for modules, and for the public modules of packages."""
    modules = [module for name in names for module in modules_of(name)]
    return "\n\n".join(f"::: {module}" for module in modules) or "Not in this version."


def modules_of(name: str) -> list[str]:
    """The module itself, the public modules of a package, or nothing if it does not exist."""
    path = SOURCE.joinpath(*name.split("."))
    if path.is_dir():
        return [f"{name}.{file.stem}" for file in sorted(path.glob("[a-z]*.py"))]
    return [name] if path.with_suffix(".py").is_file() else []
