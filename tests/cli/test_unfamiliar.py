"""Rows unlike the training rows are named, and so are the lines and cells that are wrong."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest
from command_line import onefit as run_onefit
from sklearn.datasets import dump_svmlight_file

from onefit import select
from onefit.cli.errors import BAD_DATA

SMALL = ("--kernels", "rbf", "--cv", 3)


@pytest.fixture(scope="module")
def made(tmp_path_factory, frame):
    """Models of an amount and of a class."""
    folder = tmp_path_factory.mktemp("model")
    frame.to_csv(folder / "data.csv", index=False)
    for target, other in (("price", "kind"), ("kind", "price")):
        call = ("select", folder / "data.csv", "--target", target, "--drop", other, *SMALL)
        done = run_onefit(*call, "--model", folder / f"{target}.skops")
        assert done.exit_code == 0, done.stderr
    return folder


def predicted(onefit, folder, frame, target="price", *flags):
    frame.to_csv(folder / "new.csv", index=False)
    done = onefit("predict", folder / f"{target}.skops", folder / "new.csv", *flags)
    assert done.exit_code == 0, done.stderr
    return done


@pytest.fixture
def rows(frame):
    return frame.drop(columns=["price", "kind"]).iloc[10:30].reset_index(drop=True)


def test_rows_like_the_training_rows(onefit, made, rows):
    done = predicted(onefit, made, rows)
    assert done.stderr == ""
    found = pd.read_csv(io.StringIO(done.stdout))
    assert (found["novelty"] <= 1.0).all()
    assert found["unfamiliar"].isna().all()


@pytest.mark.parametrize("target", ["price", "kind"])
def test_categories_that_no_training_row_has(onefit, made, rows, target):
    done = predicted(onefit, made, rows.assign(colour="mauve"), target)
    told = "column 'colour' holds categories that no training row has, in every row"
    assert f"warning: {told} (for example 'mauve' in line 2)\n" in done.stderr
    found = pd.read_csv(io.StringIO(done.stdout))
    assert (found["unfamiliar"] == "unseen colour 'mauve'").all()


def test_an_empty_column(onefit, made, rows):
    done = predicted(onefit, made, rows.assign(age=np.nan, size=np.nan))
    assert "column 'age' is empty in every row (the first is line 2)" in done.stderr
    assert "'size'" not in done.stderr  # which has a gap among the training rows
    found = pd.read_csv(io.StringIO(done.stdout))
    assert (found["unfamiliar"] == "empty age").all()


@pytest.mark.parametrize("target", ["price", "kind"])
def test_values_far_beyond_the_training_rows(onefit, made, rows, target):
    rows.loc[4, "age"] *= 1000
    done = predicted(onefit, made, rows, target, "--format", "json")
    document = json.loads(done.stdout)
    notes = [one["unfamiliar"] for one in document["predictions"]]
    assert notes == [""] * 4 + ["far from the training rows"] + [""] * 15
    assert document["predictions"][4]["novelty"] > 100
    assert document["unfamiliar"]["rows"] == 1
    (sentence,) = document["unfamiliar"]["notes"]
    assert "1 of 20 rows are further from the training rows than any of these" in sentence
    assert "the first is line 6" in sentence
    assert f"warning: {sentence}\n" in done.stderr


def test_parquet_written_as_it_comes(onefit, made, rows, tmp_path):
    pytest.importorskip("pyarrow")
    rows = rows.assign(colour="mauve")
    rows.loc[4, "age"] *= 1000
    rows.to_parquet(tmp_path / "new.parquet")
    done = onefit(
        "predict",
        made / "kind.skops",
        tmp_path / "new.parquet",
        "--output",
        tmp_path / "out.parquet",
    )
    assert done.exit_code == 0, done.stderr
    assert "'colour' holds categories that no training row has, in every row" in done.stderr
    found = pd.read_parquet(tmp_path / "out.parquet")
    assert found["unfamiliar"][4] == "far from the training rows; unseen colour 'mauve'"
    assert found["novelty"][4] > 100


def test_sparse_rows(onefit, tmp_path):
    random = np.random.default_rng(0)
    X = random.uniform(size=(60, 3))
    dump_svmlight_file(X, X[:, 0] + 0.1 * random.normal(size=60), str(tmp_path / "a.libsvm"))
    model = tmp_path / "m.skops"
    done = onefit("select", tmp_path / "a.libsvm", "--model", model, *SMALL)
    assert done.exit_code == 0, done.stderr
    X[7] *= 1000
    dump_svmlight_file(X, np.zeros(60), str(tmp_path / "b.libsvm"))
    done = onefit("predict", model, tmp_path / "b.libsvm", "--format", "json")
    odd = [one["unfamiliar"] for one in json.loads(done.stdout)["predictions"]]
    assert [i for i, one in enumerate(odd) if one] == [7]


def test_the_same_in_python(frame, rows):
    X = frame.drop(columns=["price", "kind"])
    found = select(X, frame["price"], kernels="rbf", cv=3)
    assert not found.unfamiliar(rows).summary
    odd = found.unfamiliar(rows.assign(colour="mauve", age=1e5))
    assert (odd.novelty > 1.0).all()
    assert set(odd.notes) == {"far from the training rows; unseen colour 'mauve'"}
    assert len(odd.summary) == 2
    assert "the first is row 0" in odd.summary[1]


def test_gaps_in_a_text_of_many_values(frame):
    """Such a text is neither a number nor one-hot encoded."""
    X = frame[["size", "age"]].assign(name=[f"name {i} {i % 7}" for i in range(len(frame))])
    found = select(X, frame["price"], kernels="rbf", cv=3)
    odd = found.unfamiliar(X[:3].assign(name=["name 1", None, "name 3"]))
    assert odd.notes.tolist() == ["", "empty name", ""]


CELLS = {
    "the word, not the numbers before it": ("30\n31\nold\n33", "'old' in line 4"),
    "below a blank line": ("30\n\n31\nold", "'old' in line 5"),
}


@pytest.mark.parametrize("case", CELLS)
def test_the_cell_that_is_wrong(onefit, made, tmp_path, case):
    ages, words = CELLS[case]
    lines = ["" if not age else f"0.1,{age},red,True" for age in ages.split("\n")]
    (tmp_path / "new.csv").write_text("\n".join(["size,age,colour,new", *lines]) + "\n")
    done = onefit("predict", made / "price.skops", tmp_path / "new.csv")
    assert done.exit_code == BAD_DATA
    assert f"column 'age' holds {words}, but the model was made with numbers" in done.stderr


def test_lines_below_a_value_of_two_lines(onefit, made, tmp_path):
    text = 'size,age,colour,new\n0.1,30,"re\nd",True\n0.2,31,red,True\n0.3,inf,red,True\n'
    (tmp_path / "new.csv").write_text(text)
    done = onefit("predict", made / "price.skops", tmp_path / "new.csv")
    assert "column 'colour' in line 2 spans several lines" in done.stderr
    assert "column 'age' is infinite in line 5" in done.stderr
    (tmp_path / "new.csv").write_text(text.replace("inf,red,True", "32,red,True,7"))
    done = onefit("predict", made / "price.skops", tmp_path / "new.csv")
    assert "line 5 holds 5 values, expected 4" in done.stderr


def test_lines_of_rows_that_were_sorted_or_left_out(onefit, frame, tmp_path):
    """In the order of time, and below a row without a target."""
    frame = frame.drop(columns="kind").assign(
        day=np.arange(80)[::-1], age=frame["age"].astype(object)
    )
    frame.loc[2, "price"] = np.nan
    frame.loc[7, "age"] = "old"
    frame.to_csv(tmp_path / "data.csv", index=False)
    done = onefit("explain", tmp_path / "data.csv", "--target", "price", "--time", "day")
    assert done.exit_code == 3, done.stderr
    assert "(the first is line 4)" in done.stderr
    assert "column 'age' holds numbers but for 'old' in line 9" in done.stderr
