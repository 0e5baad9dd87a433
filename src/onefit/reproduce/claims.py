"""Claims and verdicts: what a paper says about its tables, and whether it was so here.

A claim is one sentence that a paper draws from a table or figure. Its verdict is one of "held",
"not held" and "not testable", and comes with the numbers that it rests on.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HELD", "NOT_HELD", "NOT_TESTABLE", "Verdict", "judge", "untestable"]

HELD, NOT_HELD, NOT_TESTABLE = "held", "not held", "not testable"


@dataclass(frozen=True)
class Verdict:
    """A claim, where the paper makes it, and how it fared."""

    where: str
    claim: str
    verdict: str
    evidence: str


def judge(where: str, claim: str, holds: bool | None, evidence: str) -> Verdict:
    """A verdict from a truth value; None, where too little was measured, is "not testable"."""
    verdict = NOT_TESTABLE if holds is None else HELD if holds else NOT_HELD
    return Verdict(where, claim, verdict, evidence)


def untestable(where: str, claim: str, reason: str) -> Verdict:
    """A claim that nothing measured here bears on."""
    return Verdict(where, claim, NOT_TESTABLE, reason)
