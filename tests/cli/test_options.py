"""Every option of select and predict that says what columns are, how to judge, and how to read."""

from __future__ import annotations

import inspect
import io
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import TimeSeriesSplit

import onefit as onefit_package
from onefit.cli import options
from onefit.cli.errors import BAD_DATA, USAGE
from onefit.cli.model import load_model
from onefit.tables import Roles, read_table
from onefit.written import read_numbers

#: columns that predictions end with
NOTES = ("novelty", "unfamiliar")

LINEAR = ("--kernels", "linear", "--cv", 3, "--format", "json")


def test_help_lists_what_there_is():
    from onefit.kernels import KERNELS
    from onefit.losses import LOSSES

    def words(text: str) -> set[str]:
        return set(text.replace(";", ",").replace(" for quantities", "").replace(
            " for classes", "").replace(" ", "").split(","))  # fmt: skip

    assert words(options.LOSS_NAMES) == set(LOSSES)
    doubles = {"gaussian", "laplace", "polynomial", "precomputed"}
    assert words(options.KERNEL_NAMES) == set(KERNELS) - doubles


@pytest.mark.parametrize("name", ["select", "explain"])
def test_there_are_few_options_and_they_are_those_of_python(name):
    given = options.make_parser().parse_args([name, "rows.csv"])
    known = set(vars(given)) - {"data", "command", "traceback"}
    assert len(known) <= 20
    python = set(inspect.signature(onefit_package.AutoKernelClassifier).parameters)
    python |= set(inspect.signature(onefit_package.select).parameters)
    of_files = {"target", "drop", "time", "dayfirst", "report", "model", "format"}
    assert known - of_files <= python


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["select", "a.csv", "--tagret", "y"], "argument --tagret; did you mean '--target'?"),
        (["slect", "a.csv"], "invalid choice: 'slect'"),
        (["predict", "m.skops", "a.csv", "--level", "2"], "2 is not between 0 and 0.999"),
        (["select", "a.csv", "--format", "xml"], "invalid choice: 'xml'"),
        (["select"], "required: data"),
    ],
)
def test_wrong_usage(onefit, words, message):
    done = onefit(*words)
    assert (done.exit_code, done.stdout) == (USAGE, "")
    assert message in done.stderr


def test_help(onefit):
    assert (onefit("--help").exit_code, onefit().exit_code) == (0, USAGE)
    for command in ("select", "explain", "predict", "demo"):
        assert command in onefit().stdout
        assert onefit(command, "--help").stdout.startswith(f"usage: onefit {command} [options]")


def test_version(onefit):
    from onefit import __version__

    assert onefit("--version").stdout == f"onefit {__version__}\n"


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["152,000.00", "1,000"], [152000, 1000]),
        (["$151,000", "-$2,500.5"], [151000, -2500.5]),
        (["151.0 mg", "2 mg"], [151, 2]),
        (["1,5", "2,25"], [1.5, 2.25]),
        (["1.234,5", "7,5"], [1234.5, 7.5]),
        (["12.5%", "3%"], [12.5, 3]),
        (["62 846", "1 234 567", "900"], [62846, 1234567, 900]),
        (["62\u202f846,5 €", "12 €"], [62846.5, 12]),
        (["62'846.50", "1'000.00"], [62846.5, 1000]),
        (["(1,234.50)", "10.25"], [-1234.5, 10.25]),
        (["($2,500)", "$10"], [-2500, 10]),
        (["\u22123.5", "4"], [-3.5, 4]),
        (["USD 6,284.62", "USD 12.00"], [6284.62, 12]),
        (["USD 6", "EUR 12"], None),
        (["555 123 4567", "1"], None),
        (["12 34", "1"], None),
        (["089 123 456", "1"], None),
        (["1 kg", "2 g"], None),
        (["a1", "b2"], None),
        (["1.2.3", "1.0.0"], None),
        (["1,5", "1.5"], None),
    ],
)
def test_numbers_as_people_write_them(texts, numbers):
    found = read_numbers(np.array(texts, dtype=object))
    if numbers is None:
        assert found is None
    else:
        np.testing.assert_allclose(found.numbers, numbers)


def test_units_are_read_with_a_note_and_in_new_rows(onefit, tmp_path):
    data, model = tmp_path / "data.csv", tmp_path / "m.skops"
    frame = pd.DataFrame({"dose": [f"{i}.5 mg" for i in range(30)]})
    frame.assign(t=[f"${1000 * i:,}" for i in range(30)]).to_csv(data, index=False)
    done = onefit("select", data, "--target", "t", *LINEAR, "--model", model)
    assert done.exit_code == 0, done.stderr
    assert "column 'dose' is read as numbers: '0.5 mg' as 0.5" in done.stderr
    assert json.loads(done.stdout)["task"] == "regression"
    done = onefit("predict", model, data, "--level", 0)
    assert "R² 1" in done.stderr
    assert pd.read_csv(io.StringIO(done.stdout))["prediction"].iloc[10] == pytest.approx(1e4, 0.01)


def test_ids_are_spotted_and_kept(onefit, csv, frame, tmp_path):
    data, model = tmp_path / "ids.csv", tmp_path / "m.skops"
    frame.assign(customer_id=np.arange(80) * 7 + 3).to_csv(data, index=False)
    select = ("select", data, "--target", "price", "--drop", "kind", *LINEAR)
    assert "column 'customer_id' looks like a number of the row" in onefit(*select).stderr
    done = onefit(*select, "--drop", "customer_id", "--model", model)
    assert (done.exit_code, done.stderr) == (0, "")
    assert json.loads(done.stdout)["data"]["columns"] == 4
    done = onefit("predict", model, data, "--id", "customer_id", "--output", "-")
    found = pd.read_csv(io.StringIO(done.stdout))
    assert list(found.columns) == ["customer_id", "prediction", "lower", "upper", *NOTES]
    assert found["customer_id"].tolist() == list(np.arange(80) * 7 + 3)
    assert "scored on the 80 rows" in done.stderr
    assert "scores" in json.loads(onefit("predict", model, data, "--format", "json").stdout)
    assert onefit("predict", model, csv, "--id", "customer_id").exit_code == BAD_DATA


def test_metrics(onefit, csv):
    select = ("select", csv, "--target", "price", "--drop", "kind", *LINEAR)
    found = json.loads(onefit(*select, "--scoring", "mae").stdout)
    assert found["scoring"] == "neg_mean_absolute_error"
    done = onefit(*select, "--scoring", "maee")
    assert (done.exit_code, "did you mean 'mae'?" in done.stderr) == (USAGE, True)
    done = onefit(*select, "--scoring", "accuracy")
    assert (done.exit_code, "scores classes" in done.stderr) == (USAGE, True)


@pytest.mark.parametrize("spoilt", [False, True], ids=["clean", "outliers"])
def test_outliers_do_not_change_the_metric(onefit, frame, tmp_path, spoilt):
    data, frame = tmp_path / "data.csv", frame.drop(columns="kind")
    if spoilt:
        frame["price"] += 1e3 * frame["price"].std() * (np.arange(80) % 20 == 0)
    frame.to_csv(data, index=False)
    found = json.loads(onefit("select", data, "--target", "price", *LINEAR).stdout)
    assert found["scoring"] == "r2"
    reasons = [one for one in found["reasons"] if "are outliers" in one]
    assert len(reasons) == spoilt
    assert all("the score is the same as without" in one for one in reasons)


def test_rare_classes_are_mentioned_and_do_not_change_the_metric(onefit, frame, tmp_path):
    data = tmp_path / "data.csv"
    rare = np.where(frame["price"].rank() <= 10, "rare", "usual")
    frame.drop(columns=["price", "kind"]).assign(t=rare).to_csv(data, index=False)
    select = ("select", data, "--target", "t", *LINEAR)
    found = json.loads(onefit(*select, "--class-weight", "balanced").stdout)
    assert found["scoring"] == "accuracy"
    (reason,) = [one for one in found["reasons"] if "10 of 80 rows" in one]
    assert "scoring balanced_accuracy gives classes equal weight" in reason


@pytest.mark.parametrize("numeric", [False, True])
def test_weights_by_class(onefit, frame, tmp_path, numeric):
    data, model = tmp_path / "data.csv", tmp_path / "m.skops"
    kind = frame["kind"].map({"dear": 1, "cheap": 0}) if numeric else frame["kind"]
    frame.drop(columns=["price", "kind"]).assign(t=kind).to_csv(data, index=False)
    dear, cheap = (1, 0) if numeric else ("dear", "cheap")
    select = ("select", data, "--target", "t", *LINEAR, "--class-weight")
    done = onefit(*select, f"{dear}=3, {cheap}=0.5", "--model", model)
    assert done.exit_code == 0, done.stderr
    machine = load_model(model).estimator
    assert machine.class_weight == {dear: 3.0, cheap: 0.5}
    X, y = frame.drop(columns=["price", "kind"]), kind
    same = onefit_package.select(X, y, kernels="linear", cv=3, class_weight={dear: 3.0, cheap: 0.5})
    np.testing.assert_allclose(same.best_estimator_.dual_coef_.sum(), machine.dual_coef_.sum())
    assert onefit(*select, f"{dear}=2").exit_code == 0  # the other counts once
    for words, said in (
        (f"{dear}=2,chaep=1", "no class 'chaep'"),
        (f"{dear}=-1", "positive"),
        (f"{dear}=a", "such as yes=3,no=1"),
        ("equal", "'balanced'"),
    ):
        done = onefit(*select, words)
        assert (done.exit_code, said in done.stderr) == (USAGE, True), done.stderr
    with pytest.raises(ValueError, match="class_weight: the target has no class 'x'"):
        onefit_package.select(X, y, class_weight={"x": 1.0})


@pytest.fixture
def rows(frame, tmp_path):
    path = tmp_path / "rows.csv"
    numbers = np.arange(80)
    more = {"who": [f"g{i % 8}" for i in numbers], "day": pd.date_range("2021-01-01", periods=80)}
    frame.drop(columns="kind").assign(**more, w=1.0 + numbers % 2).sample(
        frac=1.0, random_state=0
    ).to_csv(path, index=False)
    return path


def test_groups_weights_and_time(onefit, rows):
    select = ("select", rows, "--target", "price", *LINEAR)
    roles = ("--groups", "who", "--sample-weight", "w", "--drop", "day")
    done = onefit(*select, *roles)
    assert (done.exit_code, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert any("each of the 8 groups" in one for one in found["reasons"])
    table = read_table(rows, Roles("price", ("day",), "who", "w"))
    same = onefit_select(table)
    assert found["best"]["params"] == pytest.approx(same.best_params_)
    assert found["best"]["score"] == pytest.approx(same.best_score_)
    for train, test in same.heldout_.folds:
        assert not set(table.groups[train]) & set(table.groups[test])


def onefit_select(table):
    return onefit_package.select(
        table.X,
        table.y,
        groups=table.groups,
        sample_weight=table.sample_weight,
        cv=3,
        kernels="linear",
    )


def test_time_splits_are_ordered(onefit, rows):
    table = read_table(rows, Roles("price", ("who", "w"), time="day"))
    raw = pd.read_csv(rows).sort_values("day")
    np.testing.assert_allclose(table.y, raw["price"])
    drops = ("--drop", "who", "--drop", "w")
    done = onefit("select", rows, "--target", "price", "--time", "day", *drops, *LINEAR)
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert any("order of time" in one for one in found["reasons"])
    same = onefit_package.select(table.X, table.y, cv=TimeSeriesSplit(3), kernels="linear")
    assert found["best"]["score"] == pytest.approx(same.best_score_)
    done = onefit("select", rows, "--target", "price", "--time", "day", "--groups", "who")
    assert (done.exit_code, "cannot keep groups together" in done.stderr) == (USAGE, True)


def test_kernels_are_separated_by_commas(onefit, csv):
    select = ("select", csv, "--target", "price", "--drop", "kind", "--cv", 3, "--format", "json")
    found = json.loads(onefit(*select, "--kernels", "linear, poly").stdout)
    assert "kernels linear, poly, as given" in found["reasons"]
    done = onefit(*select, "--kernels", "linear,ploy")
    assert (done.exit_code, "did you mean 'poly'?" in done.stderr) == (USAGE, True)


def test_standard_input(onefit, csv):
    words = ("select", "-", "--target", "price", "--drop", "kind", *LINEAR)
    done = onefit(*words, stdin=csv.read_bytes())
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["data"]["rows"] == 80


def test_a_model_is_a_plain_pipeline(onefit, csv, frame, tmp_path):
    import skops.io
    from sklearn.pipeline import Pipeline

    from onefit.cli.model import TRUSTED

    model = tmp_path / "m.skops"
    onefit("select", csv, "--target", "price", "--drop", "kind", *LINEAR, "--model", model)
    found = skops.io.load(model, trusted=list(TRUSTED))
    assert type(found) is Pipeline
    assert found.predict(frame[["size", "age", "colour", "new"]]).shape == (80,)
