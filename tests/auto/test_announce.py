"""The message before a long search, and a worker that leaves the caller free to stop it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV, plan
from onefit.auto.prepared import PreparedRows
from onefit.plan import text

X = np.random.default_rng(0).normal(size=(60, 2))
Y = np.sin(X[:, 0])
GRID = {"gamma": [0.1, 1.0], "lam": [1e-3, 1e-1]}


def test_a_short_search_is_not_announced(capsys):
    PreparedRows(X, Y).announce(KernelSearchCV(KernelRegressor(), GRID))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("machine", "method", "words"),
    [
        (KernelRegressor(), "iterative", "a looser tolerance"),
        (KernelRegressor(loss="huber"), "exact", "method 'limit'"),
        (KernelRegressor(), "eigen", "a random half of the rows"),
    ],
)
def test_a_long_one_is(capsys, machine, method, words):
    """Enough rows for minutes of work on any computer; nothing is computed."""
    rows = np.random.default_rng(0).normal(size=(100_000, 2))
    PreparedRows(rows, rows[:, 0]).announce(KernelSearchCV(machine, GRID, method=method))
    told = capsys.readouterr().err
    assert told.startswith("expected to take")
    assert f"by method {method!r}; faster: " in told
    assert words in told
    assert "fewer kernels" in told


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.5, "500 ms"), (90.0, "90 s"), (600.0, "10 min"), (7201.0, "2 h"), (4e6, "1.1e+03 h")],
)
def test_times(seconds, shown):
    assert text.duration(seconds) == shown


STOPPED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
from onefit import KernelRegressor, KernelSearchCV
X = np.random.default_rng(0).normal(size=(5000, 3))
search = KernelSearchCV(KernelRegressor(), {"gamma": [0.1, 1.0]}, method=sys.argv[1], cv=5)
print("go", flush=True)
try:
    search.fit(X, np.sin(X[:, 0]))
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
@pytest.mark.parametrize("method", ["eigen", "iterative"])
def test_ctrl_c_is_answered(method):
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED, method], stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout.readline() == "go\n"
    time.sleep(1.5)
    start = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout.readline() == "stopped\n"
    assert time.monotonic() - start < 5.0
    process.kill()


def test_a_stored_classifier_keeps_the_rows_with_a_coefficient():
    machine = KernelClassifier(loss="squared_hinge", lam=1e-3).fit(X, Y > 0.0)
    small = machine._with_support()
    assert small.X_fit_.shape[0] == np.count_nonzero(machine.dual_coef_) < 60
    np.testing.assert_allclose(small.decision_function(X), machine.decision_function(X), atol=1e-12)
    assert machine.X_fit_.shape[0] == 60


def test_rows_beyond_a_day_are_refused():
    from onefit.auto.planning import check_rows

    with pytest.raises(MemoryError, match=r"2,000,000 rows .* days; nothing was run: set minutes"):
        check_rows(2_000_000)
    check_rows(20_000)
    assert plan.peak_bytes(plan.Workload(20_000, 13, (2000,) * 10, tiled=True), "iterative") < 2e9
