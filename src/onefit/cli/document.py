"""What a selection found, as one JSON document, in scikit-learn's scores: the larger the better."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from onefit._version import __version__
from onefit.report.criteria import verdicts
from onefit.report.facts import Facts
from onefit.report.words import headline

__all__ = ["RANKED", "as_json", "selection_document"]

#: candidates in the ranking
RANKED = 10


def selection_document(auto: Any, data: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The winner, the ranking, the cost, and the reasons of all choices."""
    facts = Facts(auto.search_)
    return {
        "onefit": __version__,
        "data": data,
        "task": auto._task,
        "headline": headline(facts, data["target"]),
        "reasons": auto.reasons_,
        "notes": auto.notes_,
        "candidates": len(facts.table["params"]),
        "splits": auto.n_splits_,
        "scoring": auto.scoring_,
        "best": _winner(facts),
        "ranking": [_candidate(facts, int(i)) for i in facts.order[:RANKED]],
        "comparison": [
            {
                "criterion": one.name,
                "params": dict(facts.table["params"][one.pick]),
                "value": float(one.values[one.pick]),
                "score": float(facts.scores[one.pick]),
                "regret": one.regret,
                "regret_standard_error": one.regret_error,
            }
            for one in verdicts(facts)
        ],
        "seconds": seconds,
        "speed_up": None if facts.speed_up is None else {
            "estimated_ratio": facts.speed_up.ratio,
            "estimated_seconds": facts.speed_up.chosen,
            "estimated_refit_seconds": facts.speed_up.refit,
        },
        "fallback": None if auto.fallback_ is None else asdict(auto.fallback_),
    }  # fmt: skip


def _winner(facts: Facts) -> dict[str, Any]:
    found = _candidate(facts, facts.best) | {
        "scores_of_splits": facts.splits[facts.best],
        "candidates_within_one_standard_error": int(facts.near.sum()),
        "edges": facts.edges,
    }
    headline = facts.headline
    if headline is None:
        return found
    return found | {
        "interval": list(headline.interval),
        "level": headline.level,
        "baseline": headline.baseline,
        "baseline_name": headline.baseline_name,
        "r2": headline.r2,
        "shares": headline.shares,
        "optimism": headline.optimism,
        "held_out_rows": headline.rows,
        "warning": facts.verdict,
    }


def _candidate(facts: Facts, i: int) -> dict[str, Any]:
    table = facts.table
    found = {
        "rank": int(np.flatnonzero(facts.order == i)[0]) + 1,
        "params": dict(table["params"][i]),
        "score": float(facts.scores[i]),
        "standard_error": float(facts.errors[i]),
        "method": table["method"][i],
        "exact": bool(table["exact"][i]),
        "error_bound": float(table["error"][i]),
    }
    if "criterion" in table:
        found["criterion"] = float(table["criterion"][i])
    return found


def as_json(value: Any) -> Any:
    """Plain Python values; numbers that JSON has no word for become null."""
    if isinstance(value, dict):
        return {str(key): as_json(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [as_json(one) for one in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    return value if value is None else str(value)
