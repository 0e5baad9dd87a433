"""The sentences of a report: its headline, and a paragraph on methods that a paper could cite."""

from __future__ import annotations

import numpy as np

from onefit import _version
from onefit.estimators import inside
from onefit.report.facts import Facts
from onefit.report.figures import settings

__all__ = ["headline", "methods"]

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
    """The choice, its error and how sure it is."""
    low, high = facts.interval
    edge = f" The {' and the '.join(facts.edges)}: better ones may lie beyond the grid."
    return (
        f"Chosen: {settings(facts.search.best_params_)}. Expected {facts.scale.label} "
        f"{facts.scale(facts.scores[facts.best]):.4g}, 95% interval {low:.4g} to {high:.4g}, from "
        f"{facts.search.n_splits_} splits; {int(facts.near.sum())} of {facts.scores.size} "
        f"candidates are within one standard error of the best.{edge if facts.edges else ''}"
    )


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
    rule = ", by the one-standard-error rule" if search.rule == "one_se" else ""
    machine = type(search.estimator).__name__
    splitter = repr(search.cv) if len(repr(search.cv)) < 100 else "given one by one"
    kind = "Clopper and Pearson's, from the number of rows held out" if facts.tested else (
        "Student's, from the scores of the splits"
    )  # fmt: skip
    return (
        f"{machine}s ({inside.loss_of(search.estimator)!r}) were compared by cross-validation over "
        f"{facts.scores.size} candidates and {search.n_splits_} splits ({splitter}) with onefit "
        f"{_version.__version__}. Held-out predictions were computed by {by}, {trust}. The kernel "
        f"was fixed on all rows. The candidate was chosen by {chosen}{rule} "
        f"({facts.scale.label}, {search.aggregate} over the splits) and fitted to all rows. The "
        f"interval is {kind}; the splits share rows and the candidate was chosen by these scores, "
        "so that it is approximate."
    )
