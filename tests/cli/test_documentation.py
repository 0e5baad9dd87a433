"""Commands of the documentation print what its pages show, and its tables are complete."""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import re
import shlex
from pathlib import Path

import pytest

from onefit.cli import errors

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "command_line.md").read_text("utf-8")
QUICKSTART = (DOCS / "quickstart_cli.md").read_text("utf-8")
FENCE = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.fixture
def run(onefit, monkeypatch):
    """Do in this process what a shell would: calls of onefit and python -c, | and >."""

    def call(words: list[str], given: str, quiet: bool) -> str:
        if words[0] == "onefit":
            done = onefit(*words[1:])
            assert done.exit_code == 0 or not quiet, done.stderr
            return done.stdout if quiet else done.output
        assert words[:2] == ["python", "-c"]
        monkeypatch.setattr("sys.stdin", io.StringIO(given))
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(words[2], {})
        return printed.getvalue()

    def shell(line: str) -> str:
        line, _, file = line.partition(" > ")
        commands, printed = line.split(" | "), ""
        for command in commands:
            last = command is commands[-1] and not file
            printed = call(shlex.split(command), printed, quiet=not last)
        if file:
            Path(file).write_text(printed)
        return printed

    return shell


def test_commands_print_what_the_page_says(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed, compared = "", 0
    for kind, body in FENCE.findall(QUICKSTART + PAGE):
        if kind == "text":
            assert doctest.OutputChecker().check_output(body, printed, SAME), printed
            compared += 1
        elif not body.startswith("pip "):
            printed = [run(line) for line in body.splitlines()][-1]
    assert compared > 6
    rankings = [json.loads(Path(name).read_text())["ranking"]
                for name in ("first.json", "second.json")]  # fmt: skip
    assert rankings[0] == rankings[1]
    for name in ("report.html", "model.skops"):
        assert Path(name).stat().st_size > 1000


def keys(value, path: str = "") -> set[str]:
    """Paths of everything in a document, lists as []; objects of parameters and files are whole."""
    if isinstance(value, dict) and not path.endswith(("params", "files")):
        found = {path} if path else set()
        return found.union(*(keys(one, f"{path}.{key}".lstrip(".")) for key, one in value.items()))
    if isinstance(value, list) and value and isinstance(value[0], dict) and path != "ranking":
        return {path} | (keys(value[0], f"{path}[]") - {f"{path}[]"})
    return {path}


def test_the_schema_is_complete(onefit, csv, tmp_path):
    report = ("--report", tmp_path / "r.html")
    select = ("select", csv, "--target", "price", "--kernels", "linear", *report)
    found = keys(json.loads(onefit(*select, "--format", "json").stdout)) - {"best", "data"}
    section = PAGE.partition("\n## JSON\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([^`]+)`", row)} == found


def test_the_exit_codes_are_complete():
    section = PAGE.partition("\n## Exit codes\n")[2].partition("\n## ")[0]
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)}
    names = ("UNEXPECTED", "USAGE", "BAD_DATA", "TOO_LARGE", "OTHER_JOURNAL", "INTERRUPTED")
    assert told == {0, *(getattr(errors, name) for name in names)}
