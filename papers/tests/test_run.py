"""The files that a run leaves behind, and how it resumes."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from onefit_papers import __main__ as command
from onefit_papers import provenance, run

#: timings of IEICE 2019, twice each: the quickest run of all
QUICK = {"paper": "ieice2019", "replicates": 2}
UNITS = 12
#: a terminal's Ctrl-C arrives as it does here, whatever the parent process ignores
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from onefit_papers.__main__ import main; main()"
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a finished run."""
    folder = tmp_path_factory.mktemp("finished")
    run.reproduce(**QUICK, out=folder)
    return folder


def entries(folder):
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]


def test_a_run_writes_its_tables_as_csv_markdown_and_html(finished, tmp_path, capsys):
    folder = shutil.copytree(finished, tmp_path / "again")
    before = (folder / "journal.jsonl").read_text()
    (page,) = run.reproduce(**QUICK, out=folder)
    assert f"{UNITS} units, {UNITS} of them finished before" in capsys.readouterr().out
    assert (folder / "journal.jsonl").read_text() == before
    assert {path.name for path in folder.iterdir()} == {
        "config.toml",
        "journal.jsonl",
        "results.csv",
        "results.html",
        "results.md",
    }
    for path in folder.iterdir():
        assert path.read_bytes() == (finished / path.name).read_bytes()
    rows = list(csv.DictReader((folder / "results.csv").open()))
    assert {row["table"] for row in rows} == {"operations", "ratios", "figure 1", "agreement"}
    markdown, html = page.read_text(), page.with_suffix(".html").read_text()
    assert html.count("<table>") == markdown.count("|---|\n") > 4
    assert html.count("<tr>") == sum(
        line.startswith("|") and not line.startswith("|---") for line in markdown.splitlines()
    )
    for heading in [line[3:] for line in markdown.splitlines() if line.startswith("## ")]:
        assert f"<h2>{heading}</h2>" in html


def test_units_run_replicate_by_replicate(finished):
    counts = [entry["unit"]["replicate"] for entry in entries(finished)]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1], len(counts)) == (0, 1, UNITS)


def test_fewer_replicates_cut_every_count_and_nothing_else():
    config = {"replicates": 10, "sets": ["a"]}
    assert run._cut(config, 3) == {"replicates": 3, "sets": ["a"]}
    timings = {"trials": 30, "ratio_trials": 2, "counts": [1, 8]}
    assert run._cut(timings, 4) == {"trials": 4, "ratio_trials": 2, "counts": [1, 8]}
    assert run._cut(config, None) == config
    assert run._cut({"n": 5}, 3) == {"n": 5}
    with pytest.raises(ValueError, match="replicates must be at least 1"):
        run._cut(config, 0)


EXPERIMENT = """
def timed(unit):
    return unit["n"] % 2 == 1

def measure(unit, loader):
    return [unit["n"]]
"""


def test_timed_units_run_first_and_one_by_one(tmp_path, monkeypatch):
    (tmp_path / "pretended_experiment.py").write_text(EXPERIMENT)
    monkeypatch.syspath_prepend(tmp_path)
    experiment = SimpleNamespace(
        __name__="pretended_experiment", timed=lambda unit: unit["n"] % 2 == 1
    )
    units = [{"n": n} for n in range(5)]
    found = list(run._finished(experiment, units, None, 2))
    assert all(rows == [unit["n"]] for unit, rows in found)
    order = [unit["n"] for unit, _ in found]
    assert order[:2] == [1, 3]
    assert set(order[2:]) == {0, 2, 4}
    assert [unit["n"] for unit, _ in run._finished(experiment, units, None, 1)] == [0, 1, 2, 3, 4]


def test_a_full_run_from_uncommitted_changes_is_refused(tmp_path):
    tree = tmp_path / "tree"
    for package in provenance.SOURCES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(package, tree / package.name, ignore=ignored)
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for asked in (["init", "-q"], ["add", "-A"], [*author, "commit", "-qm", "one"]):
        subprocess.run(["git", "-C", str(tree), *asked], check=True)
    (tree / "onefit" / "new.py").write_text("")
    out = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-m", "onefit_papers", "ieice2019", "--full", "--out", str(out)],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == command.UNEXPECTED, done.stderr
    assert "differ from their last commit" in done.stderr
    assert "--allow-dirty" in done.stderr
    assert not out.exists()


def test_a_page_names_the_commits_and_machines_that_measured(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "again")
    there = {"commit": "abc-dirty", "machine": "a laptop"}
    kept = [json.dumps(entry | there) + "\n" for entry in entries(folder)[:10]]
    (folder / "journal.jsonl").write_text("".join(kept))
    (page,) = run.reproduce(**QUICK, out=folder)
    text = page.read_text()
    assert "- command: `onefit-papers ieice2019 --quick --jobs 1 --replicates 2`\n" in text
    assert f"- machine: a laptop (10 units); {provenance.machine()} (2 units)\n" in text
    assert f"- commit: abc-dirty (10 units); {provenance.commit()} (2 units)\n" in text


def test_an_interrupted_run_goes_on(tmp_path, capsys):
    source = os.pathsep.join(str(Path(one).parent) for one in provenance.SOURCES)
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "ieice2019", "--replicates", "2", "--out", str(tmp_path)],
        env=os.environ | {"PYTHONPATH": source},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    while not (tmp_path / "journal.jsonl").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == command.INTERRUPTED, told
    assert told == "onefit-papers: interrupted; the same command continues\n"
    before = entries(tmp_path)
    assert 1 <= len(before) < UNITS
    assert not (tmp_path / "results.md").exists()
    (page,) = run.reproduce(**QUICK, out=tmp_path)
    assert f"{UNITS} units, {len(before)} of them finished before" in capsys.readouterr().out
    assert entries(tmp_path)[: len(before)] == before
    assert len(entries(tmp_path)) == UNITS
    assert page.exists()


def test_wrong_arguments():
    with pytest.raises(ValueError, match="did you mean 'icml2014'"):
        run.reproduce("icml2013")
    with pytest.raises(ValueError, match="mode='fast' is not known"):
        run.reproduce("ieice2019", "fast")
