"""A limit of time is kept by the clock, on a machine that callbacks make slow."""

from __future__ import annotations

import re
import time
from typing import Any

import numpy as np
import pytest
from command_line import onefit

from onefit import AutoKernelRegressor, KernelRegressor, KernelSearchCV
from onefit.auto.outliers import robust_search
from onefit.auto.prepared import PreparedRows
from onefit.plan import Deadline, OutOfTime, spread

random = np.random.default_rng(0)
n = 120
X = random.normal(size=(n, 2))
y = np.sin(2.0 * X[:, 0]) + 0.1 * random.normal(size=n)
wild = np.where(np.arange(n) % 20 == 0, y + 30.0, y)


class Slow:
    """A callback that waits after every kernel, or only after those of a loss."""

    def __init__(self, seconds: float, only: str = "") -> None:
        self.seconds, self.only = seconds, only

    def setup(self, estimator: Any, context: Any) -> None: ...
    def teardown(self, estimator: Any, context: Any) -> None: ...
    def on_fit_task_begin(self, estimator: Any, context: Any, **_: Any) -> None: ...

    def on_fit_task_end(self, estimator: Any, context: Any, **_: Any) -> None:
        if context.task_name == "kernel" and self.only in str(estimator.param_grid):
            time.sleep(self.seconds)


def slow(seconds: float, minutes: float | None, only: str = "") -> AutoKernelRegressor:
    auto = AutoKernelRegressor(minutes=minutes, kernels="rbf", random_state=0)
    return auto.set_callbacks(Slow(seconds, only))


def test_a_slow_machine_takes_features_and_then_fewer_kernels(capsys):
    found = slow(0.4, minutes=0.05).fit(X, y)
    # one kernel showed how slow it is; the others were tried with features
    assert found.fallback_ is not None
    assert "the first of 12 kernels took" in capsys.readouterr().err
    table = found.search_.cv_results_
    tried = len({params["gamma"] for params in table["params"]})
    assert 1 <= tried < 8  # there was time for seven at most
    assert any(one.startswith(f"{tried} of 12 kernels were tried") for one in found.reasons_)
    assert np.isfinite(table["pooled_test_score"]).all()
    assert found.search_.best_params_ == table["params"][found.search_.best_index_]
    assert found.predict(X).shape == (n,)


def test_a_fast_machine_gives_up_nothing():
    with_limit = slow(0.0, minutes=60.0).fit(X, wild)
    without = slow(0.0, minutes=None).fit(X, wild)
    assert with_limit.fallback_ is None
    assert with_limit.search_.best_params_ == without.search_.best_params_
    assert with_limit.reasons_ == without.reasons_
    assert with_limit.best_params_["loss"] == "huber"


def test_outliers_are_not_answered_where_the_search_took_the_time():
    found = slow(0.2, minutes=3.4 / 60.0).fit(X, wild)
    assert found.best_estimator_.loss == "squared"
    (why,) = [one for one in found.reasons_ if "Huber's loss was not tried" in one]
    assert re.search("it would take .*, and (.* are|no time is) left", why)


def test_an_answer_to_outliers_that_turns_out_too_slow_is_given_up():
    pytest.importorskip("sklearn.callback", reason="callbacks stay with a search that is cloned")
    search = KernelSearchCV(KernelRegressor(), [{"gamma": [0.3, 1.0], "lam": [1e-3, 1e-1]}])
    search.fit(X, wild).set_callbacks(Slow(2.0, "huber"))
    found, why = robust_search(search, PreparedRows(X, wild), Deadline(2.0 / 60.0))
    assert found is search
    assert why == "its search was stopped at the time limit"
    found, why = robust_search(search.set_callbacks(), PreparedRows(X, wild), Deadline(60.0))
    assert found.best_params_["loss"] == "huber"
    assert why == ""


def test_an_optional_iteration_ends_between_two_steps():
    search = KernelSearchCV(KernelRegressor(), {"lam": [1e-6]}, method="iterative", cv=3)
    with Deadline(1.0, begun=time.monotonic() - 10.0).over(search, optional=True):
        search.fit(X, y)
    late = Deadline(1.0, begun=time.monotonic() - 61.0)
    with pytest.raises(OutOfTime), late.over(search, optional=True):
        search.fit(X, y)
    # the limit does not outlive its context
    search.fit(X, y)


def test_a_stage_is_refused_by_what_earlier_ones_took():
    limit = Deadline(1.0)
    assert limit.refuses(50.0) == ""
    limit.observe(planned=2.0, spent=4.0)
    assert limit.refuses(50.0) == "it would take 100 s, and 60 s are left"
    assert limit.refuses(29.0) == ""
    limit.reserve = 5.0
    assert limit.refuses(29.0) != ""
    assert "no time is left" in Deadline(1.0, begun=time.monotonic() - 100.0).refuses(1.0)
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
    text = onefit(*explain).stdout
    for name in ("search", "final fit"):
        assert re.search(rf"^  {name} .* always$", text, re.MULTILINE)
    assert re.search(r"^  search with Huber's loss .* if there are outliers$", text, re.M)
    short = onefit(*explain, "--minutes", "0.00001").stdout
    assert "features (approximation='nystrom') instead of the kernel matrix" in short
    assert "All stages: " in short
