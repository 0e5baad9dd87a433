"""The same plan on a device: three methods, a few speeds, and the memory that is free there.

The speeds are those of one H200 in float64 (benchmarks/gpu.py); another device is faster or slower
in all of them alike, so that the order of the methods, which is what they are for, changes little.
"""

from __future__ import annotations

from dataclasses import replace

from onefit._validation import check_choice
from onefit.plan.memory import GIB
from onefit.plan.text import aligned
from onefit.plan.workload import Estimate, Workload

__all__ = ["METHODS", "check_device_memory", "choose_on_device", "explain_on_device"]

METHODS = ("iterative", "block", "eigen")
#: operations per second of a product, a Cholesky factor and a triangular inverse
GEMM, CHOLESKY, INVERSE = 55e12, 36e12, 24e12
#: seconds per n^3 of an eigendecomposition, of its start, of an entry of a tile, and of an entry
#: of a matrix that is held; of a call
EIGH, EIGH_START, ENTRY, READ, CALL = 7.2e-13, 0.1, 2e-11, 3e-12, 2e-5
#: steps assumed of an iteration, and columns of its low-rank factor
STEPS, LANDMARKS = 30, 2000
#: rows from which "auto" takes an iteration
LARGE = 4000
#: matrices of n rows that are held, arrays of n rows of an iteration, and bytes of its tiles
HELD, ARRAYS, TILES = {"block": 5.0, "eigen": 6.0}, 30, 2 * 2**30
#: numbers of one such array
ROOM = 2**28


def choose_on_device(work: Workload, method: str, room: float) -> Estimate:
    """The estimate of the method to take: the fastest that fits, or the one that was named."""
    check_choice("method on a device", method, ("auto", *METHODS))
    names = METHODS if method == "auto" else (method,)
    options = [one for name in names for one in _options(work, name)]
    if method == "auto" and (work.n < LARGE or work.one_row_each):
        options = [one for one in options if one.method != "iterative"]
    fitting = [one for one in options if one.nbytes <= room]
    if fitting:
        return min(fitting, key=lambda one: one.seconds)
    return min(options, key=lambda one: one.nbytes)


def check_device_memory(work: Workload, estimate: Estimate, room: float, where: str) -> None:
    """Raise MemoryError, with the numbers, if an estimate exceeds what is free on a device."""
    if estimate.nbytes <= room:
        return
    advice = "pass X as float32, or use fewer rows"
    if estimate.method != "iterative" and not work.one_row_each:
        advice = f"use method='iterative', {advice}"
    raise MemoryError(
        f"method {estimate.method!r} on n={work.n} rows needs {estimate.nbytes / GIB:.3g} GiB on "
        f"{where}, where {room / GIB:.3g} GiB are free; {advice}"
    )


def explain_on_device(work: Workload, chosen: Estimate, where: str) -> str:
    """A table of what the methods are expected to cost there."""
    grid = f"{work.kernels} x {work.lams} x {work.folds} (kernels x lambdas x splits)"
    rows = []
    for one in (one for name in METHODS for one in _options(work, name)):
        mark = ">" if (one.method, one.tiled) == (chosen.method, chosen.tiled) else " "
        name = f"{mark} {one.method}{', by tiles' if one.tiled else ''}"
        rows.append([name, f"{one.nbytes / GIB:.2f} GiB", f"{one.seconds:.2f} s"])
    title = f"Plan on {where}: {grid}, {work.n} rows, float{8 * work.itemsize}; speeds of an H200"
    return "\n".join([title, "", *aligned(["  method", "memory", "time"], rows)])


def _options(work: Workload, method: str) -> list[Estimate]:
    if method != "iterative":
        return [_direct(work, method)]
    return [_iterative(replace(work, tiled=tiled)) for tiled in (False, True)]


def _direct(work: Workload, method: str) -> Estimate:
    n, m, factors = float(work.n), float(max(work.largest, 1)), work.lams * work.ridges
    blocks = work.lams * work.folds * (2.0 * n * m * m / GEMM + m**3 / INVERSE + 10.0 * CALL)
    if work.one_row_each:
        blocks = factors * (2.0 * n * n * READ + 10.0 * CALL)
    if method == "block":
        once = factors * (n**3 / 3.0 / CHOLESKY + n**3 / 3.0 / INVERSE + 20.0 * n * n * READ)
    else:
        once = EIGH * n**3 + EIGH_START
    seconds = n * n * ENTRY + once + blocks
    return _estimate(work, method, HELD[method] * n * n * work.itemsize, seconds)


def _iterative(work: Workload) -> Estimate:
    n, k, m = float(work.n), float(work.columns), float(min(LANDMARKS, work.n // 3))
    entry = n * n / 2.0 * ENTRY if work.tiled else n * n * READ
    step = 2.0 * n * n * k / GEMM + 4.0 * n * m * k / GEMM + entry + 100.0 * CALL
    setup = 6.0 * n * m * m / GEMM + max(1, work.folds) * (EIGH * m**3 + 0.02)
    columns = min(n * k, max(ROOM, n * work.lams * work.targets))
    held = TILES if work.tiled else n * n * work.itemsize
    nbytes = held + (ARRAYS * columns + 2.0 * n * m) * work.itemsize + work.folds * 8.0 * m * m
    return _estimate(work, "iterative", nbytes, n * n * ENTRY + setup + STEPS * step)


def _estimate(work: Workload, method: str, nbytes: float, seconds: float) -> Estimate:
    return Estimate(
        method, seconds * work.kernels * GEMM, int(nbytes), seconds * work.kernels, work.tiled
    )
