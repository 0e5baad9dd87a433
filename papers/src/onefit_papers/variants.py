"""Readings of a paper: the main one, and variants beside it that differ in a setting or two.

A paper leaves settings open. The main reading decides them once; a variant in the settings
(``[[full.variants]]``) has a name, sets, and the settings in which it differs. A variant is
measured on the same splits and shown beside the main reading, never instead of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onefit_papers.journal import Unit
from onefit_papers.results import MAIN

__all__ = ["is_main", "units_of"]

Settings = dict[str, Any]


def units_of(config: Settings, keys: Sequence[str]) -> list[Unit]:
    """One unit for each reading, set and replicate, with the settings named by ``keys``.

    A variant of the name "main" is a further part of the main reading (another kernel, say).
    """
    found: list[Unit] = []
    for reading in [{"name": MAIN}, *config.get("variants", [])]:
        own = {key: reading.get(key, config.get(key)) for key in keys}
        for name in reading.get("sets", config["sets"]):
            found += [
                {"variant": reading["name"], "set": name, "replicate": i} | own
                for i in range(config["replicates"])
            ]
    return found


def is_main(unit: Unit) -> bool:
    """Whether a unit belongs to the main reading."""
    return bool(unit.get("variant", MAIN) == MAIN)
