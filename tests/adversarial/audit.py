"""An audit of what the held-out methods claim: every certificate against the true solution.

A method says of each fold whether it is exact and how far off its values are at most. A claim is
false if the true values, known from :mod:`adversarial.reference`, say otherwise; silence is not a
claim. Run as

    PYTHONPATH=tests python -m adversarial.audit --problems 5000 --first-seed 0 --jobs 2

``--csv benchmarks/results/adversarial.csv`` writes the counts of docs/exactness.md.
"""

from __future__ import annotations

import argparse
import csv
import re
import warnings
from collections import defaultdict
from dataclasses import dataclass, field, fields, replace

import numpy as np
from joblib import Parallel, delayed

from adversarial.generator import hostile
from adversarial.reference import reference
from onefit.heldout import METHODS, Influence
from onefit.heldout.series import check_order
from onefit.losses import MissingDerivativeError

__all__ = [
    "Failure",
    "Tally",
    "applicable",
    "audit",
    "audit_case",
    "audit_seeds",
    "table",
    "truths",
]

#: a fold is called exact if its values are within this part of the targets' spread
EXACT = 1e-6
#: values within this part of the spread should have been certified
GOOD = 1e-8
#: words of documented refusals
_REFUSAL = re.compile("indefinite|singular|finite|raise lam|positive semi-definite")


@dataclass(frozen=True)
class Failure:
    """One false claim: which, where, by how much."""

    seed: int
    method: str
    fold: int
    claim: str
    gap: float
    error: float
    scale: float
    about: str = ""

    def __str__(self):
        return (
            f"seed {self.seed}, {self.method}, fold {self.fold}: {self.claim}, off by "
            f"{self.gap:.3g}, bound {self.error:.3g}, scale {self.scale:.3g}; {self.about}"
        )


@dataclass
class Tally:
    """Counts over the folds of some problems."""

    problems: int = 0
    folds: int = 0
    decided: int = 0
    certified: int = 0
    false: int = 0
    good: int = 0
    good_certified: int = 0
    baseless: int = 0
    refused: int = 0
    raw_errors: int = 0
    failures: list[Failure] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __add__(self, other):
        return Tally(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


_ALL = [name for name in METHODS if name != "influence"] + [f"influence {k}" for k in (1, 2, 3)]


def _make(name):
    return Influence(order=int(name[-1])) if name.startswith("influence") else METHODS[name]()


def applicable(name, loss):
    """Whether the method takes the loss."""
    if METHODS[name.split()[0]].quadratic_only and not loss.quadratic:
        return False
    if name.startswith("influence"):
        try:
            check_order(int(name[-1]), loss)
        except (ValueError, MissingDerivativeError):
            return False
    return True


def symmetric(case):
    """The case as an estimator hands it on: with (K + K') / 2."""
    K = case.problem.K.matrix
    mean = (0.5 * (K.astype(float) + K.T.astype(float))).astype(K.dtype)
    return replace(case, problem=replace(case.problem, K=mean))


def spread(y, s):
    """The size against which errors are held: the targets' weighted deviation, 1 for labels."""
    y, s = y[s > 0].astype(float), s[s > 0].astype(float)
    if (np.abs(y) == 1.0).all():
        return 1.0
    if (y == y[0]).all():
        return abs(float(y[0])) or 1.0
    mean = np.average(y, weights=s)
    return float(np.sqrt(np.average((y - mean) ** 2, weights=s)))


def truths(case):
    """The true values of every fold."""
    return [reference(case.problem, case.lam, train, test) for train, test in case.folds]


def predict(case, name):
    """The method's answer at the last lambda of the path, as a search would ask for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        return _make(name).prepare(case.problem, case.folds).predict(case.path)[-1]


def audit(case, name, true=None):
    """Count one method's claims on one problem."""
    case = symmetric(case)
    true = truths(case) if true is None else true
    tally = Tally(problems=1, folds=len(case.folds), decided=sum(one.decided for one in true))
    try:
        held = predict(case, name)
    except Exception as error:
        if _documented(error):
            return replace(tally, refused=1)
        told = f"seed {case.seed}, {name}: {type(error).__name__}: {str(error)[:150]}"
        return replace(tally, raw_errors=1, raw=[told])
    if not np.isfinite(held.values).all():
        return replace(tally, raw_errors=1, raw=[f"seed {case.seed}, {name}: values not finite"])
    scale = spread(case.problem.Y[:, 0], case.problem.s)
    for k, truth in enumerate(true):
        _judge(tally, case, held, k, truth, scale, name)
    return tally


def _documented(error):
    if isinstance(error, (np.linalg.LinAlgError, FloatingPointError)):
        return True
    return isinstance(error, ValueError) and bool(_REFUSAL.search(str(error)))


def _judge(tally, case, held, k, truth, scale, name):
    """Weigh the claims on one fold."""
    values = held.by_fold[k].astype(float)
    exact, error = bool(held.exact[k]), float(held.error[k])
    if not truth.decided:
        tally.baseless += exact
        if exact:
            told = f"seed {case.seed}, {name}, fold {k}: certified, but undecided; {_about(case)}"
            tally.notes.append(told)
        return
    gap = float(np.abs(values - truth.values).max())
    gap = gap if np.isfinite(gap) else np.inf
    tally.certified += exact
    claims = []
    if exact and gap > EXACT * scale + truth.error:
        claims.append("called exact")
    if np.isfinite(error) and gap > error * (1.0 + 1e-9) + truth.error:
        claims.append("bound too small")
    if claims:
        tally.false += 1
        told = " and ".join(claims)
        about = _about(case)
        tally.failures.append(Failure(case.seed, name, k, told, gap, error, scale, about))
    # a truncated series says nothing of its error (NaN), and need not
    if case.problem.Y.dtype == np.float64 and gap <= GOOD * scale and not np.isnan(error):
        tally.good += 1
        tally.good_certified += exact


def _about(case):
    problem = case.problem
    words = [repr(problem.loss), problem.K.dtype.name, problem.scaling, case.kind]
    words += [f"n={problem.n}", f"lam={case.lam:.2g}"]
    return ", ".join([*words, "b" if problem.fit_intercept else "no b"])


def audit_case(case, names=None):
    """Tallies of all methods, by method and precision; the truth is found once."""
    case = symmetric(case)
    true = truths(case)
    kind = case.problem.K.dtype.name
    chosen = [name for name in names or _ALL if applicable(name, case.problem.loss)]
    return {(name, kind): audit(case, name, true) for name in chosen}


def audit_seeds(seeds, names=None, jobs=1):
    """Tallies over the problems of many seeds."""
    run = delayed(lambda seed: audit_case(hostile(seed), names))
    return gather(Parallel(n_jobs=jobs)(run(seed) for seed in seeds))


def gather(parts):
    """The sum of tallies."""
    result = defaultdict(Tally)
    for part in parts:
        for key, tally in part.items():
            result[key] = result[key] + tally
    return dict(sorted(result.items(), key=lambda item: (_ALL.index(item[0][0]), item[0][1])))


def table(tallies):
    """A Markdown table, one line a method and precision."""
    head = (
        "| method | dtype | problems | folds decided | certified | false | good | good certified "
        "| certified undecided | refused | raw errors |"
    )
    lines = [head, "|---|---|" + "---:|" * 9]
    for (name, kind), t in tallies.items():
        share = f"{t.good_certified} ({100.0 * t.good_certified / t.good:.1f}%)" if t.good else "-"
        lines.append(
            f"| {name} | {kind} | {t.problems} | {t.decided} of {t.folds} | {t.certified} | "
            f"{t.false} | {t.good} | {share} | {t.baseless} | {t.refused} | {t.raw_errors} |"
        )
    return "\n".join(lines)


def save(tallies, path):
    """Write the counts as a CSV file, one line per method and precision."""
    with open(path, "w", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(
            ["method", "dtype", "decided", "certified", "false", "good", "good certified"]
        )
        for (name, kind), t in tallies.items():
            share = f"{t.good_certified / t.good:.3f}" if t.good else ""
            lines.writerow([name, kind, t.decided, t.certified, t.false, t.good, share])


def report(tallies, most=40):
    """The table, and the first of the failures."""
    failures = [f for tally in tallies.values() for f in tally.failures]
    raw = [told for tally in tallies.values() for told in tally.raw]
    notes = [told for tally in tallies.values() for told in tally.notes]
    lines = [table(tallies), "", f"{len(failures)} false, {len(raw)} raw errors"]
    lines += [f"- {failure}" for failure in failures[:most]]
    return "\n".join([*lines, *(f"- {told}" for told in [*raw[:most], *notes[:most]])])


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=300)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--methods", nargs="*", choices=_ALL)
    parser.add_argument("--most", type=int, default=40, help="failures to list")
    parser.add_argument("--csv", help="file for the counts")
    given = parser.parse_args(arguments)
    seeds = range(given.first_seed, given.first_seed + given.problems)
    tallies = audit_seeds(seeds, given.methods, given.jobs)
    print(report(tallies, given.most))
    if given.csv:
        save(tallies, given.csv)


if __name__ == "__main__":
    main()
