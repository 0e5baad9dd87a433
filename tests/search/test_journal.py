"""Journals: what is finished stays finished, whatever kills the search."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification, make_friedman1
from sklearn.model_selection import KFold

import onefit
from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.search import workers
from onefit.search.journal import JournalError, describe

X, y = make_friedman1(40, random_state=0)
Z, labels = make_classification(60, random_state=0)
GRID = {"gamma": [0.1, 1.0, 2.0], "lam": [1e-3, 1e-1], "fit_intercept": [True, False]}


def make(path=None, **options):
    return KernelSearchCV(KernelRegressor(), GRID, **{"cv": 3, "journal": path} | options)


def count(path) -> int:
    with sqlite3.connect(path) as connection:
        return connection.execute("SELECT COUNT(*) FROM jobs").fetchone()[0]


def check_same(one, other) -> None:
    assert list(one.cv_results_) == list(other.cv_results_)
    for name, values in other.cv_results_.items():
        if "time" not in name:
            np.testing.assert_array_equal(one.cv_results_[name], values)
    np.testing.assert_array_equal(one.heldout_.values, other.heldout_.values)
    assert one.best_params_ == other.best_params_


@pytest.fixture
def ran(monkeypatch):
    """The kernels that are worked on."""
    found = []
    run_job = workers.run_job

    def note(task, job, *rest):
        found.append(job.kernel)
        return run_job(task, job, *rest)

    monkeypatch.setattr(workers, "run_job", note)
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "eigen", "scoring": ["r2", "neg_max_error"], "refit": "r2"},
        {"aggregate": "pooled", "keep_heldout": "all"},
        {"lam_per_target": True},
        {"method": "race"},
    ],
)
def test_a_finished_search_is_read_not_run(tmp_path, ran, options):
    path = tmp_path / "journal.sqlite"
    first = make(path, **options).fit(X, y)
    assert ran
    ran.clear()
    check_same(make(path, **options).fit(X, y), first)
    assert ran == []
    check_same(first, make(**options).fit(X, y))


class Interrupting:
    """A callback that interrupts after so many kernels."""

    def __init__(self, after: int) -> None:
        self.left = after

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **_):
        pass

    def on_fit_task_end(self, estimator, context, **_):
        if context.task_name == "kernel":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt

    def teardown(self, estimator, context):
        pass


def test_an_interrupted_search_goes_on(tmp_path, ran):
    path = tmp_path / "journal.sqlite"
    search = make(path).set_callbacks(Interrupting(2))
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    assert not hasattr(search, "cv_results_")
    assert count(path) == 2
    done = list(ran)
    ran.clear()
    search = make(path).fit(X, y)
    assert len(ran) == 1
    assert not set(ran) & set(done)
    check_same(search, make().fit(X, y))


def test_another_choice_of_the_plan_loses_nothing(tmp_path, ran, monkeypatch):
    path = tmp_path / "journal.sqlite"
    monkeypatch.setattr("onefit.plan.choice.AUTO", {True: ("block",), False: ("exact",)})
    first = make(path).fit(X, y)
    assert set(first.cv_results_["method"]) == {"block"}
    ran.clear()
    monkeypatch.setattr("onefit.plan.choice.AUTO", {True: ("eigen",), False: ("exact",)})
    assert set(make().fit(X, y).cv_results_["method"]) == {"eigen"}
    ran.clear()
    check_same(make(path).fit(X, y), first)
    assert ran == []


def test_workers_write_through_one_hand(tmp_path):
    path = tmp_path / "journal.sqlite"
    with joblib.parallel_config("loky", n_jobs=2):
        make(path).fit(X, y)
    assert count(path) == 3


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"cv": 4}, "splits was 3 splits"),
        ({"cv": KFold(3, shuffle=True, random_state=0)}, "splits was 3 splits"),
        ({"method": "block"}, "method was 'auto', is 'block'"),
        ({"scoring": "neg_max_error"}, "scoring was None, is 'neg_max_error'"),
        ({"aggregate": "median"}, "aggregate was mean, is median"),
        ({"estimator": KernelRegressor(degree=4)}, "estimator.degree was 3, is 4"),
        ({"param_grid": GRID | {"lam": [1e-3, 1.0]}}, "values of lam was 0.001, 0.1, is 0.001, 1"),
        ({"param_grid": {"gamma": [0.1]}}, "values of lam was 0.001, 0.1, is absent"),
    ],
)
def test_other_settings_are_refused_and_named(tmp_path, ran, change, named):
    path = tmp_path / "journal.sqlite"
    make(path).fit(X, y)
    ran.clear()
    with pytest.raises(JournalError, match="made from other data or settings") as caught:
        make(path).set_params(**change).fit(X, y)
    assert named in str(caught.value)
    assert ran == []
    assert count(path) == 3


def test_other_data_are_refused_and_named(tmp_path):
    path = tmp_path / "journal.sqlite"
    make(path).fit(X, y)
    other = X.copy()
    other[7, 3] = np.nextafter(other[7, 3], 1)
    with pytest.raises(JournalError, match=r": X was float64 array of shape \(40, 10\)") as caught:
        make(path).fit(other, y)
    assert "; " not in str(caught.value)  # nothing but X differs
    with pytest.raises(JournalError, match=r": y was"):
        make(path).fit(X, y[::-1])
    with pytest.raises(JournalError, match="sample_weight was None"):
        make(path).fit(X, y, sample_weight=np.arange(1, 41))


def test_settings_that_do_not_matter_do_not_matter(tmp_path, ran):
    path = tmp_path / "journal.sqlite"
    make(path).fit(X, y)
    ran.clear()
    make(path, n_jobs=1, rule="one_se", keep_heldout="all", verbose=0).fit(X.tolist(), y.tolist())
    assert ran == []


def test_files_that_are_no_journal(tmp_path):
    path = tmp_path / "journal.sqlite"
    path.write_text("a letter to my aunt, long enough to be no header of a database")
    with pytest.raises(JournalError, match="is not a journal"):
        make(path).fit(X, y)
    assert "aunt" in path.read_text()
    with pytest.raises(JournalError, match="there is no folder"):
        make(tmp_path / "no" / "journal").fit(X, y)


def test_a_classifier_with_text_labels(tmp_path, ran):
    path = tmp_path / "journal.sqlite"
    words = np.array(["no", "yes"], dtype=object)[labels]
    options = {"cv": 3, "journal": path}
    first = KernelSearchCV(KernelClassifier(), {"lam": [1e-2, 1.0]}, **options).fit(Z, words)
    ran.clear()
    again = KernelSearchCV(KernelClassifier(), {"lam": [1e-2, 1.0]}, **options).fit(Z, words)
    check_same(again, first)
    assert ran == []


def test_descriptions_are_the_same_in_another_process():
    def function(a, b):
        return a @ b.T

    described = describe({"kernel": function, "object": object(), "n": np.float64(0.1)})
    assert "0x" not in described
    assert "n=0.1" in described
    assert describe(X) != describe(X + 1e-12)
    assert describe(X) != describe(X.astype(np.float32))
    assert describe(sparse.csr_matrix(X)) == describe(sparse.csc_matrix(X))


PROGRAM = """
import sys, time
from test_journal_program import search, X, y
from onefit.search import workers

run_job = workers.run_job

def slowly(task, job, *rest):
    print("begin", job.kernel.gamma, flush=True)
    found = run_job(task, job, *rest)
    time.sleep(0.01)
    return found

class Telling:
    def setup(self, estimator, context): pass
    def teardown(self, estimator, context): pass
    def on_fit_task_begin(self, estimator, context, **_): pass
    def on_fit_task_end(self, estimator, context, **_):
        if context.task_name == "kernel":
            print("end", context.task_id, flush=True)

workers.run_job = slowly
search(sys.argv[1]).set_callbacks(Telling()).fit(X, y)
print("finished", flush=True)
"""
SEARCH = """
import numpy as np
from sklearn.datasets import make_friedman1
from onefit import KernelRegressor, KernelSearchCV

X, y = make_friedman1(60, random_state=0)
GRID = {"gamma": np.logspace(-3, 1, 40), "lam": np.logspace(-5, 0, 5)}

def search(path):
    return KernelSearchCV(KernelRegressor(), GRID, cv=3, method="block", journal=path)
"""


def run_and_kill(folder, path, delay: float | None) -> list[str]:
    """Run the program, kill it (signal 9) so long after its first line, and return what it said."""
    command = [sys.executable, "-c", PROGRAM, str(path)]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, text=True, env=_environment(folder)
    ) as child:
        assert child.stdout is not None
        said = [child.stdout.readline()]
        if delay is not None:
            time.sleep(delay)
            child.send_signal(signal.SIGKILL)
        said += child.stdout.readlines()
    return [line.strip() for line in said if line.endswith("\n")]


def _environment(folder) -> dict[str, str]:
    source = Path(onefit.__file__).parents[1]
    return os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{source}"}


def check_kills(folder, kills: int, seed: int) -> None:
    (folder / "test_journal_program.py").write_text(SEARCH)
    path = folder / "journal.sqlite"
    delays = random.Random(seed)
    program: dict[str, Any] = {}
    exec(SEARCH, program)
    gammas = program["GRID"]["gamma"].tolist()
    finished: set[float] = set()
    counts = [0]
    for _ in range(kills):
        said = run_and_kill(folder, path, delays.uniform(0.0, 0.8 / kills))
        assert not begun(said) & finished  # nothing finished is done again
        finished |= {gammas[place] for place in ended(said)}
        counts.append(count(path))
        assert counts[-1] >= max(len(finished), counts[-2])  # what was told is kept
    assert any(0 < one < 40 for one in counts)
    said = run_and_kill(folder, path, None)
    assert said[-1] == "finished"
    assert len(begun(said)) == 40 - counts[-1]
    assert ended(said) == set(range(40))
    resumed, straight = (program["search"](one) for one in (path, None))
    check_same(*(one.fit(program["X"], program["y"]) for one in (resumed, straight)))


def begun(said: list[str]) -> set[float]:
    return {float(line.split()[1]) for line in said if line.startswith("begin")}


def ended(said: list[str]) -> set[int]:
    return {int(line.split()[1]) for line in said if line.startswith("end")}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no signal 9")
def test_killed_at_random_moments(tmp_path):
    check_kills(tmp_path, kills=3, seed=0)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no signal 9")
@pytest.mark.parametrize("seed", range(1, 4))
def test_killed_at_many_random_moments(tmp_path, seed):
    check_kills(tmp_path, kills=15, seed=seed)
