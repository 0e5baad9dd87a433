"""What a run leaves behind."""

from __future__ import annotations

import csv
from types import SimpleNamespace

import pytest

from onefit_papers import run


@pytest.fixture
def small(monkeypatch):
    """IEICE 2019 with 30 rows."""
    config = run.settings("ieice2019")["quick"] | {"n": 30, "counts": [1, 2], "ratio_trials": 1}
    monkeypatch.setattr(run, "settings", lambda paper: {"quick": config})
    return len(run.import_module("onefit_papers.ieice2019").units(config))


def test_a_run_writes_its_tables_as_csv_markdown_and_html(small, tmp_path, capsys):
    (page,) = run.reproduce("ieice2019", out=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "config.toml",
        "journal.jsonl",
        "results.csv",
        "results.html",
        "results.md",
    }
    assert f"{small} units, 0 of them finished" in capsys.readouterr().out
    rows = list(csv.DictReader((tmp_path / "results.csv").open()))
    assert {row["table"] for row in rows} == {"operations", "ratios", "figure 1", "agreement"}
    markdown, html = page.read_text(), page.with_suffix(".html").read_text()
    assert html.count("<table>") == markdown.count("|---|\n") > 4
    assert html.count("<tr>") == sum(
        line.startswith("|") and not line.startswith("|---") for line in markdown.splitlines()
    )
    for heading in [line[3:] for line in markdown.splitlines() if line.startswith("## ")]:
        assert f"<h2>{heading}</h2>" in html


def test_fewer_replicates_cut_every_count_and_nothing_else():
    config = {"replicates": 10, "sets": ["a"]}
    assert run._cut(config, 3) == {"replicates": 3, "sets": ["a"]}
    timings = {"trials": 30, "ratio_trials": 2, "counts": [1, 8]}
    assert run._cut(timings, 4) == {"trials": 4, "ratio_trials": 2, "counts": [1, 8]}
    assert run._cut(config, None) == config
    assert run._cut({"n": 5}, 3) == {"n": 5}
    with pytest.raises(ValueError, match="replicates must be at least 1"):
        run._cut(config, 0)


def test_timed_units_run_first_and_one_by_one(monkeypatch):
    experiment = SimpleNamespace(__name__="pretend", timed=lambda unit: unit["n"] % 2 == 1)
    monkeypatch.setattr(run, "_one", lambda name, unit, loader: (unit, []))
    monkeypatch.setattr(run, "Parallel", lambda **given: lambda work: (f(*a) for f, a, _ in work))
    units = [{"n": n} for n in range(5)]
    assert [unit["n"] for unit, _ in run._finished(experiment, units, None, 2)] == [1, 3, 0, 2, 4]
    assert [unit["n"] for unit, _ in run._finished(experiment, units, None, 1)] == [0, 1, 2, 3, 4]


def test_a_full_run_from_uncommitted_changes_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(run, "commit", lambda: "abc-dirty")
    with pytest.raises(RuntimeError, match=r"differ from their last commit.*--allow-dirty"):
        run.reproduce("ieice2019", "full", out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_page_names_the_commits_and_machines_that_measured(small, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "commit", lambda: "abc-dirty")
    monkeypatch.setattr(run, "machine", lambda: "a laptop")
    (page,) = run.reproduce("ieice2019", out=tmp_path)
    assert "- command: `onefit-papers ieice2019 --quick --jobs 1`\n" in page.read_text()
    assert "- machine: a laptop\n" in page.read_text()
    assert "- commit: abc-dirty\n" in page.read_text()
    lines = (tmp_path / "journal.jsonl").read_text().splitlines()
    (tmp_path / "journal.jsonl").write_text("".join(line + "\n" for line in lines[:2]))
    monkeypatch.setattr(run, "commit", lambda: "def")
    monkeypatch.setattr(run, "machine", lambda: "a server")
    (page,) = run.reproduce("ieice2019", out=tmp_path)
    left = small - 2
    assert f"- machine: a laptop (2 units); a server ({left} units)\n" in page.read_text()
    assert f"- commit: abc-dirty (2 units); def ({left} units)\n" in page.read_text()
