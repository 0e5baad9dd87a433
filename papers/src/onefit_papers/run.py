"""Run or resume one paper's experiment, and write its results."""

from __future__ import annotations

import shlex
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from time import perf_counter
from typing import Any

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from onefit._validation import check_choice
from onefit_papers.agreement import agreement, section
from onefit_papers.data import Loader
from onefit_papers.journal import Journal, Origin, Row, Unit
from onefit_papers.provenance import DIRTY, commit, machine, software
from onefit_papers.render import as_html, header, verdict_table
from onefit_papers.results import Published, Results, write_csv

__all__ = ["MODES", "PAPERS", "page", "reproduce", "settings"]

#: the papers, from the quickest to the longest run
PAPERS = ("ieice2019", "jmlr2008", "icml2014", "ecml2014", "ins2016")
MODES = ("quick", "full")
#: settings that say how often something is repeated
COUNTS = {"replicates", "trials", "ratio_trials"}


def reproduce(
    paper: str,
    mode: str = "quick",
    data_dir: str | Path | None = None,
    jobs: int = 1,
    out: str | Path | None = None,
    replicates: int | None = None,
    allow_dirty: bool = False,
) -> list[Path]:
    """Run a paper's tables and figures again.

    Finished units of work are remembered in ``journal.jsonl`` and not measured again. The first
    replicate of everything comes first, then the second: a run that is stopped has as many
    replicates of one set as of another, and ``replicates`` makes its page.
    ``config.toml`` is a copy of the settings, ``results.csv`` has every measurement, and
    ``results.md`` the tables with the paper's numbers beside ours and a verdict on each claim;
    ``results.html`` is the same page for a browser.

    Parameters
    ----------
    paper : str
        One of `PAPERS`, or "all".
    mode : {"quick", "full"}
        A few sets and splits, or everything.
    data_dir : path, default=None
        Folder of data sets; None means the setting ONEFIT_DATA_DIR, else OpenML.
    jobs : int, default=1
        Units measured side by side, with one thread each. Units whose times are reported run
        first, one after the other.
    out : path, default=None
        Folder for the results; ``experiments/<paper>`` by default. For "all" its subfolders.
    replicates : int, default=None
        The most replicates of a set, or trials of a timing; None means those of the settings. The
        page says what was cut, and a later run with more of them keeps those that are done.
    allow_dirty : bool, default=False
        Whether a full run may start from source trees that differ from their commit; its page
        then says so. A quick run always may.

    Returns
    -------
    list of Path
        The Markdown pages written.
    """
    check_choice("paper", paper, (*PAPERS, "all"))
    check_choice("mode", mode, MODES)
    if paper == "all":
        root = Path(out or "experiments")
        return [
            page
            for each in PAPERS
            for page in reproduce(each, mode, data_dir, jobs, root / each, replicates, allow_dirty)
        ]
    if mode == "full" and not allow_dirty:
        _refuse_dirty()
    experiment = import_module(f"onefit_papers.{paper}")
    folder = Path(out or Path("experiments") / paper)
    config = _cut(settings(paper)[mode], replicates)
    units: list[Unit] = experiment.units(config)
    journal = Journal(folder / "journal.jsonl")
    _measure(experiment, units, journal, Loader(data_dir), jobs)
    rows = journal.of(units)
    (folder / "config.toml").write_text(_config_text(paper), encoding="utf-8")
    (folder / "results.csv").write_text(write_csv(rows), encoding="utf-8")
    options = ["--replicates", str(replicates)] if replicates else []
    options = [f"--{mode}", "--jobs", str(jobs), *options]
    facts = _facts(experiment, options, config, rows, journal.origins_of(units))
    path, text = folder / "results.md", page(experiment, facts, Results(rows))
    path.write_text(text, encoding="utf-8")
    path.with_suffix(".html").write_text(as_html(text), encoding="utf-8")
    print(f"{paper}: {path}")
    return [path]


def _refuse_dirty() -> None:
    if commit().endswith(DIRTY):
        raise RuntimeError(
            "the packages differ from their last commit, so the results could not be traced to "
            "one; commit the changes, or allow it with --allow-dirty"
        )


def settings(paper: str) -> dict[str, Any]:
    """The settings of both modes."""
    return tomllib.loads(_config_text(paper))


def _cut(config: dict[str, Any], replicates: int | None) -> dict[str, Any]:
    if replicates is None:
        return config
    if replicates < 1:
        raise ValueError(f"replicates must be at least 1, got {replicates}")
    counts = COUNTS & config.keys()
    return config | {name: min(config[name], replicates) for name in counts}


def _config_text(paper: str) -> str:
    return files("onefit_papers").joinpath("config", f"{paper}.toml").read_text("utf-8")


def _measure(
    experiment: Any, units: list[Unit], journal: Journal, loader: Loader, jobs: int
) -> None:
    pending = sorted(journal.pending(units), key=lambda unit: int(unit.get("replicate", 0)))
    print(
        f"{experiment.NAME}: {len(units)} units, {len(units) - len(pending)} of them finished "
        "before"
    )
    start, here = perf_counter(), Origin(commit(), machine(), software())
    for count, (unit, rows) in enumerate(_finished(experiment, pending, loader, jobs), 1):
        journal.add(unit, rows, here)
        spent = perf_counter() - start
        left = spent / count * (len(pending) - count)
        shown = " ".join(f"{k}={v}" for k, v in unit.items() if k in ("kind", "set", "replicate"))
        print(
            f"  {count}/{len(pending)} {shown}: {spent:.0f} s, about {left:.0f} s to go", flush=True
        )


def _finished(
    experiment: Any, pending: list[Unit], loader: Loader, jobs: int
) -> Iterator[tuple[Unit, list[Row]]]:
    """Units with their rows: the timed ones one by one, the others in whatever order."""
    timed = [unit for unit in pending if jobs == 1 or experiment.timed(unit)]
    for unit in timed:
        yield _one(experiment.__name__, unit, loader)
    others = [unit for unit in pending if unit not in timed]
    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    yield from parallel(delayed(_one)(experiment.__name__, unit, loader) for unit in others)


def _one(module: str, unit: Unit, loader: Loader) -> tuple[Unit, list[Row]]:
    with threadpool_limits(1):
        return unit, import_module(module).measure(unit, loader)


def _facts(
    experiment: Any,
    options: list[str],
    config: dict[str, Any],
    rows: list[Row],
    origins: list[Origin],
) -> dict[str, str]:
    """What made the numbers, for the top of the page."""
    command = shlex.join(["onefit-papers", experiment.NAME, *options])
    sources = sorted({str(row["source"]).split(",")[0] for row in rows if row.get("source")})
    return {
        "command": f"`{command}`",
        "data": " and ".join(sources) or "simulated",
        "settings": f"section `{options[0][2:]}` of `config.toml`; one thread",
        "cut": "; ".join(experiment.cuts(config)) or "nothing",
        "machine": _counted(origin.machine for origin in origins),
        "software": _counted(origin.software for origin in origins),
        "commit": _counted(origin.commit for origin in origins),
    }


def _counted(names: Iterable[str]) -> str:
    """The name, or the names with how many units each of them measured."""
    counts = Counter(names)
    if len(counts) < 2:
        return next(iter(counts), "none")
    return "; ".join(f"{name} ({count} units)" for name, count in counts.items())


def page(experiment: Any, facts: dict[str, str], results: Results) -> str:
    """The page of a paper: tables, agreement, verdicts."""
    published = Published(experiment.NAME)
    parts = [
        header(experiment.TITLE, facts),
        *experiment.sections(results, published),
        *section(agreement(results, published, experiment.COMPARED)),
        "## Claims",
        verdict_table(experiment.verdicts(results, published)),
    ]
    return "\n\n".join(parts) + "\n"
