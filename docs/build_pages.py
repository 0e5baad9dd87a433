"""What MkDocs adds to the pages while building; ``mkdocs.yml`` lists this file under ``hooks``.

========================================  =======================================================
on a page                                 becomes
========================================  =======================================================
``<!-- results -->``                      a list of the committed benchmark tables
``<!-- headlines -->``                    the ratios that matter, from these tables
``<!-- coverage -->``                     how often intervals held the truth
``<!-- verdicts -->``                     how many claims of each paper held
``<!-- chart: NAME -->``                  a decision chart
``<!-- speed -->``                        the README's benchmark as bars
``<!-- table: NAME: a, b -->``            columns of a committed table
``<!-- claims: PAPER -->``                the claims of a paper, with verdicts and evidence
``<!-- part: NAME/FILE.md -->``           a piece of text that a script of the gallery wrote
``![...](NAME/FILE.svg)`` in the gallery  a picture that a script of the gallery drew, or a note
``<!-- reference: onefit.a onefit.b -->`` the reference of these modules, or of every public module
                                          of these packages, as far as they exist
========================================  =======================================================

So the pages stay true as results and modules come and go.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import charts
import drawing
import findings
import notebooks
from mkdocs.structure.files import File, InclusionLevel

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
SOURCE = ROOT / "src"
REFERENCE = re.compile(r"<!-- reference: ([\w. ]+) -->")
CHART = re.compile(r"<!-- chart: (\w+) -->")
CLAIMS = re.compile(r"<!-- claims: (\w+) -->")
TABLE = re.compile(r"<!-- table: (\w+): (.+?) -->")
PART = re.compile(r"<!-- part: ([\w/.]+) -->")
PICTURE = re.compile(r"!\[([^\]]*)\]\((\w+)/(\w+\.svg)\)")
ROLE = re.compile(r":(?:class|func|meth|attr|data|mod):(?=<code)")

#: what the scripts of the gallery made: ``NAME/file`` -> where it lies
made: dict[str, Path] = {}


def committed() -> list[Path]:
    """The result tables, quick runs left out."""
    return sorted(path for path in RESULTS.glob("*.md") if "_quick" not in path.stem)


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add result tables, the papers' pages of results, and the pictures of both."""
    pictures = [path for path in sorted(RESULTS.glob("*.png")) if "_quick" not in path.stem]
    added = {f"results/{path.name}": path for path in [*committed(), *pictures]}
    for page in sorted(findings.EXPERIMENTS.glob("*/results.md")):
        added[f"gallery/results/{page.parent.name}.md"] = page
    made.update(drawing.draw_all())
    added |= {f"gallery/{name}": path for name, path in made.items() if path.suffix == ".svg"}
    for name, path in added.items():
        place = {"abs_src_path": str(path), "inclusion": InclusionLevel.NOT_IN_NAV}
        files.append(File.generated(config, name, **place))
    for name, text in notebooks.notebooks(ROOT / "docs" / "gallery").items():
        files.append(File.generated(config, f"gallery/{name}", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in the marks that a page may carry."""
    markdown = markdown.replace("<!-- results -->", results())
    markdown = markdown.replace("<!-- headlines -->", findings.headlines())
    markdown = markdown.replace("<!-- verdicts -->", findings.verdicts())
    markdown = markdown.replace("<!-- coverage -->", findings.coverage())
    markdown = markdown.replace("<!-- speed -->", charts.speed())
    markdown = CHART.sub(lambda found: charts.chart(found[1]), markdown)
    markdown = CLAIMS.sub(lambda found: findings.claims(found[1]), markdown)
    markdown = TABLE.sub(lambda found: findings.columns(found[1], found[2].split(", ")), markdown)
    markdown = PART.sub(lambda found: made[found[1]].read_text(encoding="utf-8"), markdown)
    if page.file.src_uri.startswith("gallery/"):
        markdown = PICTURE.sub(picture, with_notebook(markdown, Path(page.file.src_uri).stem))
    return REFERENCE.sub(lambda found: reference(found[1].split()), markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Docstrings carry Sphinx roles, which mean nothing here."""
    return ROLE.sub("", html)


def with_notebook(markdown: str, stem: str) -> str:
    """A page that has code, with a link to its notebook under the title."""
    if "```python" not in markdown:
        return markdown
    title, _, rest = markdown.partition("\n")
    return f"{title}\n\n[Download this page as a notebook]({stem}.ipynb)\n{rest}"


def picture(found: re.Match[str]) -> str:
    """The picture with its caption, or a note where the results it shows are not committed."""
    if f"{found[2]}/{found[3]}" in made:
        caption = f"<figcaption>{found[1]}</figcaption>"
        return f'<figure markdown="span">\n{found[0]}\n{caption}\n</figure>'
    return f'!!! note "{found[1]}"\n    {findings.absent(found[2])}'


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
