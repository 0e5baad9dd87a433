"""Find wording that the project avoids: `make lint` runs this.

Every line of tools/language_patterns.txt is a regular expression, what to write instead, and
optionally the files in which it is allowed, separated by tabs. Case is ignored. The files of
CHECKED are read, line by line, and each hit is printed with its place.
"""

from __future__ import annotations

import re
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PATTERNS = ROOT / "tools" / "language_patterns.txt"
CHECKED = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/*.md", "examples/*.py"),
    *("src/onefit/**/*.py", "benchmarks/*.py", "benchmarks/*.md"),
    "papers/page/*.md",
)


class Pattern(NamedTuple):
    expression: re.Pattern[str]
    instead: str
    allowed: list[str]


def patterns(text: str) -> list[Pattern]:
    found = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            expression, instead, *allowed = line.split("\t")
            found.append(Pattern(re.compile(expression, re.IGNORECASE), instead, allowed))
    return found


def hits(name: str, text: str, avoided: list[Pattern]) -> list[str]:
    here = [one for one in avoided if not any(fnmatch(name, glob) for glob in one.allowed)]
    return [
        f"{name}:{number}: {found.group()!r}: write {one.instead}"
        for number, line in enumerate(text.splitlines(), 1)
        for one in here
        if (found := one.expression.search(line))
    ]


def main() -> int:
    avoided = patterns(PATTERNS.read_text(encoding="utf-8"))
    files = sorted({path for glob in CHECKED for path in ROOT.glob(glob)})
    found = [
        hit
        for path in files
        for hit in hits(
            path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"), avoided
        )
    ]
    print("\n".join(found) or f"{len(files)} files, no avoided wording")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
