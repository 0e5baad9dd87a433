"""Files in other encodings and Excel files give the model of the same table in UTF-8."""

from __future__ import annotations

import gzip
import io
import json
import sys

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("openpyxl")

SMALL = ("--kernels", "linear", "--cv", 3, "--format", "json")
ROWS = [[i, i + 0.5] for i in range(30)]
MARKED = ["utf-8-sig", "utf-16", "utf-32"]


@pytest.fixture
def table(frame):
    return frame.rename(columns={"colour": "größe"}).replace({"größe": {"green": "grün"}})


@pytest.fixture
def score(onefit):
    """Score and notes of a selection from a file."""

    def call(path):
        done = onefit("select", path, "--target", "price", *SMALL)
        assert done.exit_code == 0, done.stderr
        found = json.loads(done.stdout)
        return found["best"]["score"], " ".join(found["notes"])

    return call


@pytest.fixture
def expected(table, score, tmp_path):
    path = tmp_path / "expected.csv"
    table.to_csv(path, index=False)
    found, notes = score(path)
    assert "1252" not in notes
    return found


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", [*MARKED, "cp1252", "latin-1"])
def test_encodings(table, score, expected, tmp_path, encoding, delimiter):
    path = tmp_path / "data.csv"
    table.to_csv(path, index=False, sep=delimiter, encoding=encoding)
    found, notes = score(path)
    assert found == pytest.approx(expected, abs=1e-12)
    assert ("read as Windows-1252" in notes) == (encoding not in MARKED)


@pytest.mark.parametrize("encoding", ["utf-16-be", "utf-32-be"])
def test_big_endian_and_packed(table, score, expected, tmp_path, encoding):
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(("\ufeff" + table.to_csv(index=False)).encode(encoding)))
    assert score(path)[0] == pytest.approx(expected, abs=1e-12)


def test_a_letter_is_read_as_it_was_written(onefit, table, tmp_path):
    path = tmp_path / "data.csv"
    table.to_csv(path, index=False, encoding="cp1252")
    done = onefit("select", path, "--target", "nothing")
    assert "'größe'" in done.stderr


def test_unknown_encodings_are_refused(onefit, tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(b"a,t\n\x81,1\n\xff,2\n")
    done = onefit("select", path, "--target", "t")
    assert done.exit_code == 3
    assert "unknown encoding" in done.stderr
    path.write_bytes("\ufeffa,t\n1,2\n".encode("utf-16-le")[:-1])
    done = onefit("select", path, "--target", "t")
    assert done.exit_code == 3
    assert "Traceback" not in done.stderr


def test_excel(table, score, expected, tmp_path):
    path = tmp_path / "data.xlsx"
    with pd.ExcelWriter(path) as book:
        table.to_excel(book, sheet_name="prices", index=False, startrow=1)
        table.head(3).to_excel(book, sheet_name="old")
    found, notes = score(path)
    assert found == pytest.approx(expected, abs=1e-12)
    assert "first sheet of data.xlsx, 'prices', was read; not read: 'old'" in notes
    table.to_excel(path, index=False)
    assert "sheet" not in score(path)[1]


def test_excel_files_are_predicted(onefit, table, tmp_path):
    csv, sheet, model = (tmp_path / name for name in ("d.csv", "d.xlsx", "m.skops"))
    table.to_csv(csv, index=False)
    table.to_excel(sheet, index=False)
    done = onefit("select", sheet, "--target", "price", *SMALL, "--model", model)
    assert done.exit_code == 0, done.stderr
    first, second = (json.loads(onefit("predict", model, path, "--format", "json").stdout)
                     for path in (csv, sheet))  # fmt: skip
    values = [[one["prediction"] for one in found["predictions"]] for found in (first, second)]
    assert values[0] == pytest.approx(values[1], abs=1e-9)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([], ["is empty"]),
        ([["title", None], ["a", "t"], [1, 2]], ["no name for column 2"]),
        ([["t", "t"], [1, 2], [3, 4]], ["several columns named 't'"]),
        ([["a", "t"], [1, 2.5], [None, None], [2, "x"], *ROWS], ["line 4", "'x'"]),
    ],
)
def test_bad_sheets(onefit, tmp_path, cells, words):
    path = tmp_path / "data.xlsx"
    pd.DataFrame(cells).to_excel(path, index=False, header=False)
    done = onefit("select", path, "--target", "t")
    assert done.exit_code == 3
    for word in words:
        assert word in done.stderr


def test_what_is_no_excel_file(onefit, tmp_path):
    path = tmp_path / "data.xlsx"
    path.write_text("a,t\n1,2\n")
    done = onefit("select", path, "--target", "t")
    assert done.exit_code == 3
    assert "cannot be read as Excel" in done.stderr


def test_excel_without_openpyxl(onefit, table, tmp_path, monkeypatch):
    path = tmp_path / "data.xlsx"
    table.to_excel(path, index=False)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    done = onefit("select", path, "--target", "price")
    assert done.exit_code == 3
    assert "pip install 'onefit[tables]'" in done.stderr


def test_decimal_commas_of_new_rows_may_look_otherwise(onefit, tmp_path):
    """With thousands, gap codes or neither: 1,250 between semicolons is one and a quarter."""
    model, data, new = tmp_path / "m.skops", tmp_path / "data.csv", tmp_path / "new.csv"
    x = np.random.default_rng(0).uniform(1, 3000, 60).round(3)

    def german(one):
        return f"{one:,.3f}".translate(str.maketrans(",.", ".,"))

    rows = [f"{german(one)};{'k.A.' if i == 5 else german(one / 3000)}" for i, one in enumerate(x)]
    lines = [f"{row};{german(2.0 * one)}" for row, one in zip(rows, x, strict=True)]
    data.write_text("\n".join(["x;z;t", *lines]))
    select = ("select", data, "--target", "t", "--kernels", "linear", "--cv", 3, "--model", model)
    done = onefit(*select)
    assert done.exit_code == 0, done.stderr
    new.write_text("x;z\n1,250;0,250\n800,000;\n")
    done = onefit("predict", model, new, "--level", 0)
    assert done.exit_code == 0, done.stderr
    found = pd.read_csv(io.StringIO(done.stdout))["prediction"]
    assert found.to_numpy() == pytest.approx([2.5, 1600.0], abs=60)
    new.write_text("x;z\n1.250,000;k.A.\n2.000,000;0,667\n")
    found = pd.read_csv(io.StringIO(onefit("predict", model, new, "--level", 0).stdout))
    assert found["prediction"].to_numpy() == pytest.approx([2500.0, 4000.0], abs=300)


def test_a_row_is_predicted_alike_whatever_rows_are_beside_it(onefit, tmp_path):
    """Codes, ids and labels such as 01 stay text in a file where nothing but numbers is left."""
    random = np.random.default_rng(0)
    n, model, new = 60, tmp_path / "m.skops", tmp_path / "new.csv"
    text = {"id": str, "prediction": str}
    table = pd.DataFrame(
        {
            "id": [f"{i:03}" for i in range(n)],
            "code": random.choice(["01", "02", "A7"], n),
            "garden": random.choice(["TRUE", "FALSE", ""], n),
            "size": random.normal(size=n),
        }
    )
    score = table["size"] + 3.0 * (table["code"] == "01") + (table["garden"] == "TRUE")
    table["class"] = np.where(score > 1.0, "01", "B")
    table.to_csv(tmp_path / "data.csv", index=False)
    drop = ("--drop", "id", "--kernels", "linear", "--cv", 3, "--model", model)
    done = onefit("select", tmp_path / "data.csv", "--target", "class", *drop)
    assert done.exit_code == 0, done.stderr
    pages = []
    for rows in (table, table[(table["code"] != "A7") & (table["class"] == "01")]):
        rows.to_csv(new, index=False)
        done = onefit("predict", model, new, "--id", "id")
        assert done.exit_code == 0, done.stderr
        pages.append(pd.read_csv(io.StringIO(done.stdout), dtype=text).set_index("id"))
    some = pages[0].loc[pages[1].index]
    pd.testing.assert_frame_equal(some, pages[1])
    right = float((some["prediction"] == "01").mean())
    assert f"accuracy {right:.4g}" in done.stderr
    assert pages[1]["unfamiliar"].isna().all()


def test_gap_codes_among_decimal_commas_are_noted_once(onefit, tmp_path):
    data = tmp_path / "data.csv"
    lines = [f"{i},5;{2 * i}" for i in range(20)]
    data.write_text("\n".join(["x;t", "k.A.;7", *lines]))
    done = onefit("select", data, "--target", "t", "--kernels", "linear", "--cv", 3)
    assert done.exit_code == 0, done.stderr
    notes = [one for one in done.stderr.splitlines() if "read as missing" in one]
    assert notes == ["note: column 'x': 1 cell is read as missing ('k.A.'; the first in line 2)"]
