"""The sections of a report: title, sentence, figure, table; plain data for a template."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.report import figures
from onefit.report.criteria import verdicts
from onefit.report.facts import Facts, Family
from onefit.report.section import Section
from onefit.report.truth import compared, influential

Array = NDArray[Any]

__all__ = ["sections"]

#: classes whose shares are listed, and the most candidates
SHOWN, LISTED = 12, 1000
#: columns in the section on relevance
COLUMNS = 30


def sections(facts: Facts, y: Array | None, target: str, rows: Any = None) -> list[Section]:
    """All sections that the search and the targets allow.

    ``rows`` is the table of features as the reader knows it; its index names the rows.
    """
    parts = [*_expected(facts), _ranking(facts)]
    names = range(len(y)) if rows is None and y is not None else getattr(rows, "index", ())
    for place, family in enumerate(facts.families):
        scored = np.isfinite(facts.scores[family.index[family.index >= 0]]).any()
        if scored and min(family.index.shape) > 1:
            parts.append(_surface(facts, family, place))
    parts.append(_curve(facts, facts.families[0]))
    held = getattr(facts.search, "heldout_", None)
    if y is not None and held is not None:
        parts += compared(facts, y, held, target, names)
        parts += influential(facts, y, held.predictions, names, rows)
    parts += _relevance(facts)
    parts += _criteria(facts)
    parts.append(_plan(facts))
    return parts


def _expected(facts: Facts) -> list[Section]:
    """The numbers of the headline, in a table."""
    found = facts.headline
    if found is None:
        return []
    low, high = facts.interval
    flattered = abs(facts.scale(found.score) - facts.scale(found.score - found.optimism))
    rows = [
        ["the choice, all held-out rows", f"{facts.expected:.4g}"],
        ["95% interval for new rows", f"{low:.4g} to {high:.4g}"],
        [found.baseline_name or "baseline", f"{facts.baseline:.4g}"],
        ["flattered by the choice among candidates by about", f"{flattered:.2g}"],
        ["mean over the splits", f"{facts.scale(found.mean_of_splits):.4g}"],
    ]
    if found.r2 is not None and facts.scale.label != "R²":
        rows.append(["R², all held-out rows", f"{found.r2:.4g}"])
    rows += [[f"share of {name}", f"{share:.1%}"] for name, share in found.shares.items()][:SHOWN]
    text = (
        "What the choice is worth on new rows like these. The interval allows for the choice among "
        "many candidates and for training parts that share rows."
    )
    if found.reason:
        text += f" There is no baseline: {found.reason}."
    title, head = f"Expected {facts.scale.label}", ["number", facts.scale.label]
    return [Section("expected", title, text, head=head, rows=rows)]


def _ranking(facts: Facts) -> Section:
    """Scores stand first, so that a narrow screen shows them."""
    names = [name.removeprefix("param_") for name in facts.table if name.startswith("param_")]
    criterion = ["criterion"] if "criterion" in facts.table else []
    rows = []
    for place, i in enumerate(facts.order[:LISTED], start=1):
        params = facts.table["params"][i]
        row = [str(place), f"{facts.scale(facts.scores[i]):.4g}", f"{facts.errors[i]:.2g}"]
        row += [f"{facts.table[name][i]:.4g}" for name in criterion]
        row += [figures.number(params.get(name, "–")) for name in names]
        row += [str(facts.table["method"][i]), "yes" if facts.table["exact"][i] else "no"]
        rows.append(row)
    head = ["rank", facts.scale.label, "±", *criterion, *names, "method", "exact"]
    count = len(facts.table["params"])
    text = "All candidates, the best first" if count <= LISTED else f"The best {LISTED} of {count}"
    text += "; ± is one standard error."
    return Section("ranking", "Candidates", text, head=head, rows=rows)


def _surface(facts: Facts, family: Family, place: int) -> Section:
    cells = family.index[family.index >= 0]
    low, high = sorted(facts.scale(np.array([np.nanmin(facts.scores[cells]),
                                             np.nanmax(facts.scores[cells])])))  # fmt: skip
    near, exact = int(facts.near[cells].sum()), int(facts.table["exact"][cells].sum())
    alt = (
        f"Heat map of the {facts.scale.label} over {len(family.gammas)} values of gamma and "
        f"{len(family.lams)} values of lam: from {low:.4g} to {high:.4g}; {near} cells are within "
        f"one standard error of the best candidate, {exact} of {cells.size} are exact."
    )
    return Section(
        f"surface-{place}",
        f"Cross-validation surface: {family.name}",
        "Circles: within one standard error of the best. Crosses: held-out predictions that are "
        "not certified exact. Star: the choice.",
        figures.surface(facts, family),
        alt,
    )


def _curve(facts: Facts, family: Family) -> Section:
    how = facts.search.aggregate
    how = "All held-out rows together" if how == "pooled" else f"{how.capitalize()} over the splits"
    alt = (
        f"Curve of the {facts.scale.label} against lam with error bars of one standard error, for "
        f"{family.name} at the chosen gamma; the chosen lam is marked."
    )
    return Section(
        "curve",
        f"Cross-validation curve: {family.name}",
        f"{how} at the chosen kernel; bars are one standard error.",
        figures.curve(facts, family),
        alt,
    )


def _relevance(facts: Facts) -> list[Section]:
    """The columns that matter, where :func:`onefit.relevance.relevance` was asked."""
    found = getattr(facts.search, "relevance_", None)
    if found is None:
        return []
    top = found.order[:COLUMNS]
    text = (
        "gamma of a column times its spread, as a share of the sum; lines show the range when the "
        "search is repeated without each part of the rows. Correlated columns share theirs in "
        "any proportion, and a column that acts in a straight line needs little."
    )
    first = found.names[top[0]]
    alt = f"Bars of the relevance of {top.size} columns; {first} has the most."
    rows = [
        [found.names[f], f"{found.values[f]:.1%}", f"{found.low[f]:.1%} to {found.high[f]:.1%}"]
        for f in top
    ]
    head = ["column", "relevance", "range"]
    figure = figures.relevance(found, top)
    return [Section("relevance", "Relevance of the columns", text, figure, alt, head, rows)]


def _criteria(facts: Facts) -> list[Section]:
    """What each criterion takes, and its curve; nothing where the score is the only one."""
    found = verdicts(facts)
    if not found:
        return []
    same = [one.name for one in found[1:] if one.pick == found[0].pick]
    text = (
        f"{len(same)} of {len(found) - 1} criteria take the candidate with the best "
        "cross-validated score. Regret: what a criterion's candidate loses against that one in "
        f"{facts.scale.label}, with its standard error over the splits (paired). The score judges "
        "itself here, so that the regret of cv is 0 by definition and no merit."
    )
    spread = ", ".join(f"{one.name} {one.error:.4g}" for one in found)
    alt = f"Cross-validated {facts.scale.label} of the candidate taken by each criterion: {spread}."
    rows = [
        [
            one.name,
            figures.settings(facts.table["params"][one.pick]),
            f"{one.values[one.pick]:.4g}",
            f"{one.error:.4g} ± {one.standard_error:.2g}",
            f"{one.regret:.2g} ± {one.regret_error:.2g}",
        ]
        for one in found
    ]
    head = ["criterion", "takes", "its value", facts.scale.label, "regret"]
    drawn = figures.picks(facts, found)
    title = "Comparison of criteria"
    curves = Section(
        "criteria-curves",
        "Curves of the criteria",
        "Each criterion over lam on the kernel that it takes; star: its candidate. Units differ.",
        figures.panels(facts, found),
        f"Curves of {', '.join(one.name for one in found)} against lam, one panel each; the "
        "candidate that each takes is marked.",
    )
    return [Section("criteria", title, text, drawn, alt, head, rows), curves]


def _plan(facts: Facts) -> Section:
    counts = Counter(
        (type(choice.kernel).__name__, choice.method, choice.lams, choice.estimate)
        for choice in facts.search.plan_
    )
    rows = []
    for (kernel, method, lams, cost), count in counts.items():
        work = ["–", "–"] if cost is None else [f"{cost.flops:.1e}", f"{cost.nbytes / 2**20:.1f}"]
        rows.append([kernel, str(count), str(lams), method, *work])
    spent = facts.table["mean_fit_time"] + facts.table["mean_score_time"]
    seconds = float(spent.sum()) * facts.search.n_splits_
    text = f"Held-out predictions and scores took {seconds:.2f} s of work"
    if hasattr(facts.search, "refit_time_"):
        text += f", the final fit {facts.search.refit_time_:.2f} s"
    if facts.speed_up is not None:
        text += (
            f". Refitting every split is estimated at {facts.speed_up.ratio:.1f} times the cost of "
            "the methods taken (cost model, not measured)"
        )
    head = ["kernel", "number", "lams each", "method", "flops, all kernels", "MiB"]
    return Section("plan", "Plan and timings", text + ".", head=head, rows=rows)
