"""A selection on stdout: as tables and sentences, or as one JSON document.

Both come from the estimator and :class:`onefit.report.facts.Facts`. The JSON has scikit-learn's
scores: the larger the better.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from onefit._format import duration
from onefit._frames import shortened
from onefit._version import __version__
from onefit.cli.select import Selected
from onefit.report.criteria import verdicts
from onefit.report.facts import Facts
from onefit.report.words import MAX_RANKED, Listing, comparison, headline, ranking, spent
from onefit.search.pipeline_rows import as_kernel_search

__all__ = ["as_json", "document", "show"]


def show(found: Selected) -> None:
    """Print a selection on stdout."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)
    auto, facts, data = found.auto, Facts(as_kernel_search(found.auto.search_)), found.data
    console.print(
        f"[bold]{escape(data['file'])}[/]: {data['rows']:,} rows, {data['columns']:,} columns, "
        f"target {escape(shortened(data['target']))}"
    )
    for reason in auto.reasons_:
        console.print(f"  {escape(reason)}")
    in_sight = sys.stdout.isatty() and sys.stderr.isatty()  # notes were printed on stderr
    for note in () if in_sight else auto.notes_:
        console.print(f"  [bold]Note[/]: {escape(note)}")
    for table in (ranking(facts), comparison(facts)):
        if table is not None:
            console.print()
            console.print(_as_rich(table))
    console.print()
    for line in headline(facts, data["target"]):
        console.print(escape(line))
    console.print(f"Time: {duration(found.seconds)}. {escape(spent(facts))}")
    for what, path in found.files.items():
        console.print(f"{what} written to {escape(str(path))}")


def _as_rich(listing: Listing) -> Table:
    table = Table(title=escape(listing.title), title_justify="left")
    for name, numeric in zip(listing.head, listing.numeric, strict=True):
        table.add_column(escape(name), justify="right" if numeric else "left")
    for row in listing.rows:
        table.add_row(*map(escape, row))
    return table


def document(found: Selected) -> dict[str, Any]:
    """The winner, the ranking, the cost, and the reasons of all choices."""
    auto, facts = found.auto, Facts(as_kernel_search(found.auto.search_))
    return {
        "onefit": __version__,
        "data": found.data,
        "task": auto._task,
        "headline": headline(facts, found.data["target"]),
        "reasons": auto.reasons_,
        "notes": auto.notes_,
        "candidates": len(facts.table["params"]),
        "splits": auto.n_splits_,
        "scoring": auto.scoring_,
        "best": _winner(facts),
        "ranking": [_candidate(facts, int(i)) for i in facts.order[:MAX_RANKED]],
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
        "seconds": found.seconds,
        "fallback": None if auto.fallback_ is None else asdict(auto.fallback_),
        "files": found.files,
    }  # fmt: skip


def _winner(facts: Facts) -> dict[str, Any]:
    averaged = getattr(facts.search, "stack_", None)
    found = _candidate(facts, facts.best) | {
        "score": float(facts.search.best_score_),
        "stack": averaged and averaged.describe(len(facts.search.best_estimator_.members_)),
        "scores_of_splits": facts.splits[facts.best],
        "candidates_within_one_standard_error": int(facts.near.sum()),
        "edges": facts.edges,
    }
    headline = facts.headline
    if averaged is not None:  # what the ranking has is the best candidate alone
        error = np.nan if headline is None else headline.standard_error
        exact, bound = facts.proof
        found |= {"params": dict(averaged.best_params), "standard_error": error,
                  "method": facts.search.heldout_.method, "exact": exact,
                  "error_bound": bound, "scores_of_splits": None}  # fmt: skip
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


def as_json(value: Any) -> str:
    """JSON text, with null for NaN and infinite numbers."""
    return json.dumps(_plain(value), indent=2, allow_nan=False, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Plain Python values."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(one) for one in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    return value if value is None else str(value)
