"""How large the package is in some checkouts, and how many of its names mean two things.

``python tools/source_numbers.py DIR ...`` prints a row for each package of a checkout: modules,
lines, classes, constants (upper-case names of modules), and public names that occur in several
modules. ``git archive COMMIT | tar x -C DIR`` makes a checkout of another commit.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("", "search", "heldout", "scoring", "criteria")


def constants(node: ast.AST) -> Iterator[str]:
    """Upper-case names that a statement sets."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    for target in targets if isinstance(node, (ast.Assign, ast.AnnAssign)) else []:
        for name in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(name, ast.Name) and name.id.isupper():
                yield name.id


def numbers(root: Path) -> list[int]:
    classes, named = [], []
    paths = sorted(root.rglob("*.py"))
    for path in paths:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        classes += [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        named += [name for node in tree.body for name in constants(node)]
    lines = sum(path.read_text(encoding="utf-8").count("\n") for path in paths)
    twice = [
        sum(times > 1 and name[0] != "_" for name, times in Counter(names).items())
        for names in (classes, named)
    ]
    return [len(paths), lines, len(classes), len(named), *twice]


def main() -> None:
    print("checkout, package: modules, lines, classes, constants, classes twice, constants twice")
    for checkout in sys.argv[1:] or ["."]:
        for package in PACKAGES:
            print(checkout, package or "all", *numbers(Path(checkout, "src/onefit", package)))


if __name__ == "__main__":
    main()
