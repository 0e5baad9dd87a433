"""Pieces of pages made from results that are committed, and from results that are not."""

from __future__ import annotations

import csv
import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"

PAGE = """# A paper

- command: `onefit-papers jmlr2008 --full --jobs 2`
- cut: 3: replicates
- machine: a machine
- commit: abc

## Table 1

| not | a | **held** | claim |
|---|---|---|---|

## Claims

| where | claim | verdict | evidence |
|---|---|---|---|
| T | one | **held** | e |
| T | two | **not held** | e |
| T | three | **held** | e |
| T | two | **held** | in a variant |
"""


@pytest.fixture(scope="module")
def findings():
    sys.path.insert(0, str(ROOT / "docs"))
    yield importlib.import_module("findings")
    sys.path.remove(str(ROOT / "docs"))


@pytest.fixture
def experiments(tmp_path):
    (tmp_path / "jmlr2008").mkdir()
    (tmp_path / "jmlr2008" / "results.md").write_text(PAGE)
    return tmp_path


def test_columns_of_a_table(findings, tmp_path):
    (tmp_path / "some.csv").write_text("set,rows,error,time\nx.y,10,0.123456,1\n")
    text = findings.columns("some", ["set", "rows", "error"], tmp_path)
    assert text.endswith("| x.y | 10 | 0.123 |")
    (tmp_path / "some.md").write_text("all of it")
    assert "(results/some.md)" in findings.columns("some", ["set"], tmp_path)
    assert "not committed" in findings.columns("other", ["set"], tmp_path)


def test_coverage_of_the_intervals(findings, tmp_path):
    assert "Not measured" in findings.coverage(tmp_path)
    names = "law,metric,n,sets,error,covers,se,width,plain covers,first order covers,bias"
    (tmp_path / "coverage.csv").write_text(
        f"{names}\ncoin,accuracy,100,300,0.407,0.98,0.008,0.2777,0.6166,0.9,1\n"
        "skewed,rmse,50,400,1.7,0.905,0.0147,3.9,0.5,0.8275,1\n"
    )
    lines = findings.coverage(tmp_path).splitlines()
    assert lines[2] == "| coin | accuracy | 100 | 300 | 0.407 | 0.278 | 98% | 90% | 62% |"
    assert lines[-1] == (
        "The least share is 90.5% (standard error 1.5%; skewed, rmse, 50 rows); of the 2 shares, 1 "
        "are below 95% by more than two standard errors."
    )


def test_claims_of_a_paper(findings, experiments):
    text = findings.claims("jmlr2008", experiments)
    assert text.startswith("Of 3 claims, in the main reading: 2 held, 1 not held, 0 not testable.")
    assert "| T | two | **not held** | e |" in text
    assert "Table 1" not in text
    assert "`onefit-papers jmlr2008 --full --jobs 2` at commit abc on a machine" in text
    assert "Less than in the paper: 3: replicates." in text
    assert "(results/jmlr2008.md)" in text


def test_results_that_are_not_committed_are_said_not_to_be(findings, experiments):
    assert "not committed" in findings.claims("ins2016", experiments)
    lines = findings.verdicts(experiments).splitlines()
    assert lines[2] == "| [jmlr2008](jmlr2008.md) | 2 | 1 | 0 |"
    assert all("not committed" in line for line in lines[3:])
    assert len(lines) == 2 + len(findings.PAPERS)


def test_the_papers_are_those_with_committed_results(findings):
    if not findings.EXPERIMENTS.is_dir():
        pytest.skip("a source distribution has no results of the papers")
    committed = {page.parent.name for page in findings.EXPERIMENTS.glob("*/results.md")}
    assert set(findings.PAPERS) == committed


def test_headlines_of_no_benchmark(findings, tmp_path):
    assert "No benchmark is committed" in findings.headlines(tmp_path)


def test_every_committed_benchmark_with_a_headline_has_a_link(findings):
    text = findings.headlines()
    for name in ("exact_search", "influence_path", "svm_search", "accuracy", "svm_limit"):
        assert (f"(results/{name}.md)" in text) == (RESULTS / f"{name}.md").exists()
    assert "nan" not in text


def _write(path, rows):
    with path.open("w") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_ratios_of_the_path(findings, tmp_path):
    names = {"(a) full-sample path": 2.0, "(b) limit": 3.0, "(c) exact": 4.0, "(d) refit": 16.0}
    rows = [
        {"loss": loss, "n": 9, "contestant": name, "best_s": seconds}
        for loss in ("huber", "log")
        for name, seconds in names.items()
    ]
    _write(tmp_path / "influence_path.csv", rows[:-1])
    lines = findings.influence_path(tmp_path).splitlines()
    assert lines[-2:] == [
        "| `huber` | 9 | 1.5 | 2 | 8 | 4 |",
        "| `log` | 9 | 1.5 | 2 | - | - |",
    ]


def test_searches_for_the_svm(findings, tmp_path):
    base = {"set": "heart", "n": 270}
    rows = [
        base | {"contestant": "onefit exact", "faster_than_svc": 3.81},
        base | {"contestant": "onefit race", "faster_than_svc": ""},
        base | {"contestant": "scikit-learn GridSearchCV(SVC)", "faster_than_svc": 1},
    ]
    _write(tmp_path / "svm_search.csv", rows)
    lines = findings.svm_search(tmp_path).splitlines()
    assert lines[2:] == [
        "| heart | 270 | onefit exact | 3.8 |",
        "| heart | 270 | onefit race | - |",
    ]


def test_accuracy_takes_the_worst(findings, tmp_path):
    ways = ("order 1", "order 3", "order 8", "limit", "exact")
    rows = [
        {"lam": 0.1} | dict.fromkeys(ways, 0.25) | {"order 8": "nan"},
        {"lam": 0.1} | dict.fromkeys(ways, 0.01) | {"limit": 0.5},
    ]
    _write(tmp_path / "accuracy.csv", rows)
    last = findings.accuracy(tmp_path).splitlines()[-1]
    assert last == "| 0.1 | 2e-01 | 2e-01 | 1e-02 | 5e-01 | 2e-01 |"


def test_the_limit_of_the_hinge(findings, tmp_path):
    rows = [
        {"set": "a", "gap 1": 0.2, "gap 0.1": 0.05},
        {"set": "b", "gap 1": 0.1, "gap 0.1": 0.07},
    ]
    _write(tmp_path / "svm_limit.csv", rows)
    assert findings.svm_limit(tmp_path).splitlines()[-3:] == [
        "| delta | 1 | 0.1 |",
        "| --- | --- | --- |",
        "| difference | 0.2 | 0.07 |",
    ]
