"""The cost model: a formula with fixed rates, tested as one. Nothing here is timed."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold

from onefit import KernelClassifier, KernelRegressor, plan
from onefit.config import config_context
from onefit.folds import Folds
from onefit.heldout import METHODS
from onefit.linalg.rates import CUDA_RATES, HOST_RATES, Cost, Rate, Rates
from onefit.losses import get_loss
from onefit.plan import (
    Estimate,
    Workload,
    candidates,
    check_memory,
    choose,
    estimate,
    explain,
)
from onefit.plan import memory as memory_module
from onefit.problem import Problem

GIB = 1024**3

#: what the tests below count with: the fixed rates of one thread
MACHINE = HOST_RATES


def peak(run: Callable[[], object]) -> int:
    """The most bytes that are in use during a call.

    What other threads take meanwhile counts too, such as those of a cluster that other tests have
    started; so it is the least of three calls.
    """
    found = []
    for _ in range(3):
        tracemalloc.start()
        try:
            run()
            found.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    return min(found)


def kfold(n: int, k: int, lams: int, loss: str = "squared", **more: object) -> Workload:
    sizes = tuple(len(part) for part in np.array_split(np.arange(n), k))
    of_loss = {"loss": loss, "quadratic": loss == "squared"}
    return Workload(n, lams, sizes, ridges=len(set(sizes)), **of_loss, **more)  # type: ignore[arg-type]


def auto(work: Workload, rates: Rates = MACHINE) -> str:
    return choose(work, rates=rates, available=math.inf).method


def crossover(n: int, k: int, rates: Rates = MACHINE) -> int:
    """The number of lambdas from which on the eigendecomposition is chosen."""
    return next(lams for lams in range(1, 1000) if auto(kfold(n, k, lams), rates) == "eigen")


# --------------------------------------------------------------------------- the choice


@pytest.mark.parametrize("n", [200, 400, 1000, 3000])
@pytest.mark.parametrize("k", [5, 10])
def test_few_lambdas_take_cholesky_and_many_take_the_eigenvalues(n, k):
    assert auto(kfold(n, k, 1)) == "block"
    assert auto(kfold(n, k, 100)) == "eigen"
    turn = crossover(n, k)
    assert 2 <= turn <= 30
    assert all(auto(kfold(n, k, lams)) == "block" for lams in range(1, turn))
    assert all(auto(kfold(n, k, lams)) == "eigen" for lams in range(turn, turn + 50))


def test_smaller_folds_favour_the_eigenvalues():
    # a lambda costs eigen the blocks alone, n^3 / k, and block the factor too, whatever k is
    shares = []
    for k in (900, 20, 3):
        eigen, block = (estimate(kfold(900, k, 8), m, MACHINE).seconds for m in ("eigen", "block"))
        shares.append(eigen / block)
    assert shares == sorted(set(shares))


def test_a_slower_eigendecomposition_moves_the_crossover_up():
    eigh = MACHINE.eigh
    slower = replace(MACHINE, eigh=replace(eigh, flops_per_second=eigh.flops_per_second / 3))
    assert crossover(600, 10, slower) > 2 * crossover(600, 10)


def test_threads_speed_up_factors_more_than_eigenvalues_and_move_the_crossover_up():
    one, many = (
        next(k for k in range(1, 1000) if auto(kfold(3000, 5, k, threads=t)) == "eigen")
        for t in (1, 16)
    )
    assert many > one
    alone, shared = (estimate(kfold(3000, 5, 20, threads=t), "block").seconds for t in (1, 2))
    assert 0.5 < shared / alone < 0.8


def test_unequal_folds_cost_a_factor_each():
    equal, unequal = kfold(600, 10, 5), replace(kfold(600, 10, 5), ridges=2)
    more = estimate(unequal, "block", MACHINE).seconds / estimate(equal, "block", MACHINE).seconds
    assert 1.7 < more < 2.0
    same = estimate(unequal, "eigen", MACHINE).seconds / estimate(equal, "eigen", MACHINE).seconds
    assert same < 1.05


def test_the_fastest_that_fits_into_memory():
    work = kfold(1000, 10, 2)
    eigen, block = (estimate(work, name, MACHINE) for name in ("eigen", "block"))
    assert block.seconds < eigen.seconds
    assert block.nbytes > eigen.nbytes
    assert choose(work, rates=MACHINE, available=block.nbytes) == block
    assert choose(work, rates=MACHINE, available=block.nbytes - 1) == eigen
    # nothing fits: the smallest, for check_memory to refuse
    assert choose(work, rates=MACHINE, available=0.0) == eigen


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_given_method_is_respected(method):
    work = kfold(300, 5, 20)
    assert choose(work, method, MACHINE, available=math.inf) == estimate(work, method, MACHINE)
    # tiles where a matrix does not fit and need not be held
    without = replace(work, tiled=method == "iterative")
    assert choose(work, method, MACHINE, available=0.0) == estimate(without, method, MACHINE)


def test_many_rows_are_iterated():
    """Unless a row is left out at a time, or K itself is needed."""
    large = kfold(20_000, 10, 13)
    assert auto(large) == "iterative"
    assert not choose(large, rates=MACHINE, available=math.inf).tiled
    assert choose(large, rates=MACHINE, available=2 * GIB).tiled
    assert choose(large, rates=MACHINE, available=math.inf, products=False).method == "eigen"
    assert auto(kfold(20_000, 20_000, 13)) == "eigen"
    assert auto(kfold(2000, 10, 13)) != "iterative"
    given = replace(large, given=True)
    assert not choose(given, rates=MACHINE, available=2 * GIB).tiled
    text = explain(large, choose(large, rates=MACHINE, available=2 * GIB), MACHINE)
    assert "one iteration for 130 problems, each step a product with tiles" in text


def test_the_way_of_a_fit():
    def way(n, room, solver="auto", **options):
        with config_context(memory_bytes=room * GIB):
            return plan.choose_fit(Workload(n, 1, (), **options), solver)

    assert plan.choose_fit(Workload(1000, 1, ())) == ("auto", "matrix")
    assert way(1000, 0.0065) == ("iterative", "tiles")
    assert way(5000, 10.0) == ("auto", "matrix")
    assert way(5000, 0.3) == ("iterative", "held")
    assert way(5000, 0.15) == ("iterative", "tiles")
    assert way(20_000, 10.0) == ("iterative", "held")
    assert way(20_000, 2.0) == ("iterative", "tiles")
    assert way(20_000, 10.0, "newton") == ("newton", "matrix")
    assert way(1000, 1.0, "iterative") == ("iterative", "held")
    assert way(20_000, 1.0, given=True) == ("iterative", "held")
    with pytest.raises(MemoryError, match="a fit to n=20000 rows"):
        way(20_000, 2.0, "newton")
    with pytest.raises(MemoryError, match="a fit to n=1000000 rows"):
        way(1_000_000, 1.0)


def test_other_losses_take_exact():
    work = kfold(300, 5, 20, loss="huber")
    assert auto(work) == "exact"
    names = {one.method for one in candidates(work, MACHINE)}
    assert names == {"exact", "limit", "influence", "iterative", "refit"}
    with pytest.raises(ValueError, match=r"'eigen'.*squared loss only, not for 'huber'.*'exact'"):
        choose(work, "eigen", MACHINE)


def test_candidates_of_the_squared_loss_come_fastest_first():
    known = candidates(kfold(500, 10, 20), MACHINE)
    assert {one.method for one in known} == {"block", "eigen", "iterative", "refit"}
    assert [one.seconds for one in known] == sorted(one.seconds for one in known)


def test_an_unknown_method_is_named_with_the_nearest():
    with pytest.raises(ValueError, match=r"method='eigne' is not known; did you mean 'eigen'\?"):
        choose(kfold(100, 5, 1), "eigne", MACHINE)
    with pytest.raises(ValueError, match=r"method='auto'"):
        estimate(kfold(100, 5, 1), "auto", MACHINE)


# --------------------------------------------------------------------------- the counts


def leading(method: str, k: int, lams: int) -> float:
    """Operations in units of n^3, for n so large that nothing else counts."""
    n = 60_000
    return estimate(kfold(n, k, lams), method, MACHINE).flops / n**3


def test_leading_operations_are_those_of_the_derivations():
    k, lams = 10, 7
    small = k * (1 / k) ** 3 / 3
    assert leading("block", k, lams) == pytest.approx(
        lams * (2 / 3 + 1 / (2 * k) + small), rel=2e-3
    )
    assert leading("eigen", k, lams) == pytest.approx(3 + lams * (1 / k + small), rel=2e-3)
    assert leading("refit", k, lams) == pytest.approx(lams * k * (1 - 1 / k) ** 3 / 3, rel=2e-3)


def test_leave_one_out_needs_no_blocks():
    n = 2000
    one, many = (estimate(kfold(n, n, lams), "eigen", MACHINE) for lams in (1, 41))
    assert (many.flops - one.flops) / 40 == pytest.approx(6 * n**2, rel=0.01)
    bare = MACHINE.eigendecomposition(n).seconds
    assert bare < many.seconds < 1.3 * bare


def test_splits_that_remove_more_than_they_keep_are_refitted_by_every_method():
    near = Workload(300, 4, (60, 60))
    far = replace(near, removed=(60, 60, 240))
    for method in METHODS:
        more = estimate(far, method, MACHINE).flops - estimate(near, method, MACHINE).flops
        assert more > 4 * 60**3 / 3, method
    alone = Workload(300, 4, (240,))
    refit = estimate(alone, "refit", MACHINE)
    assert estimate(alone, "eigen", MACHINE).seconds > refit.seconds


def test_overlapping_splits_cost_more_than_adjacent_ones():
    adjacent = Workload(400, 10, (40,) * 10)
    for method in ("block", "eigen"):
        twice = replace(adjacent, removed=(40,) * 20)
        folds = (
            estimate(twice, method, MACHINE).seconds - estimate(adjacent, method, MACHINE).seconds
        )
        shared = estimate(replace(adjacent, removed=()), method, MACHINE).seconds
        assert folds > estimate(adjacent, method, MACHINE).seconds - shared


@given(
    method=st.sampled_from(sorted(METHODS)),
    n=st.integers(20, 5000),
    more=st.integers(1, 500),
    k=st.integers(2, 20),
    lams=st.integers(1, 50),
    targets=st.integers(1, 5),
    itemsize=st.sampled_from([4, 8]),
)
def test_everything_grows_with_n_and_with_the_number_of_lambdas(
    method, n, more, k, lams, targets, itemsize
):
    n = max(n, 2 * k) // k * k
    work = kfold(n, k, lams, targets=targets, itemsize=itemsize)
    base = estimate(work, method, MACHINE)
    larger = estimate(
        kfold(n + k * more, k, lams, targets=targets, itemsize=itemsize), method, MACHINE
    )
    longer = estimate(replace(work, lams=lams + more), method, MACHINE)
    assert 0 < base.flops < larger.flops
    assert 0 < base.seconds < larger.seconds
    assert 0 < base.nbytes < larger.nbytes
    assert base.flops < longer.flops
    assert base.seconds < longer.seconds


@pytest.mark.parametrize(("kernels", "workers", "rounds"), [(15, 2, 8), (15, 1, 15), (3, 8, 1)])
def test_workers_share_the_kernels(kernels, workers, rounds):
    one = estimate(kfold(400, 5, 10), "eigen", MACHINE)
    work = kfold(400, 5, 10, kernels=kernels, workers=workers)
    all_of_them = estimate(work, "eigen", MACHINE)
    assert all_of_them.flops == pytest.approx(kernels * one.flops)
    assert all_of_them.seconds == pytest.approx(rounds * one.seconds)
    if workers > 1:
        assert all_of_them.nbytes == min(kernels, workers) * one.nbytes
    else:  # the distances are kept
        assert all_of_them.nbytes == one.nbytes + 8 * 400**2


def test_float32_halves_the_matrices():
    double, single = (
        estimate(kfold(2000, 5, 1, itemsize=size), "block", MACHINE).nbytes for size in (8, 4)
    )
    assert single == pytest.approx(double / 2, rel=2e-3)


@pytest.mark.parametrize(
    ("method", "k"),
    [("refit", 3), ("refit", 10), *((m, k) for m in ("block", "eigen") for k in (3, 10, 400))],
)
def test_the_memory_is_what_the_method_takes(method, k):
    n = 400
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=-1))
    problem = Problem(K, X[:, :1], np.ones(n), get_loss("squared", "regression"))
    splitter = KFold(k, shuffle=True, random_state=0)
    lams = np.array([1e-6, 1e-3])

    def run() -> None:
        folds = Folds.draw(splitter, X)
        METHODS[method]().prepare(problem, folds).predict(lams)

    measured = peak(run) + K.nbytes
    expected = estimate(kfold(n, k, 2), method, MACHINE).nbytes
    small = 200_000  # vectors, and Python's own objects
    assert measured - small <= expected <= 1.5 * measured


# --------------------------------------------------------------------------- the rates


def test_a_rate_reaches_half_its_peak_at_its_half_speed_rows():
    rate = Rate(1e9, 100.0, 0.5)
    assert rate.cost(1e9, 100.0).seconds == pytest.approx(2.0)
    assert rate.cost(1e9, 1e9).seconds == pytest.approx(1.0)
    # Amdahl's law: half of the work is shared by four threads
    assert rate.faster(4, 1.0).cost(1e9, 1e9).seconds == pytest.approx(0.5 + 0.5 / 4)
    assert rate.faster(1, 2.0).cost(1e9, 1e9).seconds == pytest.approx(0.5)


def test_costs_add_and_repeat():
    assert Cost(1.0, 2.0) + 3 * Cost(2.0, 1.0) == Cost(7.0, 5.0)


ALONE = """
import time
from onefit.plan import Workload, candidates, choose
def no_clock(*_):
    raise AssertionError("the plan asked for the time")
for name in ("thread_time", "perf_counter", "process_time", "monotonic", "time"):
    setattr(time, name, no_clock)
for n in (100, 1000, 5000):
    for lams in (1, 5, 30):
        work = Workload(n, lams, (n // 5,) * 5)
        print(n, lams, choose(work, available=1e12).method)
        for one in candidates(work):
            print(one.method, repr(one.seconds))
"""


def test_a_plan_measures_nothing_and_keeps_nothing(tmp_path):
    """The same choice and the same seconds in every process: no clock is read, no file written."""
    environment = os.environ | dict.fromkeys(("HOME", "XDG_CACHE_HOME"), str(tmp_path))
    run = [sys.executable, "-c", ALONE]
    found = [
        subprocess.run(run, env=environment | more, capture_output=True, text=True, check=True)
        for more in ({"OPENBLAS_NUM_THREADS": "1"}, {"OPENBLAS_NUM_THREADS": "2"})
    ]
    assert found[0].stdout == found[1].stdout
    assert found[0].stdout.count("eigen") > 3
    assert list(tmp_path.rglob("*onefit*")) == []


def test_threads_of_the_environment_are_those_of_the_plan():
    """OPENBLAS_NUM_THREADS bounds what a search plans with, and says."""
    script = (
        "import numpy as np; from onefit import KernelRegressor, KernelSearchCV;"
        "X = np.zeros((1200, 1)); X[:, 0] = np.arange(1200);"
        "print(KernelSearchCV(KernelRegressor(), {'lam': [1.0, 2.0]}).explain(X, X[:, 0]))"
    )
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | dict.fromkeys(names, "1"),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "1 worker with 1 BLAS thread\n" in done.stdout


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_device_counts_the_same_work_at_other_rates(method):
    work = kfold(5000, 5, 10, loss="squared" if method in ("block", "eigen") else "log")
    here, there = estimate(work, method), estimate(work, method, CUDA_RATES)
    assert there.seconds < here.seconds / 5
    if method in ("block", "eigen", "iterative"):
        assert there.flops == here.flops


# --------------------------------------------------------------------------- memory


def test_what_fits_passes_and_what_does_not_is_refused():
    work = kfold(1000, 5, 1)
    need = Estimate("block", 1.0, 1000, 1.0)
    check_memory(work, need, available=1000)
    with pytest.raises(MemoryError):
        check_memory(work, need, available=999)


def test_the_refusal_names_everything_and_advises():
    work = kfold(100_000, 5, 20, kernels=4, workers=4)
    need = Estimate("eigen", 1.0, 320 * GIB, 1.0)
    with pytest.raises(MemoryError) as caught:
        check_memory(work, need, available=20 * GIB)
    text = str(caught.value)
    for part in (
        "'eigen'", "n=100000", "320 GiB", "20 GiB are available", "float32", "160 GiB",
        "fewer workers than 4 (80 GiB each", "approximation='nystrom'",
        "subsample of at most 25000 rows",
    ):  # fmt: skip
        assert part in text


def test_the_refusal_advises_nothing_that_is_done_already():
    work = kfold(100_000, 5, 20, itemsize=4)
    with pytest.raises(MemoryError) as caught:
        check_memory(work, Estimate("block", 1.0, 320 * GIB, 1.0), available=-1.0)
    text = str(caught.value)
    assert "float32" not in text
    assert "workers" not in text
    assert "but 0 GiB are available" in text


def test_a_million_rows_are_refused_on_this_machine():
    work = kfold(40_000_000, 5, 20)
    with pytest.raises(MemoryError, match="n=40000000"):
        check_memory(work, choose(work, rates=MACHINE))


@pytest.mark.parametrize(("given", "removed", "itemsize"), [
    (False, (), 8), (False, (3,), 4), (True, (), 4), (True, (3,), 8),
])  # fmt: skip
@pytest.mark.parametrize(
    ("make", "loss"),
    [
        (KernelRegressor, "squared"),
        (KernelRegressor, "epsilon_quadratic"),
        (KernelRegressor, "logistic"),
        (KernelClassifier, "squared_hinge"),
        (KernelClassifier, "log"),
    ],
)
def test_the_memory_is_what_a_fit_takes(make, loss, given, removed, itemsize):
    n = 600
    X = np.random.default_rng(0).standard_normal((n, 2)).astype(f"f{itemsize}")
    y = np.where(X[:, 0] > 0, 1.0, -1.0) if make is KernelClassifier else X[:, 0]
    s = np.ones(n)
    s[: sum(removed)] = 0.0
    K = X @ X.T
    model = make(loss=loss, kernel="precomputed" if given else "linear", lam=1e-2)
    measured = peak(lambda: model.fit(K if given else X, y, s))
    work = replace(kfold(n, 2, 1, loss), removed=removed, itemsize=itemsize, given=given)
    straight = loss in ("epsilon_quadratic", "squared_hinge")  # some points have no curvature
    small = 200_000 + 256 * n * itemsize  # vectors, and rows of K that are made together
    assert measured - small <= plan.peak_bytes(work, "fit") <= (2.5 if straight else 1.3) * measured


@pytest.fixture
def one_gib():
    with config_context(memory_bytes=GIB):
        yield


def test_what_is_small_is_not_asked_about(monkeypatch):
    def ask() -> float:
        raise AssertionError("the system was asked")

    monkeypatch.setattr(psutil, "virtual_memory", ask)
    plan.check_method(Workload(1000, 1, ()), "fit")
    plan.check_method(kfold(1000, 5, 1), "eigen")
    with pytest.raises(AssertionError, match="asked"):
        plan.check_method(Workload(3000, 1, ()), "fit")


def test_a_fit_and_a_named_method_are_refused_with_advice(one_gib):
    work = kfold(12_000, 5, 1)
    with pytest.raises(MemoryError, match=r"a fit to n=12000 rows needs 2.15 GiB .*at most 8192"):
        plan.check_method(replace(work, removed=()), "fit")
    with pytest.raises(MemoryError, match=r"method 'block' on n=12000 rows .*float32"):
        plan.check_method(work, "block")
    # of a method that is not known, K alone is; of one that has it, nothing
    with pytest.raises(MemoryError, match=r"method 'mine' on n=12000 rows needs 1.0\d GiB"):
        plan.check_method(work, "mine")
    plan.check_method(replace(work, given=True), "mine")


def test_the_tightest_limit_counts(monkeypatch, free_memory):
    resource = pytest.importorskip("resource")
    used = psutil.Process().memory_info().vms
    monkeypatch.setattr(resource, "getrlimit", lambda _: (used + 2**25, used + 2**30))
    free_memory(100.0)
    assert plan.available_memory() == 100.0
    free_memory(2.0**50)
    assert 0.9 * 2**25 <= plan.available_memory() <= 2**25
    assert 1.8 * 2**25 <= plan.available_memory(processes=2) <= 2**26
    assert plan.available_memory(processes=2**30) <= memory_module.cgroup_room()


def test_the_address_space_limit_is_read(monkeypatch):
    resource = pytest.importorskip("resource")
    used = psutil.Process().memory_info().vms
    monkeypatch.setattr(resource, "getrlimit", lambda _: (used + 10 * GIB, used + 20 * GIB))
    assert memory_module.address_room() == pytest.approx(10 * GIB, rel=0.05)
    unlimited = resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda _: (unlimited, unlimited))
    assert memory_module.address_room() == math.inf


def write_group(
    folder: Path, names: tuple[str, str, str], limit: object, used: int, idle: int
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{names[2]} {idle}\nfile 7\n")


V1, V2 = memory_module._V1, memory_module._V2


@pytest.mark.parametrize(
    ("names", "mount", "line"),
    [(V2, ".", "0::/user/job"), (V1, "memory", "4:cpu,memory:/user/job")],
    ids=["v2", "v1"],
)
def test_control_groups(tmp_path, names, mount, line):
    def room() -> float:
        return memory_module.cgroup_room(tmp_path, membership)

    membership, root = tmp_path / "self", tmp_path / mount
    membership.write_text(f"9:name=systemd:/\n{line}\n1:cpuset:/\n")
    assert room() == math.inf
    write_group(root / "user/job", names, 1000, used=700, idle=50)
    assert room() == 350.0
    # an ancestor's limit counts too
    write_group(root / "user", names, 1000, used=900, idle=0)
    assert room() == 100.0
    # no limit says "max" (v2) or a number beyond any memory (v1)
    write_group(root / "user", names, "max" if names is V2 else 2**63 - 4096, used=900, idle=0)
    assert room() == 350.0
    (root / "user/job/memory.stat").unlink()
    assert room() == 300.0


def test_a_container_sees_its_own_limit_at_the_mount(tmp_path):
    membership = tmp_path / "self"
    membership.write_text("0::/docker/not/mounted/here\n")
    write_group(tmp_path, V2, 4096, used=96, idle=0)
    assert memory_module.cgroup_room(tmp_path, membership) == 4000.0


def test_no_control_groups(tmp_path):
    assert memory_module.cgroup_room(tmp_path, tmp_path / "absent") == math.inf


# --------------------------------------------------------------------------- the text


def table(text: str) -> dict[str, list[str]]:
    """The rows of the table by method, the mark as their last entry."""
    rows = {}
    for line in text.splitlines():
        words = line.lstrip("> ").split()
        if words and words[0] in METHODS:
            rows[words[0]] = [*words[1:], line[0]]
    return rows


def test_the_plan_shows_every_method_and_marks_the_choice():
    work = kfold(2000, 10, 20, kernels=15, workers=2)
    chosen = choose(work, rates=MACHINE, available=math.inf)
    text = explain(work, chosen, MACHINE)
    rows = table(text)
    assert chosen.method == "eigen"
    assert {name: row[-1] for name, row in rows.items()} == {
        "eigen": ">", "block": " ", "iterative": " ", "refit": " ",
    }  # fmt: skip
    for one in candidates(work, MACHINE):
        row = rows[one.method]
        assert row[0] == f"{one.flops:.1e}"
        assert f"{one.nbytes / GIB:.2f} GiB" == " ".join(row[1:3])
        assert float(row[-2]) == pytest.approx(one.seconds / chosen.seconds, abs=0.006)
    assert "15 kernels x 20 lambdas x 10 splits (200 of 2,000 rows removed)" in text
    assert "2 workers with 1 BLAS thread" in text
    assert "one eigendecomposition serves 20 lambdas; Cholesky would factor 20 times" in text
    refit = estimate(work, "refit", MACHINE)
    assert f"expected speed-up {refit.seconds / chosen.seconds:.1f}x" in text
    assert "faster, but not chosen" not in text


def test_the_plan_of_a_single_lambda():
    work = Workload(500, 1, (40, 60, 50), ridges=3, itemsize=4)
    text = explain(work, choose(work, rates=MACHINE, available=math.inf), MACHINE)
    assert table(text)["block"][-1] == ">"
    assert "1 kernel x 1 lambda x 3 splits (40 to 60 of 500 rows removed)" in text
    assert "float32" in text
    assert "3 Cholesky factors, each with its inverse, for 1 lambda" in text


def test_a_slower_choice_says_so():
    work = kfold(1000, 10, 50)
    text = explain(work, estimate(work, "block", MACHINE), MACHINE)
    assert table(text)["block"][-1] == ">"
    assert "Expected to be faster, but not chosen: eigen (" in text
    # a method that is not among the candidates has a row of its own
    rows = table(explain(work, estimate(work, "exact", MACHINE), MACHINE))
    assert set(rows) == {"block", "eigen", "iterative", "refit", "exact"}
    assert rows["exact"][-1] == ">"


@pytest.mark.parametrize("method", ["exact", "limit", "influence", "refit"])
def test_the_plan_of_other_losses_says_that_it_is_rough(method):
    work = kfold(600, 5, 10, loss="smoothed_hinge")
    text = explain(work, choose(work, method, MACHINE), MACHINE)
    rows = table(text)
    assert set(rows) == {"exact", "limit", "influence", "iterative", "refit"}
    assert [name for name, row in rows.items() if row[-1] == ">"] == [method]
    assert "rough estimates" in text
    assert "smoothed_hinge loss" in text
    assert f"Why {method}:" in text
    # limit and influence are not substitutes
    assert ("faster, but not chosen: exact (" in text) == (method == "refit")
    assert "chosen: limit" not in text


def test_features_are_planned_for():
    work = Workload(n=1_000_000, lams=20, removed=(100_000,) * 10, features=2_000)
    assert choose(work).method == "gram"
    assert choose(replace(work, quadratic=False, loss="log")).method == "exact"
    assert choose(replace(work, quadratic=False, loss="log"), "limit").method == "limit"
    # memory grows with the square of the features, and with n by held-out values alone
    double = replace(work, n=2 * work.n, removed=(200_000,) * 10)
    values = 8 * 21 * work.n
    assert choose(double).nbytes - choose(work).nbytes == values
    assert choose(replace(work, features=4_000)).nbytes > 2 * choose(work).nbytes
    with pytest.raises(MemoryError, match="fewer features than 2000"):
        check_memory(work, choose(work), available=1e6)
    text = explain(work, choose(work))
    assert "2,000 features" in text
    assert "gram" in text
