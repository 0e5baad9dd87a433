"""Dates as people write them: read where the column determines the order, else refused."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onefit as package
from onefit._validation import DataError
from onefit.cli.errors import BAD_DATA
from onefit.prepare import TablePreparer
from onefit.tables import WrittenNumbers

LINEAR = ("--kernels", "linear", "--cv", 3, "--format", "json")
#: the 1st to the 12th of the first months: day and month are open
OPEN = [f"{i % 12 + 1:02}/{i % 7 + 1:02}/2021" for i in range(36)]


def read(texts, asked=None):
    """Days of a column; None where it is text."""
    reader = WrittenNumbers(asked)
    found = reader.fit_transform(pd.DataFrame({"day": pd.Series(texts, dtype=object)}))["day"]
    return found.to_numpy() if reader.how_["day"]["kind"] == "date" else None


@pytest.mark.parametrize(
    "pattern",
    ["%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m/%d/%Y %I:%M %p",
     "%d/%m/%Y %H:%M:%S", "%d-%b-%Y", "%d %B %Y", "%b %d, %Y", "%Y-%b-%d", "%d-%b-%Y %H:%M"],
)  # fmt: skip
@given(
    st.lists(
        st.datetimes(pd.Timestamp("1900-01-01"), pd.Timestamp("2100-01-01")).map(
            lambda one: one.replace(second=0, microsecond=0)
        ),
        max_size=5,
    )
)
def test_dates_are_days_since_1970(pattern, moments):
    """One of them is on the 25th, which determines the order."""
    whole = [*moments, pd.Timestamp("2021-01-25 14:30").to_pydatetime()]
    if "%H" not in pattern and "%I" not in pattern:
        whole = [one.replace(hour=0, minute=0) for one in whole]
    found = read([one.strftime(pattern) for one in whole] + [np.nan])
    expected = (pd.Series(whole) - pd.Timestamp(0)).dt.total_seconds() / 86400.0
    np.testing.assert_allclose(found[:-1], expected, atol=1e-9)
    assert np.isnan(found[-1])


@pytest.mark.parametrize("texts", [["13/13/2021"], ["2021-13-01"], ["31/02/2021"], ["1/2/21"]])
def test_what_is_no_date_is_refused(texts):
    with pytest.raises(DataError, match="column 'day' holds dates or times"):
        read(texts)


def test_months_are_their_first_days():
    assert read(["2019-03", "2020-12"]).tolist() == [17956.0, 18597.0]
    assert read(["2019-20", "2020-21"]) is None  # seasons


def test_an_empty_column_holds_no_dates():
    assert read([]) is None


def test_orders_that_disagree_are_refused():
    with pytest.raises(DataError, match="'25/01/2021' and '01/25/2021'"):
        read(["25/01/2021", "01/25/2021"])


@pytest.mark.filterwarnings("ignore:column:UserWarning")
@pytest.mark.parametrize("texts", [["05.01.2021", "06/02/2021"], ["06/02/2021", "05.01.2021"]])
def test_points_in_some_dates_do_not_decide_for_the_others(texts):
    with pytest.raises(DataError, match="set dayfirst to say which"):
        read(texts)


def test_the_order_may_be_said_or_known():
    early, late = read(["01/02/2021"], asked=False), read(["01/02/2021"], asked=True)
    assert (early[0], late[0]) == (18629.0, 18659.0)  # 2 January and 1 February
    assert read(["25/02/2021", "01/02/2021"], asked=False)[1] == late  # the column decides
    reader = WrittenNumbers().fit(pd.DataFrame({"day": ["02/25/2021", "02/26/2021"]}))
    for text, expected in (("01/02/2021", early), ("2021-02-01", late), ("1 Feb 2021", late)):
        found = reader.transform(pd.DataFrame({"day": [text]}))
        assert found["day"].tolist() == expected.tolist()


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "data.csv"
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"day": OPEN, "x": random.normal(size=len(OPEN))})
    when = pd.to_datetime(frame["day"], format="%m/%d/%Y").dt.day_of_year
    frame.assign(t=when + 0.1 * frame["x"]).to_csv(path, index=False)
    return path


def test_an_open_order_is_refused_with_both_readings(onefit, table):
    done = onefit("select", table, "--target", "t", *LINEAR)
    assert done.exit_code == BAD_DATA
    for words in ("column 'day'", "'08/01/2021'", "8 January", "1 August", "set dayfirst"):
        assert words in done.stderr
    done = onefit("select", table, "--target", "t", "--time", "day", *LINEAR)
    assert (done.exit_code, "set dayfirst" in done.stderr) == (BAD_DATA, True)


def test_a_model_remembers_the_order(onefit, table, tmp_path):
    model, new = tmp_path / "m.skops", tmp_path / "new.csv"
    done = onefit("select", table, "--target", "t", "--no-dayfirst", *LINEAR, "--model", model)
    assert done.exit_code == 0, done.stderr
    assert "(01/01/2021, say, month first)" in done.stderr
    assert json.loads(done.stdout)["best"]["score"] > 0.99
    new.write_text("day,x\n05/02/2021,0\n")

    def predicted(*words):
        done = onefit("predict", model, new, "--level", 0, *words)
        assert done.exit_code == 0, done.stderr
        return pd.read_csv(io.StringIO(done.stdout))["prediction"][0]

    assert predicted() == pytest.approx(122, abs=2)  # 2 May
    assert predicted("--dayfirst") == pytest.approx(36, abs=2)  # 5 February
    new.write_text("day,x\n05/02/2021,0\n25/02/2021,0\n")
    done = onefit("predict", model, new)
    assert done.exit_code == BAD_DATA
    assert "'25/02/2021' in line 3, but the model was made with dates with the month" in done.stderr


@pytest.mark.filterwarnings("ignore:column:UserWarning")
def test_python_has_the_same_rule(table):
    frame = pd.read_csv(table)
    X, y = frame[["day", "x"]], frame["t"]
    with pytest.raises(ValueError, match="set dayfirst"):
        package.select(X, y)
    found = package.select(X, y, kernels="linear", prepare=TablePreparer(dayfirst=False))
    assert found.predict(pd.DataFrame({"day": ["05/02/2021"], "x": [0.0]})) == pytest.approx(
        122, abs=2
    )
