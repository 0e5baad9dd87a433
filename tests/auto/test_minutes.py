"""A limit of time is kept by the clock. The clock here is one that the tests turn themselves."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from onefit import KernelRegressor, KernelSearchCV, select
from onefit.cli.app import app
from onefit.plan import Deadline, OutOfTime, deadline, spread
from onefit.search import workers

random = np.random.default_rng(0)
n = 120
X = random.normal(size=(n, 2))
y = np.sin(2.0 * X[:, 0]) + 0.1 * random.normal(size=n)
wild = np.where(np.arange(n) % 20 == 0, y + 30.0, y)


class Clock:
    """Time that passes only while kernels are worked on: a fixed number of seconds for each."""

    def __init__(self) -> None:
        self.now, self.each, self.kernels = 1000.0, 0.0, 0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    own, run_job = Clock(), workers.run_job

    def slow(*args: Any) -> Any:
        own.now += own.each
        own.kernels += 1
        return run_job(*args)

    monkeypatch.setattr(deadline, "monotonic", own)
    # what the stages observe is the same clock
    monkeypatch.setattr("onefit.auto.run.perf_counter", own)
    monkeypatch.setattr(workers, "run_job", slow)
    return own


def passed(clock: Clock) -> float:
    return clock.now - 1000.0


def test_a_slow_machine_takes_features_and_then_fewer_kernels(clock, capsys):
    clock.each = 11.0
    found = select(X, y, minutes=1.0, kernels="rbf", random_state=0)
    assert passed(clock) <= 72.0
    # one kernel showed how slow it is; the others were tried with features
    assert found.fallback_ is not None
    assert "the first of 12 kernels took 11 s" in capsys.readouterr().err
    table = found.search_.cv_results_
    kernels = {params["gamma"] for params in table["params"]}
    assert len(kernels) == 4
    assert any(one.startswith("4 of 12 kernels were tried") for one in found.reasons_)
    assert np.isfinite(table["pooled_test_score"]).all()
    assert found.search_.best_params_ == table["params"][found.search_.best_index_]
    assert found.predict(X).shape == (n,)


def test_a_fast_machine_gives_up_nothing(clock):
    clock.each = 0.01
    with_limit = select(X, wild, minutes=60.0, kernels="rbf", random_state=0)
    without = select(X, wild, kernels="rbf", random_state=0)
    assert with_limit.fallback_ is None
    assert with_limit.search_.best_params_ == without.search_.best_params_
    assert with_limit.reasons_ == without.reasons_
    assert with_limit.best_params_["loss"] == "huber"


def test_outliers_are_not_answered_where_the_search_took_the_time(clock):
    clock.each = 4.5  # 12 kernels: 54 of 60 seconds
    found = select(X, wild, minutes=1.0, kernels="rbf", random_state=0)
    assert passed(clock) <= 60.0
    assert found.fallback_ is None
    assert found.best_estimator_.loss == "squared"
    (why,) = [one for one in found.reasons_ if "Huber's loss was not tried" in one]
    assert "it would take 54 s, and 6 s are left" in why


def test_an_answer_to_outliers_that_turns_out_too_slow_is_given_up(clock, monkeypatch):
    clock.each = 1.0
    run_job = workers.run_job

    def slower(task: Any, job: Any, *rest: Any) -> Any:
        if any(not machine.spec.quadratic for machine in job.models):
            clock.each = 40.0
        return run_job(task, job, *rest)

    monkeypatch.setattr(workers, "run_job", slower)
    monkeypatch.setattr(Deadline, "refuses", lambda self, planned: "")
    found = select(X, wild, minutes=1.0, kernels="rbf", random_state=0)
    assert passed(clock) <= 72.0
    assert found.best_estimator_.loss == "squared"
    assert any("stopped at the time limit" in one for one in found.reasons_)


def test_an_optional_iteration_ends_between_two_steps(clock):
    search = KernelSearchCV(KernelRegressor(), {"lam": [1e-6]}, method="iterative", cv=3)
    limit = Deadline(1.0)
    clock.now += 59.0
    with limit.over(search, optional=True):
        search.fit(X, y)
    clock.now += 2.0
    with pytest.raises(OutOfTime), limit.over(search, optional=True):
        search.fit(X, y)
    # the limit does not outlive its context
    search.fit(X, y)


def test_a_stage_is_refused_by_what_earlier_ones_took(clock):
    limit = Deadline(1.0)
    assert limit.refuses(50.0) == ""
    limit.observe(planned=2.0, spent=4.0)
    assert limit.refuses(50.0) == "it would take 100 s, and 60 s are left"
    assert limit.refuses(29.0) == ""
    limit.reserve = 5.0
    assert limit.refuses(29.0) != ""
    clock.now += 100.0
    assert "no time is left" in limit.refuses(1.0)
    with pytest.raises(ValueError, match="minutes"):
        Deadline(0.0)


@pytest.mark.parametrize("count", [1, 2, 5, 12, 33])
def test_kernels_are_tried_in_an_order_that_covers_the_grid(count):
    order = spread(count)
    assert sorted(order) == list(range(count))
    if count > 8:
        first = np.sort(order[: count // 2])
        assert np.diff([-1, *first, count]).max() <= 4


def test_explain_shows_every_stage(tmp_path):
    file = tmp_path / "rows.csv"
    np.savetxt(file, np.column_stack([X, y]), delimiter=",", header="a,b,y", comments="")
    explain = ["explain", str(file), "--target", "y", "--kernels", "rbf"]
    text = CliRunner().invoke(app, explain).stdout
    for name in ("search", "final fit"):
        assert re.search(rf"^  {name} .* always$", text, re.MULTILINE)
    assert re.search(r"^  search with Huber's loss .* if there are outliers$", text, re.M)
    short = CliRunner().invoke(app, [*explain, "--minutes", "0.00001"]).stdout
    assert "whole kernel, winner" in short
    assert "All stages: " in short
