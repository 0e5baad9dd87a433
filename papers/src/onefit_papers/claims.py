"""Claims and verdicts: what a paper says about its tables, and whether it was so here.

A claim is one sentence that a paper draws from a table or figure. Its verdict is one of "held",
"not held" and "not testable", comes with the numbers that it rests on, and says whether these were
measured in the paper's own setting or in one that had to be chosen here because the paper leaves
it open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = [
    "HELD",
    "MUCH",
    "NOT_HELD",
    "NOT_TESTABLE",
    "PAPERS_SETTING",
    "Verdict",
    "judge",
    "resting_on",
    "untestable",
]

HELD, NOT_HELD, NOT_TESTABLE = "held", "not held", "not testable"

#: everything that the claim depends on is stated in the paper
PAPERS_SETTING = "the paper's setting"

#: "much less time" is at most this part of it: half
MUCH = 2.0


@dataclass(frozen=True)
class Verdict:
    """A claim, where the paper makes it, how it fared, and in whose setting."""

    where: str
    claim: str
    verdict: str
    evidence: str
    rests_on: str = PAPERS_SETTING


def judge(
    where: str, claim: str, holds: bool | None, evidence: str, rests_on: str = PAPERS_SETTING
) -> Verdict:
    """A verdict from a truth value; None, where too little was measured, is "not testable"."""
    verdict = NOT_TESTABLE if holds is None else HELD if holds else NOT_HELD
    return Verdict(where, claim, verdict, evidence, rests_on)


def untestable(where: str, claim: str, reason: str) -> Verdict:
    """A claim that nothing measured here bears on."""
    return Verdict(where, claim, NOT_TESTABLE, reason, "-")


def resting_on(verdict: Verdict, what: str) -> Verdict:
    """The same verdict, resting on a choice of ours."""
    return replace(verdict, rests_on=f"ours: {what}")
