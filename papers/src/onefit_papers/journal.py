"""A line for every finished unit of work, so that an interrupted run resumes where it stopped.

A unit is a flat dictionary of everything that its result depends on; its line holds the unit and
the rows measured for it, and names the commit, computer and software that measured them: a run may
resume on another computer, and its page names all of them. A unit whose line is in the file is not
measured again; a changed setting makes another unit. A line that an interruption has cut off is
ignored.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Journal", "Origin", "Row", "Unit"]

Unit = dict[str, Any]
Row = dict[str, Any]


class Origin(NamedTuple):
    """What measured a unit."""

    commit: str
    machine: str
    software: str


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
        self.origins: dict[str, Origin] = {}
        if not path.exists():
            return
        kept = []
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            self.rows[_key(entry["unit"])] = entry["rows"]
            self.origins[_key(entry["unit"])] = Origin(
                *(entry.get(name, "unknown") for name in Origin._fields)
            )
            kept.append(line)
        path.write_text("".join(line + "\n" for line in kept), encoding="utf-8")

    def pending(self, units: list[Unit]) -> list[Unit]:
        """The units that are not finished."""
        return [unit for unit in units if _key(unit) not in self.rows]

    def add(self, unit: Unit, rows: list[Row], origin: Origin) -> None:
        """Remember a finished unit, at once and on disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"unit": unit, "rows": rows, **origin._asdict()}) + "\n")
        self.rows[_key(unit)] = rows
        self.origins[_key(unit)] = origin

    def of(self, units: list[Unit]) -> list[Row]:
        """The rows of these units, as far as they are finished."""
        return [row for unit in units for row in self.rows.get(_key(unit), [])]

    def origins_of(self, units: list[Unit]) -> list[Origin]:
        """What measured each of these units, as far as they are finished."""
        keys = (_key(unit) for unit in units)
        return [self.origins[key] for key in keys if key in self.origins]


def _key(unit: Unit) -> str:
    return json.dumps(unit, sort_keys=True)
