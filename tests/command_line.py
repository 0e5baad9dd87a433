"""The command line in this process."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest.mock import patch

from onefit.cli.app import run


class Done(NamedTuple):
    """What a command left; ``output`` has both streams as they came."""

    exit_code: int
    stdout: str
    stderr: str
    output: str


class Stream(io.StringIO):
    """A stream whose texts are also written to another one."""

    def __init__(self, both: io.StringIO) -> None:
        super().__init__()
        self.both = both

    def write(self, text: str) -> int:
        self.both.write(text)
        return super().write(text)


def onefit(*words: object, stdin: bytes = b"") -> Done:
    """Run a command."""
    both, code = io.StringIO(), 0
    out, err = Stream(both), Stream(both)
    given = io.TextIOWrapper(io.BytesIO(stdin))
    with redirect_stdout(out), redirect_stderr(err), patch("sys.stdin", given):
        try:
            run([str(one) for one in words])
        except SystemExit as end:
            code = int(end.code or 0)
    return Done(code, out.getvalue(), err.getvalue(), both.getvalue())
