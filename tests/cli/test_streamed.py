"""Selections and predictions that stream Parquet files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import onefit as run_onefit
from rows_everywhere import damage

from onefit import select
from onefit.cli.errors import BAD_DATA, INTERRUPTED, OTHER_JOURNAL
from onefit.rows import HashKFold
from onefit.rows.sample import row_hash

#: columns that predictions end with
NOTES = ("novelty", "unfamiliar")

FEW = ("--approximation", "nystrom", "--cv", 3, "--kernels", "rbf")
LINEAR = (*FEW[:-1], "linear")
TARGETS = ("price", "kind", "stars")


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    random = np.random.default_rng(0)
    n = 400
    size, age = random.normal(size=n), random.uniform(20, 60, n)
    colour = random.choice(["red", "green", "blue"], n)
    price = 3 * size + 0.1 * age + 2 * (colour == "red") + 0.3 * random.normal(size=n)
    data = pd.DataFrame({"size": size, "age": age, "colour": colour, "new": age < 40})
    data.loc[3, "size"] = np.nan
    data.loc[5, "colour"] = None
    data["price"], data["kind"] = price, np.where(price > price.mean(), "dear", "cheap")
    return data.assign(stars=np.digitize(price, [3.0, 6.0]).astype(float))


def write(rows: pd.DataFrame, place: Path) -> Path:
    rows[:250].to_parquet(place / "a.parquet", row_group_size=90)
    rows[250:].to_parquet(place / "b.parquet", write_page_checksum=True)
    return place


@pytest.fixture(scope="module")
def folder(rows: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(rows, tmp_path_factory.mktemp("rows"))


def selected(result: Any) -> dict[str, Any]:
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def made(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a selection prints for each target, and the folder with its model and report."""
    place, found = tmp_path_factory.mktemp("made"), {}
    for target in TARGETS:
        drop = [f"--drop={one}" for one in TARGETS if one != target]
        files = ("--model", place / f"{target}.skops", "--report", place / f"{target}.html")
        select = ("select", folder, "--target", target, *drop, *FEW, "--format", "json")
        found[target] = selected(run_onefit(*select, *files)), place
    return found


@pytest.mark.parametrize("target", TARGETS)
def test_a_folder_gives_what_its_rows_give_in_memory(
    made: dict[str, Any], rows: pd.DataFrame, target: str
) -> None:
    there, place = made[target]
    X, cv = rows.drop(columns=list(TARGETS)), HashKFold(3)
    here = select(X, rows[target], cv=cv, kernels="rbf", approximation="nystrom")
    assert there["data"]["rows"] == 400
    assert there["task"] == ("regression" if target == "price" else "classification")
    assert there["best"]["params"] == pytest.approx(here.best_params_)
    assert there["best"]["score"] == pytest.approx(here.best_score_, rel=1e-6)
    assert there["best"]["exact"] == here.cv_results_["exact"][here.search_.best_index_]
    assert any("streamed" in reason for reason in there["reasons"])
    assert "rows were streamed" in (place / f"{target}.html").read_text().lower()


def test_groups_and_weights_are_those_of_rows_in_memory(
    onefit: Any, rows: pd.DataFrame, tmp_path: Path
) -> None:
    X, path = rows[["size", "age"]].fillna(0.0), tmp_path / "rows.parquet"
    who, weight = np.arange(400) // 8, np.where(np.arange(400) % 3, 0.2, 2.0)
    X.assign(price=rows["price"], who=who, w=weight).to_parquet(path)
    roles = ("--target", "price", "--groups", "who", "--sample-weight", "w")
    there = selected(onefit("select", path, *roles, *LINEAR, "--format", "json"))
    given = {"cv": HashKFold(3), "kernels": "linear", "approximation": "nystrom"}
    here = select(X, rows["price"], groups=who, sample_weight=weight, **given)
    assert there["best"]["params"] == pytest.approx(here.best_params_)
    assert there["best"]["score"] == pytest.approx(here.best_score_, rel=1e-6)
    for roles in ({"groups": who}, {"sample_weight": weight}):
        assert here.best_score_ != pytest.approx(
            select(X, rows["price"], **roles, **given).best_score_
        )


@pytest.mark.parametrize("target", ["price", "kind"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_predictions_are_written_as_rows_come(
    onefit: Any, made: Any, folder: Path, rows: pd.DataFrame, tmp_path: Path, target: str, kind: str
) -> None:
    model, output = made[target][1] / f"{target}.skops", tmp_path / f"found.{kind}"
    result = onefit("predict", model, folder, "--output", output, "--level", 0)
    assert result.exit_code == 0, result.stderr
    assert "400 predictions" in result.stderr
    score = re.search(r"scored on the 400 rows.*: (.*)\n", result.stderr)[1]
    found = pd.read_csv(output) if kind == "csv" else pd.read_parquet(output)
    assert len(found) == 400
    if target == "price":
        assert np.corrcoef(found["prediction"], rows["price"])[0, 1] > 0.9
    else:
        assert (found["prediction"] == rows["kind"]).mean() > 0.85
    # as CSV to stdout, all rows at once
    csv = tmp_path / "rows.csv"
    rows.to_csv(csv, index=False)
    whole = onefit("predict", model, csv, "--level", 0, "--format", "json")
    values = [one["prediction"] for one in json.loads(whole.stdout)["predictions"]]
    assert score in whole.stderr
    if target == "price":
        np.testing.assert_allclose(found["prediction"], values, rtol=1e-10)
    else:
        assert found["prediction"].tolist() == values
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("target", ["price", "kind"])
def test_rows_without_a_target_are_left_out(
    onefit: Any, rows: pd.DataFrame, tmp_path: Path, target: str
) -> None:
    gaps = rows.assign(**{target: rows[target].where(np.arange(400) % 4 > 0)})
    place, whole = tmp_path / "gaps", tmp_path / "whole.parquet"
    place.mkdir()
    gaps[:250].to_parquet(place / "a.parquet", row_group_size=90)
    gaps[250:].to_parquet(place / "b.parquet")
    drop = [f"--drop={one}" for one in TARGETS if one != target]
    model, output = tmp_path / "model.skops", tmp_path / "found.csv"
    common = ("--target", target, *drop, *LINEAR, "--format", "json")
    result = onefit("select", place, *common, "--model", model)
    assert "100 of 400 rows are left out" in result.stderr
    there = selected(result)
    assert there["data"]["rows"] == there["best"]["held_out_rows"] == 300
    result = onefit("predict", model, place, "--output", output, "--level", 0)
    assert "400 predictions" in result.stderr
    assert "scored on the 300 rows" in result.stderr
    gaps.assign(**{target: None}).astype({target: rows[target].dtype}).to_parquet(whole)
    result = onefit("select", whole, *common)
    assert (result.exit_code, "no value in any row" in result.stderr) == (3, True)


def test_a_label_may_be_once_in_the_sample(
    onefit: Any, rows: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onefit.cli.streamed.FRAME_SAMPLE_ROWS", 100)
    order = np.argsort(row_hash(0, np.arange(len(rows))))
    kind = rows["kind"].copy()
    kind.iloc[order[99:130]] = "rare"
    rows.assign(kind=kind).to_parquet(tmp_path / "rows.parquet")
    select = ("select", tmp_path / "rows.parquet", "--target", "kind", "--drop", "price", *LINEAR)
    found = selected(onefit(*select, "--format", "json"))
    assert set(found["best"]["shares"]) == {"cheap", "dear", "rare"}


def test_streamed_rows_have_no_order(onefit: Any, folder: Path) -> None:
    result = onefit("select", folder, "--target", "price", "--time", "age", *FEW)
    assert (result.exit_code, "leave it out" in result.stderr) == (2, True)


def test_streamed_predictions_keep_ids_and_the_order_of_dates(
    onefit: Any, rows: pd.DataFrame, tmp_path: Path
) -> None:
    numbers = np.arange(400)
    day = pd.Series(pd.date_range("2021-01-01", periods=400)).dt.strftime("%m/%d/%Y")
    whole = rows[["size"]].assign(day=day, name=[f"r{i}" for i in numbers], price=1.0 * numbers)
    path, new = tmp_path / "rows.parquet", tmp_path / "new.parquet"
    model, output = tmp_path / "model.skops", tmp_path / "found.csv"
    whole.to_parquet(path)
    result = onefit(
        "select", path, "--target", "price", "--drop", "name", *LINEAR, "--model", model
    )
    assert result.exit_code == 0, result.stderr
    some = whole[31:35].drop(columns="price")  # 02/01/2021 to 02/04/2021
    some.to_parquet(new)
    result = onefit("predict", model, new, "--id", "name", "--output", output, "--level", 0)
    assert result.exit_code == 0, result.stderr
    found = pd.read_csv(output)
    assert found["name"].tolist() == ["r31", "r32", "r33", "r34"]
    np.testing.assert_allclose(found["prediction"], numbers[31:35], atol=15)


def test_an_error_leaves_no_half_file(
    onefit: Any, made: dict[str, Any], rows: pd.DataFrame, tmp_path: Path
) -> None:
    model, output = made["price"][1] / "price.skops", tmp_path / "found.csv"
    place = tmp_path / "rows"
    place.mkdir()
    damage(write(rows, place) / "b.parquet", 0)
    result = onefit("predict", model, place, "--output", output, "--level", 0)
    assert result.exit_code == 3
    assert "b.parquet, row group 0" in result.stderr
    assert not output.exists()
    assert not list(tmp_path.glob("*.part"))


def test_intervals_need_training_rows(
    onefit: Any, made: dict[str, Any], folder: Path, tmp_path: Path
) -> None:
    model, output = tmp_path / "model.skops", tmp_path / "found.csv"
    drop = ("--drop=kind", "--drop=stars")
    result = onefit("predict", made["price"][1] / "price.skops", folder, "--output", output)
    assert result.exit_code == 0
    assert "no intervals" in result.stderr
    assert list(pd.read_csv(output).columns) == ["prediction", *NOTES]
    file = folder / "b.parquet"
    onefit("select", file, "--target", "price", *drop, "--kernels", "linear", "--model", model)
    result = onefit("predict", model, folder, "--output", output)
    assert result.exit_code == 2
    assert "--level 0" in result.stderr
    assert onefit("predict", model, file, "--output", output).exit_code == 0
    assert list(pd.read_csv(output).columns) == ["prediction", "lower", "upper", *NOTES]


def test_interrupted_selections_go_on(
    onefit: Any, interrupted: Any, folder: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    common = ("--target", "price", "--drop=kind", "--drop=stars", *FEW, "--format", "json")
    whole = selected(onefit("select", folder, *common))
    done = interrupted(kept, 1, "select", folder, *common)
    assert done.returncode == INTERRUPTED, done.stderr
    assert done.stdout == ""
    assert "run the same command to resume" in done.stderr
    again = selected(onefit("select", folder, *common, "--journal", kept))
    assert again["best"]["params"] == whole["best"]["params"]
    assert again["best"]["score"] == pytest.approx(whole["best"]["score"])
    other = (*common, "--journal", kept, "--cv", 4)
    assert onefit("select", folder, *other).exit_code == OTHER_JOURNAL


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 3, "--approximation nystrom"),
        (("--approximation", "nystroem"), 2, "did you mean 'nystrom'"),
        (("--approximation", "nystrom", "--minutes", 3), 2, "minutes is for rows in memory"),
        (("--approximation", "nystrom", "--drop", "sizes"), 2, "did you mean 'size'"),
    ],
)
def test_what_cannot_be_is_said(
    onefit: Any, folder: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    result = onefit("select", folder, "--target", "price", *arguments)
    assert result.exit_code == code, result.stderr
    assert words in result.stderr


def test_targets_of_text_are_those_of_the_sample(onefit, tmp_path):
    """Blanks around labels do not count; numbers as text are refused, since rows are not read."""
    x = np.random.default_rng(0).normal(size=300)
    path = tmp_path / "rows.parquet"
    options = ("--approximation", "nystrom", "--cv", 3, "--kernels", "linear", "--format", "json")
    kind = np.where(x > 0, np.where(np.arange(300) % 2, "yes ", "yes"), "no")
    pd.DataFrame({"x": x, "kind": kind}).to_parquet(path)
    done = onefit("select", path, "--target", "kind", *options, "--model", tmp_path / "m.skops")
    assert done.exit_code == 0, done.stderr
    assert set(json.loads(done.stdout)["best"]["shares"]) == {"yes", "no"}
    done = onefit("predict", tmp_path / "m.skops", path, "--level", 0)
    assert "further from the training rows" not in done.stderr, "one landmark has no reach"
    pd.DataFrame({"x": x, "price": [f"${one:,.2f}" for one in 1e4 + x]}).to_parquet(path)
    done = onefit("select", path, "--target", "price", *options)
    assert done.exit_code == BAD_DATA
    assert "the target 'price' holds numbers as text" in done.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--target", "price", "--drop", "kind", "--loss", "quantile", "--kernels", "linear"),
        (
            "--target",
            "kind",
            "--drop",
            "price",
            "--class-weight",
            "balanced",
            "--kernels",
            "linear",
        ),
    ],
    ids=["a width from the sample", "a kernel without gamma"],
)
def test_settings_that_need_no_further_numbers(onefit, rows, tmp_path, options):
    rows[:80].drop(columns="stars").to_parquet(tmp_path / "rows.parquet")
    few = ("--approximation", "nystrom", "--cv", 2, "--kernels", "linear", "--format", "json")
    assert selected(onefit("select", tmp_path / "rows.parquet", *options, *few))["best"]["score"]
