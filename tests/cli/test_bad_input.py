"""Whatever can be wrong with a file: one clear sentence, what to do, and an exit code."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from onefit.cli.app import run
from onefit.cli.errors import BAD_DATA, INTERRUPTED, OTHER_JOURNAL, TOO_LARGE, UNEXPECTED, USAGE

SMALL = ("--kernels", "linear", "--cv", 3)


def check(done, code: int, *words: str) -> None:
    assert done.exit_code == code, done.output
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("onefit: ")
    for one in words:
        assert one in lines[0]


def write(tmp_path, text: str, name: str = "data.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def rows(*columns: str, n: int = 12) -> str:
    """A table of n rows in which the named columns are the row's number."""
    return "\n".join([",".join(columns), *(",".join([str(i)] * len(columns)) for i in range(n))])


def test_missing_file(onefit, csv):
    done = onefit("select", csv.parent / "dat.csv", "--target", "price")
    check(done, BAD_DATA, "there is no file", "did you mean 'data.csv'?")
    check(onefit("select", csv.parent, "--target", "price"), BAD_DATA, "is a folder")
    explain = onefit("explain", csv.parent, "--target", "price", "--approximation", "nystrom")
    check(explain, USAGE, "rows in memory, of one file")
    check(onefit("predict", csv.parent / "m.skops", csv), BAD_DATA, "select --model writes one")


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_the_delimiter_is_detected(onefit, frame, tmp_path, delimiter):
    path = tmp_path / "data.csv"
    frame.rename(columns={"size": "size, in metres"}).to_csv(path, index=False, sep=delimiter)
    done = onefit("select", path, "--target", "price", *SMALL)
    assert done.exit_code == 0, done.stderr
    assert "80 rows, 5 columns" in done.stdout


def test_rows_with_more_values_than_the_header_and_another_delimiter(onefit, tmp_path):
    path = write(tmp_path, "a;b\n1,5;2\n1;2,5;5\n")
    check(onefit("select", path, "--target", "b"), BAD_DATA, "line 3 holds 3 values")


def test_an_unknown_delimiter(onefit, tmp_path):
    path = write(tmp_path, "a:b\n1:2\n2:3\n")
    check(onefit("select", path, "--target", "b"), BAD_DATA, "'a:b' alone", "semicolon, tab or |")


def test_a_file_of_two_encodings_is_read_with_a_note_of_the_lines(onefit, tmp_path):
    names = [
        one.encode(code) for one, code in (("Zoë", "utf-8"), ("Ann", "ascii"), ("Zoë", "cp1252"))
    ]
    path = tmp_path / "data.csv"
    path.write_bytes(b"a,t\n" + b"".join(b"%s,%d\n" % (names[i % 3], i) for i in range(12)))
    done = onefit("select", path, "--target", "t", *SMALL)
    assert done.exit_code == 0, done.stderr
    assert "mixes encodings: line 2 is UTF-8, line 4 is not" in done.stderr
    path.write_bytes(b"a,t\n" + b"".join(b"%s,%d\n" % (names[1 + i % 2], i) for i in range(12)))
    done = onefit("select", path, "--target", "t", *SMALL)
    assert "Windows-1252" in done.stderr
    assert "mixes" not in done.stderr


def test_absent_target(onefit, csv):
    done = onefit("select", csv, "--target", "prize")
    check(done, BAD_DATA, "no column 'prize'", "did you mean 'price'?", "'colour'")
    check(onefit("select", csv), BAD_DATA, "--target")
    check(onefit("select", csv, "--target", "price", "--drop", "ag"), BAD_DATA, "'age'")


@pytest.mark.parametrize("value", ["7", "always"])
def test_target_with_one_value(onefit, tmp_path, value):
    path = write(tmp_path, "x,t\n" + "".join(f"{i},{value}\n" for i in range(20)))
    check(onefit("select", path, "--target", "t"), BAD_DATA, value, "nothing to learn")


def test_target_with_gaps(onefit, tmp_path):
    path = write(tmp_path, rows("x", "t") + "\n12,\n")
    done = onefit("select", path, "--target", "t", *SMALL)
    assert done.exit_code == 0
    assert "1 of 13 rows is left out" in done.stderr
    assert "line 14" in done.stderr
    assert "12 rows" in done.stdout


def test_class_of_one_row(onefit, tmp_path):
    path = write(tmp_path, "x,t\n" + "".join(f"{i},{'abc'[min(i % 7, 1)]}\n" for i in range(20)))
    path.write_text(path.read_text() + "21,c\n")
    check(onefit("select", path, "--target", "t"), BAD_DATA, "class 'c'", "one row only")


def test_columns_that_are_all_missing(onefit, tmp_path):
    lines = "\n".join(f"{i},,,{i}" for i in range(12))
    path = write(tmp_path, f"x,gap,hole,t\n{lines}\n")
    done = onefit("select", path, "--target", "t", *SMALL)
    assert done.exit_code == 0, done.stderr
    assert "note: 'gap', 'hole' hold no value in any row, and are not used" in done.stderr


def test_nested_parquet(onefit, tmp_path):
    path = tmp_path / "data.parquet"
    parquet.write_table(pa.table({"x": [[1.0], [2.0]], "t": [1.0, 2.0]}), path)
    check(onefit("select", path, "--target", "t"), BAD_DATA, "column 'x'", "nested")
    assert onefit("select", path, "--target", "t", "--drop", "x").exit_code == BAD_DATA  # no column
    table = {"x": [{"u": 1.0}] * 12, "v": np.arange(12.0) ** 2, "t": np.arange(12.0)}
    parquet.write_table(pa.table(table), path)
    check(onefit("select", path, "--target", "t"), BAD_DATA, "drop that column")
    model = tmp_path / "m.skops"
    done = onefit("select", path, "--target", "t", "--drop", "x", *SMALL, "--model", model)
    assert done.exit_code == 0, done.stderr
    assert onefit("predict", model, path).exit_code == 0  # which does not look at x
    write(tmp_path, "no parquet at all", "other.parquet")
    check(onefit("select", tmp_path / "other.parquet", "--target", "t"), BAD_DATA, "Parquet")


def test_dates_infinities_and_words(onefit, tmp_path):
    path = tmp_path / "data.parquet"
    day = pd.date_range("2020-01-01", periods=12)
    pd.DataFrame({"day": day, "t": np.arange(12.0)}).to_parquet(path)
    done = onefit("select", path, "--target", "t", *SMALL)
    assert (done.exit_code, "days since 1970" in done.stderr) == (0, True)
    pd.DataFrame({"x": [np.inf] + [1.0] * 11, "t": np.arange(12.0)}).to_parquet(path)
    check(onefit("select", path, "--target", "t"), BAD_DATA, "'x' is infinite in row 0")
    path = write(tmp_path, "t\n1\n2\n")
    check(onefit("select", path, "--target", "t"), BAD_DATA, "no column beside the target")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("is empty", "header")),
        ("\n\n", ("is empty",)),
        ("a,t\n", ("header and no row",)),
        ("a,t\n1,2\n", ("header and one row",)),
        (rows("a", "a", "t"), ("several columns named 'a'",)),
        (rows("a", "t", "t "), ("several columns named 't'",)),
        (rows("a", "t") + "\n1,2,3\n", ("line 14", "correct that line")),
        ("a,t\n" + "1,2,3\n" * 9, ("more values than its header", "name every column")),
        ("a,t\n" + "".join(f"{i},\n" for i in range(9)), ("no value in any row",)),
    ],
)
def test_files_without_sense(onefit, tmp_path, text, words):
    check(onefit("select", write(tmp_path, text), "--target", "t"), BAD_DATA, *words)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([f"{i}.5" if i else "1.2x" for i in range(20)], ("'1.2x' in line 2", "correct it")),
        ([f"{i}.5 {'kg' if i else 'g'}" for i in range(20)], ("but for '0.5 g' in line 2",)),
        (
            [f"{i}.5 {'kg' if i % 2 else 'g'}" for i in range(20)],
            ("20 different texts", "'g', 'kg'"),
        ),
        ([f"{i}.5 to {i}.6" for i in range(20)], ("20 different texts", "plain numbers")),
        ([f"2020-01-{i + 1:02}" for i in range(20)], ("holds dates", "days since")),
        ([f"{i + 1}e200" for i in range(20)], ("too large in line 2", "change its unit")),
        ([f"{i + 1}e-200" for i in range(20)], ("too small", "change its unit")),
        (["inf", *map(str, range(19))], ("infinite in line 2", "leave it empty")),
    ],
)
def test_targets_that_are_neither_numbers_nor_classes(onefit, tmp_path, values, words):
    lines = "\n".join(f"{i},{one}" for i, one in enumerate(values))
    path = write(tmp_path, f"a,t\n{lines}\n")
    done = onefit("select", path, "--target", "t")
    check(done, BAD_DATA, "the target 't'", *words)
    assert "--drop" not in done.stderr


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([f"{i + 1}/02/21" for i in range(20)], ("holds dates", "drop that column")),
        ([f"2021-02-03 {i + 10}:15" for i in range(20)], ("holds dates", "drop that column")),
        ([f"{i:02}:15" for i in range(20)], ("dates or times",)),
        ([f"{i}e200" for i in range(20)], ("too large in line 3", "change its unit")),
    ],
)
def test_features_that_cannot_be_used(onefit, tmp_path, values, words):
    lines = "\n".join(f"{i},{one},{i}.5" for i, one in enumerate(values))
    path = write(tmp_path, f"a,b,t\n{lines}\n")
    check(onefit("select", path, "--target", "t"), BAD_DATA, "column 'b'", *words)


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("b", ["oops", *map(str, range(19))], ("'oops' in line 2", "used as text")),
        ("b", [f"id{i}" for i in range(20)], ("another text in every row", "drop it")),
        ("", [str(i) for i in range(20)], ("without a name", "'Unnamed: 1'")),
    ],
)
def test_what_looks_like_a_mistake_is_said(onefit, tmp_path, name, values, words):
    lines = "\n".join(f"{i % 5},{one},{7 * i % 20}.5" for i, one in enumerate(values))
    path = write(tmp_path, f"a,{name},t\n{lines}\n")
    done = onefit("select", path, "--target", "t", *SMALL)
    assert done.exit_code == 0, done.stderr
    line = done.stderr.splitlines()[0]
    assert line.startswith("note: ")
    for one in words:
        assert one in line


@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz"])
def test_nul_bytes(onefit, tmp_path, name):
    text = rows("a", "t").replace("5,5", "5\0,5").encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    check(onefit("select", path, "--target", "t"), BAD_DATA, "NUL byte in line 7", "UTF-8")


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_damaged_gzip(onefit, tmp_path, damage):
    packed = bytearray(gzip.compress(rows("a", "t", n=400).encode()))
    packed = packed[: len(packed) // 2] if damage == "cut" else packed
    if damage == "changed":
        packed[30:40] = bytes(10)
    path = tmp_path / "data.csv.gz"
    path.write_bytes(packed)
    check(onefit("select", path, "--target", "t"), BAD_DATA, "cannot be read as CSV")


def test_quotes_left_open(onefit, tmp_path):
    lines = rows("a", "b", "t", n=40).replace("7,7,", '7,"7,').replace("9,9,9", '9,9",9')
    done = onefit("select", write(tmp_path, lines), "--target", "t", *SMALL)
    assert "column 'b' in line 9 spans several lines" in done.stderr
    assert "close it" in done.stderr


def test_versions_and_codes_are_no_dates(onefit, tmp_path):
    lines = "\n".join(f"1.{i % 3}.{i % 2},{i % 4}-a,{i}.5" for i in range(20))
    path = write(tmp_path, f"a,b,t\n{lines}\n")
    done = onefit("select", path, "--target", "t", *SMALL)
    assert done.exit_code == 0, done.stderr
    assert not any("column" in line for line in done.stderr.splitlines())


def test_features_that_never_change(onefit, tmp_path):
    path = write(tmp_path, "a,t\n" + "".join(f"7,{i}.5\n" for i in range(20)))
    check(onefit("select", path, "--target", "t"), BAD_DATA, "same features", "other columns")


def test_a_million_rows(onefit, tmp_path):
    path = tmp_path / "data.parquet"
    x = np.random.default_rng(0).normal(size=10**6)
    pd.DataFrame({"x": x, "t": x}).to_parquet(path)
    for command in ("select", "explain"):
        done = onefit(command, path, "--target", "t")
        check(done, TOO_LARGE, "1,000,000 rows", "days", "nothing was run: set minutes")


def test_not_libsvm(onefit, tmp_path):
    path = write(tmp_path, "x,t\n1,2\n", "data.libsvm")
    check(onefit("select", path), BAD_DATA, "cannot be read as LIBSVM")
    path = write(tmp_path, "1 1:2\n2 1:3\n" * 9, "data.libsvm")
    check(onefit("select", path, "--target", "t"), BAD_DATA, "leave out --target")
    check(onefit("select", path, "--drop", "t"), BAD_DATA, "leave out --drop")
    path = write(tmp_path, "x,t\n1,2\n", "data.ods")
    check(onefit("select", path, "--target", "t"), BAD_DATA, ".parquet")


def test_wrong_options(onefit, csv, tmp_path):
    select = ("select", csv, "--target", "price")
    check(onefit(*select, "--loss", "hubert"), USAGE, "did you mean 'huber'?")
    check(onefit(*select, "--kernels", "rfb"), USAGE, "'rbf'")
    check(onefit(*select, "--task", "clustering"), USAGE, "'classification'")
    check(onefit(*select, "--cv", 100), USAGE, "at most", "80")
    check(onefit(*select, "--cv", 1), USAGE, "at least 2")
    check(onefit(*select, "--minutes", 0), USAGE, "minutes")
    check(onefit(*select, "--minutes", 1, "--approximation", "nystrom"), USAGE, "leave one")
    check(onefit(*select, "--model", tmp_path / "no" / "m.skops"), USAGE, "no folder")
    check(onefit("select", csv, "--target", "kind", "--task", "regression"), BAD_DATA, "text")
    assert onefit(*select, "--no-such-option").exit_code == USAGE
    check(onefit(*select, "--kernels", "precomputed"), USAGE, "kernels='precomputed'", "'rbf'")
    check(onefit(*select, "--report", tmp_path / "x.pdf"), USAGE, "must end in .html or .htm")
    check(onefit(*select, "--model", tmp_path / "m.pkl"), USAGE, "--model m.pkl must end in .skops")
    (tmp_path / "folder.html").mkdir()
    check(onefit(*select, "--report", tmp_path / "folder.html"), USAGE, "is a folder; name a file")
    check(onefit(*select, "--drop", "price"), BAD_DATA, "the target itself")
    for output in ("p.xls", "no/p.csv"):
        done = onefit("predict", "m.skops", csv, "--output", tmp_path / output)
        check(done, USAGE, ".csv or .parquet" if output == "p.xls" else "no folder")


def test_models_that_are_none(onefit, csv, tmp_path):
    check(onefit("predict", csv, csv), BAD_DATA, "is not a model")
    skops = pytest.importorskip("skops.io")
    path = tmp_path / "m.skops"
    skops.dump(Foreign(), path)
    check(onefit("predict", path, csv), BAD_DATA, "Foreign", "not loaded")


class Foreign:
    """A type that no model of this package holds."""


def test_new_rows_unlike_the_old(onefit, csv, tmp_path):
    model = tmp_path / "m.skops"
    onefit("select", csv, "--target", "price", "--drop", "kind", *SMALL, "--model", model)
    new = write(tmp_path, "size,age,colour\n1,2,red\n", "new.csv")
    check(onefit("predict", model, new), BAD_DATA, "lacks 'new'")
    new = write(tmp_path, "size,age,colour,new\n1,old,red,True\n", "new.csv")
    check(onefit("predict", model, new), BAD_DATA, "column 'age' holds 'old' in line 2")
    new = write(tmp_path, "size,age,colour,new\n", "new.csv")
    check(onefit("predict", model, new), BAD_DATA, "no row")


class Failing(io.RawIOBase):
    """Bytes that fail as they are read."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def readable(self):
        return True

    def readinto(self, buffer):
        raise self.error


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), INTERRUPTED), (RuntimeError("odd"), UNEXPECTED)]
)
def test_other_errors(monkeypatch, capsys, error, code):
    """While standard input is copied."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(Failing(error)))
    with pytest.raises(SystemExit) as end:
        run(["select", "-", "--target", "price"])
    assert end.value.code == code
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("onefit: ")
    assert told.err.count("\n") == 1
    with pytest.raises(type(error)) as end:
        run(["--traceback", "select", "-", "--target", "price"])
    assert end.value is error


def test_journals(onefit, csv, tmp_path):
    journal = tmp_path / "journal"
    select = ("select", csv, "--target", "price", *SMALL)
    check(onefit(*select, "--journal", tmp_path / "no" / "one"), USAGE, "there is no folder")
    done = onefit(*select, "--journal", csv)
    check(done, USAGE, "is a file, but a journal is a folder")
    assert onefit(*select, "--journal", journal).exit_code == 0
    done = onefit(*select, "--drop", "age", "--journal", journal)
    check(done, OTHER_JOURNAL, "other data or settings", "X was float64 array of shape (80, 9)")
