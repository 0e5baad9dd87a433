"""The sentences of a report: its headline, and a paragraph on methods that a paper could cite."""

from __future__ import annotations

import numpy as np

from onefit import _version
from onefit.report.facts import Facts
from onefit.report.figures import settings
from onefit.scoring.careful import is_one_standard_error
from onefit.uncertainty.headline import Headline

__all__ = ["beside", "headline", "methods", "shares"]

#: classes whose shares are listed
SHOWN = 6

EXACT = (
    "which equal those of refitting every split up to rounding (largest bound on the error of a "
    "held-out value: {bound:.1g})"
)
APPROXIMATE = (
    "which are certified to equal those of refitting every split for {share:.0%} of the "
    "candidates; the others are approximations"
)
METHODS = {
    "block": "closed-form leave-out formulas on a Cholesky factor of the full sample's matrix "
    "(An, Liu and Venkatesh 2007)",
    "eigen": "closed-form leave-out formulas on an eigendecomposition of the full sample's "
    "matrix (Tanaka and Imai 2019)",
    "exact": "leave-out Newton steps from the fit to the full sample, repaired until exact",
    "limit": "one leave-out Newton step from the fit to the full sample",
    "influence": "a series of influence functions at the fit to the full sample "
    "(Debruyne, Hubert and Suykens, JMLR 2008)",
    "refit": "refitting every split",
}


def headline(facts: Facts) -> str:
    """The choice, its error beside the baseline's, and how sure it is."""
    low, high = facts.interval
    edge = f" The {' and the '.join(facts.edges)}: better ones may lie beyond the grid."
    return (
        f"Chosen: {settings(facts.search.best_params_)}. Expected {facts.scale.label} "
        f"{facts.expected:.4g}, 95% interval {low:.4g} to {high:.4g}, from "
        f"{facts.search.n_splits_} splits; {beside(facts)}{int(facts.near.sum())} of "
        f"{facts.scores.size} candidates are within one standard error of the best."
        f"{edge if facts.edges else ''}"
    )


def beside(facts: Facts) -> str:
    """The baseline, and R^2 or the shares of the classes."""
    found = facts.headline
    if found is None:
        return ""
    parts = [] if np.isnan(found.baseline) else [f"{found.baseline_name}: {facts.baseline:.4g}"]
    if found.r2 is not None and facts.scale.label != "R²":
        parts.append(f"R² {found.r2:.3f}")
    if found.shares:
        parts.append(f"shares of the classes {shares(found)}")
    return f"{'; '.join(parts)}; " if parts else ""


def shares(found: Headline) -> str:
    """The shares of the classes in words, the largest first."""
    ranked = sorted(found.shares.items(), key=lambda one: -one[1])
    text = ", ".join(f"{name} ({share:.1%})" for name, share in ranked[:SHOWN])
    return text if len(ranked) <= SHOWN else f"{text} and {len(ranked) - SHOWN} more"


def methods(facts: Facts) -> str:
    """How the choice was made, in the words of a methods section."""
    search, table = facts.search, facts.table
    used = list(dict.fromkeys(table["method"]))
    by = " and ".join(METHODS.get(name, f"the method {name}") for name in used)
    exact = np.asarray(table["exact"])
    trust = EXACT.format(bound=np.nanmax(table["error"])) if exact.all() else (
        APPROXIMATE.format(share=exact.mean())
    )  # fmt: skip
    name = getattr(search.criterion, "name", search.criterion)
    chosen = "the cross-validated score" if name == "cv" else f"the criterion {name}"
    rule = ", by the one-standard-error rule" if is_one_standard_error(search.refit) else ""
    machine = type(search.estimator).__name__
    how = "pooled" if search.aggregate == "pooled" else f"{search.aggregate} over the splits"
    splitter = repr(search.cv) if len(repr(search.cv)) < 100 else "given one by one"
    found = facts.headline
    interval = (
        "The interval is Student's, from the scores of the splits, and somewhat too hopeful."
        if found is None
        else f"The expected {facts.scale.label} is that of all {found.rows} held-out rows. "
        "Its interval is made for rows like these: the optimism of choosing among the candidates "
        f"({abs(found.optimism):.2g}, by bootstrap; Tsamardinos et al. 2018) is taken off its "
        "middle, and the variance enlarged for the overlap of training parts (Nadeau and Bengio "
        f"2003). The baseline is {found.baseline_name or 'not known'}."
    )
    return (
        f"{machine}s ({search.estimator.spec().loss!r}) were compared by cross-validation over "
        f"{facts.scores.size} candidates and {search.n_splits_} splits ({splitter}) with onefit "
        f"{_version.__version__}. Held-out predictions were computed by {by}, {trust}. The kernel "
        f"was fixed on all rows. The candidate was chosen by {chosen}{rule} "
        f"({facts.scale.label}, {how}) and fitted to all rows. {interval}"
    )
