"""The table and picture of the README are those of the committed benchmarks; links lead on."""

from __future__ import annotations

import csv
import re
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
README = (ROOT / "README.md").read_text(encoding="utf-8")


sys.path.insert(0, str(ROOT / "benchmarks"))
import readme_picture  # noqa: E402
import readme_table  # noqa: E402

sys.path.remove(str(ROOT / "benchmarks"))


def test_the_table_is_that_of_the_committed_benchmark():
    made = readme_table.table(RESULTS)
    assert readme_table.insert(README, made) == README, "run `make readme`"


def test_the_ratios_are_those_of_the_csv():
    with (RESULTS / "exact_search.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["part"] == "kfold"]
    best = {(row["n"], row["contestant"]): float(row["best_s"]) for row in rows}
    lines = [line.split("|")[1:-1] for line in readme_table.table(RESULTS).splitlines()]
    sizes = [cell.split("=")[1].strip() for cell in lines[0][1:]]
    assert len(sizes) > 1
    for i, n in enumerate(sizes, 1):
        ours = best[n, readme_table.OURS]
        assert float(lines[2][i].split()[0]) == pytest.approx(ours, rel=0.06)
        for line, start in zip(lines[3:5], readme_table.PEERS.values(), strict=True):
            peer = min(s for (size, who), s in best.items() if size == n and who.startswith(start))
            assert float(line[i].split()[0]) == pytest.approx(peer / ours, rel=0.06)


def test_the_fastest_peer_counts_and_one_that_did_not_run_is_left_open(tmp_path):
    shutil.copy(RESULTS / "exact_search.md", tmp_path)
    seconds = {
        readme_table.OURS: 2.0,
        "scikit-learn GridSearchCV(KernelRidge)": 8.0,
        "himalaya, gammas in parallel": 6.0,
        "himalaya, gammas in turn": 5.0,
    }
    rows = [
        {"part": "kfold", "n": n, "contestant": name, "best_s": value}
        for n in (500, 1000)
        for name, value in seconds.items()
    ]
    for row in rows[-2:]:
        row["best_s"] = "nan"
    with (tmp_path / "exact_search.csv").open("w") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows([*rows, rows[0] | {"part": "loo", "best_s": 0.1}])
    lines = [line.split(" | ")[1:] for line in readme_table.table(tmp_path).splitlines()]
    assert lines[2] == ["2 s", "2 s |"]
    assert lines[3] == ["4 times as long", "4 times as long |"]
    assert lines[4] == ["2.5 times as long", "- |"]


def test_a_readme_without_the_marks_is_refused():
    with pytest.raises(ValueError, match="lacks the marks"):
        readme_table.insert("# onefit\n", "| |")


@pytest.mark.parametrize("name", readme_picture.PICTURES)
def test_a_picture_is_small_and_of_the_committed_numbers(name):
    picture = readme_picture.ASSETS / f"{name}.svg"
    assert picture.stat().st_size < 100_000
    assert readme_picture.digest(name) in picture.read_text(encoding="utf-8"), "run `make readme`"


@pytest.mark.parametrize("name", readme_picture.PICTURES)
def test_a_picture_can_be_drawn(name, tmp_path):
    text = readme_picture.draw(name, tmp_path).read_text(encoding="utf-8")
    words = {
        "accuracy": (*readme_picture.LOSSES.values(), "order 8", "limit", "exact"),
        "speed": ("onefit", "himalaya", "GridSearchCV"),
        "quality": (*readme_picture.RIVALS.values(), "smaller error"),
    }
    assert readme_picture.digest(name) in text
    assert all(word in text for word in words[name])


def test_every_link_of_the_readme_leads_to_a_file():
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert len(links) > 10
    if not (ROOT / "papers").is_dir():  # a distribution of its own
        links = [link for link in links if not link.startswith("papers/")]
    missing = [link for link in links if "://" not in link and not (ROOT / link).exists()]
    assert not missing
