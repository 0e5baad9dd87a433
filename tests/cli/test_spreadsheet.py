"""No text that onefit writes to a CSV file is a formula to a spreadsheet."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest

from onefit.cli.output import as_csv

#: columns that predictions end with
NOTES = ("novelty", "unfamiliar")

SMALL = ("--kernels", "linear", "--cv", 3)
#: labels that are formulas, and what is written for them
FORMULAS = {
    "=cmd|' /C calc'!A0": "'=cmd|' /C calc'!A0",
    "@SUM(1+1)": "'@SUM(1+1)",
    "+1+1": "'+1+1",
    "-2+3": "'-2+3",
    "\t=1": "'\t=1",
    "\r=1": "'\r=1",
    "-": "'-",
}
#: and labels that are none
PLAIN = ["-1", "+2.5", "-1e-3", ".5", "a=b", "plain", "'=1", "a\r=1", "a,=1", 'a",=1', "a\n=1", ""]


@pytest.mark.parametrize("text", [*FORMULAS, *PLAIN])
def test_what_begins_like_a_formula_is_marked(text):
    written = FORMULAS.get(text, text)
    frame = pd.DataFrame({"prediction": [text, "other"], text: [-1.5, np.nan]})
    found = pd.read_csv(io.StringIO(as_csv(frame)), keep_default_na=False, dtype=str)
    assert found["prediction"].tolist() == [written, "other"]
    if text:
        assert found.columns.tolist() == ["prediction", written]
    assert found.iloc[:, 1].tolist() == ["-1.5", ""]
    assert frame["prediction"].tolist() == [text, "other"]


@pytest.fixture
def classes(tmp_path):
    """Data with a formula for a label, and a model of them."""
    path = tmp_path / "data.csv"
    x = np.linspace(-1, 1, 30)
    pd.DataFrame({"x": x, "t": np.where(x > 0, "=1+1", "-1+2")}).to_csv(path, index=False)
    return path, tmp_path / "m.skops"


def test_predictions(onefit, classes, tmp_path):
    data, model = classes
    done = onefit("select", data, "--target", "t", *SMALL, "--loss", "log", "--model", model)
    assert done.exit_code == 0, done.stderr
    out = tmp_path / "p.csv"
    assert onefit("predict", model, data, "--output", out).exit_code == 0
    found = pd.read_csv(out)
    assert set(found["prediction"]) == {"'=1+1", "'-1+2"}
    assert found.columns.tolist() == ["prediction", "probability_-1+2", "probability_=1+1", *NOTES]
    assert onefit("predict", model, data).stdout == out.read_text()
    listed = json.loads(onefit("predict", model, data, "--format", "json").stdout)
    assert {one["prediction"] for one in listed["predictions"]} == {"=1+1", "-1+2"}
    onefit("predict", model, data, "--output", tmp_path / "p.parquet")
    assert set(pd.read_parquet(tmp_path / "p.parquet")["prediction"]) == {"=1+1", "-1+2"}
