"""What a selection found, as one JSON document; the printed table is made from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import onefit
from onefit.choose.recipe import Recipe
from onefit.cli.spreadsheet import write_csv
from onefit.fallback import Fallback
from onefit.report.criteria import Verdict, verdicts
from onefit.report.facts import Facts

__all__ = ["results_frame", "summarise"]

#: candidates in the ranking
SHOWN = 10


def summarise(
    recipe: Recipe, data: dict[str, Any], seconds: float, fallen: Fallback | None = None
) -> dict[str, Any]:
    """The winner, the ranking, the cost, and the reasons of all choices."""
    facts = Facts(recipe.search)
    return {
        "onefit": onefit.__version__,
        "data": data,
        "task": recipe.task,
        "reasons": recipe.reasons,
        "notes": recipe.notes,
        "candidates": len(facts.table["params"]),
        "splits": recipe.search.n_splits_,
        "metric": facts.scale.label,
        "best": _winner(facts),
        "ranking": [_candidate(facts, int(i)) for i in facts.order[:SHOWN]],
        "comparison": [_compared(facts, one) for one in verdicts(facts)],
        "seconds": seconds,
        "speed_up": _speed_up(facts),
        "fallback": None if fallen is None else _fallback(facts, fallen),
    }


def _fallback(facts: Facts, fallen: Fallback) -> dict[str, Any]:
    """Why features were taken, and how far they are from the whole kernel."""
    found: dict[str, Any] = {
        "why": fallen.why,
        "planned_seconds": fallen.planned,
        "allowed_seconds": fallen.allowed,
        "components": fallen.n_components,
        "told": fallen.told(facts.scale, facts.scale.label),
        "whole": None,
    }
    if fallen.whole is not None:
        one = fallen.whole
        found["whole"] = {
            "error": float(facts.scale(one.score)),
            "error_of_features": float(facts.scale(one.features)),
            "held_out_difference": one.apart,
            "method": one.method,
            "exact": one.exact,
            "seconds": one.seconds,
        }
    return found


def _winner(facts: Facts) -> dict[str, Any]:
    low, high = facts.interval
    return _candidate(facts, facts.best) | {
        "interval": [low, high],
        "level": 0.95,
        "errors_of_splits": facts.scale(facts.splits[facts.best]),
        **_beside(facts),
        "candidates_within_one_standard_error": int(facts.near.sum()),
        "edges": facts.edges,
    }


def _beside(facts: Facts) -> dict[str, Any]:
    """What the error is to be compared with."""
    found = facts.headline
    if found is None:
        return {"baseline": None, "warning": ""}
    return {
        "baseline": facts.baseline,
        "baseline_name": found.baseline_name,
        "r2": found.r2,
        "shares": found.shares,
        "optimism": found.optimism,
        "held_out_rows": found.rows,
        "warning": facts.verdict,
    }


def _candidate(facts: Facts, i: int) -> dict[str, Any]:
    table = facts.table
    found = {
        "rank": int(np.flatnonzero(facts.order == i)[0]) + 1,
        "params": dict(table["params"][i]),
        "error": float(facts.scale(facts.scores[i])),
        "standard_error": float(facts.errors[i]),
        "method": table["method"][i],
        "exact": bool(table["exact"][i]),
        "error_bound": float(table["error"][i]),
    }
    if "criterion" in table:
        found["criterion"] = float(table["criterion"][i])
    return found


def _compared(facts: Facts, one: Verdict) -> dict[str, Any]:
    return {
        "criterion": one.name,
        "params": dict(facts.table["params"][one.pick]),
        "value": float(one.values[one.pick]),
        "error": one.error,
        "standard_error": one.standard_error,
        "regret": one.regret,
        "regret_standard_error": one.regret_error,
    }


def _speed_up(facts: Facts) -> dict[str, Any] | None:
    if facts.speed_up is None:
        return None
    return {
        "estimated_ratio": facts.speed_up.ratio,
        "estimated_seconds": facts.speed_up.chosen,
        "estimated_refit_seconds": facts.speed_up.refit,
        "by": "cost model",
    }


def results_frame(search: Any) -> Any:
    """``cv_results_`` as a data frame of plain columns, without the column of dicts."""
    import pandas as pd

    columns = {}
    for name, values in search.cv_results_.items():
        if name != "params":
            plain = values.filled(np.nan) if _can_be_nan(values) else list(values)
            columns[name] = plain
    return pd.DataFrame(columns)


def _can_be_nan(values: Any) -> bool:
    return isinstance(values, np.ma.MaskedArray) and values.dtype.kind == "f"


def write_results(search: Any, path: Path, keep_formulas: bool = False) -> None:
    """Write ``cv_results_`` as Parquet, CSV or JSON, by the file's name."""
    frame = results_frame(search)
    kind = path.suffix.lower()
    if kind in (".parquet", ".pq"):
        frame.to_parquet(path, index=False)
    elif kind == ".csv":
        write_csv(frame, path, keep_formulas)
    else:
        frame.to_json(path, orient="records", double_precision=15)


def check_results_name(path: Path) -> None:
    """Refuse a name that says no known format, before any work is done."""
    if path.suffix.lower() not in (".parquet", ".pq", ".csv", ".json"):
        raise ValueError(f"--results {path.name} must end in .parquet, .csv or .json")
