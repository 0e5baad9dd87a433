"""Find wording that the project avoids: `make lint` runs this.

Every line of tools/language_patterns.txt is a regular expression, what to write instead, and
optionally the files in which it is allowed, separated by tabs. Case is ignored. The files of
CHECKED are read, line by line, and each hit is printed with its place. Of tests only comments and
strings are read, not names.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PATTERNS = ROOT / "tools" / "language_patterns.txt"
CHECKED = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/*.md", "examples/*.py"),
    *("src/onefit/**/*.py", "tests/**/*.py", "benchmarks/*.py", "benchmarks/*.md"),
    *("papers/**/*.py", "papers/*.md", "papers/page/*.md", "docs/*.py", "tools/*.py"),
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


def prose(text: str) -> str:
    """The comments and strings of a Python file, each on its line."""
    lines = [""] * (text.count("\n") + 2)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (tokenize.NAME, tokenize.OP, tokenize.NUMBER):
            for number, line in enumerate(token.string.splitlines(), token.start[0]):
                lines[number - 1] += " " + re.sub(r"\{[^{}]*\}", "{}", line)
    return "\n".join(lines)


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
    found = []
    for path in files:
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        is_test = name.startswith(("tests/", "papers/tests/")) and path.suffix == ".py"
        found += hits(name, prose(text) if is_test else text, avoided)
    print("\n".join(found) or f"{len(files)} files, no avoided wording")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
