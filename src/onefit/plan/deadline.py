"""A limit of time that is kept by the clock, whatever the plan expected.

Rates are fixed, so a plan may be off by some factor on a given machine. The factor is estimated
from what has run (``pace``), and used for the limit alone, never to choose between methods. The
limit is checked before each stage, between the kernels of a search, and between the steps of an
iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from onefit._format import duration
from onefit._validation import check_positive

__all__ = ["Deadline", "OutOfTime", "spread"]


class OutOfTime(Exception):  # noqa: N818 - a signal between stages, not an error of the user
    """What has begun will not end in time."""


class Deadline:
    """Seconds allowed, counted from ``begun``.

    Parameters
    ----------
    minutes : float
    begun : float, default=None
        Start, by ``time.monotonic``; now by default.

    Attributes
    ----------
    pace : float
        Seconds spent for each second that was planned, of the last stage observed.
    """

    def __init__(self, minutes: float, begun: float | None = None) -> None:
        check_positive("minutes", minutes, "the time that a search may take")
        self.allowed = 60.0 * minutes
        self.begun = monotonic() if begun is None else begun
        self.pace = 1.0
        #: seconds to leave for what must follow the present stage
        self.reserve = 0.0
        self._optional = self._whole = False
        self._started = self.begun
        #: a sentence about the kernels that the last search did not try
        self.cut = ""

    @property
    def left(self) -> float:
        """Seconds that are left, no fewer than none."""
        return max(0.0, self.begun + self.allowed - monotonic())

    def observe(self, planned: float, spent: float) -> None:
        """Set the pace from a stage, unless it took less than a tenth of a second."""
        if planned > 0.0 and spent > 0.1:
            self.pace = spent / planned

    def refuses(self, planned: float) -> str:
        """Why a stage with these planned seconds does not fit; empty if it does."""
        return self.lacks(self.pace * planned)

    def lacks(self, expected: float) -> str:
        """Why a stage that takes these seconds does not fit; empty if it does."""
        left = self.left
        if expected <= left - self.reserve:
            return ""
        spare = f"{duration(left)} are left" if left > 0.0 else "no time is left"
        return f"it would take {duration(expected)}, and {spare}"

    @contextmanager
    def over(self, search: Any, optional: bool = False, whole: bool = False) -> Iterator[None]:
        """Make a search check the deadline between kernels.

        With ``optional``, OutOfTime is raised once no time is left; with ``whole``, also if the
        first kernel took so long that the others cannot be done, and with both after any kernel.
        Otherwise the search ends with the kernels that are done.
        """
        self._optional, self._whole, self.cut = optional, whole, ""
        search._deadline, self._started = self, monotonic()
        try:
            yield
        finally:
            del search._deadline

    def check(self, *_: Any) -> None:
        """Raise OutOfTime if there is no time left: between the steps of an iteration."""
        if self._optional and self.left <= self.reserve:
            raise OutOfTime

    def stops(self, done: int, jobs: int) -> bool:
        """Whether a search must not begin another job, given how many are done."""
        self.check()
        each = (monotonic() - self._started) / done
        late = each * (jobs - done) > self.left - self.reserve
        if self._whole and late and (done == 1 or self._optional):
            raise OutOfTime(f"the first of {jobs} kernels took {duration(each)}")
        if each <= self.left - self.reserve:
            return False
        self.cut = f"{done} of {jobs} kernels were tried, spread over the grid: no time was left"
        return True


def spread(count: int) -> list[int]:
    """0 .. count - 1 in an order whose beginnings cover the whole evenly, the middle first."""
    bits = max(1, (count - 1).bit_length())
    turned = [int(format(i, f"0{bits}b")[::-1], 2) for i in range(1, 2**bits)]
    return [i for i in [*turned, 0] if i < count]
