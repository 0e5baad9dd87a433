"""select, explain and predict, from files to files."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file, load_diabetes, make_classification
from sklearn.model_selection import KFold

from onefit import AutoKernelRegressor, KernelRegressor, heldout_predict
from onefit._format import number
from onefit.cli.model import load_model
from onefit.tables import Roles, read_table

SMALL = ("--kernels", "rbf", "--cv", 4)


def test_json_is_one_document_and_agrees_with_the_library(onefit, csv):
    done = onefit("select", csv, "--target", "price", "--drop", "kind", *SMALL, "--format", "json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["task"], found["candidates"], found["splits"]) == ("regression", 252, 4)
    data = {"file": "data.csv", "rows": 80, "columns": 4, "target": "price"}
    assert found["data"] == data
    assert [one["rank"] for one in found["ranking"]] == list(range(1, 11))
    scores = [one["score"] for one in found["ranking"]]
    assert scores == sorted(scores, reverse=True)
    best = found["best"]
    assert best["interval"][0] < best["score"] < best["interval"][1]
    assert best["exact"]


def test_the_numbers_of_an_average_are_its_own(onefit, csv, frame):
    """Not those of the best candidate alone, which the ranking has."""
    done = onefit("select", csv, "--target", "price", "--drop", "kind", "--format", "json")
    assert done.exit_code == 0, done.stderr
    best, (first, *_) = (found := json.loads(done.stdout))["best"], found["ranking"]
    auto = AutoKernelRegressor().fit(frame.drop(columns=["price", "kind"]), frame["price"])
    assert best["stack"].startswith("average of")
    assert best["score"] == pytest.approx(auto.best_score_, rel=1e-9)
    assert best["standard_error"] == pytest.approx(auto.headline_.standard_error, rel=1e-6)
    assert best["error_bound"] == pytest.approx(auto.heldout_.error.max(), rel=0.5)
    assert best["method"] == "stack"
    assert best["scores_of_splits"] is None
    assert first["standard_error"] != best["standard_error"]
    assert f"error at most {number(best['error_bound'], 1)})" in found["headline"][-1]


@pytest.mark.parametrize("kind", [int, str])
def test_groups_make_the_same_splits_as_in_python(onefit, frame, tmp_path, kind):
    """The order of the groups decides their folds: 9 is before 10 where they are numbers."""
    groups = np.random.default_rng(0).integers(0, 14, 80).astype(kind)
    groups = groups if kind is int else np.char.add("clinic ", groups)
    table = frame.drop(columns="kind").assign(group=groups)
    table.to_csv(tmp_path / "data.csv", index=False)
    options = ("--target", "price", "--groups", "group", "--kernels", "linear", "--format", "json")
    done = onefit("select", tmp_path / "data.csv", *options)
    assert done.exit_code == 0, done.stderr
    auto = AutoKernelRegressor(kernels="linear")
    auto.fit(table.drop(columns=["price", "group"]), table["price"], groups=groups)
    assert json.loads(done.stdout)["best"]["score"] == pytest.approx(auto.best_score_, rel=1e-9)


def test_the_error_is_that_of_honest_refits(onefit, csv, tmp_path):
    model = tmp_path / "m.skops"
    columns = ("--target", "price", "--drop", "kind", "--format", "json", "--model", model)
    done = onefit("select", csv, *columns, *SMALL, "--scoring", "rmse")
    found = json.loads(done.stdout)
    table = read_table(csv, Roles("price", ("kind",)))
    Z = load_model(model).preparer.transform(table.X)
    cv = KFold(4, shuffle=True, random_state=0)
    estimator = KernelRegressor(**found["best"]["params"])
    held = heldout_predict(estimator, Z, table.y, cv=cv, method="refit").predictions
    squares = np.square(table.y - held)
    root, n = np.sqrt(squares.mean()), squares.size
    assert found["best"]["score"] == pytest.approx(-root, rel=1e-6)
    left = np.sqrt((squares.sum() - squares) / (n - 1))
    error = np.sqrt((n - 1) * np.var(left))
    assert found["best"]["standard_error"] == pytest.approx(error, rel=1e-4)
    means = [table.y[train].mean() for train, _ in cv.split(Z)]
    tests = [table.y[test] for _, test in cv.split(Z)]
    far = np.concatenate([one - mean for one, mean in zip(tests, means, strict=True)])
    assert found["best"]["baseline"] == pytest.approx(-np.sqrt(np.mean(far**2)))
    assert found["best"]["r2"] == pytest.approx(1 - root**2 / table.y.var())


def test_the_table_says_what_was_chosen_and_why(onefit, csv):
    done = onefit("select", csv, "--target", "price", *SMALL)
    assert done.exit_code == 0, done.stderr
    for words in (
        "regression: the target holds 80 different numbers",
        "The best 10 of 252 candidates",
        "Predictions of price are typically off by",
        "Chosen: gamma=",
        "interval of the expected R²",
        "baseline: always the mean",
        "Exact: held-out predictions of the choice equal",
        "within one standard error",
    ):
        assert words in done.stdout


def test_models_come_back(onefit, csv, frame, tmp_path):
    model = tmp_path / "m.skops"
    select = ("select", csv, "--target", "price", "--drop", "kind", *SMALL)
    assert onefit(*select, "--model", model).exit_code == 0

    new = tmp_path / "new.csv"
    frame.drop(columns=["price", "kind"]).iloc[::-1].to_csv(new, index=False)
    out = tmp_path / "p.csv"
    done = onefit("predict", model, new, "--output", out)
    assert done.exit_code == 0, done.stderr
    predicted = pd.read_csv(out)["prediction"].to_numpy()[::-1]
    assert np.corrcoef(predicted, frame["price"])[0, 1] > 0.9
    listed = json.loads(onefit("predict", model, new, "--format", "json").stdout)["predictions"]
    np.testing.assert_allclose([one["prediction"] for one in listed][::-1], predicted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pickle.load", None)  # nothing of a model file is unpickled
        patch.setattr("pickle.loads", None)
        assert onefit("predict", model, new).stdout.startswith(
            "prediction,lower,upper,novelty,unfamiliar\n"
        )


def test_unknown_categories_and_gaps_are_predicted(onefit, csv, tmp_path):
    model = tmp_path / "m.skops"
    onefit("select", csv, "--target", "kind", "--drop", "price", *SMALL, "--model", model)
    new = tmp_path / "new.csv"
    new.write_text("size,age,colour,new,extra\n,33,violet,True,1\n1.5,,,False,2\n")
    done = onefit("predict", model, new)
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "prediction,decision_dear,novelty,unfamiliar"
    assert {line.split(",")[0] for line in lines[1:]} <= {"cheap", "dear"}


def test_probabilities_where_the_loss_gives_them(onefit, csv, tmp_path):
    model = tmp_path / "m.skops"
    options = ("--kernels", "linear", "--cv", 3, "--loss", "log")
    onefit("select", csv, "--target", "kind", "--drop", "price", *options, "--model", model)
    listed = json.loads(onefit("predict", model, csv, "--format", "json").stdout)["predictions"]
    assert sum(listed[0][f"probability_{one}"] for one in ("cheap", "dear")) == pytest.approx(1)


@pytest.mark.parametrize("how", ["sigmoid", "isotonic"])
def test_probabilities_for_any_loss(onefit, csv, tmp_path, how):
    model = tmp_path / "m.skops"
    options = ("--kernels", "linear", "--cv", 3, "--calibrate", how)
    select = ("select", csv, "--target", "kind", "--drop", "price", *options)
    done = onefit(*select, "--model", model)
    assert done.exit_code == 0, done.stderr
    listed = json.loads(onefit("predict", model, csv, "--format", "json").stdout)["predictions"]
    for one in listed:
        said = {name: one[f"probability_{name}"] for name in ("cheap", "dear")}
        assert sum(said.values()) == pytest.approx(1)
        assert said[one["prediction"]] == max(said.values())
    assert not hasattr(load_model(model).estimator, "heldout_")


def test_calibration_that_makes_no_sense(onefit, csv):
    done = onefit("select", csv, "--target", "price", *SMALL, "--calibrate", "sigmoid")
    assert (done.exit_code, "this is a regression" in done.stderr) == (2, True)
    done = onefit("select", csv, "--target", "kind", *SMALL, "--calibrate", "platt")
    assert (done.exit_code, "='platt' is not known" in done.stderr) == (2, True)


def test_a_choice_that_does_not_beat_the_baseline_is_told(onefit, tmp_path):
    path = tmp_path / "noise.csv"
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(60, 2)), columns=["a", "b"])
    frame.assign(kind=np.where(np.arange(60) % 12 == 0, "rare", "usual")).to_csv(path, index=False)
    done = onefit("select", path, "--target", "kind", *SMALL)
    assert done.stdout.count("Warning: the choice") == 1
    assert "the choice" not in done.stderr, "a terminal would show it twice"
    printed = " ".join(done.stdout.replace("\N{NO-BREAK SPACE}", " ").split())
    assert "shares of the classes: usual (91.7 %), rare (8.3 %)" in printed


@pytest.mark.parametrize("kind", ["parquet", "libsvm", "tsv", "csv.gz"])
def test_other_files(onefit, frame, tmp_path, kind):
    path, target = tmp_path / f"data.{kind}", ("--target", "kind", "--drop", "price")
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind == "libsvm":
        X, y = make_classification(60, random_state=0)
        dump_svmlight_file(X, y, str(path))
        target = ()
    else:
        frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    model = tmp_path / "m.skops"
    done = onefit("select", path, *target, *SMALL, "--format", "json", "--model", model)
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["task"] == "classification"
    assert found["best"]["score"] > 0.75
    assert onefit("predict", model, path).exit_code == 0


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--target", "price", "--drop", "kind"), ["cv", "loo", "gcv"]),
        (("--target", "price", "--drop", "kind", "--minutes", 5), []),
        (("--target", "kind", "--drop", "price", "--loss", "squared_hinge"),
         ["cv", "span", "sv_count"]),
        (("--target", "kind", "--drop", "price", "--loss", "log"), []),
    ],
)  # fmt: skip
def test_a_report_compares_cheap_criteria(onefit, csv, tmp_path, options, expected):
    report = tmp_path / "r.html"
    select = ("select", csv, *options, "--kernels", "linear", "--cv", 3, "--format", "json")
    done = onefit(*select, "--report", report)
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)["comparison"]
    assert [one["criterion"] for one in found] == expected
    if expected:
        assert found[0]["regret"] == 0.0
        assert found[0]["score"] >= max(one["score"] for one in found)
    assert ('id="criteria"' in report.read_text(encoding="utf-8")) == bool(expected)
    assert json.loads(onefit(*select).stdout)["comparison"] == []


def test_decimal_commas_are_numbers(onefit, frame, tmp_path):
    path = tmp_path / "data.csv"
    plain = frame[["size", "age", "price"]]
    plain.to_csv(path, index=False, sep=";", decimal=",")
    arguments = ("--target", "price", "--kernels", "linear", "--format", "json")
    model = tmp_path / "m.skops"
    found = json.loads(onefit("select", path, *arguments, "--model", model).stdout)
    assert found["task"] == "regression"
    table = read_table(path, Roles("price"))
    np.testing.assert_allclose(table.X, plain[["size", "age"]], rtol=1e-12)
    np.testing.assert_allclose(table.y, plain["price"], rtol=1e-12)
    assert onefit("predict", model, path).exit_code == 0


def test_question_marks_and_blanks_around_names(tmp_path):
    path = tmp_path / "data.csv"
    lines = "\n".join(f"{'?' if i == 3 else i % 7}, {i}" for i in range(30))
    path.write_text(f"\ufeffa , t \n{lines}\n", encoding="utf-8")
    table = read_table(path, Roles("t"))
    assert list(table.X.columns) == ["a"]
    assert table.X["a"].dtype == float
    assert np.flatnonzero(table.X["a"].isna()).tolist() == [3]


def test_parquet_with_decimals_categories_and_an_index(frame, tmp_path):
    path = tmp_path / "data.parquet"
    data = frame[["colour", "price"]].astype({"colour": "category"})
    data["cost"] = [Decimal(i) / 4 for i in range(len(data))]
    data.index = [f"row {i}" for i in range(len(data))]
    data.to_parquet(path)
    table = read_table(path, Roles("price"))
    assert table.X["cost"].tolist() == [i / 4 for i in range(len(data))]
    assert table.X["colour"].dtype == "category"


@pytest.mark.parametrize("counts", [True, False])
def test_amounts_that_are_few_whole_numbers(onefit, tmp_path, counts):
    """Classes need two rows each; numbers that stand once are amounts."""
    path = tmp_path / "data.csv"
    t = np.arange(30) % 15
    t[0] = 0 if counts else 99
    pd.DataFrame({"x": np.arange(30), "t": t}).to_csv(path, index=False)
    select = ("select", path, "--target", "t", "--kernels", "linear", "--cv", 2)
    found = json.loads(onefit(*select, "--format", "json").stdout)
    assert found["task"] == ("classification" if counts else "regression")


def test_whole_numbers_are_classes_unless_said_otherwise(onefit, tmp_path):
    path = tmp_path / "data.csv"
    x = np.random.default_rng(0).normal(size=60)
    pd.DataFrame({"x": x, "stars": np.digitize(x, [-1, 0, 1])}).to_csv(path, index=False)
    select = ("select", path, "--target", "stars", *SMALL, "--format", "json")
    assert json.loads(onefit(*select).stdout)["task"] == "classification"
    assert json.loads(onefit(*select, "--task", "regression").stdout)["task"] == "regression"


def test_thresholds_follow_the_spread_of_the_target(onefit, csv):
    select = ("select", csv, "--target", "price", "--drop", "kind", "--kernels", "linear")
    done = onefit(*select, "--loss", "huber", "--cv", 3, "--format", "json")
    found = json.loads(done.stdout)
    assert found["candidates"] == 39
    assert found["best"]["params"]["loss__threshold"] > 0.1


def test_explain_runs_nothing(onefit, csv, frame, tmp_path):
    explain = ("explain", csv, "--target", "price", "--drop", "kind")
    done = onefit(*explain)
    assert done.exit_code == 0, done.stderr
    assert "Plan: 37 kernels x 18 lambdas x 5 splits" in done.stdout
    journal = tmp_path / "journal"  # has whatever is run
    AutoKernelRegressor(journal=journal).explain(frame[["size", "age"]], frame["price"])
    assert not journal.exists()


def test_the_program_itself(csv):
    command = [sys.executable, "-m", "onefit", "select", str(csv), "--target", "price"]
    done = subprocess.run(
        [*command, "--kernels", "linear", "--format", "json"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["candidates"] == 18


def test_the_report_is_written(onefit, csv, tmp_path):
    report = tmp_path / "r.html"
    select = ("select", csv, "--target", "price", "--drop", "kind", *SMALL, "--format", "json")
    done = onefit(*select, "--report", report)
    assert json.loads(done.stdout)["files"] == {"report": str(report)}
    text = report.read_text(encoding="utf-8")
    for words in ("<h1>data.csv: price</h1>", "typically off by", "Rows to check"):
        assert words in text


def test_the_demo(onefit, tmp_path, monkeypatch):
    """On a third of its rows, which takes a tenth of the time."""
    bunch = load_diabetes(as_frame=True, scaled=False)
    bunch.data, bunch.target = bunch.data[::3], bunch.target[::3]
    monkeypatch.setattr("sklearn.datasets.load_diabetes", lambda **_: bunch)
    report = tmp_path / "demo.html"
    done = onefit("demo", "--report", report)
    assert done.exit_code == 0, done.stderr
    assert "Plan: 37 kernels" in done.stdout
    assert "The best 10 of 666 candidates" in done.stdout
    assert "<h1>diabetes: progression</h1>" in report.read_text(encoding="utf-8")


def test_intervals_hold_what_their_level_says(onefit, csv, frame, tmp_path):
    model = tmp_path / "m.skops"
    onefit("select", csv, "--target", "price", "--drop", "kind", *SMALL, "--model", model)
    truth = frame["price"].to_numpy()
    widths = []
    for level in (0.5, 0.9):
        done = onefit("predict", model, csv, "--level", level)
        found = pd.read_csv(io.StringIO(done.stdout))
        inside = (found["lower"] <= truth) & (truth <= found["upper"])
        assert inside.mean() > level - 0.1
        widths.append((found["upper"] - found["lower"]).mean())
    assert widths[0] < widths[1]
    assert onefit("predict", model, csv, "--level", 0).stdout.startswith(
        "prediction,novelty,unfamiliar\n"
    )


def test_a_journal_is_resumed(onefit, csv, tmp_path):
    """What is run is written: no file of a finished journal changes."""
    journal = tmp_path / "journal"
    select = ("select", csv, "--target", "price", "--drop", "kind", *SMALL, "--format", "json")
    first = json.loads(onefit(*select, "--journal", journal).stdout)
    before = {one.name: one.stat().st_mtime_ns for one in journal.iterdir()}
    assert len(before) > 1
    done = onefit(*select, "--journal", journal)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["ranking"] == first["ranking"]
    assert {one.name: one.stat().st_mtime_ns for one in journal.iterdir()} == before
