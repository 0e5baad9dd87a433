"""Copies of rows stay on one side of a split, and columns that tell the target are named."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.model_selection import KFold

from onefit import select

SMALL = ("--kernels", "linear", "--cv", 5, "--format", "json")


def noise(n: int = 120, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return random.normal(size=(n, d)), random.normal(size=n)


def doubled(X, y):
    return np.vstack([X, X]), np.concatenate([y, y])


def sides(found, first: np.ndarray) -> bool:
    """Whether each row is tested together with the row that it is a copy of."""
    tested = np.empty(first.size, dtype=int)
    for k, rows in enumerate(found.search_.heldout_.folds.test):
        tested[rows] = k
    return bool((tested == tested[first]).all())


@pytest.mark.parametrize("made", ["array", "sparse", "frame", "with an id"])
def test_copies_of_noise_do_not_look_like_signal(made):
    X, y = doubled(*noise())
    table = {
        "array": lambda: X,
        "sparse": lambda: csr_matrix(X),
        "frame": lambda: pd.DataFrame(X).assign(kind=["a", "b"] * 120),
        "with an id": lambda: pd.DataFrame(X).assign(id=np.arange(1, 241)),
    }[made]()
    with pytest.warns(UserWarning, match="120 of 240 rows are copies") as said:
        found = select(table, y, kernels="rbf")
    assert found.best_score_ < 0.2
    assert sides(found, np.arange(240) % 120)
    (note,) = [one for one in found.notes_ if "copies" in one]
    assert "(for example row 120 equals row 0); copies are kept on one side of every split" in note
    assert ("all columns but 'id'" in note) == (made == "with an id")
    assert note in {str(one.message) for one in said}
    assert note in found.summary()


def test_rows_that_differ_in_the_target_are_no_copies():
    X, y = noise()
    found = select(np.vstack([X, X]), np.concatenate([y, -y]), kernels="rbf")
    assert found.notes_ == []


def test_copies_join_the_groups():
    X, y = doubled(*noise())
    groups = np.r_[np.arange(120) // 2, 100 + np.arange(120) // 2]
    with pytest.warns(UserWarning, match="120 of 240 rows are copies"):
        found = select(X, y, groups=groups, kernels="rbf")
    assert found.best_score_ < 0.2
    assert sides(found, np.arange(240) % 120)
    assert sides(found, np.arange(240) // 2 * 2)


@pytest.mark.parametrize("labels", [False, True])
def test_copies_and_each_row_left_out(labels):
    X, y = doubled(*noise(60))
    with pytest.warns(UserWarning, match="60 of 120 rows are copies"):
        found = select(X, y > 0 if labels else y, kernels="rbf", cv=120)
    assert found.n_splits_ == 60
    assert found.best_score_ < (0.75 if labels else 0.2)


@pytest.mark.parametrize(
    ("cv", "X", "y", "why"),
    [
        (KFold(4), *doubled(*noise(60)), "the splits are given"),
        (5, *(np.repeat(one, 30, axis=0) for one in noise(4)), "only 4 of them are different"),
        (5, *(np.r_[one, one[:1].repeat(90, axis=0)] for one in noise(30)), "only 30 of them are"),
    ],
)
def test_copies_that_cannot_be_kept_together_are_told(cv, X, y, why):
    with pytest.warns(UserWarning, match=f"rows are copies .*{why}.*; remove them"):
        select(X, y, cv=cv, kernels="linear", task="regression")


def test_copies_on_the_command_line(onefit, tmp_path):
    X, y = doubled(*noise())
    path, report = tmp_path / "data.csv", tmp_path / "r.html"
    pd.DataFrame(X).assign(t=y, when=np.arange(240)).to_csv(path, index=False)
    select = ("select", path, "--target", "t", *SMALL)
    done = onefit(*select, "--drop", "when", "--report", report)
    assert done.exit_code == 0, done.stderr
    note = "120 of 240 rows are copies of an earlier row"
    assert f"note: {note}" in done.stderr
    assert "(for example line 122 equals line 2)" in done.stderr
    found = json.loads(done.stdout)
    assert found["best"]["score"] < 0.2
    assert note in found["notes"][0]
    assert note in report.read_text()
    done = onefit(*select, "--time", "when")  # the order of time stays
    assert "splits are in order of time, so that copies are in training" in done.stderr
    assert note in onefit("explain", *select[1:-2], "--drop", "when").stderr


@pytest.mark.parametrize(
    "leak",
    [
        lambda y: 1.1 * y,
        lambda y: np.round(110 * np.exp(y)) / 100,
        lambda y: 1 / (1 + np.exp(-y)) ** 2,
    ],
)
def test_a_column_that_is_the_target_is_named(leak):
    X, e = noise(200)
    y = X[:, 0] + e
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y_eur=leak(y))
    with pytest.warns(UserWarning, match="column 'y_eur' alone explains") as said:
        found = select(frame, y, kernels="linear")
    (note,) = found.notes_
    assert note in {str(one.message) for one in said}
    share = float(note.partition("of its ranks ")[2].partition(",")[0])
    assert share > 0.99
    assert select(frame.drop(columns="y_eur"), y, kernels="linear").notes_ == []


def test_a_leak_of_labels_is_named(onefit, tmp_path):
    X, e = noise(200)
    label = np.where(X[:, 0] + e > 0, "yes", "no")
    frame = pd.DataFrame(X, columns=list("abcd")).assign(code=np.where(label == "yes", "J", "N"))
    path, report = tmp_path / "data.csv", tmp_path / "r.html"
    frame.assign(t=label).to_csv(path, index=False)
    done = onefit("select", path, "--target", "t", *SMALL, "--report", report)
    note = "column 'code' alone explains 100.00% of the target on held-out rows"
    assert note in done.stderr
    assert note in json.loads(done.stdout)["notes"][0]
    assert "alone explains 100.00% of the target" in report.read_text()
    assert select(frame.drop(columns="code"), label, kernels="linear").notes_ == []


def test_a_strong_predictor_that_others_add_to_is_no_leak():
    X, e = noise(300)
    y = 6 * X[:, 0] + X[:, 1] + 0.1 * e  # the first column alone explains 97 %
    found = select(X, y, kernels="linear")
    assert found.best_score_ > 0.999
    assert found.notes_ == []


def test_groups_do_not_pass_for_a_leak():
    """A column that is the group tells the target of the same group only."""
    X, _ = noise(200)
    group = np.arange(200) // 10
    y = np.random.default_rng(3).normal(size=20)[group]
    X = np.c_[X, np.random.default_rng(4).normal(size=20)[group]]
    assert select(X, y + 1e-3 * X[:, 0], groups=group, kernels="rbf").notes_ == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [("bodyfat", ["x1"]), ("mpg", []), ("housing", []), ("uci/yacht20", []), ("heart", [])],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_real_data(data_dir, name, expected):
    """The body fat of "bodyfat" is computed from the density, its target; yacht20 has a strong
    column, to which the others add."""
    frame = pd.read_csv(data_dir / f"{name}.csv.gz")
    target = "target" if "target" in frame else frame.columns[-1]
    found = select(frame.drop(columns=target), frame[target].to_numpy(), stack=False)
    named = [one for one in found.notes_ if "alone explains" in one]
    assert [one.split("'")[1] for one in named] == expected
