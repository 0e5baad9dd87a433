"""Update the table of README.md from results/exact_search.csv and .md.

``python benchmarks/readme_table.py`` replaces the text between the two marks in README.md.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
BEGIN, END = "<!-- made by benchmarks/readme_table.py -->", "<!-- end of the table -->"
OURS = "onefit KernelSearchCV"
#: a row of the table -> how the names of its contestants begin, of which the fastest counts
PEERS = {
    "scikit-learn `GridSearchCV(KernelRidge)`": "scikit-learn GridSearchCV",
    "himalaya `KernelRidgeCV`, bandwidth by bandwidth": "himalaya",
}


def table(results: Path) -> str:
    """Our time, how many times longer the peers take, and how far our scores are from theirs."""
    with (results / "exact_search.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["part"] == "kfold"]
    markdown = (results / "exact_search.md").read_text(encoding="utf-8")
    sizes = list(dict.fromkeys(row["n"] for row in rows))
    ours = {n: _best(rows, n, OURS) for n in sizes}
    lines = [
        [_grid(markdown), *(f"n = {n}" for n in sizes)],
        ["---"] * (len(sizes) + 1),
        ["`KernelSearchCV`", *(f"{ours[n]:.2g} s" for n in sizes)],
    ]
    for name, start in PEERS.items():
        ratios = [_best(rows, n, start) / ours[n] for n in sizes]
        shown = [f"{ratio:.2g} times as long" if ratio == ratio else "-" for ratio in ratios]
        lines.append([name, *shown])
    gaps = _agreement(markdown)
    about = "largest relative difference of a split score from `GridSearchCV`'s"
    lines.append([about, *(f"{gaps[n]:.0e}" for n in sizes)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _best(rows: list[dict[str, str]], n: str, start: str) -> float:
    """The best time of the contestants with this name, NaN where none ran."""
    times = [float(r["best_s"]) for r in rows if r["n"] == n and r["contestant"].startswith(start)]
    return min((t for t in times if t == t), default=float("nan"))


def _grid(markdown: str) -> str:
    """The size of the grid, and the machine's."""
    heading = next(line[3:] for line in markdown.splitlines() if line.startswith("## "))
    cores = re.findall(r"(\d+) logical cores", markdown)[-1]
    grid = heading.replace("gammas", "bandwidths").replace("lams", "lambdas")
    return f"{grid} of kernel ridge regression, {cores} cores"


def _agreement(markdown: str) -> dict[str, float]:
    """By n, from the table of agreement."""
    section = markdown.partition("## Agreement of the numbers")[2].partition("\n## ")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("|")
    ]
    head, _, *body = cells
    found = [dict(zip(head, line, strict=True)) for line in body]
    return {
        row["n"]: float(row["split_scores_max_rel"]) for row in found if row["contestant"] == OURS
    }


def insert(readme: str, made: str) -> str:
    """README with the table between its marks."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"README.md lacks the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{after}"


if __name__ == "__main__":
    old = README.read_text(encoding="utf-8")
    README.write_text(insert(old, table(HERE / "results")), encoding="utf-8")
