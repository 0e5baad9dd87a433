"""Features where the whole kernel does not fit the time or the memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from command_line import onefit
from sklearn.metrics import r2_score

from onefit import KernelRegressor, KernelSearchCV, select
from onefit.auto.fallback import fall_back
from onefit.auto.prepared import PreparedRows, planned_seconds
from onefit.config import config_context
from onefit.features import Nystrom
from onefit.plan import Deadline

random = np.random.default_rng(0)
n = 150
X = random.normal(size=(n, 2))
y = np.sin(2.0 * X[:, 0]) + 0.1 * random.normal(size=n)
many = random.normal(size=(1500, 2))
target = np.sin(2.0 * many[:, 0]) + 0.1 * random.normal(size=1500)
GRID = {"gamma": [0.3, 1.0], "lam": [1e-3, 1e-1]}


@pytest.fixture
def tight() -> Iterator[None]:
    """30 MiB of memory: of 1500 rows the whole kernel fits for an iteration at one candidate."""
    with config_context(memory_bytes=30.0 * 1024**2):
        yield


def test_time_enough_changes_nothing() -> None:
    search = KernelSearchCV(KernelRegressor(), GRID)
    assert fall_back(search, PreparedRows(X, y), Deadline(60.0)) is None
    assert search.estimator.approximation is None
    assert select(X, y, minutes=60.0).fallback_ is None


def test_too_little_time_takes_as_many_features_as_fit() -> None:
    search = KernelSearchCV(KernelRegressor(), GRID, method="eigen")
    fallen = fall_back(search, PreparedRows(X, y), Deadline(1e-9))
    assert fallen is not None
    assert fallen.n_components == 100
    assert (search.estimator.approximation, search.method) == (Nystrom(100), "auto")
    assert fallen.planned > fallen.allowed
    assert "even so" in fallen.describe()


@pytest.mark.parametrize("count", [100, 200, 500])
def test_their_search_may_take_a_quarter_of_the_time(count: int) -> None:
    rows = random.normal(size=(20_000, 1))
    data, estimator = PreparedRows(rows, rows[:, 0]), KernelRegressor(approximation=Nystrom(count))
    planned, _ = planned_seconds(data.set_up(KernelSearchCV(estimator, GRID)))
    deadline = Deadline(4.2 * 1e4 * planned / 60.0)
    deadline.observe(planned=1.0, spent=1e4)  # a slow machine
    fallen = fall_back(KernelSearchCV(KernelRegressor(), GRID), data, deadline)
    assert fallen is not None
    assert fallen.n_components == count
    assert fallen.expected == pytest.approx(1e4 * planned)
    told = r"the whole kernel would take .* h, more than the .* that are left of .*: the search"
    assert re.match(f"{told} takes {count} features", fallen.describe())


def test_too_little_memory_does_the_same() -> None:
    """There are 12 MiB; the kernel matrix alone takes 17."""
    search, data = KernelSearchCV(KernelRegressor(), GRID, cv=3), PreparedRows(many, target)
    with config_context(memory_bytes=12.0 * 1024**2):
        fallen = fall_back(search, data, Deadline(60.0))
    assert fallen is not None
    refused = (
        r"method '.*' on n=1500 rows needs .* GiB beyond the data, but 0.0117 GiB are available"
    )
    assert re.fullmatch(refused, fallen.why)
    assert fallen.n_components == 200
    assert len(data.fit(search).best_estimator_.landmarks_) <= 200


def test_select_says_whose_score_it_is(tight: None, capsys: pytest.CaptureFixture[str]) -> None:
    search = select(many, target, minutes=10.0, kernels="rbf", random_state=0)
    told = capsys.readouterr().err
    assert "n=1500 rows needs" in told
    assert "the search takes 200 features" in told
    (reason,) = [one for one in search.reasons_ if "the score is that of the features" in one]
    assert reason == search.fallback_.describe()
    held = search.heldout_
    assert search.best_score_ == pytest.approx(r2_score(held.targets, held.predictions))
    assert len(search.best_estimator_.landmarks_) <= 200
    with pytest.raises(ValueError, match="raise minutes"):
        search.relevance()
    with pytest.raises(ValueError, match="minutes"):
        select(X, y, minutes=0.0)


def test_outliers_are_answered_with_features_too(tight: None) -> None:
    wild = target.copy()
    wild[::20] += 30.0
    search = select(many, wild, minutes=10.0, kernels="rbf", random_state=0)
    assert search.best_params_["loss"] == "huber"
    assert len(search.best_estimator_.landmarks_) <= 200


def test_the_command_line_says_it_too(tight: None, tmp_path: Any) -> None:
    file = tmp_path / "rows.csv"
    table = np.column_stack([many, target])
    np.savetxt(file, table, delimiter=",", header="a,b,y", comments="")
    common = ["select", str(file), "--target", "y", "--cv", "3", "--kernels", "rbf"]
    done = onefit(*common, "--minutes", "10")
    assert done.exit_code == 0, done.stderr
    assert "takes 200 features" in done.stderr
    assert "the score is that of the features" in " ".join(done.stdout.split())
    found = json.loads(onefit(*common, "--minutes", "10", "--format", "json").stdout)["fallback"]
    assert found["n_components"] == 200
    assert set(found) == {"why", "planned", "allowed", "n_components", "expected"}
    np.savetxt(file, table[:100], delimiter=",", header="a,b,y", comments="")
    without = json.loads(onefit(*common, "--format", "json").stdout)
    assert without["fallback"] is None
    both = onefit(*common, "--minutes", "1", "--approximation", "nystrom")
    assert both.exit_code == 2
    assert "leave one of them out" in both.stderr
