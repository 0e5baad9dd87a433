"""A line for every finished unit of work, so that an interrupted run goes on where it stopped.

A unit is a flat dictionary of everything that its result depends on; its line holds the unit and
the rows measured for it, and names the commit that measured them. A unit whose line stands in the
file is not measured again; change a setting and its units are other units. A line that was cut off
by the interruption is forgotten.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

__all__ = ["Journal", "Row", "Unit"]

Unit = dict[str, Any]
Row = dict[str, Any]


class Journal:
    """The finished units of one paper.

    Parameters
    ----------
    path : path
        A file of JSON lines, made when the first unit is finished.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, list[Row]] = {}
        self.commits: dict[str, str] = {}
        if not path.exists():
            return
        kept = []
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            self.rows[_key(entry["unit"])] = entry["rows"]
            self.commits[_key(entry["unit"])] = entry.get("commit", "unknown")
            kept.append(line)
        path.write_text("".join(line + "\n" for line in kept), encoding="utf-8")

    def pending(self, units: list[Unit]) -> list[Unit]:
        """The units that are not finished."""
        return [unit for unit in units if _key(unit) not in self.rows]

    def add(self, unit: Unit, rows: list[Row], commit: str = "unknown") -> None:
        """Remember a finished unit, at once and on disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"unit": unit, "rows": rows, "commit": commit}) + "\n")
        self.rows[_key(unit)] = rows
        self.commits[_key(unit)] = commit

    def of(self, units: list[Unit]) -> list[Row]:
        """The rows of these units, as far as they are finished."""
        return [row for unit in units for row in self.rows.get(_key(unit), [])]

    def made_by(self, units: list[Unit]) -> dict[str, int]:
        """The commits that measured these units, and how many each."""
        keys = (_key(unit) for unit in units)
        return dict(Counter(self.commits[key] for key in keys if key in self.commits))


def _key(unit: Unit) -> str:
    return json.dumps(unit, sort_keys=True)
