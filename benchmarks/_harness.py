"""Time contestants side by side, each in a process of its own, and write down the result.

A contestant is a function ``build(task)`` that imports what it needs, prepares the data and returns
a callable ``run()``; only ``run()`` is timed. Every contestant lives in its own process, started
with the thread variables of its policy already in the environment. The parent asks one
contestant after the other for one run, round by round, so that slow drifts of the machine meet all
of them; the best round counts.

Peak memory is what the first run adds to the resident memory of the contestant's process and of
its workers after imports, data and a small warm-up run, each process's own peak added up.
"""

from __future__ import annotations

import os

THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
)
for _variable in THREAD_VARIABLES:  # before NumPy is imported anywhere
    os.environ.setdefault(_variable, "1")

import argparse  # noqa: E402
import csv  # noqa: E402
import gc  # noqa: E402
import importlib.metadata  # noqa: E402
import multiprocessing  # noqa: E402
import platform  # noqa: E402
import re  # noqa: E402
import resource  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable, Iterable, Sequence  # noqa: E402
from dataclasses import dataclass, field  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import psutil  # noqa: E402

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
PACKAGES = (
    "onefit",
    "numpy",
    "scipy",
    "scikit-learn",
    "joblib",
    "himalaya",
    "thundersvm-cpu",
    "liquidSVM",
)
Row = dict[str, Any]


@dataclass(frozen=True)
class Contestant:
    """One way of doing a task.

    Parameters
    ----------
    name : str
    policy : str
        Threads and processes, in words, for the table.
    build : callable
        ``build(task) -> run``; a module-level function or a partial of one.
    blas_threads : int
        Value of the thread variables in its process.
    """

    name: str
    policy: str
    build: Callable[[Any], Callable[[], Any]]
    blas_threads: int = 1


@dataclass
class Outcome:
    """What a contestant did: seconds a round, the value of its first run, peak memory in bytes."""

    contestant: Contestant
    seconds: list[float] = field(default_factory=list)
    value: Any = None
    peak: float = float("nan")
    problem: str | None = None

    @property
    def name(self) -> str:
        return self.contestant.name

    @property
    def best(self) -> float:
        return min(self.seconds) if self.seconds else float("nan")

    def matrices(self, n: int) -> float:
        """Peak memory in units of n x n doubles."""
        return self.peak / (8.0 * n * n)


def compete(
    contestants: Sequence[Contestant],
    task: Any,
    warm_task: Any,
    rounds: int,
    limit: float = 7200.0,
    clock: str = "perf_counter",
) -> list[Outcome]:
    """Interleave ``rounds`` runs of every contestant on ``task``; one that fails is left out.

    ``clock`` is a function of `time`: "process_time" counts the processor time of contestants
    without workers of their own, which other programs on the machine hardly change.
    """
    players = [_Player(contestant, task, warm_task, limit, clock) for contestant in contestants]
    try:
        for _ in range(rounds):
            for player in players:
                player.play()
    finally:
        for player in players:
            player.stop()
    return [player.outcome for player in players]


class _Player:
    """The parent's end of a contestant's process."""

    def __init__(
        self, contestant: Contestant, task: Any, warm_task: Any, limit: float, clock: str
    ) -> None:
        self.outcome = Outcome(contestant)
        self.limit = limit
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        arguments = other, contestant.build, task, warm_task, clock
        self.process = context.Process(target=_serve, args=arguments, name=contestant.name)
        saved = {name: os.environ.get(name) for name in THREAD_VARIABLES}
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(contestant.blas_threads)))
        self.process.start()
        os.environ.update({name: value for name, value in saved.items() if value is not None})
        other.close()
        self._receive()

    def _receive(self) -> Any:
        try:
            if not self.pipe.poll(self.limit):
                return self._give_up(f"no answer within {self.limit:g} s")
            kind, value = self.pipe.recv()
        except EOFError:
            self.process.join(10)
            return self._give_up(f"its process ended with code {self.process.exitcode}")
        return value if kind == "done" else self._give_up(value)

    def _give_up(self, problem: str) -> None:
        self.outcome.problem = problem
        print(f"  {self.outcome.name}: not available: {problem}", flush=True)

    def play(self) -> None:
        if self.outcome.problem:
            return
        self.pipe.send("run")
        answer = self._receive()
        if answer is None:
            return
        seconds, value, peak = answer
        if not self.outcome.seconds:
            self.outcome.value, self.outcome.peak = value, peak
        self.outcome.seconds.append(seconds)
        print(f"  {self.outcome.name}: {seconds:.3f} s", flush=True)

    def stop(self) -> None:
        if self.process.is_alive() and not self.outcome.problem:
            self.pipe.send("stop")
            self.process.join(30)
        if self.process.is_alive():
            for child in psutil.Process(self.process.pid).children(recursive=True):
                child.kill()
            self.process.kill()
            self.process.join()


def _serve(
    pipe: Any, build: Callable[[Any], Callable[[], Any]], task: Any, warm_task: Any, clock: str
) -> None:
    """The contestant's end: warm up, prepare, then run whenever asked."""
    now: Callable[[], float] = getattr(time, clock)
    try:
        build(warm_task)()
        run = build(task)
        pipe.send(("done", True))
        first = True
        while pipe.recv() == "run":
            gc.collect()
            memory = PeakMemory() if first else None
            start = now()
            value = run()
            seconds = now() - start
            peak = memory.added() if memory else None
            pipe.send(("done", (seconds, value if first else None, peak)))
            first = False
    except EOFError:  # the parent is gone
        pass
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        reason = re.sub(r"\s*\(?/\S+", "", lines[0])  # no folders of this machine in the table
        pipe.send(("failed", f"{type(error).__name__}: {reason}"))
    finally:
        _end_workers()


def _end_workers() -> None:
    """End joblib's worker processes, which this process would otherwise wait for."""
    loky = sys.modules.get("joblib.externals.loky.reusable_executor")
    if loky is not None and loky._executor is not None:
        loky._executor.terminate(kill_workers=True)


class PeakMemory:
    """What this process and its children add to their resident memory from now on, at most.

    On Linux the kernel's high-water mark of every process is set back here and read at the end. It
    is kept by the kernel, so nothing is missed and nothing is slowed down. Elsewhere the marks
    of getrusage, which cannot be set back, are compared.
    """

    def __init__(self) -> None:
        self.linux = Path("/proc/self/clear_refs").exists()
        if self.linux:
            self.before = {process.pid: _status(process.pid, "VmRSS") for process in _tree()}
            for process in _tree():
                _reset_peak(process.pid)
        else:
            self.mark = _rusage_peak()

    def added(self) -> float:
        """Bytes added at the peak, summed over processes."""
        if not self.linux:
            return _rusage_peak() - self.mark
        grown = (_status(p.pid, "VmHWM") - self.before.get(p.pid, 0.0) for p in _tree())
        return sum(max(0.0, bytes_) for bytes_ in grown)


def _tree() -> list[psutil.Process]:
    this = psutil.Process()
    return [this, *this.children(recursive=True)]


def _status(pid: int, key: str) -> float:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:  # it ended meanwhile
        return 0.0
    return next((1024.0 * float(s.split()[1]) for s in text.splitlines() if s.startswith(key)), 0.0)


def _reset_peak(pid: int) -> None:
    try:
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    except OSError:  # it ended meanwhile
        return


def _rusage_peak() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return float(sum(unit * resource.getrusage(kind).ru_maxrss for kind in kinds))


def timing_rows(outcomes: Iterable[Outcome], reference: str, n: int, **columns: Any) -> list[Row]:
    """One row a contestant; ``times_reference`` is its best time over that of ``reference``."""
    outcomes = list(outcomes)
    base = next((o.best for o in outcomes if o.name == reference), float("nan"))
    return [
        {
            **columns,
            "n": n,
            "contestant": o.name,
            "threads": o.contestant.policy,
            "best_s": o.best,
            "median_s": statistics.median(o.seconds) if o.seconds else float("nan"),
            "rounds": len(o.seconds),
            "times_reference": o.best / base,
            "peak_n2_doubles": o.matrices(n),
            "note": f"not available: {o.problem}" if o.problem else "",
        }
        for o in outcomes
    ]


def parser(
    description: str | None, rounds: int = 3, rounds_per_size: bool = False
) -> argparse.ArgumentParser:
    """The flags every script has; ``--rounds`` may take one number a size."""
    first = (description or "").strip().splitlines()[0]
    flags = argparse.ArgumentParser(description=first)
    if rounds_per_size:
        about = "runs of every contestant, one number or one a size"
        flags.add_argument("--rounds", type=int, nargs="+", default=[rounds], help=about)
    else:
        flags.add_argument("--rounds", type=int, default=rounds, help="runs of every contestant")
    flags.add_argument("--quick", action="store_true", help="a small case, to see that it works")
    flags.add_argument("--only", default="", help="contestants whose name matches this")
    flags.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    return flags


def chosen(contestants: Iterable[Contestant], only: str) -> list[Contestant]:
    """Those whose name matches a regular expression."""
    return [contestant for contestant in contestants if re.search(only, contestant.name)]


def machine() -> list[str]:
    """The machine and the libraries, one line each."""
    memory = psutil.virtual_memory().total / 2**30
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            versions.append(f"{package} {_version_of_source(package)}")
    return [
        f"processor: {_processor()}, {psutil.cpu_count(logical=True)} logical cores",
        f"memory: {memory:.0f} GiB",
        f"system: {platform.system()} {platform.machine()}, Python {platform.python_version()}",
        f"packages: {', '.join(versions)}",
        f"BLAS: {_blas()}",
    ]


def _version_of_source(package: str) -> str:
    try:
        return str(__import__(package.replace("-", "_")).__version__)
    except Exception:  # whatever keeps it from being imported, the table is still written
        return "not installed"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next(
        (s.split(":", 1)[1].strip() for s in lines if s.startswith("model name")), "unknown"
    )


def _blas() -> str:
    import numpy  # noqa: F401
    import scipy.linalg  # noqa: F401
    import threadpoolctl

    found = {
        f"{i['internal_api']} {i['version']} ({i.get('architecture', '?')}, "
        f"{Path(i['filepath']).parent.name})"
        for i in threadpoolctl.threadpool_info()
        if i["user_api"] == "blas"
    }
    return "; ".join(sorted(found)) or "unknown"


def commit() -> str:
    """Short hash of the checked-out commit, marked when the package differs from it."""
    try:
        name = _git("rev-parse", "--short", "HEAD")
        changed = _git("status", "--porcelain", "--", "../src")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{name} with uncommitted changes" if changed else name


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def command_line() -> str:
    """The command of this run, with the folders the user chose left out."""
    words = iter(sys.argv[1:])
    kept = []
    for word in words:
        if word in ("--data", "--out", "--other"):
            next(words, None)
            kept.extend([word, "DIR"])
        else:
            kept.append(word)
    return " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *kept])


def stem(name: str, quick: bool) -> str:
    """Name of the result files; a quick run never overwrites a full one."""
    return f"{name}_quick" if quick else name


def write_csv(folder: Path, name: str, rows: Sequence[Row]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with (folder / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows([{k: _plain(v) for k, v in row.items()} for row in rows])


def _plain(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def table(rows: Sequence[Row]) -> str:
    """A Markdown table; columns empty throughout are left out."""
    if not rows:
        return "(nothing measured)\n"
    columns = list(dict.fromkeys(key for row in rows for key in row))
    columns = [key for key in columns if any(_cell(row.get(key, "")) for row in rows)]
    lines = [" | ".join(columns), " | ".join("---" for _ in columns)]
    lines += [" | ".join(_cell(row.get(key, "")) for key in columns) for row in rows]
    return "\n".join(f"| {line} |" for line in lines) + "\n"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:.3g}"
    return str(value)


def write_report(folder: Path, name: str, title: str, parts: Sequence[tuple[str, str]]) -> Path:
    """``<name>.md``: the parts (heading, Markdown), then command, commit and machine."""
    body = [f"# {title}\n"]
    body += [f"## {heading}\n\n{text.rstrip()}\n" for heading, text in parts]
    facts = [f"command: `{command_line()}`", f"commit: {commit()}", *machine()]
    body.append("## Where this was run\n\n" + "\n".join(f"- {fact}" for fact in facts) + "\n")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.md"
    path.write_text("\n".join(body))
    print(f"\nwritten: {name}.md")
    return path
