"""The memory that is available, and a refusal with advice before any is allocated.

The least of the machine's free memory, what a container's control group allows, and what the
limit of the process (RLIMIT_AS) leaves; or the limit of :func:`onefit.config.set_config`.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace
from pathlib import Path

import psutil

from onefit._format import GIB
from onefit.config import get_config
from onefit.heldout.workload import Estimate, Workload
from onefit.plan.matrices import peak_bytes

__all__ = [
    "available_memory",
    "check_bytes",
    "check_memory",
    "check_method",
    "choose_fit",
]

#: bytes that are allocated without a check, which would take longer than a small fit
MAX_UNASKED_BYTES = 64 * 1024**2
#: rows up to which a fit factors its matrix (benchmarks/iterative.py, part "fits")
MAX_FACTORED_ROWS = 6000


def check_memory(
    work: Workload, estimate: Estimate, available: float | None = None, where: str = ""
) -> None:
    """Raise MemoryError, with advice, if an estimate exceeds the memory available.

    Parameters
    ----------
    work : Workload
    estimate : Estimate
        Estimate of the method that is about to run.
    available : float, default=None
        Bytes; asked of the system when None.
    where : str, default=""
        The device whose memory it is.
    """
    if available is None:
        available = available_memory(work.busy)
    if where and estimate.nbytes > available:
        _refuse_on_device(work, estimate, available, where)
    _check(work, f"method {estimate.method!r} on", estimate.nbytes, available)


def _refuse_on_device(work: Workload, estimate: Estimate, room: float, where: str) -> None:
    advice = "pass X as float32, or use fewer rows"
    if work.features:
        advice = f"use fewer features than {work.features} (n_components)"
    elif estimate.method != "iterative" and not work.one_row_each:
        advice = f"use method='iterative', {advice}"
    raise MemoryError(
        f"method {estimate.method!r} on n={work.n} rows needs {estimate.nbytes / GIB:.3g} GiB on "
        f"{where}, where {room / GIB:.3g} GiB are free; {advice}"
    )


def check_method(work: Workload, method: str) -> None:
    """Raise MemoryError, with advice, if a method would exceed the memory available.

    Small workloads are not checked. ``method`` "fit" is one fit.
    """
    nbytes = work.busy * peak_bytes(work, method)
    if not _is_small(nbytes):
        what = "a fit to" if method == "fit" else f"method {method!r} on"
        _check(work, what, nbytes, available_memory(work.busy))


def check_bytes(work: Workload, nbytes: float, what: str) -> None:
    """Raise MemoryError, with advice, if the bytes exceed the memory available.

    Parameters
    ----------
    work : Workload
        Small ones are not checked.
    nbytes : float
    what : str
        What needs them: a function that works on the whole kernel matrix.
    """
    if not _is_small(nbytes):
        _check(work, f"{what} on", nbytes, available_memory(work.busy), approximates=False)


def choose_fit(work: Workload, solver: str = "auto") -> tuple[str, str]:
    """The solver of a fit, and the form of its kernel matrix: "matrix", "held" or "tiles".

    "auto" factors a matrix where that is quick and there is room for it, and iterates otherwise.
    """
    if work.features or solver not in ("auto", "iterative"):
        check_method(work, "fit")
        return solver, "matrix"
    nbytes = peak_bytes(work, "fit")
    if solver == "auto" and _is_small(nbytes):
        return solver, "matrix"
    room = available_memory()
    if solver == "auto" and work.n <= MAX_FACTORED_ROWS and nbytes <= room:
        return solver, "matrix"
    if peak_bytes(work, "iterative") <= room or work.given:
        return "iterative", "held"
    _check(work, "a fit to", peak_bytes(replace(work, tiled=True), "iterative"), room)
    return "iterative", "tiles"


def _check(
    work: Workload, what: str, nbytes: float, available: float, approximates: bool = True
) -> None:
    if nbytes <= available:
        return
    raise MemoryError(
        f"{what} n={work.n} rows needs {nbytes / GIB:.3g} GiB beyond the data, but "
        f"{max(available, 0.0) / GIB:.3g} GiB are available; "
        + ", or ".join(_advice(work, nbytes, available, approximates))
    )


def _advice(work: Workload, nbytes: float, available: float, approximates: bool) -> list[str]:
    """Alternatives that need less memory, the mildest first."""
    advice = []
    needed = nbytes / GIB
    if work.busy > 1:
        advice.append(
            f"use fewer workers than {work.busy} ({needed / work.busy:.3g} GiB each, see n_jobs)"
        )
    if work.features:
        return [*advice, f"use fewer features than {work.features} (n_components)"]
    if work.itemsize == 8:
        advice.append(f"pass X as float32, which halves it to {needed / 2:.3g} GiB")
    rows = int(work.n * math.sqrt(max(available, 0.0) / nbytes))
    approximation = "approximation='nystrom', or " if approximates else ""
    advice.append(f"use {approximation}a subsample of at most {rows} rows")
    return advice


def available_memory(processes: int = 1) -> float:
    """Bytes that a number of processes together can still take."""
    limit = get_config()["memory_bytes"]
    if limit is not None:
        return float(limit)
    machine = float(psutil.virtual_memory().available)
    return min(machine, cgroup_room(), processes * address_room())


def _is_small(nbytes: float) -> bool:
    """Whether bytes are so few that they are taken without a question."""
    return nbytes <= MAX_UNASKED_BYTES and get_config()["memory_bytes"] is None


def address_room() -> float:
    """Bytes that RLIMIT_AS leaves a process (infinite without a limit)."""
    try:
        import resource
    except ImportError:
        return math.inf
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return math.inf
    return float(limit - psutil.Process().memory_info().vms)


def cgroup_room(
    root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")
) -> float:
    """What the process's control groups leave of their limits (version 1 or 2), or infinity.

    Every ancestor limits too; inside a container the path may begin above what is mounted, and
    then only the ancestors are found.
    """
    try:
        lines = membership.read_text(encoding="utf-8").splitlines()
    except OSError:
        return math.inf
    room = math.inf
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            room = min(room, _room_upwards(root, path, _V2))
        elif "memory" in controllers.split(","):
            room = min(room, _room_upwards(root / "memory", path, _V1))
    return room


#: names of the limit, the usage, and the part of it that is file cache nobody uses
_V2 = ("memory.max", "memory.current", "inactive_file")
_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def _room_upwards(mount: Path, path: str, names: tuple[str, str, str]) -> float:
    group = mount / path.lstrip("/")
    groups = [group, *group.parents]
    return min(_room(one, names) for one in groups[: groups.index(mount) + 1])


def _room(group: Path, names: tuple[str, str, str]) -> float:
    limit, usage, cached = names
    # a missing file, or "max" instead of a number: no limit
    with contextlib.suppress(OSError, ValueError):
        left = int((group / limit).read_text()) - int((group / usage).read_text())
        return float(left + _statistic(group / "memory.stat", cached))
    return math.inf


def _statistic(path: Path, name: str) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in path.read_text().splitlines():
            key, value = line.split()
            if key == name:
                return int(value)
    return 0
