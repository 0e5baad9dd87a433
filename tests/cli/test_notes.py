"""Notes on stderr are in the report, in the JSON and in the table, in the same words."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import pandas as pd
import pytest

SMALL = ("--kernels", "linear", "--cv", 3)


def doubtful(tmp_path):
    """A table with many notes: noise, an amount as target, gaps, copies, an id."""
    random = np.random.default_rng(0)
    n = 40
    table = pd.DataFrame(
        {
            "name": [f"Zoë {i}" for i in range(n)],
            "size": np.where(np.arange(n) % 9 == 0, "n.a.", random.normal(size=n).round(2)),
            "kind": random.choice(["a", "b\nc"], n),
            "day": [f"{1 + i % 28}.5.2021" for i in range(n)],
            "price": [f"${one:,.0f}" for one in random.uniform(1e3, 9e3, n)],
        }
    )
    table.loc[4, "price"] = None
    table = pd.concat([table, table.iloc[[7]]])
    path = tmp_path / "data.csv"
    table.to_csv(path, index=False, encoding="cp1252")
    return path


@pytest.fixture
def told(onefit, tmp_path):
    """Notes on stderr, the JSON, and the text of the report."""
    report = tmp_path / "report.html"
    done = onefit("select", doubtful(tmp_path), "--target", "price", *SMALL, "--report", report,
                  "--format", "json")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    notes = re.findall(r"^note: (.*)$", done.stderr, re.M)
    return notes, json.loads(done.stdout), html.unescape(report.read_text())


def test_every_note_of_stderr_is_in_the_json_and_in_the_report(told):
    notes, document, page = told
    for word in ("Windows-1252", "spans several lines", "left out, because it has no value",
                 "the target 'price' is read as numbers", "read as missing", "holds dates",
                 "is a copy of an earlier row"):  # fmt: skip
        assert any(word in one for one in notes), word
    verdict = document["best"]["warning"]
    assert "the baseline" in verdict
    assert notes == document["notes"]
    assert not [one for one in (*notes, verdict) if one[1:] not in page]


def test_the_table_has_the_same_notes(onefit, tmp_path):
    done = onefit("select", doubtful(tmp_path), "--target", "price", *SMALL)
    text = " ".join(done.stdout.split())
    for note in re.findall(r"^note: (.*)$", done.stderr, re.M):
        assert note in text


def test_gap_codes_count_as_missing_values_and_columns_have_the_type_they_are_read_as(told):
    page = re.sub(r"<[^>]+>", "|", told[2])
    assert re.search(r"missing values\|+5 \(3.1", page)  # of 40 rows with four columns
    types = dict(re.findall(r"\|(name|size|kind|day)\|+(text|number|date)\|", page))
    assert types == {"name": "text", "size": "number", "kind": "text", "day": "date"}
