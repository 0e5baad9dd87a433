"""Fixed speeds of a few primitives for each backend; nothing is measured at run time.

The choice between methods depends on ratios of these speeds, which differ little between machines;
so the same data, grid and number of threads lead to the same method everywhere. Seconds are those
of one core of a server processor (``HOST_RATES``) or of one H200 (``CUDA_RATES``, for PyTorch and
CuPy, which call the same libraries): on another machine all of them are off by about the same
factor.
``benchmarks/rates.py`` prints this table and its own measurements.

A blocked matrix routine of size n spends n^3 operations at the speed of its inner product and n^2
around it, so its time is a n^3 + b n^2 and its speed peak n / (n + half): half of the peak at
n = ``half_speed_rows``. With t threads a routine is 1 / (1 - p + p / t) times as fast (Amdahl),
p its ``parallel_share``. Passes over arrays and calls use one thread.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["CUDA_RATES", "HOST_RATES", "Cost", "Rate", "Rates"]

#: operations of an eigendecomposition, in n^3
EIGH_FLOPS_PER_N3 = 3.0
#: a tridiagonal form, in eigendecompositions: 0.21 with 160 rows, 0.32 with 480, 0.39 with 1,000,
#: 0.45 with 1,500 and 0.55 with 2,400 (benchmarks/rates.py, one thread)
TRIDIAGONAL_PER_EIGENDECOMPOSITION = 0.4
#: columns below which a product takes no less time, until it is bound by reading the matrix
MIN_PRODUCT_COLUMNS = 16.0
#: seconds of a loss, its slopes and its line search, per row and column: on the host, always
LOSS_SECONDS_PER_NUMBER = 8e-9


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
class Rate:
    """Speed of a matrix routine as a function of its size."""

    flops_per_second: float
    half_speed_rows: float
    parallel_share: float = 0.0

    def cost(self, flops: float, size: float) -> Cost:
        """Cost of a number of operations in a routine of this size."""
        slower = 1.0 + self.half_speed_rows / max(size, 1.0)
        return Cost(flops, flops * slower / self.flops_per_second)

    def faster(self, threads: int, gain: float) -> Rate:
        """The rates of several threads, for numbers processed ``gain`` times as fast."""
        gain /= 1.0 - self.parallel_share + self.parallel_share / threads
        return replace(self, flops_per_second=gain * self.flops_per_second)


@dataclass(frozen=True)
class Rates:
    """Speeds of the primitives of a backend.

    Parameters
    ----------
    gemm, syrk, cholesky_factor, inverse, eigh : Rate
        Of a product (its size is the shortest side), a rank update (its size is that of the
        result), a Cholesky factor, a triangular inverse and an eigendecomposition.
    pass_seconds_per_number, gather_seconds_per_number, entry_seconds_per_number : float
        Of a pass over an array, a copy by index arrays, and an entry of a kernel matrix.
    call_seconds : float
        Of a call on arrays too small to matter.
    single_gain : float
        How many times as fast a matrix routine is in float32.
    on_device : bool
        Whether the arrays are those of a device, whose methods hold other matrices, and whose
        Newton steps have a factor for each column.
    """

    gemm: Rate
    syrk: Rate
    cholesky_factor: Rate
    inverse: Rate
    eigh: Rate
    pass_seconds_per_number: float
    gather_seconds_per_number: float
    entry_seconds_per_number: float
    call_seconds: float
    single_gain: float = 2.0
    on_device: bool = False

    def at(self, threads: int = 1, itemsize: int = 8) -> Rates:
        """The rates of a number of threads, and of numbers of ``itemsize`` bytes."""
        gain = self.single_gain if itemsize == 4 else 1.0
        names = ("gemm", "syrk", "cholesky_factor", "inverse", "eigh")
        curves = {name: getattr(self, name).faster(threads, gain) for name in names}
        return replace(
            self, pass_seconds_per_number=self.pass_seconds_per_number * itemsize / 8.0, **curves
        )

    def product(self, rows: float, inner: float, columns: float) -> Cost:
        """(rows x inner) times (inner x columns): reads the first factor at least once."""
        short = max(min(rows, inner, columns), MIN_PRODUCT_COLUMNS)
        work = self.gemm.cost(2.0 * rows * inner * columns, short)
        return Cost(work.flops, max(work.seconds, self.passes(rows * inner).seconds))

    def rank_update(self, side: float, inner: float) -> Cost:
        """One triangle of A A', A of side x inner."""
        return self.syrk.cost(side * side * inner, side)

    def cholesky(self, n: float) -> Cost:
        """A Cholesky factor."""
        return self.cholesky_factor.cost(n**3 / 3.0, n)

    def triangular_inverse(self, n: float) -> Cost:
        """The inverse of a triangular matrix."""
        return self.inverse.cost(n**3 / 3.0, n)

    def eigendecomposition(self, n: float) -> Cost:
        """4/3 n^3 to tridiagonal form, as much for its basis, the rest for blocks."""
        return self.eigh.cost(EIGH_FLOPS_PER_N3 * n**3, n)

    def inverse_spd(self, n: float) -> Cost:
        """The inverse of a positive definite matrix."""
        return self.cholesky(n) + 2 * self.triangular_inverse(n)

    def factors_per_eigendecomposition(self, n: float) -> float:
        """Number of Cholesky factors with inverse that cost as much as one eigendecomposition."""
        factor = self.cholesky(n) + self.triangular_inverse(n)
        return self.eigendecomposition(n).seconds / factor.seconds

    def tridiagonal(self, n: float) -> Cost:
        """A tridiagonal form without its basis."""
        return TRIDIAGONAL_PER_EIGENDECOMPOSITION * self.eigendecomposition(n)

    def triangular_solves(self, n: float, columns: float) -> Cost:
        """Two triangular solves: each reads half a matrix."""
        return self.product(n, n, columns)

    def solve(self, n: float, columns: float) -> Cost:
        """Factor a small positive definite system and solve it."""
        return self.cholesky(n) + self.triangular_solves(n, columns) + self.calls(1)

    def passes(self, numbers: float, times: float = 1.0) -> Cost:
        """Elementwise passes over an array (one operation a number)."""
        return Cost(times * numbers, times * numbers * self.pass_seconds_per_number)

    def gathers(self, numbers: float) -> Cost:
        """A copy by index arrays, of no operations."""
        return Cost(0.0, numbers * self.gather_seconds_per_number)

    def entries(self, numbers: float) -> Cost:
        """Entries of a kernel matrix, a few operations each."""
        return Cost(4.0 * numbers, numbers * self.entry_seconds_per_number)

    def losses(self, numbers: float) -> Cost:
        """Cost of the losses of a number of residuals, their slopes, and line searches on them."""
        return Cost(numbers, numbers * LOSS_SECONDS_PER_NUMBER)

    def calls(self, count: float) -> Cost:
        """Overhead of a number of calls."""
        return Cost(0.0, count * self.call_seconds)


#: one core, float64, OpenBLAS
HOST_RATES = Rates(
    gemm=Rate(66e9, 20.0, 0.9),
    syrk=Rate(60e9, 38.0, 0.9),
    cholesky_factor=Rate(55e9, 143.0, 0.8),
    inverse=Rate(58e9, 430.0, 0.8),
    eigh=Rate(46e9, 400.0, 0.55),
    pass_seconds_per_number=3e-10,
    gather_seconds_per_number=2.5e-9,
    entry_seconds_per_number=2e-9,
    call_seconds=1.1e-6,
)
#: one H200, float64
CUDA_RATES = Rates(
    gemm=Rate(60e12, 20.0),
    syrk=Rate(30e12, 500.0),
    cholesky_factor=Rate(60e12, 15000.0),
    inverse=Rate(40e12, 13000.0),
    eigh=Rate(5.4e12, 6000.0),
    pass_seconds_per_number=3e-12,
    gather_seconds_per_number=6e-12,
    entry_seconds_per_number=4e-11,
    call_seconds=4e-5,
    single_gain=1.0,
    on_device=True,
)
