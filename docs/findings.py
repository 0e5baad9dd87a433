"""Pieces of pages made from committed results: verdicts on the papers, ratios of the benchmarks.

========================================  =======================================================
on a page                                 becomes
========================================  =======================================================
``<!-- headlines -->``                    the ratios that matter, from the benchmarks
``<!-- coverage -->``                     how often intervals contained the truth
``<!-- verdicts -->``                     how many claims of each paper held
``<!-- claims: PAPER -->``                the claims of a paper, with verdicts and evidence
``<!-- table: NAME: a, b -->``            columns of a committed table
========================================  =======================================================

No number of these pieces is typed by hand; a file that is not committed is named as such.
"""

from __future__ import annotations

import csv
import importlib.util
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXPERIMENTS = ROOT / "papers" / "experiments"
RESULTS = ROOT / "benchmarks" / "results"
PAPERS = ("jmlr2008", "icml2014", "ecml2014", "ins2016", "ieice2019")
#: pages of the gallery whose figures scripts of ``papers/figures`` draw
DRAWN = ("toy", *PAPERS)
VERDICTS = ("held", "not held", "not testable")
Row = dict[str, str]


def piece(mark: re.Match[str]) -> str:
    """What replaces a mark: a name, and after a colon what it is about."""
    name, about = mark[1], mark[2]
    if name == "table":
        data, _, wanted = about.partition(": ")
        return columns(data, wanted.split(", "))
    makers = {"headlines": headlines, "coverage": coverage, "verdicts": verdicts}
    return claims(about) if name == "claims" else makers[name]()


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def absent(paper: str) -> str:
    """What stands in the place of results that are not committed."""
    return (
        f"The results of the full run of `{paper}` are not committed at this version. "
        f"`onefit-papers {paper} --full` makes them."
    )


def coverage(results: Path = RESULTS) -> str:
    """How often intervals held the truth, per law, metric and size, and the least of these shares.

    From ``coverage.csv``.
    """
    path = results / "coverage.csv"
    if not path.exists():
        return "Not measured at this version; `benchmarks/coverage.py` does."
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    shares = ("covers", "first order covers", "plain covers")
    numbers = ("error", "width")
    lines = [
        [one["law"], one["metric"], one["n"], one["sets"]]
        + [f"{float(one[name]):.3g}" for name in numbers]
        + [f"{float(one[name]):.0%}" for name in shares]
        for one in rows
    ]
    head = ["law", "metric", "rows", "data sets", *numbers, *shares]
    least = min(rows, key=lambda one: float(one["covers"]))
    below = sum(float(one["covers"]) < 0.95 - 2.0 * float(one["se"]) for one in rows)
    return (
        f"{table(head, lines)}\n\n"
        f"The least share is {float(least['covers']):.1%} (standard error "
        f"{float(least['se']):.1%}; {least['law']}, {least['metric']}, {least['n']} rows); of the "
        f"{len(rows)} shares, {below} are below 95% by more than two standard errors."
    )


def claims(paper: str, experiments: Path = EXPERIMENTS) -> str:
    """A paper's claims with verdicts and evidence, and what made them, from its ``results.md``."""
    page = experiments / paper / "results.md"
    if not page.exists():
        return absent(paper)
    text = page.read_text(encoding="utf-8")
    made = facts(text)
    return (
        f"{summary(text)}\n\n{claims_of(text)}\n\n"
        f"Made by {made['command']} at commit {made['commit']} on {made['machine']}. "
        f"Less than in the paper: {made['cut']}. "
        f"[Every table, the paper's numbers beside ours](results/{paper}.md)."
    )


def facts(text: str) -> dict[str, str]:
    """The list at the top of a results page."""
    top = text.partition("\n## ")[0].splitlines()
    return dict(line[2:].split(": ", 1) for line in top if line.startswith("- "))


def claims_of(text: str) -> str:
    """The table of claims of a results page."""
    return text.partition("\n## Claims\n")[2].partition("\n## ")[0].strip()


def count(text: str) -> Counter[str]:
    """How many claims held, did not hold, could not be tested, in the main reading.

    A claim that is judged again in a variant stands there again, below.
    """
    verdicts: dict[tuple[str, str], str] = {}
    for line in claims_of(text).splitlines()[2:]:
        _, where, claim, verdict, *_ = line.split("|")
        verdicts.setdefault((where, claim), verdict.strip().strip("*"))
    return Counter(verdicts.values())


def summary(text: str) -> str:
    """The count as a sentence."""
    counted = count(text)
    shown = ", ".join(f"{counted[verdict]} {verdict}" for verdict in VERDICTS)
    return f"Of {counted.total()} claims, in the main reading: {shown}."


def verdicts(experiments: Path = EXPERIMENTS) -> str:
    """A table of all papers."""
    rows = []
    for paper in PAPERS:
        page = experiments / paper / "results.md"
        cells = ["not committed at this version", "", ""]
        if page.exists():
            counted = count(page.read_text(encoding="utf-8"))
            cells = [str(counted[verdict]) for verdict in VERDICTS]
        rows.append([f"[{paper}]({paper}.md)", *cells])
    return table(["paper", *(f"claims {verdict}" for verdict in VERDICTS)], rows)


def headlines(results: Path = RESULTS) -> str:
    """The ratios that matter of every benchmark that is committed."""
    makers: dict[str, Callable[[Path], str]] = {
        "exact_search": exact_search,
        "influence_path": influence_path,
        "svm_search": svm_search,
        "svr_search": svr_search,
        "quantiles": quantiles,
        "accuracy": accuracy,
        "svm_limit": svm_limit,
    }
    parts = []
    for name, make in makers.items():
        page = results / f"{name}.md"
        if page.exists() and (results / f"{name}.csv").exists():
            title = page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
            link = f"[The whole table](results/{name}.md)."
            parts.append(f"### {title}\n\n{make(results)}\n\n{link}")
    return "\n\n".join(parts) or "No benchmark is committed at this version."


def columns(name: str, wanted: Sequence[str], results: Path = RESULTS) -> str:
    """Some columns of a committed table, numbers in three digits, and a link to all of it."""
    if not (results / f"{name}.csv").exists():
        return f"The results of `{name}` are not committed at this version."
    rows = [[_brief(row[column]) for column in wanted] for row in _read(results, name)]
    whole = (
        f"\n\n[The whole table](results/{name}.md)." if (results / f"{name}.md").exists() else ""
    )
    return table(wanted, rows) + whole


def _brief(cell: str) -> str:
    try:
        return cell if cell.lstrip("-").isdigit() else f"{float(cell):.3g}"
    except ValueError:
        return cell


def _read(results: Path, name: str) -> list[Row]:
    with (results / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def exact_search(results: Path) -> str:
    """The table of the README, and leave-one-out beside the eigendecompositions alone."""
    spec = importlib.util.spec_from_file_location(
        "readme_table", ROOT / "benchmarks" / "readme_table.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    parts = [module.table(results)]
    for row in _read(results, "exact_search"):
        if row["part"] == "loo" and row["contestant"].startswith("onefit"):
            parts.append(
                f"Leave-one-out over the same grid at n = {row['n']} takes "
                f"{_short(row['times_reference'])} times as long as the eigendecompositions of "
                "its kernel matrices alone."
            )
    return "\n\n".join(parts)


def influence_path(results: Path) -> str:
    """What the folds add to a path of fits."""
    rows = _read(results, "influence_path")
    cases = list(dict.fromkeys((row["loss"], row["n"]) for row in rows))
    lines = []
    for loss, n in cases:
        own = {
            row["contestant"].split()[-1]: float(row["best_s"])
            for row in rows
            if (row["loss"], row["n"]) == (loss, n)
        }
        path, limit, exact, refit = (
            own.get(name, float("nan")) for name in ("path", "limit", "exact", "refit")
        )
        shown = (limit / path, exact / path, refit / path, refit / exact)
        lines.append([f"`{loss}`", n, *(_short(value) for value in shown)])
    about = "Time over that of the fits to all rows alone, along a path of lams:"
    head = ["loss", "n", "limit", "exact", "refit", "refit over exact"]
    return f"{about}\n\n{table(head, lines)}"


def svm_search(results: Path) -> str:
    """How many times faster than the grid search of the SVM."""
    lines = [
        [row["set"], row["n"], row["contestant"], _short(row["faster_than_svc"])]
        for row in _read(results, "svm_search")
        if row["contestant"].startswith("onefit")
    ]
    head = ["set", "n", "search", "times faster than `GridSearchCV(SVC)`"]
    return table(head, lines)


def svr_search(results: Path) -> str:
    """How many times faster than the grid search of the SVR, on a wide grid and on small C."""
    stems = {"wide": "svr_search", "small": "svr_search_small"}
    lines = [
        [row["set"], row["n"], grid, row["contestant"], _short(row["faster_than_svr"])]
        for grid, stem in stems.items()
        if (results / f"{stem}.csv").exists()
        for row in _read(results, stem)
        if row["contestant"].startswith("onefit")
    ]
    head = ["set", "n", "values of C", "search", "times faster than `GridSearchCV(SVR)`"]
    return table(head, lines)


def quantiles(results: Path) -> str:
    """Test pinball losses, and times as multiples of ours."""
    lines = [
        [row["set"], row["contestant"], _short(row["rearranged"]), _short(row["times_onefit"])]
        for row in _read(results, "quantiles")
    ]
    return table(["set", "contestant", "test pinball loss, sorted", "time, onefit's is 1"], lines)


def accuracy(results: Path) -> str:
    """The largest error over the losses, by lam."""
    rows = _read(results, "accuracy")
    ways = ("order 1", "order 3", "order 8", "limit", "exact")
    lines = []
    for lam in dict.fromkeys(row["lam"] for row in rows):
        own = [row for row in rows if row["lam"] == lam]
        largest = (max(float(r[way]) for r in own if r[way] not in ("", "nan")) for way in ways)
        lines.append([lam, *(f"{value:.0e}" for value in largest)])
    about = (
        "Largest relative error of held-out predictions over all losses and both kinds of folds:"
    )
    return f"{about}\n\n{table(['lam', *ways], lines)}"


def svm_limit(results: Path) -> str:
    """The largest difference from libsvm's held-out decision values, by delta."""
    rows = _read(results, "svm_limit")
    gaps = [name for name in rows[0] if name.startswith("gap ")]
    largest = [f"{max(float(row[gap]) for row in rows):.1g}" for gap in gaps]
    about = "Largest difference of a held-out decision value from libsvm's:"
    head = ["delta", *(gap.removeprefix("gap ") for gap in gaps)]
    return f"{about}\n\n{table(head, [['difference', *largest]])}"


def _short(value: str | float) -> str:
    """Two digits, "-" for what was not measured."""
    number = float(value or "nan")
    return f"{number:.2g}" if number == number else "-"
