"""CSV that a spreadsheet can open: no text in it is taken for a formula.

A label such as ``=HYPERLINK(...)`` comes from the data, whoever wrote it; a spreadsheet that opens
the file would run it. Such texts get an apostrophe before them, as OWASP advises [1]_: spreadsheets
take what follows as text. Numbers stay as they are, those among the labels too.

References
----------
.. [1] https://owasp.org/www-community/attacks/CSV_Injection
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

__all__ = ["write_csv"]

#: how a formula may begin
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def write_csv(frame: Any, path: Path | None = None) -> str | None:
    """Write a data frame to a file, or return it as text if no file is given."""
    texts = [name for name, column in frame.items() if column.dtype.kind not in "fiub"]
    # a carriage return alone ends a line for spreadsheets, but would not be quoted
    broken = any("\r" in str(one) for name in texts for one in (name, *frame[name]))
    quoting = csv.QUOTE_NONNUMERIC if broken else csv.QUOTE_MINIMAL
    text: str | None = _without_formulas(frame, texts).to_csv(path, index=False, quoting=quoting)
    return text


def _without_formulas(frame: Any, texts: list[Any]) -> Any:
    found = frame.copy()
    for name in texts:
        found[name] = frame[name].map(_as_text)
    found.columns = [_as_text(name) for name in frame.columns]
    return found


def _as_text(value: Any) -> Any:
    """A value that is no formula."""
    if isinstance(value, str) and value.startswith(FORMULA) and not NUMBER.fullmatch(value):
        return f"'{value}"
    return value
