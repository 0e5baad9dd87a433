"""Columns of a raw table, as the pipeline reads them: when a model is made, and when it is used."""

from __future__ import annotations

import io
import json
import warnings

import numpy as np
import pandas as pd
import pytest

from onefit import select
from onefit._validation import DataError
from onefit.prepare import TablePreparer
from onefit.tables import WrittenNumbers

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
    reader = WrittenNumbers()
    learnt = reader.fit_transform(frame)
    pd.testing.assert_frame_equal(reader.transform(frame[rows]), learnt[rows])


def test_the_decimal_comma_is_remembered():
    reader = WrittenNumbers().fit(pd.DataFrame({"x": ["1,5", "2,25", "1.234,5"]}))
    assert reader.transform(pd.DataFrame({"x": ["1,500"]}))["x"].tolist() == [1.5]
    with pytest.raises(DataError, match=r"'1\.5' in row 0, but the model was made with numbers"):
        reader.transform(pd.DataFrame({"x": ["1.5"]}))
    other = WrittenNumbers().fit(pd.DataFrame({"x": ["1,500", "12,250", "1,250.5"]}))
    assert other.transform(pd.DataFrame({"x": ["1,500"]}))["x"].tolist() == [1500.0]


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("cost", "€ 100", r"'€ 100' in row 1, but the model was made with numbers in '\$'"),
        ("cost", "a lot", r"'a lot' in row 1"),
        ("size", "12%", r"'12%' in row 1, but the model was made with numbers there"),
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


@pytest.mark.parametrize("empty", [None, np.nan, "", " "])
def test_a_column_without_any_value_is_left_out(empty):
    table = pd.DataFrame({"a": np.arange(12.0), "b": [empty] * 12})
    preparer = TablePreparer().fit(table)
    assert preparer.get_feature_names_out().tolist() == ["a"]
    new = table.assign(b=7.0 if empty is np.nan else "new")
    np.testing.assert_array_equal(preparer.transform(new), preparer.transform(table))
    with pytest.warns(UserWarning, match="'b' holds no value in any row, and is not used"):
        found = select(table, np.arange(12.0), kernels="linear", cv=3)
    assert found.predict(new) == pytest.approx(np.arange(12.0), abs=0.5)


def test_a_table_without_any_value_is_refused():
    with pytest.raises(DataError, match="all rows have the same features"):
        select(pd.DataFrame({"b": [np.nan] * 12}), np.arange(12.0))


def test_new_numbers_without_the_unit_are_noted():
    reader = WrittenNumbers().fit(pd.DataFrame({"share": ["12%", "7%", "30%"]}))
    with pytest.warns(UserWarning, match="'share' has no unit, and is read as numbers in '%'"):
        found = reader.transform(pd.DataFrame({"share": [0.12, 0.3]}))
    assert found["share"].tolist() == [0.12, 0.3]


def test_gaps_among_truth_values_of_new_rows_are_gaps():
    reader = WrittenNumbers().fit(pd.DataFrame({"new": [True, False, True]}))
    found = reader.transform(pd.DataFrame({"new": [False, None, True]}))["new"]
    np.testing.assert_array_equal(found, [0.0, np.nan, 1.0])


@pytest.mark.parametrize("kind", [object, "boolean"])
def test_truth_values_with_gaps_are_numbers(kind):
    """Whatever type holds them, and also in rows without a gap."""
    table = pd.DataFrame({"new": pd.Series([True, None, False, True], dtype=kind)})
    reader = WrittenNumbers()
    np.testing.assert_array_equal(reader.fit_transform(table)["new"], [1.0, np.nan, 0.0, 1.0])
    found = reader.transform(pd.DataFrame({"new": [False, True]}))["new"]
    np.testing.assert_array_equal(found, [0.0, 1.0])


def test_thousands_do_not_begin_with_a_zero():
    """0,491 is not four hundred and ninety-one, and decides the comma of its column."""
    reader = WrittenNumbers()
    found = reader.fit_transform(pd.DataFrame({"x": ["1,250", "-0,491", "12,000"]}))["x"]
    assert found.tolist() == [1.25, -0.491, 12.0]
    assert reader.transform(pd.DataFrame({"x": ["1,500"]}))["x"].tolist() == [1.5]


def test_missing_columns_are_named():
    frame, y = raw_table()
    with pytest.raises(DataError, match="the table lacks 'day', 'new'"):
        select(frame, y, kernels="linear").pipeline_.predict(frame.drop(columns=["day", "new"]))


@pytest.mark.parametrize("part", [3, 40])
@pytest.mark.parametrize("code", ["n.a.", "-", "--", "NULL", "unknown", "#DIV/0!", ".", "?"])
def test_gap_codes_among_numbers_are_gaps(code, part):
    x = np.round(np.random.default_rng(1).normal(size=80), 4)
    gaps = np.arange(80) % part == 2
    texts = pd.DataFrame({"x": np.where(gaps, code, x.astype(str))})
    found = WrittenNumbers().fit_transform(texts)["x"]
    np.testing.assert_array_equal(found, np.where(gaps, np.nan, x))


def test_numbers_that_stand_for_missing_values_are_noted():
    x = np.random.default_rng(0).normal(size=60)
    table = pd.DataFrame({"x": x, "z": np.where(np.arange(60) % 9 == 1, -999, 10 * x)})
    table["w"] = np.where(np.arange(60) == 3, 9999.0, x)  # once: an outlier
    table["v"] = np.linspace(-999, 3000, 60).round(-1)
    table.loc[:1, "v"] = -999.0  # near its other values
    found = select(table, x, kernels="linear", cv=3)
    notes = [one for one in found.notes_ if "missing value" in one]
    assert len(notes) == 1
    assert "column 'z' holds -999 in 7 rows, far from its other values" in notes[0]


def test_blanks_around_texts_do_not_count():
    table = pd.DataFrame({"x": ["red", "red ", " blue", "  "], "z": [" 1", "2 ", "3", "4"]})
    reader = WrittenNumbers()
    found = reader.fit_transform(table)
    assert found["x"].tolist()[:3] == ["red", "red", "blue"]
    assert found["x"].isna().tolist() == [False, False, False, True]
    assert found["z"].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert reader.transform(table.iloc[::-1])["x"].tolist()[1:] == ["blue", "red", "red"]


def test_a_gap_code_among_the_classes_is_noted(onefit, tmp_path):
    path = tmp_path / "data.csv"
    lines = [f"{('yes ', 'no', 'n.a.')[i % 3]},{i * 7 % 31}" for i in range(60)]
    path.write_text("\n".join(["t,x", *lines]))
    done = onefit("select", path, "--target", "t", *LINEAR, "--format", "json")
    assert done.exit_code == 0, done.stderr
    assert "the target 't' has the class 'n.a.'" in done.stderr
    assert set(json.loads(done.stdout)["best"]["shares"]) == {"yes", "no", "n.a."}


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
    assert WrittenNumbers().fit_transform(pd.DataFrame({"x": texts}))["x"].tolist() == texts
    # one number beside a gap code is a mark
    assert WrittenNumbers().fit_transform(pd.DataFrame({"x": ["1", "-"]}))["x"].tolist() == [
        "1",
        "-",
    ]


def test_targets_with_gap_codes(onefit, tmp_path):
    path = tmp_path / "data.csv"
    lines = [f"{'n.a.' if i % 5 == 3 else i % 23},{i * 7 % 31}" for i in range(60)]
    path.write_text("\n".join(["t,x", *lines]))
    done = onefit("select", path, "--target", "t", *LINEAR)
    assert done.exit_code == 0, done.stderr
    assert "12 of 60 rows are left out" in done.stderr
    assert "the first is line 5" in done.stderr
    model = tmp_path / "m.skops"
    onefit("select", path, "--target", "t", *LINEAR, "--model", model)
    assert "scored on the 48 rows that have the target" in onefit("predict", model, path).stderr
    path.write_text("t,x\na,1\nb,2\n")
    done = onefit("predict", model, path)
    assert done.exit_code == 0, done.stderr
    assert "not scored: the target 't' does not hold numbers" in done.stderr


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
    assert WrittenNumbers().fit(frame.astype({"x": "category"})).how_["x"] == {"kind": "text"}
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
    read = WrittenNumbers().fit_transform(frame)["day"]
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


def coded_table(n: int = 200) -> tuple[pd.DataFrame, np.ndarray]:
    """Texts of many values that share words, and dates with a time; both matter."""
    random = np.random.default_rng(3)
    words = {"engineer": 2.0, "clerk": -1.0, "driver": 0.0, "nurse": 1.0}
    kinds = random.choice(list(words), n)
    hours = random.integers(0, 24 * 500, n)
    when = pd.Timestamp("2022-01-01") + pd.to_timedelta(hours, unit="h")
    frame = pd.DataFrame(
        {
            "job": [f"{one} {i % 97} {i % 7}" for i, one in enumerate(kinds)],
            "when": when.strftime("%Y-%m-%d %H:%M"),
        }
    )
    y = np.array([words[one] for one in kinds]) + np.cos(2 * np.pi * hours / 24)
    return frame, y + 0.1 * random.normal(size=n)


def test_texts_of_many_values_and_times_of_day_predict():
    frame, y = coded_table()
    new = frame[150:].copy()  # numbers of the rows that the first ones have not
    found = select(frame[:150], y[:150], kernels="rbf")
    rest = found.predict(new) - y[150:]
    assert np.square(rest).mean() < 0.2 * y.var()
    new["job"] = None  # a text that is missing, in every row
    assert np.isfinite(found.predict(new)).all()
    names = found.pipeline_.named_steps["prepare"].get_feature_names_out()
    assert {"when", "when (day, cosine)", "job (text 1)"} <= set(names)
    assert len(set(names)) == len(names)


def test_encoded_columns_have_comparable_sizes():
    frame, _ = coded_table()
    preparer = TablePreparer()
    Z = preparer.fit_transform(frame)
    names = preparer.get_feature_names_out()
    text = np.array([one.startswith("job") for one in names])
    assert Z[:, text].var(axis=0).sum() == pytest.approx(1.0)
    np.testing.assert_allclose(Z[:, names == "when"].std(), 1.0)
    # the same text has the same place, in whatever order and number of rows
    np.testing.assert_allclose(preparer.transform(frame[::-1][:3]), Z[::-1][:3], atol=1e-12)


def test_periods_that_dates_do_not_cover_are_left_out():
    days = pd.date_range("2022-01-01", periods=60)
    for frame, expected in (
        (pd.DataFrame({"d": days[:5]}), 1),
        (pd.DataFrame({"d": days}), 3),
        (pd.DataFrame({"d": days + pd.Timedelta("1h")}), 3),
        (pd.DataFrame({"d": days + pd.to_timedelta(np.arange(60) % 24, unit="h")}), 5),
        (pd.DataFrame({"d": pd.date_range("2020-01-01", periods=60, freq="8D")}), 5),
        (pd.DataFrame({"d": days.tz_localize("Europe/Berlin")}), 3),
    ):
        Z = TablePreparer().fit_transform(frame)
        assert Z.shape[1] == expected
        gap = TablePreparer().fit(frame).transform(pd.DataFrame({"d": [pd.NaT]}))
        assert (gap[0, 1:] == 0.0).all()


def test_a_saved_pipeline_of_texts_and_dates(tmp_path):
    skops = pytest.importorskip("skops.io")
    from onefit.cli.model import TRUSTED

    frame, y = coded_table(80)
    found = select(frame, y, kernels="linear", cv=3)
    skops.dump(found.pipeline_, tmp_path / "m.skops")
    foreign = set(skops.get_untrusted_types(file=tmp_path / "m.skops")) - set(TRUSTED)
    assert not foreign
    again = skops.load(tmp_path / "m.skops", trusted=list(TRUSTED))
    np.testing.assert_array_equal(again.predict(frame), found.predict(frame))


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_dates_and_decimals_of_other_libraries(library):
    import pyarrow as pa

    days = pd.date_range("2022-01-01", periods=20)
    table = pa.table(
        {
            "day": pa.array(days.date),
            "when": pa.array(days + pd.Timedelta("1h")),
            "cost": pa.array(range(20)).cast(pa.decimal128(30, 2)),
            "kind": pa.array(["a", None] * 10).dictionary_encode(),
        }
    )
    if library == "polars":
        table = pytest.importorskip("polars").from_arrow(table)
    found = WrittenNumbers().fit_transform(table)
    np.testing.assert_allclose(found["day"], 18993.0 + np.arange(20))
    np.testing.assert_allclose(found["when"], 18993.0 + np.arange(20) + 1 / 24)
    assert found["cost"].tolist() == list(range(20))
    assert found["kind"].isna().sum() == 10
