"""The fixed rates of the cost model beside what this machine measures; for developers alone.

Prints, for every primitive of ``onefit.linalg.rates``, the speed of the table and the one measured
at a few sizes with one thread (by processor time) and with two (by the wall); with
``--device cuda``, those of a device. Nothing is written down: a table that is off by the same
factor throughout is right, since choices depend on ratios; one that is not is corrected by hand.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import _harness as harness
import numpy as np
from threadpoolctl import threadpool_limits

SIZES = (160, 480, 1500, 3000)
DEVICE_SIZES = (1000, 5000, 10_000)
ROUNDS = 3


def best(action: Callable[[], Any], clock: Callable[[], float], wait: Callable[[], Any]) -> float:
    """Seconds of the best of a few runs, after one that wakes threads and libraries."""
    spent = []
    for turn in range(ROUNDS + 1):
        wait()
        start = clock()
        action()
        wait()
        if turn:
            spent.append(clock() - start)
    return min(spent)


def host_actions(n: int) -> dict[str, tuple[Callable[[], Any], str, tuple[float, ...]]]:
    """What is timed: an action, the primitive that stands for it, and its arguments."""
    from onefit import linalg
    from onefit.kernels import Gaussian
    from onefit.linalg.partial_eigh import PartialEigh
    from onefit.linalg.reduced import Tridiagonal

    random = np.random.default_rng(0)
    A = random.standard_normal((n, n))
    M = np.asfortranarray(A @ A.T / n + np.eye(n))
    X, out, m = random.normal(size=(n, 8)), np.empty_like(M), max(24, n // 10)
    order, thin = random.permutation(n), np.asfortranarray(M[:m])
    tiny, one = np.eye(2), np.ones((2, 1))
    return {
        "gemm": (lambda: linalg.matmul(M, M), "product", (n, n, n)),
        f"gemm, {m} columns": (
            lambda: linalg.matmul(M, np.asfortranarray(M[:, :m])), "product", (n, n, m),
        ),
        f"syrk, {m} rows": (lambda: linalg.gram(thin, rows=True), "rank_update", (m, n)),
        "cholesky": (lambda: linalg.cholesky(M), "cholesky", (n,)),
        "inverse": (lambda: linalg.triangular_inverse(M), "triangular_inverse", (n,)),
        "eigh": (
            lambda: PartialEigh.decompose(linalg.fortran(M)), "eigendecomposition", (n,),
        ),
        "tridiagonal": (lambda: Tridiagonal(linalg.fortran(M)), "tridiagonal", (n,)),
        "pass": (lambda: np.multiply(M, 2.0, out=out), "passes", (n * n,)),
        "gather": (lambda: M[np.ix_(order, order)], "gathers", (n * n,)),
        "entry": (lambda: Gaussian(0.1)(X), "entries", (n * n,)),
        "100 calls": (lambda: [linalg.solve_spd(tiny, one) for _ in range(100)], "calls", (100,)),
    }  # fmt: skip


def device_actions(n: int, device: Any) -> dict[str, tuple[Callable[[], Any], str, tuple]]:
    """The same on a device."""
    from onefit.kernels import Gaussian

    random, kernel = np.random.default_rng(0), Gaussian(0.1)
    X = device.asarray(random.normal(size=(n, 8)))
    M = device.add_diagonal(kernel(X), 1.0)
    factor = device.cholesky(device.copy(M))
    narrow = device.asarray(random.normal(size=(n, 4)))
    one = np.ones((1, 1))
    return {
        "gemm": (lambda: device.matmul(M, M), "product", (n, n, n)),
        "gemm, 4 columns": (lambda: device.matmul(M, narrow), "product", (n, n, 4)),
        "cholesky": (lambda: device.cholesky(device.copy(M)), "cholesky", (n,)),
        "inverse": (
            lambda: device.triangular_inverse(device.copy(factor)), "triangular_inverse", (n,),
        ),
        "eigh": (lambda: device.eigh(M), "eigendecomposition", (n,)),
        "entry": (lambda: kernel(X), "entries", (n * n,)),
        "call": (lambda: device.host(device.asarray(one) + 1.0), "calls", (1,)),
    }  # fmt: skip


def rows_of(actions: dict, rates: Any, n: int, threads: int, clock: Any, wait: Any) -> list[dict]:
    found = []
    for name, (action, primitive, sides) in actions.items():
        expected = getattr(rates.at(threads), primitive)(*sides).seconds
        spent = best(action, clock, wait)
        row = {"threads": threads, "n": n, "primitive": name, "measured s": spent}
        found.append(row | {"table s": expected, "measured / table": spent / expected})
    return found


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("--device", help="cuda, or another device; the processor by default")
    flags.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    flags = flags.parse_args()
    from onefit.linalg import HOST
    from onefit.linalg.which import named_device

    if flags.device:
        device = named_device(flags.device)
        for n in DEVICE_SIZES[:1] if flags.quick else DEVICE_SIZES:
            actions = device_actions(n, device)
            rates = device.rates
            rows = rows_of(actions, rates, n, 1, time.perf_counter, device.wait)
            print(harness.table(rows), flush=True)
        return
    for threads in (1, 2):
        clock = time.thread_time if threads == 1 else time.perf_counter
        with threadpool_limits(threads, user_api="blas"):
            for n in SIZES[:2] if flags.quick else SIZES:
                rates = HOST.rates
                rows = rows_of(host_actions(n), rates, n, threads, clock, lambda: None)
                print(harness.table(rows), flush=True)


if __name__ == "__main__":
    main()
