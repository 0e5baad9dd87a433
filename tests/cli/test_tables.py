"""Columns of a raw table, as the pipeline reads them: when a model is made, and when it is used."""

from __future__ import annotations

import io
import json
import warnings

import numpy as np
import pandas as pd
import pytest

from onefit import select
from onefit.files import DataError
from onefit.tables import ColumnReader

pytestmark = pytest.mark.filterwarnings("ignore:column:UserWarning")
LINEAR = ("--kernels", "linear", "--cv", 3)


def raw_table(n: int = 60) -> tuple[pd.DataFrame, np.ndarray]:
    """Dates, currencies, percentages, booleans, numbers with gaps and categories, as text."""
    random = np.random.default_rng(0)
    days, cost = pd.date_range("2020-11-20", periods=n), random.uniform(1000, 90000, n)
    share, size = random.uniform(0, 100, n), random.normal(size=n)
    frame = pd.DataFrame(
        {
            "day": days.strftime("%d.%m.%Y"),
            "cost": [f"${one:,.0f}" for one in cost],
            "share": [f"{one:.1f}%" for one in share],
            "size": [("n.a." if i % 9 == 4 else f"{one:.3f}") for i, one in enumerate(size)],
            "new": random.random(n) < 0.5,
            "kind": random.choice(["a", "b", "c"], n),
        }
    )
    y = 0.1 * np.arange(n) + cost / 10000 + 0.05 * share + (frame["kind"] == "a") + 0.1 * size
    return frame, y.to_numpy()


def test_the_pipeline_predicts_from_the_raw_table():
    skops = pytest.importorskip("skops.io")
    from onefit.cli.model import TRUSTED

    frame, y = raw_table()
    found = select(frame, y, kernels="linear")
    assert found.best_score_ > 0.95
    expected = found.pipeline_.predict(frame)
    assert np.abs(expected - y).max() < 1.5
    np.testing.assert_array_equal(found.predict(frame), expected)
    again = skops.loads(skops.dumps(found.pipeline_), trusted=list(TRUSTED))
    np.testing.assert_array_equal(again.predict(frame), expected)
    shuffled = frame.iloc[::-1, ::-1]  # columns are found by their names
    np.testing.assert_allclose(again.predict(shuffled), expected[::-1], rtol=1e-12)


def test_the_pipeline_of_a_saved_model_predicts_from_the_raw_table(onefit, tmp_path):
    skops = pytest.importorskip("skops.io")
    from onefit.cli.model import TRUSTED

    frame, y = raw_table()
    data, model = tmp_path / "data.csv", tmp_path / "m.skops"
    frame.assign(t=y).to_csv(data, index=False)
    done = onefit("select", data, "--target", "t", *LINEAR, "--model", model)
    assert done.exit_code == 0, done.stderr
    done = onefit("predict", model, data, "--level", 0)
    printed = pd.read_csv(io.StringIO(done.stdout))["prediction"]
    pipeline = skops.load(model, trusted=list(TRUSTED))
    np.testing.assert_allclose(pipeline.predict(frame), printed, rtol=1e-12)
    np.testing.assert_allclose(pipeline.predict(pd.read_csv(data)), printed, rtol=1e-12)


@pytest.mark.parametrize("rows", [slice(None), slice(4, 5), slice(0, 1)])
def test_new_rows_are_read_as_the_old_ones(rows):
    """Also a single row, in which nothing shows how the column is written."""
    frame, _ = raw_table()
    reader = ColumnReader()
    learnt = reader.fit_transform(frame)
    pd.testing.assert_frame_equal(reader.transform(frame[rows]), learnt[rows])


def test_the_decimal_comma_is_remembered():
    reader = ColumnReader().fit(pd.DataFrame({"x": ["1,5", "2,25", "1.234,5"]}))
    assert reader.transform(pd.DataFrame({"x": ["1,500"]}))["x"].tolist() == [1.5]
    with pytest.raises(DataError, match=r"'1\.5' in row 0, but the model was made with numbers"):
        reader.transform(pd.DataFrame({"x": ["1.5"]}))
    other = ColumnReader().fit(pd.DataFrame({"x": ["1,500", "12,250", "1,250.5"]}))
    assert other.transform(pd.DataFrame({"x": ["1,500"]}))["x"].tolist() == [1500.0]


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("cost", "€ 100", r"'€ 100' in row 1, but the model was made with numbers in '\$'"),
        ("cost", "a lot", r"'a lot' in row 1"),
        ("size", "large", r"'large' in row 1, but the model was made with numbers"),
        ("day", "soon", r"'soon' in row 1, but the model was made with dates with the day first"),
        ("day", "02/25/2021", r"'02/25/2021' in row 1"),
    ],
)
def test_cells_that_cannot_be_read_are_named(column, value, words):
    frame, y = raw_table()
    pipeline = select(frame, y, kernels="linear").pipeline_
    frame.loc[1, column] = value
    with pytest.raises(DataError, match=f"column '{column}' holds {words}"):
        pipeline.predict(frame)


def test_missing_columns_are_named():
    frame, y = raw_table()
    with pytest.raises(DataError, match="X lacks the columns 'day', 'new'"):
        select(frame, y, kernels="linear").pipeline_.predict(frame.drop(columns=["day", "new"]))


@pytest.mark.parametrize("part", [3, 40])
@pytest.mark.parametrize("code", ["n.a.", "-", "--", "NULL", "unknown", "#DIV/0!", ".", "?"])
def test_gap_codes_among_numbers_are_gaps(code, part):
    x = np.round(np.random.default_rng(1).normal(size=80), 4)
    gaps = np.arange(80) % part == 2
    texts = pd.DataFrame({"x": np.where(gaps, code, x.astype(str))})
    found = ColumnReader().fit_transform(texts)["x"]
    np.testing.assert_array_equal(found, np.where(gaps, np.nan, x))


def test_gap_codes_do_not_change_the_choice(onefit, tmp_path):
    x, z = np.random.default_rng(1).normal(size=(2, 80))
    gaps, path = np.arange(80) % 11 == 2, tmp_path / "data.csv"
    frame = pd.DataFrame({"z": z, "t": 3 * x + z})
    errors = []
    for one in (frame.assign(x=np.where(gaps, code, x)) for code in ("n.a.", np.nan)):
        one.to_csv(path, index=False)
        done = onefit("select", path, "--target", "t", *LINEAR, "--format", "json")
        assert done.exit_code == 0, done.stderr
        errors.append(json.loads(done.stdout)["best"]["score"])
    assert errors[0] == pytest.approx(errors[1])


def test_gap_codes_are_noted_with_their_line(onefit, tmp_path):
    path = tmp_path / "data.csv"
    lines = [f"{i * 7 % 31},{'n.a.' if i in (4, 9) else i},{i % 8}" for i in range(40)]
    path.write_text("\n".join(["t,x,z", *lines]))
    with warnings.catch_warnings(action="always"):
        done = onefit("select", path, "--target", "t", *LINEAR, "--format", "json")
    note = "column 'x': 2 cells are read as missing ('n.a.'; the first in line 6)"
    assert f"note: {note}" in done.stderr
    assert note in json.loads(done.stdout)["notes"]


def test_gap_codes_among_words_are_words():
    texts = ["a", "-", "b", "unknown", "a"]
    assert ColumnReader().fit_transform(pd.DataFrame({"x": texts}))["x"].tolist() == texts
    # one number beside a gap code is a mark
    assert ColumnReader().fit_transform(pd.DataFrame({"x": ["1", "-"]}))["x"].tolist() == ["1", "-"]


def test_targets_with_gap_codes(onefit, tmp_path):
    path = tmp_path / "data.csv"
    lines = [f"{'n.a.' if i % 5 == 3 else i % 23},{i * 7 % 31}" for i in range(60)]
    path.write_text("\n".join(["t,x", *lines]))
    done = onefit("select", path, "--target", "t", *LINEAR)
    assert done.exit_code == 0, done.stderr
    assert "12 of 60 rows are left out" in done.stderr
    assert "the first is line 5" in done.stderr


@pytest.mark.parametrize(
    ("good", "kind"),
    [
        (lambda i: str(i), "numbers"),
        (lambda i: f"${i},000", "numbers"),
        (lambda i: f"2021-{i % 12 + 1:02}-{i // 12 + 1:02}", "dates"),
    ],
)
def test_numbers_with_a_few_words_are_refused(onefit, tmp_path, good, kind):
    texts = ["oops" if i in (3, 20) else good(i + 1) for i in range(60)]
    frame = pd.DataFrame({"x": texts, "z": np.arange(60) % 7, "t": np.arange(60) % 11})
    with pytest.raises(DataError, match=rf"{kind} but for 'oops' in row 3, 'oops' in row 20; corr"):
        select(frame[["x", "z"]], frame["t"])
    # as text the column is a category, which is for the user to say
    assert ColumnReader().fit(frame.astype({"x": "category"})).how_["x"] == {"kind": "text"}
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    path.write_text(path.read_text().replace("\n", "\n\n", 1))  # a blank line below the header
    done = onefit("select", path, "--target", "t")
    assert done.exit_code == 3
    assert "'oops' in line 6, 'oops' in line 23; correct it" in done.stderr


def test_dates_with_named_months(onefit, tmp_path):
    days = pd.date_range("1994-05-26", periods=60)
    frame = pd.DataFrame({"day": days.strftime("%d-%b-%Y"), "z": np.arange(60) % 7})
    frame["day"] = frame["day"].where(np.arange(60) != 7, "n.a.")
    read = ColumnReader().fit_transform(frame)["day"]
    np.testing.assert_array_equal(read[:7], 8911 + np.arange(7))
    assert np.isnan(read[7])
    found = select(frame, np.arange(60) + 0.1 * frame["z"], kernels="linear")
    assert found.best_score_ > 0.95
    for short in ("%d-%b-%y", "%d %b %y"):
        with pytest.raises(DataError, match="holds dates or times"):
            select(frame.assign(day=days.strftime(short)), np.arange(60.0))


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_tables_of_other_libraries(library):
    package = pytest.importorskip(library)
    frame, y = raw_table()
    other = (package.from_pandas if library == "polars" else package.Table.from_pandas)(frame)
    found, expected = (select(one, y, kernels="linear") for one in (other, frame))
    assert found.best_params_ == expected.best_params_
    assert found.notes_ == expected.notes_
    for one in (frame, other):
        np.testing.assert_array_equal(found.pipeline_.predict(one), expected.predict(frame))
    if library == "polars":
        with pytest.raises(TypeError, match=r"not computed yet; call collect\(\)"):
            select(other.lazy(), y)
