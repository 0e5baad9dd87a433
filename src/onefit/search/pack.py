"""Outcomes of a machine as bytes, and several of them as one."""

from __future__ import annotations

import io
import json
from dataclasses import fields, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.search.grid import Machine
from onefit.search.workers import Outcome

Array = NDArray[Any]

__all__ = ["join", "pack", "unpack"]


def pack(outcome: Outcome) -> bytes:
    """An outcome as bytes: arrays under the names of their fields, everything else as JSON."""
    arrays: dict[str, Array] = {}
    plain: dict[str, Any] = {}
    for one in fields(Outcome):
        value = getattr(outcome, one.name)
        if isinstance(value, np.ndarray):
            arrays[one.name] = value
        elif isinstance(value, dict):
            plain[one.name] = list(value)
            arrays |= {f"{one.name}.{j}": v for j, v in enumerate(value.values())}
        else:
            plain[one.name] = value
    arrays["others"] = np.array(json.dumps(plain))
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def unpack(data: bytes) -> Outcome:
    """The outcome that was packed; nothing in it is unpickled."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        plain = json.loads(str(arrays["others"]))
        for name in ("scores", "pooled"):
            plain[name] = {key: arrays[f"{name}.{j}"] for j, key in enumerate(plain[name])}
        plain["indices"] = tuple(plain["indices"])
        own = {one.name for one in fields(Outcome)} - set(plain)
        return Outcome(**plain, **{name: arrays[name] for name in own if name in arrays})


def join(parts: list[Outcome], machine: Machine) -> Outcome:
    """Outcomes of a machine at some of its lams each, as one in the machine's order."""
    if len(parts) == 1:
        return parts[0]
    indices = list(chain.from_iterable(one.indices for one in parts))
    sizes = [len(one.indices) for one in parts]
    arrays: dict[str, Any] = {
        one.name: np.concatenate([getattr(part, one.name) for part in parts])
        for one in fields(Outcome)
        if isinstance(getattr(parts[0], one.name), np.ndarray)
    }
    joined = replace(
        parts[0],
        indices=tuple(indices),
        scores=_stacked([one.scores for one in parts], sizes),
        pooled=_stacked([one.pooled for one in parts], sizes),
        order=next((one.order for one in parts if one.order is not None), None),
        reasons=list(chain.from_iterable(one.reasons for one in parts)),
        fit_seconds=float(np.average([one.fit_seconds for one in parts], weights=sizes)),
        score_seconds=float(np.average([one.score_seconds for one in parts], weights=sizes)),
        **arrays,
    )
    return joined.take([indices.index(index) for index in machine.indices])


def _stacked(parts: list[dict[str, Array]], sizes: list[int]) -> dict[str, Array]:
    """Scores one after the other; a part whose lams all failed has none, which is NaN here."""
    shapes = {name: one.shape[1:] for part in parts for name, one in part.items()}
    return {
        name: np.concatenate(
            [
                part.get(name, np.full((size, *shape), np.nan))
                for part, size in zip(parts, sizes, strict=True)
            ]
        )
        for name, shape in shapes.items()
    }
