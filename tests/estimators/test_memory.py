"""What does not fit into the memory is refused, with advice, before a matrix is made."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from watched import Refused

from onefit import KernelClassifier, KernelRegressor, heldout_predict
from onefit.config import config_context
from onefit.heldout import METHODS, Block

pytest.importorskip("resource")

LIMITED = """
import resource, sys
import numpy as np
from onefit import KernelClassifier, KernelRegressor, heldout_predict
X = np.random.default_rng(0).normal(size=(6_000, 2))
y = X[:, 0]
heldout_predict(KernelRegressor(lam=0.1), X[:200], y[:200], cv=2)  # libraries start
taken = resource.getpagesize() * int(open("/proc/self/statm").read().split()[0])
limit = taken + int(0.8 * 8 * 6_000**2)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for what in sys.argv[1:]:
    try:
        if what == "regressor":
            KernelRegressor(solver="newton").fit(X, y)
        elif what == "classifier":
            KernelClassifier(loss="squared_hinge", solver="newton").fit(X, y > 0)
        elif what == "fit":
            KernelRegressor(lam=0.1).fit(X, y)
        else:
            heldout_predict(KernelRegressor(lam=0.1), X, y, cv=2, method=what)
        print(what, "done")
    except MemoryError as error:
        print(what, error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is not kept elsewhere")
def test_less_room_than_a_kernel_matrix_takes(monkeypatch):
    """Tiles need no matrix; everything else is refused."""
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    tiled = ["fit", "auto", "iterative"]
    asked = ["regressor", "classifier", *tiled, *(name for name in METHODS if name not in tiled)]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *asked], capture_output=True, text=True, check=True
    )
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert list(lines) == asked
    assert [what for what, line in lines.items() if line == "done"] == tiled
    for what in set(asked) - set(tiled):
        line = lines[what]
        start = "a fit to" if what in ("regressor", "classifier") else "method"
        assert line.startswith(start), line
        for words in ("n=6000 rows needs", "GiB are available", "float32", "subsample of at most"):
            assert words in line


X = np.random.default_rng(0).normal(size=(30, 2))


@pytest.mark.parametrize("make", [KernelRegressor, KernelClassifier])
@pytest.mark.parametrize("method", ["auto", *METHODS, Block()])
def test_nothing_is_made_before_the_check(make, method):
    model = make(kernel=Refused(1.0))
    no_room = config_context(memory_bytes=10)
    with no_room, pytest.raises(MemoryError, match="a fit to n=30 rows"):
        model.fit(X, X[:, 0] > 0)
    no_room = config_context(memory_bytes=10)
    with no_room, pytest.raises(MemoryError, match=r"method '.*' on n=30 rows"):
        heldout_predict(model, X, X[:, 0] > 0, method=method)


def test_a_matrix_that_is_there_is_not_counted():
    """Of K and its factor, half is the caller's."""
    with config_context(memory_bytes=8.0 * 1.5 * 30**2):
        KernelRegressor(kernel="precomputed", solver="newton").fit(X @ X.T, X[:, 0])
        with pytest.raises(MemoryError):
            KernelRegressor(kernel="linear", solver="newton").fit(X, X[:, 0])


def test_rows_without_weight_leave_a_copy_of_the_others():
    with config_context(memory_bytes=8.0 * 2.5 * 30**2):
        machine = KernelRegressor(solver="newton").fit(X, X[:, 0])
        with pytest.raises(MemoryError):
            machine.fit(X, X[:, 0], np.arange(30) > 0)
