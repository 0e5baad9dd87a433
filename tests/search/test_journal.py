"""Journals: what is finished stays finished, whatever kills the search."""

from __future__ import annotations

import functools
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification, make_friedman1
from sklearn.model_selection import KFold

import onefit
from onefit import (
    Interval,
    KernelClassifier,
    KernelRegressor,
    KernelSearchCV,
    _version,
    coarse_to_fine,
)
from onefit._describe import describe
from onefit.cli.run import Diary
from onefit.heldout import Block, Influence, Prepared
from onefit.linalg import LinAlgError
from onefit.search import journal, sealed, workers
from onefit.search.journal import JournalError

X, y = make_friedman1(40, random_state=0)
Z, labels = make_classification(60, random_state=0)
GRID = {"gamma": [0.1, 1.0, 2.0], "lam": [1e-3, 1e-1], "fit_intercept": [True, False]}


def make(path=None, **options):
    return KernelSearchCV(KernelRegressor(), GRID, **{"cv": 3, "journal": path} | options)


def ask(path, statement: str):
    """The first row of the answer, if there is one."""
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement).fetchone()


def count(path) -> int:
    """Entries in a journal, one for each machine."""
    return ask(path, "SELECT COUNT(*) FROM jobs")[0]


def check_same(one, other) -> None:
    assert list(one.cv_results_) == list(other.cv_results_)
    for name, values in other.cv_results_.items():
        if "time" not in name:
            np.testing.assert_array_equal(one.cv_results_[name], values)
    np.testing.assert_array_equal(one.heldout_.values, other.heldout_.values)
    assert one.best_params_ == other.best_params_


def check_close(one, other) -> None:
    """The same up to rounding: starting points differ."""
    assert list(one.cv_results_) == list(other.cv_results_)
    for name, values in other.cv_results_.items():
        if "_test_" in name and "rank" not in name:
            np.testing.assert_allclose(one.cv_results_[name], values, rtol=1e-5, atol=1e-7)
    for name in ("params", "method", "exact", "reason"):
        assert list(one.cv_results_[name]) == list(other.cv_results_[name])
    assert one.best_params_ == other.best_params_


def choose_only(monkeypatch, method: str) -> None:
    """Let the cost model choose this method, whatever the machine's speed."""
    monkeypatch.setattr("onefit.plan.choice.AUTO", {True: (method,), False: ("exact",)})


@pytest.fixture
def ran(monkeypatch):
    """What is worked on: gamma, intercept and lam."""
    found = []
    run_job = workers.run_job

    def note(task, job, *rest):
        for one in job.machines:
            gamma = getattr(job.kernel, "gamma", None)
            found.extend((gamma, one.estimator.fit_intercept, lam) for lam in one.lams)
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
    assert count(path) == 4
    done = list(ran)
    ran.clear()
    search = make(path).fit(X, y)
    assert len(ran) == 4
    assert not set(ran) & set(done)
    check_same(search, make().fit(X, y))


def test_another_choice_of_the_plan_loses_nothing(tmp_path, ran, monkeypatch):
    path = tmp_path / "journal.sqlite"
    choose_only(monkeypatch, "block")
    first = make(path).fit(X, y)
    assert set(first.cv_results_["method"]) == {"block"}
    ran.clear()
    choose_only(monkeypatch, "eigen")
    assert set(make().fit(X, y).cv_results_["method"]) == {"eigen"}
    ran.clear()
    check_same(make(path).fit(X, y), first)
    assert ran == []


def test_workers_write_through_one_hand(tmp_path):
    path = tmp_path / "journal.sqlite"
    with joblib.parallel_config("loky", n_jobs=2):
        make(path).fit(X, y)
    assert count(path) == 6


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"cv": 4}, "splits was 3 splits"),
        ({"cv": KFold(3, shuffle=True, random_state=0)}, "splits was 3 splits"),
        ({"method": "block"}, "method was 'auto', is 'block'"),
        ({"scoring": "neg_max_error"}, "scoring was None, is 'neg_max_error'"),
        ({"aggregate": "median"}, "aggregate was mean, is median"),
        ({"estimator": KernelRegressor(degree=4)}, "estimator.degree was 3, is 4"),
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
    assert count(path) == 6


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
    source = "lambda a, b={'b', 'c', 'd'}: [c for c in a if c in {'e', 'f', 'g'}]"
    program = f"from onefit._describe import describe; print(describe({source}))"
    said = subprocess.check_output(
        [sys.executable, "-c", program], env=_environment("."), text=True
    )
    assert said.strip() == describe(eval(source, {"__name__": "__main__"}))


class Holder:
    """An object that says nothing of what it holds."""

    def __init__(self, value) -> None:
        self.value = value

    def kernel(self, a, b):
        return a @ b.T + self.value


@dataclass
class Weighted:
    """An object whose words for itself leave digits out."""

    weights: Any


def power(exponent):
    return lambda a, b: (a @ b.T) ** exponent


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda a, b: a @ b.T, lambda a, b: a @ b.T + 1),
        (lambda a, b: a.sum(b), lambda a, b: a.min(b)),
        (lambda: [i + 1 for i in "a"], lambda: [i + 2 for i in "a"]),
        (lambda a, b=1: a, lambda a, b=2: a),
        (power(2), power(3)),
        (functools.partial(power, 2), functools.partial(power, 3)),
        (functools.partial(power(2), 1), functools.partial(power(3), 1)),
        (Weighted(X), Weighted(X + 1e-12)),
        (Holder(1), Holder(2)),
        (Holder(X), Holder(X + 1e-12)),
        (Holder(1).kernel, Holder(2).kernel),
        ([Holder(1)], [Holder(2)]),
        (
            onefit.kernels.WeightedSum((onefit.kernels.CallableKernel(power(2)),), (1.0,)),
            onefit.kernels.WeightedSum((onefit.kernels.CallableKernel(power(3)),), (1.0,)),
        ),
    ],
)
def test_different_values_are_described_differently(one, other):
    assert describe(one) != describe(other)
    assert describe(one) == describe(one)


def test_a_value_inside_itself_is_described():
    holder = Holder(1)
    holder.value = [holder]
    assert describe(holder).endswith("...]}")


# --- other grids


def wanted(grid) -> set:
    search = KernelSearchCV(KernelRegressor(), grid, refit=False)
    return {
        (one.get("gamma"), one.get("fit_intercept", True), one["lam"])
        for one in onefit.search.grid.candidates(search.estimator, grid)
    }


@pytest.mark.parametrize("method", ["block", "auto"])
@pytest.mark.parametrize(
    "change",
    [
        {"gamma": [0.5, 0.1, 1.0, 2.0]},
        {"gamma": [2.0]},
        {"lam": [1e-1, 1e-3]},
        {"lam": [1e-1]},
        {"lam": [1e-4, 1e-3, 1e-2, 1e-1, 1.0]},
        {"lam": [1e-3, 1e-3, 1.0]},
        {"fit_intercept": [False]},
        {"gamma": [0.1, 4.0], "lam": [1e-2, 1e-3]},
        {"scaling": ["mean"]},
    ],
    ids=str,
)
def test_other_grids_continue_a_journal(tmp_path, ran, monkeypatch, method, change):
    choose_only(monkeypatch, "block")
    path = tmp_path / "journal.sqlite"
    make(path, method=method).fit(X, y)
    ran.clear()
    other = make(path, method=method).set_params(param_grid=GRID | change).fit(X, y)
    assert set(ran) == wanted(GRID | change) - wanted(GRID)
    assert len(ran) == len(set(ran))
    ran.clear()
    check_same(make(path, method=method).set_params(param_grid=GRID | change).fit(X, y), other)
    assert ran == []
    check_close(other, make(method=method).set_params(param_grid=GRID | change).fit(X, y))
    ran.clear()
    make(path, method=method).fit(X, y)
    assert ran == []


def test_a_grid_that_grows_again_and_again(tmp_path, ran):
    path = tmp_path / "journal.sqlite"
    grid = GRID | {"lam": []}
    for lam in (1e-2, 1.0, 1e-4, 1e-1):
        ran.clear()
        grid["lam"] = [*grid["lam"], lam]
        found = make(path, method="block").set_params(param_grid=grid).fit(X, y)
        assert {one[2] for one in ran} == {lam}
        check_close(found, make(method="block").set_params(param_grid=grid).fit(X, y))


@pytest.mark.parametrize(("first", "then"), [("block", "eigen"), ("eigen", "block")])
def test_more_lams_go_on_with_the_method_that_began(tmp_path, ran, monkeypatch, first, then):
    path = tmp_path / "journal.sqlite"
    choose_only(monkeypatch, first)
    make(path).fit(X, y)
    choose_only(monkeypatch, then)
    ran.clear()
    grid = GRID | {"lam": [1e-3, 1e-1, 1.0]}
    found = make(path).set_params(param_grid=grid).fit(X, y)
    assert set(found.cv_results_["method"]) == {first}
    assert set(ran) == wanted(grid) - wanted(GRID)
    check_close(found, make(method=first).set_params(param_grid=grid).fit(X, y))
    ran.clear()
    check_same(make(path).set_params(param_grid=grid).fit(X, y), found)
    assert ran == []


def test_lams_by_a_direct_method_and_an_iteration_are_not_mixed(tmp_path, ran, monkeypatch):
    path = tmp_path / "journal.sqlite"
    choose_only(monkeypatch, "block")
    make(path).fit(X, y)
    monkeypatch.setattr("onefit.plan.choice.MIN_ITERATED_ROWS", 0)
    choose_only(monkeypatch, "iterative")
    ran.clear()
    grid = GRID | {"lam": [1e-3, 1e-1, 1.0]}
    found = make(path).set_params(param_grid=grid).fit(X, y)
    assert set(found.cv_results_["method"]) == {"iterative"}
    assert set(ran) == wanted(grid)
    ran.clear()
    check_same(make(path).set_params(param_grid=grid).fit(X, y), found)
    assert ran == []


@pytest.mark.parametrize(
    "options",
    [
        {"lam_per_target": True},
        {"method": "race"},
        {"criterion": "gcv"},
        {"aggregate": "pooled"},
        {"n_jobs": 2},
        {"method": "eigen"},
        {"method": "exact"},
        {"method": Influence(order=2)},
    ],
    ids=str,
)
def test_every_search_continues_with_more_lams(tmp_path, ran, monkeypatch, options):
    choose_only(monkeypatch, "block")
    path = tmp_path / "journal.sqlite"
    targets = np.column_stack([y, X[:, 0] + 0.01 * y]) if "lam_per_target" in options else y
    make(path, **options).fit(X, targets)
    ran.clear()
    grid = GRID | {"lam": [1e-4, 1e-3, 1e-1, 1.0]}
    found = make(path, **options).set_params(param_grid=grid).fit(X, targets)
    assert not set(ran) & wanted(GRID) or options == {"method": "race"}
    expected = make(**options).set_params(param_grid=grid).fit(X, targets)
    check_close(found, expected)
    if "lam_per_target" in options:
        np.testing.assert_array_equal(found.best_lam_, expected.best_lam_)


def test_a_race_limits_what_it_has_to_only_once(tmp_path, ran, monkeypatch):
    path = tmp_path / "journal.sqlite"
    make(path, method="race").fit(X, y)
    first = len(ran)
    ran.clear()
    grid = GRID | {"gamma": [0.1, 1.0, 2.0, 1e-6]}  # the new one has no chance
    make(path, method="race").set_params(param_grid=grid).fit(X, y)
    assert {one[0] for one in ran} == {1e-6}
    assert len(ran) < first


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_intervals_beside_lists_continue(tmp_path, monkeypatch, n_jobs):
    choose_only(monkeypatch, "eigen")
    path = tmp_path / "journal.sqlite"
    options = {"cv": 3, "n_jobs": n_jobs}
    some, more = (
        [
            {"gamma": gammas, "lam": Interval(1e-4, 1.0, points)},
            {"gamma": [1.0], "fit_intercept": [False], "lam": lams},
        ]
        for gammas, points, lams in (([0.1], 4, [1e-2]), ([0.1, 0.2], 7, [1e-3, 1e-2, 1e-1]))
    )
    KernelSearchCV(KernelRegressor(), some, journal=path, **options).fit(X, y)
    found = KernelSearchCV(KernelRegressor(), more, journal=path, **options).fit(X, y)
    check_close(found, KernelSearchCV(KernelRegressor(), more, **options).fit(X, y))


def test_from_coarse_to_fine_in_one_journal(tmp_path, ran, monkeypatch):
    choose_only(monkeypatch, "block")
    path = tmp_path / "journal.sqlite"
    found = coarse_to_fine(make(path), X, y, points=1)
    assert len(ran) == len(set(ran))  # neighbours of the winner are not run again
    check_close(found, coarse_to_fine(make(), X, y, points=1))


class Choosy(Block):
    """A method that fails where all lams are small."""

    name = "choosy"

    def prepare(self, problem, folds):
        return _Choosy(super().prepare(problem, folds))

    def __repr__(self):
        return "Choosy()"


@dataclass
class _Choosy(Prepared):
    block: Prepared

    def predict(self, lams):
        if max(lams) < 1e-2:
            raise LinAlgError("all too small")
        return self.block.predict(lams)


def test_new_lams_that_all_fail(tmp_path):
    path = tmp_path / "journal.sqlite"
    options = {"method": Choosy(), "aggregate": "pooled"}
    first = make(path, **options).fit(X, y)
    more = make(path, **options).set_params(param_grid=GRID | {"lam": [1e-3, 1e-1, 1e-4]})
    with pytest.warns(UserWarning, match="6 of 18 candidates have no score"):
        more.fit(X, y)
    lams = more.cv_results_["param_lam"]
    assert set(more.cv_results_["reason"][lams == 1e-4]) == {"all too small"}
    for name in ("split0_test_score", "pooled_test_score"):
        assert np.isnan(more.cv_results_[name][lams == 1e-4]).all()
        np.testing.assert_array_equal(more.cv_results_[name][lams != 1e-4], first.cv_results_[name])


def test_functions_without_a_name_are_told_apart(tmp_path):
    path = tmp_path / "journal.sqlite"
    one, two, three = (lambda a, b, p=p: (a @ b.T + 1.0) ** p for p in (1, 2, 3))
    for kernels in ([one, two], [three, two, one], [two]):
        grid = {"kernel": kernels, "lam": [1e-2, 1.0]}
        found, expected = (
            KernelSearchCV(KernelRegressor(), grid, cv=3, journal=journal).fit(X, y)
            for journal in (path, None)
        )
        np.testing.assert_array_equal(
            found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
        )


# --- places that will not do


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "journal='' names no file; give a path"),
        ("a\0b", "names no file"),
        (3, "journal=3 names no file"),
        (b"journal", "names no file"),
        (".", "journal='.' is a folder; name a file in it"),
        (Path(), "is a folder"),
        ("no/journal", "there is no folder 'no'; make it"),
        (os.devnull, "is no file that keeps anything"),
        ("n" * 300, "cannot be written (unable to open database file); make"),
    ],
)
def test_places_where_no_journal_can_be(tmp_path, ran, monkeypatch, name, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(JournalError) as caught:
        make(name).fit(X, y)
    assert words in str(caught.value)
    assert ran == []
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_sqlite_would_take_for_something_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make(":memory:").fit(X, y)
    assert count("./:memory:") == 6


def test_the_command_line_takes_no_folder_for_a_journal(tmp_path):
    for resume in (False, True):
        with pytest.raises(ValueError, match="is a folder; name a file"):
            Diary(tmp_path, resume).check()


def test_files_that_are_no_journal(tmp_path):
    path = tmp_path / "journal.sqlite"
    path.write_text("a letter to my aunt, long enough to be no header of a database")
    with pytest.raises(JournalError, match="is not a journal, or damaged"):
        make(path).fit(X, y)
    assert "aunt" in path.read_text()


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE aunts (name TEXT)"],
        ["CREATE TABLE about (name TEXT)"],
        ["CREATE TABLE about (a, b)", "CREATE TABLE jobs (c, d)"],
        ["CREATE VIEW about AS SELECT 1", "CREATE TABLE jobs (c, d)"],
        ["PRAGMA user_version = 3"],
    ],
    ids=str,
)
def test_databases_of_something_else(tmp_path, ran, statements):
    path = tmp_path / "aunts.sqlite"
    for statement in statements:
        ask(path, statement)
    before = path.read_bytes()
    with pytest.raises(JournalError, match="is not a journal, or damaged: the tables") as caught:
        make(path).fit(X, y)
    assert "name another file" in str(caught.value)
    assert path.read_bytes() == before
    assert ran == []


def test_journals_without_checksums_are_refused(tmp_path):
    path = tmp_path / "journal.sqlite"
    ask(path, "CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    ask(path, "CREATE TABLE IF NOT EXISTS jobs (key TEXT PRIMARY KEY, outcomes BLOB NOT NULL)")
    with pytest.raises(JournalError, match=r"another version of onefit \(\?, without checksums\)"):
        make(path).fit(X, y)
    ask(path, "INSERT INTO about VALUES ('onefit', '0.0.1')")
    with pytest.raises(JournalError, match=r"another version of onefit \(0.0.1, without") as caught:
        make(path).fit(X, y)
    assert f"this is {onefit.__version__}. Name another file" in str(caught.value)


def test_journals_of_another_version_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "journal.sqlite"
    make(path).fit(X, y)
    here = onefit.__version__
    monkeypatch.setattr(_version, "__version__", "99.1")
    with pytest.raises(JournalError, match="another version of onefit") as caught:
        make(path).fit(X, y)
    assert f"({here}), this is 99.1" in str(caught.value)


def connecting(monkeypatch, change, read_only: bool = False) -> None:
    """Open journals in another way."""
    connect = sealed._connect

    def changed(path):
        name = f"file:{path}?mode=ro" if read_only else path
        connection = sqlite3.connect(name, uri=read_only, timeout=sealed.PATIENCE)
        connection.text_factory = connect(path).text_factory if path.exists() else str
        change(connection)
        return connection

    monkeypatch.setattr(sealed, "_connect", changed)


@pytest.fixture
def unfinished(tmp_path):
    """A journal of two of three kernels."""
    path = tmp_path / "journal.sqlite"
    make(path).set_params(param_grid=GRID | {"gamma": [0.1, 1.0]}).fit(X, y)
    assert count(path) == 4
    return path


def test_a_journal_in_use_is_no_letter_to_an_aunt(unfinished, ran, monkeypatch):
    monkeypatch.setattr(sealed, "PATIENCE", 0.01)
    ran.clear()
    with closing(sqlite3.connect(unfinished, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(JournalError, match="is in use by another process") as caught:
            make(unfinished).fit(X, y)
        assert "waited 0.01 s" in str(caught.value)
        assert "Nothing in it was changed" in str(caught.value)
        other.execute("ROLLBACK")
        other.execute("BEGIN IMMEDIATE")  # may be read, but not written
        with pytest.raises(JournalError, match="in use by another process") as caught:
            make(unfinished).fit(X, y)
        assert "It still holds 4 entries" in str(caught.value)
        assert ran == []
        other.execute("ROLLBACK")
    make(unfinished).fit(X, y)
    assert {one[0] for one in ran} == {2.0}


def test_a_journal_that_comes_into_use_meanwhile(unfinished, monkeypatch):
    monkeypatch.setattr(sealed, "PATIENCE", 0.01)
    write = journal._Journal.write

    def write_while_locked(*args):
        with closing(sqlite3.connect(unfinished, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            write(*args)

    monkeypatch.setattr(journal._Journal, "write", write_while_locked)
    with pytest.raises(JournalError, match="in use by another process"):
        make(unfinished).fit(X, y)
    assert count(unfinished) == 4


def test_a_journal_in_use_is_not_taken_for_a_damaged_one(unfinished, monkeypatch):
    monkeypatch.setattr(sealed, "PATIENCE", 0.01)
    look_through = journal._Journal._look_through

    def look_through_while_locked(self):
        with closing(sqlite3.connect(unfinished, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            return look_through(self)

    monkeypatch.setattr(journal._Journal, "_look_through", look_through_while_locked)
    with pytest.raises(JournalError, match="in use by another process"):
        make(unfinished).fit(X, y)
    assert [one.name for one in unfinished.parent.iterdir()] == [unfinished.name]


def test_a_journal_that_cannot_be_written(tmp_path, unfinished, ran, monkeypatch):
    connecting(monkeypatch, lambda connection: None, read_only=True)
    ran.clear()
    with pytest.raises(JournalError, match=r"cannot be written \(.*readonly.*\); make the file"):
        make(unfinished).fit(X, y)
    assert ran == []  # refused before any work
    make(unfinished).set_params(param_grid=GRID | {"gamma": [0.1]}).fit(X, y)
    assert ran == []
    with pytest.raises(
        JournalError, match=r"cannot be written \(unable to open.*\); make the file"
    ):
        make(tmp_path / "new").fit(X, y)
    assert ran == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root writes anywhere")
def test_a_folder_that_cannot_be_written(tmp_path, unfinished):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(JournalError, match="cannot be written"):
            make(unfinished).fit(X, y)
        with pytest.raises(JournalError, match="cannot be written"):
            make(tmp_path / "new").fit(X, y)
    finally:
        tmp_path.chmod(0o700)


def test_a_full_disk_loses_nothing_that_was_written(tmp_path, ran, monkeypatch):
    path = tmp_path / "journal.sqlite"
    grid = GRID | {"gamma": np.logspace(-2, 1, 12)}
    with monkeypatch.context() as patch:
        connecting(patch, lambda connection: connection.execute("PRAGMA max_page_count = 25"))
        with pytest.raises(JournalError, match="disk is full") as caught:
            make(path).set_params(param_grid=grid).fit(X, y)
    kept = count(path)
    assert 4 <= kept < 24
    assert f"It still holds {kept} entries" in str(caught.value)
    assert "make room on its disk and run the search again" in str(caught.value)
    ran.clear()
    found = make(path).set_params(param_grid=grid).fit(X, y)
    assert len(ran) == 48 - 2 * kept
    check_same(found, make().set_params(param_grid=grid).fit(X, y))


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="the system has no such limit")
def test_a_file_that_may_not_grow(tmp_path):
    import resource

    path = tmp_path / "journal.sqlite"
    search = make(path).set_params(param_grid=GRID | {"gamma": np.logspace(-2, 1, 12)})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, limits[1]))  # Python ignores its signal
        with pytest.raises(
            JournalError, match=r"cannot be read and written \(.*make room"
        ) as caught:
            search.fit(X, y)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert f"It still holds {count(path)} entries" in str(caught.value)
    assert 0 < count(path) < 24


# --- damage


def small(path=None, gammas=(0.1, 1.0, 2.0)):
    grid = GRID | {"gamma": list(gammas)}
    return KernelSearchCV(KernelRegressor(), grid, cv=2, method="block", journal=path, refit=False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A search of the first 30 rows, and a journal of two of its three kernels."""
    path = tmp_path_factory.mktemp("whole") / "journal.sqlite"
    small(path, gammas=(0.1, 1.0)).fit(X[:30], y[:30])
    return small().fit(X[:30], y[:30]), path


@pytest.fixture
def shelf():
    """A folder in memory, if the system has one: files are not awaited on a disk there."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def try_damaged(path, data: bytes, expected) -> str:
    """What comes of a search with a damaged journal: the right results, or a JournalError."""
    for one in path.parent.iterdir():
        one.unlink()
    path.write_bytes(data)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = small(path).fit(X[:30], y[:30])
        except JournalError:
            assert path.read_bytes() == data
            return "refused"
    check_same(found, expected)
    if not said:
        return "resumed"
    (warning,) = said
    assert f"{str(path)!r} was damaged: " in str(warning.message)
    assert Path(f"{path}.damaged").read_bytes() == data
    assert count(path) == 6
    return "mended"


def flipped(data: bytes, bit: int) -> bytes:
    byte, place = divmod(bit, 8)
    return data[:byte] + bytes([data[byte] ^ 1 << place]) + data[byte + 1 :]


@pytest.mark.parametrize("times", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_flipped_bits(shelf, whole, times):
    expected, path = whole
    data, draw = path.read_bytes(), random.Random(0)
    bits = [draw.randrange(8 * len(data)) for _ in range(times)]
    bits += [draw.randrange(8 * 100) for _ in range(times // 10)]  # of SQLite's header
    found = [try_damaged(shelf / "j", flipped(data, bit), expected) for bit in bits]
    counts = {one: found.count(one) for one in ("resumed", "mended", "refused")}
    assert counts["mended"] > times / 3
    assert counts["refused"] < times / 10


def test_truncations(shelf, whole):
    expected, path = whole
    data = path.read_bytes()
    sizes = range(0, len(data), len(data) // 20)
    found = [try_damaged(shelf / "j", data[:size], expected) for size in sizes]
    assert found[0] == "resumed"  # an empty file is a new journal
    assert set(found[1:]) == {"refused", "mended"}
    assert found[len(found) // 2 :] == ["mended"] * len(found[len(found) // 2 :])


def test_overwritten_stretches(shelf, whole):
    expected, path = whole
    data, draw = path.read_bytes(), random.Random(1)
    for _ in range(15):
        size = draw.randrange(1, 6000)
        start = draw.randrange(len(data) - size)
        for new in (bytes(size), draw.randbytes(size)):
            try_damaged(shelf / "j", data[:start] + new + data[start + size :], expected)


@pytest.mark.parametrize("column", ["machine", "lams", "outcome", "checksum"])
def test_a_damaged_entry_is_computed_again(unfinished, ran, column):
    cell, checksum = ask(unfinished, f"SELECT {column}, checksum FROM jobs WHERE rowid = 2")
    data = unfinished.read_bytes()
    cell, checksum = (one if isinstance(one, bytes) else one.encode() for one in (cell, checksum))
    place = data.rindex(cell, 0, data.index(checksum) + len(checksum))
    unfinished.write_bytes(flipped(data, 8 * (place + len(cell) // 2) + 7))
    ran.clear()
    with pytest.warns(UserWarning, match="it keeps 3 intact entries") as said:
        found = make(unfinished).fit(X, y)
    assert Path(said[0].filename) == Path(__file__)
    assert len(ran) == 6
    assert sum(one[0] != 2.0 for one in ran) == 2
    ran.clear()
    check_same(make(unfinished).fit(X, y), found)  # once is enough
    assert ran == []
    check_same(found, make().fit(X, y))


def test_a_number_of_a_row_that_cannot_be(unfinished):
    ask(unfinished, "UPDATE jobs SET rowid = 1234567890123 WHERE rowid = 4")
    with pytest.warns(UserWarning, match="it keeps 3 intact entries"):
        found = make(unfinished).fit(X, y)
    check_same(found, make().fit(X, y))


def test_a_description_of_data_that_is_damaged(unfinished, ran):
    ask(unfinished, "UPDATE about SET value = 'float64 array of another shape' WHERE name = 'X'")
    ran.clear()
    with pytest.warns(UserWarning, match="it keeps 4 intact entries"):
        make(unfinished).fit(X, y)
    assert {one[0] for one in ran} == {2.0}
    ask(unfinished, "UPDATE about SET value = 'float64 array of another shape' WHERE name = 'X'")
    with pytest.raises(JournalError, match="neither an entry nor what it says of data"):
        make(unfinished).fit(X + 1.0, y)
    with pytest.raises(JournalError, match="splits was 3 splits"):  # is still to be read
        make(unfinished, cv=4).fit(X, y)


def test_entries_of_another_search_are_not_taken(unfinished, tmp_path, ran):
    other = tmp_path / "other.sqlite"
    make(other).fit(X + 1.0, y)
    with closing(sqlite3.connect(unfinished)) as connection:
        connection.execute("ATTACH ? AS other", (str(other),))
        connection.execute("INSERT INTO jobs SELECT * FROM other.jobs")
        connection.commit()
    ran.clear()
    with pytest.warns(UserWarning, match="it keeps 4 intact entries"):
        found = make(unfinished).fit(X, y)
    assert {one[0] for one in ran} == {2.0}
    check_same(found, make().fit(X, y))


def test_a_journal_that_is_a_link_is_mended_where_it_is(unfinished, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(unfinished)
    ask(unfinished, "UPDATE jobs SET lams = '[1.0]' WHERE rowid = 1")
    with pytest.warns(UserWarning, match="was damaged: it keeps 3 intact entries,"):
        make(link).fit(X, y)
    assert link.is_symlink()
    assert count(unfinished) == 6


def test_no_room_to_mend(unfinished, monkeypatch):
    ask(unfinished, "UPDATE jobs SET lams = '[1.0]' WHERE rowid = 1")
    before = unfinished.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(JournalError, match=r"No space left on device.*make room") as caught:
        make(unfinished).fit(X, y)
    assert "It still holds 3 entries" in str(caught.value)
    assert unfinished.read_bytes() == before
    assert [one.name for one in unfinished.parent.iterdir()] == [unfinished.name]


# --- kills


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


def run_and_kill(folder, path, delay: float) -> list[str]:
    """Run the program, kill it (signal 9) so long after its first line, and return what it said."""
    command = [sys.executable, "-c", PROGRAM, str(path)]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, text=True, env=_environment(folder)
    ) as child:
        assert child.stdout is not None
        said = [child.stdout.readline()]
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
        said += child.stdout.readlines()
    return [line.strip() for line in said if line.endswith("\n")]


def _environment(folder) -> dict[str, str]:
    source = Path(onefit.__file__).parents[1]
    return os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{source}"}


def check_kills(folder, ran, kills: int, seed: int) -> None:
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
    resumed = program["search"](path).fit(program["X"], program["y"])
    rest = {gamma for gamma, _, _ in ran}
    assert len(rest) == 40 - counts[-1]
    assert not rest & finished
    check_same(resumed, program["search"](None).fit(program["X"], program["y"]))


def begun(said: list[str]) -> set[float]:
    return {float(line.split()[1]) for line in said if line.startswith("begin")}


def ended(said: list[str]) -> set[int]:
    return {int(line.split()[1]) for line in said if line.startswith("end")}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no signal 9")
def test_killed_at_random_moments(tmp_path, ran):
    check_kills(tmp_path, ran, kills=2, seed=0)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no signal 9")
@pytest.mark.parametrize("seed", range(1, 4))
def test_killed_at_many_random_moments(tmp_path, ran, seed):
    check_kills(tmp_path, ran, kills=15, seed=seed)
