"""Errors as one sentence and an exit code that means something."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from onefit.cli import INTERRUPTED, was_interrupted

__all__ = [
    "BAD_DATA",
    "INTERRUPTED",
    "OTHER_JOURNAL",
    "TOO_LARGE",
    "UNEXPECTED",
    "USAGE",
    "clear_errors",
]

UNEXPECTED, USAGE, BAD_DATA, TOO_LARGE, OTHER_JOURNAL = 1, 2, 3, 4, 5

#: largest number of characters of a sentence
MAX_CHARACTERS = 1500


@contextmanager
def clear_errors(traceback: bool = False) -> Iterator[list[str]]:
    """Turn an error into a sentence on stderr and an exit code; warnings become notes there.

    The list that it yields collects the notes. With ``traceback`` errors are raised as they are.
    """
    notes: list[str] = []

    def note(message: Warning | str, *_: Any, **__: Any) -> None:
        text = _one_line(message)
        if text not in notes:
            notes.append(text)
            print(f"note: {text}", file=sys.stderr, flush=True)

    with warnings.catch_warnings():
        warnings.showwarning = note
        try:
            yield notes
        except BaseException as error:
            if traceback:
                raise
            code = _code(error)
            print(f"onefit: {_sentence(error, code)}", file=sys.stderr)
            sys.exit(code)


def _code(error: BaseException) -> int:
    """The exit code of an error; error classes are imported only when there is an error."""
    if isinstance(error, KeyboardInterrupt) or was_interrupted():
        return INTERRUPTED  # and nothing is imported, which may have been what was interrupted
    from numpy.linalg import LinAlgError

    from onefit._validation import DataError
    from onefit.journal import JournalError

    kinds: tuple[tuple[type[BaseException], int], ...] = (
        (DataError, BAD_DATA),
        (MemoryError, TOO_LARGE),
        (FloatingPointError, BAD_DATA),
        (LinAlgError, BAD_DATA),
        (JournalError, OTHER_JOURNAL),
        (ValueError, USAGE),
        (OSError, USAGE),
    )
    return next((code for kind, code in kinds if isinstance(error, kind)), UNEXPECTED)


def _sentence(error: BaseException, code: int) -> str:
    if code == INTERRUPTED:
        notes = error.args if isinstance(error, KeyboardInterrupt) else ()
        return "interrupted" + "".join(map(str, notes))
    text = _one_line(error)
    if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("onefit"):
        return f"{error.name} is not installed; use: pip install 'onefit[cli,report]'"
    if code == UNEXPECTED:
        return f"{type(error).__name__}: {text} (unexpected; --traceback shows where)"
    return text


def _one_line(message: BaseException | str) -> str:
    """A message as a sentence of some lines at most, whatever value it quotes."""
    from onefit._frames import shortened

    return shortened(" ".join(str(message).split()), MAX_CHARACTERS)
