"""Configuration of Sphinx for the documentation: ``make docs`` builds it into ``site/``.

Committed results are copied beside the pages that link to them, and :mod:`findings` replaces marks
in the pages by numbers of these files. An undocumented public name stops the build.
"""

import importlib
import inspect
import re
import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(DOCS), str(ROOT / "src")]

import findings  # noqa: E402

import onefit  # noqa: E402

shutil.rmtree(DOCS / "api", ignore_errors=True)  # stubs of names that are gone stop a build

project = "onefit"
release = version = onefit.__version__
html_title = f"onefit {release}"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
]
#: roles in docstrings that classes inherit from scikit-learn
suppress_warnings = ["ref.term", "ref.ref"]
nitpicky = True
#: types of other packages, in docstrings and bases
nitpick_ignore_regex = [("py:.*", r"(numpy|sklearn|time)\..*")]
exclude_patterns = ["examples/*.ipynb", "figures/*/*.md", "_templates"]
templates_path = ["_templates"]
default_role = "code"
smartquotes = False
toc_object_entries_show_parents = "hide"

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

mathjax_path = "mathjax/tex-chtml.js"

#: methods that scikit-learn adds for the routing of metadata
ROUTED = ("fit", "predict", "score", "split")
ROUTING = ("get_metadata_routing", *(f"set_{name}_request" for name in ROUTED))
autodoc_default_options = {"member-order": "bysource", "exclude-members": ",".join(ROUTING)}
autodoc_typehints = "none"
autosummary_ignore_module_all = False
autosummary_imported_members = True
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "examples",
    "download_all_examples": False,
    "within_subsection_order": "FileNameSortKey",
    "show_memory": False,
    "write_computation_times": False,
}

html_theme = "furo"
pygments_dark_style = "monokai"
html_static_path = ["_static"]
html_css_files = ["onefit.css"]
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False


def copy_results() -> None:
    """Copy the committed results into the folder ``results`` of the documentation."""
    pages = [path for path in findings.RESULTS.glob("*.*") if path.suffix in (".md", ".png")]
    copies = {DOCS / "results" / path.name: path for path in pages if "_quick" not in path.stem}
    for path in (ROOT / "papers" / "experiments").glob("*/results.md"):
        copies[DOCS / "results" / "papers" / f"{path.parent.name}.md"] = path
    for target, path in copies.items():
        target.parent.mkdir(exist_ok=True, parents=True)
        if not target.exists() or target.read_bytes() != path.read_bytes():
            shutil.copy(path, target)


def undocumented(module) -> set[str]:
    """Public classes, functions and methods of a module that no docstring describes.

    A method is described by any class of the module: losses follow the protocol ``Loss``.
    """
    public = {name: getattr(module, name) for name in module.__all__}
    described, missing = set(), set()
    for name, value in public.items():
        found = [(name, value)] if inspect.isclass(value) or inspect.isroutine(value) else []
        for own in vars(value) if inspect.isclass(value) else ():
            if inspect.isfunction(member := getattr(value, own)) and not own.startswith("_"):
                found.append((own, member))
        described |= {one for one, member in found if inspect.getdoc(member)}
        missing |= {one for one, member in found if not inspect.getdoc(member)}
    return {f"{module.__name__}: {name}" for name in missing - described}


def check_reference(_app) -> None:
    """Stop the build where a module of the API reference has an undocumented public name."""
    page = (DOCS / "api.md").read_text(encoding="utf-8").partition("## Derivations")[0]
    modules = re.findall(r"^   (onefit[\w.]*)$", page, re.M)
    if missing := set().union(*(undocumented(importlib.import_module(m)) for m in modules)):
        raise ValueError(f"public names without a docstring: {', '.join(sorted(missing))}")


def plain_formulas(_app, what, _name, _object, _options, lines: list[str]) -> None:
    """Escape |a_i| and w_ in the plain formulas of docstrings, which have a meaning in Sphinx."""
    if what == "module":  # a section of a page cannot begin in the middle of a directive
        text = re.sub(r"^(\w[\w ]*)\n-{3,}$", r".. rubric:: \1\n", "\n".join(lines), flags=re.M)
        lines[:] = text.split("\n")
    literal = -1  # indentation of the paragraph that announced a literal block
    for i, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if literal >= 0 and (not line.strip() or indent > literal):
            continue
        literal = indent if line.rstrip().endswith("::") else -1
        if not line.lstrip().startswith((":", "..", ">>>")):
            parts = re.split(r"(`+[^`]*`+_?)", line)
            parts[::2] = [re.sub(r"\||(?<=\w)_(?!\w)", r"\\\g<0>", part) for part in parts[::2]]
            lines[i] = "".join(parts)


def setup(app) -> None:
    """Copy the results and check the reference once, fill in each page when it is read."""
    app.connect("builder-inited", lambda _: copy_results())
    app.connect("builder-inited", check_reference)
    app.connect("source-read", lambda _app, _page, source: findings.fill(source))
    app.connect("autodoc-process-docstring", plain_formulas, priority=600)  # after numpydoc
