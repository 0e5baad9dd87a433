"""How fast this machine is: seconds of each primitive, measured once and extrapolated by size.

A blocked matrix routine of size n spends n^3 operations at the speed of its inner product and n^2
around it, so its time is a n^3 + b n^2 and its speed

    rate(n) = peak n / (n + half),

half of the peak at n = ``half``. Two sizes determine both. The larger one is small enough to lie
in the cache; beyond it the tridiagonal reduction of an eigendecomposition waits for memory, so that
no routine is believed to become more than twice as fast as it was seen.

A product of a large matrix with a few columns is no small product: its long sides have work for all
threads, which on many cores wait for each other at the sizes of the square ones. It is timed by
itself, with columns few and not so few, and has a curve of its own in their number.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from onefit import linalg
from onefit.linalg.partial_eigh import PartialEigh
from onefit.plan import store

Array = NDArray[Any]
Clock = Callable[[], float]

__all__ = ["Cost", "Curve", "Rates", "calibrate"]

CURVES = ("gemm", "thin", "syrk", "potrf", "trtri", "torn")
#: sizes of the square matrices, and of the short sides of the blocks, that are timed
SIZES = (160, 480)
#: side of the matrix that is multiplied by few columns, and sides from which one counts as large
LONG, LARGE = 1200, 600
#: operations of a torn eigendecomposition, in n^3
DECOMPOSITION = 3.0
SHORT = (24, 120)
#: side of the array that is copied and gathered
SIDE = 600
#: the peak is at most this many times the speed at the larger size
EXTRAPOLATED = 2.0
#: several threads may be so many times slower than one, which small matrices do not keep busy
DISTURBED = 4.0
#: a primitive runs at least so often, and for so many seconds
REPEATS, LONG_ENOUGH = 3, 0.006


@dataclass(frozen=True)
class Cost:
    """Operations and seconds; costs add up, and repeat."""

    flops: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.flops + other.flops, self.seconds + other.seconds)

    def __rmul__(self, times: float) -> Cost:
        return Cost(times * self.flops, times * self.seconds)


@dataclass(frozen=True)
class Curve:
    """Operations a second as a function of size: peak n / (n + half)."""

    peak: float
    half: float

    @classmethod
    def through(cls, small: int, slow: float, large: int, fast: float) -> Curve:
        """The curve with speed ``slow`` at size ``small`` and ``fast`` at ``large``."""
        slope = (1.0 / slow - 1.0 / fast) / (1.0 / small - 1.0 / large)
        floor = 1.0 / (EXTRAPOLATED * fast)
        inverse = min(max(1.0 / fast - slope / large, floor), 1.0 / fast)
        return cls(1.0 / inverse, large * (1.0 / (fast * inverse) - 1.0))

    def cost(self, flops: float, size: float) -> Cost:
        """What so many operations cost in a routine of this size."""
        return Cost(flops, flops * (1.0 + self.half / max(size, 1.0)) / self.peak)


@dataclass(frozen=True)
class Rates:
    """Speeds of the primitives, and what one call of each costs.

    Parameters
    ----------
    gemm, thin, syrk, potrf, trtri, torn : Curve
        Operations a second; the size of ``syrk`` is the short side of its block, that of ``thin``
        the short side of a product whose others are long.
    stream : float
        Seconds an element of a pass over an array.
    gather : float
        Seconds an element of a copy by index arrays.
    call : float
        Seconds of a call on arrays too small to matter.
    """

    gemm: Curve
    thin: Curve
    syrk: Curve
    potrf: Curve
    trtri: Curve
    torn: Curve
    stream: float
    gather: float
    call: float

    def disturbed(self, alone: Rates) -> bool:
        """Whether a matrix routine is DISTURBED times slower than with one thread, or more."""
        size = float(SIZES[-1])
        pairs = [(getattr(self, name), getattr(alone, name)) for name in CURVES]
        return any(
            here.cost(1.0, size).seconds > DISTURBED * there.cost(1.0, size).seconds
            for here, there in pairs
        )

    def product(self, rows: float, inner: float, columns: float) -> Cost:
        """(rows x inner) times (inner x columns): reads the first factor at least once."""
        short, middle, _ = sorted((rows, inner, columns))
        curve = self.thin if middle >= LARGE else self.gemm
        work = curve.cost(2.0 * rows * inner * columns, max(short, 16.0))
        read = self.passes(rows * inner)
        return work if work.seconds > read.seconds else Cost(work.flops, read.seconds)

    def rank_update(self, side: float, inner: float) -> Cost:
        """One triangle of A A', A of side x inner."""
        return self.syrk.cost(side * side * inner, side)

    def cholesky(self, n: float) -> Cost:
        """A Cholesky factor."""
        return self.potrf.cost(n**3 / 3.0, n)

    def triangular_inverse(self, n: float) -> Cost:
        """The inverse of a triangular matrix."""
        return self.trtri.cost(n**3 / 3.0, n)

    def eigendecomposition(self, n: float) -> Cost:
        """A torn one: 4/3 n^3 to tridiagonal form, as much for its basis, the rest for blocks."""
        return self.torn.cost(DECOMPOSITION * n**3, n)

    def triangular_solves(self, n: float, columns: float) -> Cost:
        """Two triangular solves: each reads half a matrix."""
        return self.product(n, n, columns)

    def solve(self, n: float, columns: float) -> Cost:
        """Factor a small positive definite system and solve it."""
        return self.cholesky(n) + self.triangular_solves(n, columns) + self.calls(1)

    def passes(self, elements: float, times: float = 1.0) -> Cost:
        """Elementwise passes over an array (one operation an element)."""
        return Cost(times * elements, times * elements * self.stream)

    def gathers(self, elements: float) -> Cost:
        """A copy by index arrays, of no operations."""
        return Cost(0.0, elements * self.gather)

    def calls(self, count: float) -> Cost:
        """The price of so many calls themselves."""
        return Cost(0.0, count * self.call)


@cache
def calibrate(threads: int = 1, itemsize: int = 8) -> Rates:
    """The rates of this machine with so many BLAS threads: remembered, read from disk, or measured.

    Measuring takes a few tenths of a second, once per machine and number of threads. Threads that
    together come out far slower than one had to wait for the work of others: such rates are neither
    believed nor kept, and those of one thread stand in for them.
    """
    alone = calibrate(1, itemsize) if threads > 1 else None
    known = store.read(threads, itemsize)
    if known is not None:
        try:
            rates = _from_json(known)
        except (KeyError, TypeError):
            pass  # written by another version: measured again
        else:
            if alone is None or not rates.disturbed(alone):
                return rates
    with threadpool_limits(threads, user_api="blas"):
        rates = measure(np.dtype(f"f{itemsize}"), _clock(threads))
    if alone is not None and rates.disturbed(alone):
        return alone
    store.write(threads, itemsize, asdict(rates))
    return rates


def _from_json(known: dict[str, Any]) -> Rates:
    curves = {name: Curve(**known[name]) for name in CURVES}
    numbers = {name: float(known[name]) for name in ("stream", "gather", "call")}
    return Rates(**curves, **numbers)  # type: ignore[arg-type]


def _clock(threads: int) -> Clock:
    """The time of the thread itself, which the load of others does not touch, if it is only one."""
    fine = time.get_clock_info("thread_time").resolution < 1e-6
    return time.thread_time if threads == 1 and fine else time.perf_counter


def measure(dtype: Any, clock: Clock) -> Rates:
    """Time every primitive with the threads now in use."""

    def curve(
        routine: Callable[[Array], Any], arrays: dict[int, Array], flops: Callable[[int], float]
    ) -> Curve:
        (small, a), (large, b) = arrays.items()
        slow = flops(small) / _seconds(lambda: routine(a), clock)
        fast = flops(large) / _seconds(lambda: routine(b), clock)
        return Curve.through(small, slow, large, fast)

    matrices = {n: _positive(n, dtype) for n in SIZES}
    tall = {m: np.asfortranarray(matrices[SIZES[-1]][:m]) for m in SHORT}
    wide = np.ones((LONG, LONG), dtype=dtype, order="F")
    few = {m: np.ones((LONG, m), dtype=dtype, order="F") for m in SHORT}
    inner = SIZES[-1]
    array = np.ones((SIDE, SIDE), dtype=dtype)
    other = np.empty_like(array)
    order = np.random.default_rng(0).permutation(SIDE)
    tiny, ones = np.eye(2, dtype=dtype), np.ones((2, 1), dtype=dtype)
    return Rates(
        gemm=curve(lambda a: linalg.matmul(a, a), matrices, lambda n: 2.0 * n**3),
        thin=curve(lambda a: linalg.matmul(wide, a), few, lambda m: 2.0 * LONG**2 * m),
        syrk=curve(lambda a: linalg.gram(a, rows=True), tall, lambda m: m * m * inner),
        potrf=curve(linalg.cholesky, matrices, lambda n: n**3 / 3.0),
        trtri=curve(linalg.triangular_inverse, matrices, lambda n: n**3 / 3.0),
        torn=curve(
            lambda a: PartialEigh.decompose(linalg.fortran(a)),
            matrices,
            lambda n: DECOMPOSITION * n**3,
        ),
        stream=_seconds(lambda: np.multiply(array, 2.0, out=other), clock) / SIDE**2,
        gather=_seconds(lambda: array[np.ix_(order, order)], clock) / SIDE**2,
        call=_seconds(lambda: [linalg.solve_spd(tiny, ones) for _ in range(100)], clock) / 100,
    )


def _positive(n: int, dtype: Any) -> Array:
    """A well-conditioned symmetric positive definite matrix with spread eigenvalues."""
    A = np.random.default_rng(n).standard_normal((n, n)).astype(dtype)
    M = linalg.gram(np.asfortranarray(A)) / n
    M = np.asfortranarray(M + M.T)
    M[np.diag_indices_from(M)] += 1.0
    return M


def _seconds(action: Callable[[], Any], clock: Clock) -> float:
    """The best of a few runs, after one that wakes the threads."""
    action()
    spent: list[float] = []
    while len(spent) < REPEATS or sum(spent) < LONG_ENOUGH:
        start = clock()
        action()
        spent.append(max(clock() - start, 1e-9))
    return min(spent)
