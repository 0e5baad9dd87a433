"""Files that are large in some way: unpacked, in columns, in one value."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from onefit._frames import shown
from onefit._validation import DataError
from onefit.cli.errors import BAD_DATA, TOO_LARGE
from onefit.config import config_context
from onefit.files import READ_BYTES
from onefit.prepare import TablePreparer
from onefit.tables import Roles, read_features, read_table

SMALL = ("--kernels", "linear", "--cv", 3)
LONG = "x" * 5_000_000
MIB = 2**20


# --------------------------------------------------------------------------- unpacked


def bomb(folder, name: str, head: bytes, piece: bytes, times: int):
    """A small file that unpacks to many times its size: packed pieces may be joined."""
    pack = gzip.compress if name.endswith("gz") else bz2.compress
    path = folder / name
    path.write_bytes(pack(head) + pack(piece) * times)
    return path


#: with this folder's parent, where the helper is
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
PROBE = """
import json, resource, sys, pandas, onefit.cli.select
from command_line import onefit
before, outcome = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, {}
for name, command in json.loads(sys.argv[1]).items():
    done = onefit(*command)
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    outcome[name] = done.exit_code, 1024 * taken, done.stderr.strip()
print(json.dumps(outcome))
"""

#: what is packed, its name, what it begins with and repeats, and the expected message
PACKED = [
    ("rows.csv.gz", b"a,b\n", b"1,2\n", TOO_LARGE, "30,000,000 rows"),
    ("rows.libsvm.gz", b"1 1:1\n2 1:3\n", b"1 1:2\n", TOO_LARGE, "19,999,99"),
    ("name.csv.gz", b"a", b"xxxx", BAD_DATA, "characters or more for 1 names"),
    ("blank.csv.gz", b"\n", b"\n\n\n\n", BAD_DATA, "is empty"),
]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """Exit code, bytes taken so far, and message of each, one after the other in one process."""
    folder, commands = tmp_path_factory.mktemp("packed"), {}
    for name, head, piece, *_ in PACKED:
        path = bomb(folder, name, head, piece * (10_000_000 // len(piece)), 12)
        assert path.stat().st_size < 250_000
        commands[name] = ["select", str(path)] + ([] if "libsvm" in name else ["--target", "b"])
    program = [sys.executable, "-c", PROBE, json.dumps(commands)]
    done = subprocess.run(program, capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is in other units elsewhere")
@pytest.mark.parametrize(("name", "code", "words"), [(one[0], *one[3:]) for one in PACKED])
def test_a_packed_file_is_refused_before_it_takes_memory(outcome, name, code, words):
    found, taken, message = outcome[name]
    assert found == code, message
    assert words in message
    assert taken < 64 * MIB


@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz", "data.csv.bz2", "data.libsvm.gz"])
@pytest.mark.parametrize("command", ["select", "predict"])
def test_a_file_larger_than_the_memory_is_refused(onefit, tmp_path, name, command):
    lines = b"1 1:2\n" if "libsvm" in name else b"1,2\n"
    path = tmp_path / name
    if name.endswith("csv"):
        path.write_bytes(b"a,b\n" + lines * 1_000_000)
    else:
        bomb(tmp_path, name, b"a,b\n" if "csv" in name else lines, lines * 100_000, 10)
    with config_context(memory_bytes=5.0 * MIB):
        if command == "select":
            target = () if "libsvm" in name else ("--target", "b")
            done = onefit("select", path, *target, "--minutes", 1)
            code, message = done.exit_code, done.stderr
        else:
            with pytest.raises(MemoryError) as error:
                read_features(path, 1 if "libsvm" in name else None)
            code, message = TOO_LARGE, str(error.value)
    assert code == TOO_LARGE, message
    for words in ("0.00488 GiB are available", "nothing was read", "split it"):
        assert words in message
    assert ("unpacks to" if name != "data.csv" else "holds") in message


def test_a_parquet_file_larger_than_the_memory_is_refused(onefit, tmp_path):
    path = tmp_path / "data.parquet"
    column = pa.array(np.zeros(2_000_000))
    parquet.write_table(pa.table({"a": column, "t": column}), path)
    assert path.stat().st_size < 100_000
    with config_context(memory_bytes=10.0 * MIB):
        done = onefit("select", path, "--target", "t", "--minutes", 1)
    assert done.exit_code == TOO_LARGE, done.output
    assert "2,000,000 rows and 2 columns" in done.stderr


def test_a_column_beyond_the_memory_is_refused(onefit, tmp_path):
    path = tmp_path / "data.libsvm"
    path.write_text("1 1:2\n2 900000:1\n" * 9)
    assert onefit("select", path, *SMALL).exit_code == 0
    with config_context(memory_bytes=10.0 * MIB):
        done = onefit("select", path, *SMALL)
    assert done.exit_code == TOO_LARGE, done.output
    assert "names column 900,000" in done.stderr


def test_a_large_packed_file_is_read(tmp_path):
    path = bomb(tmp_path, "data.csv.gz", b"a,b\n", b"1,2\n2,3\n" * 100_000, 5)
    table = read_table(path, Roles("b"))
    assert table.X.shape == (1_000_000, 1)
    assert table.y.sum() == 2_500_000


@pytest.mark.parametrize("before", range(-1, 10, 2))
@pytest.mark.parametrize("last", [b"", b"1,2,x", b'1,"2",x'])
@pytest.mark.parametrize("blank", [[], [b""]], ids=["", "blank lines"])
def test_rows_have_their_lines_whatever_the_file_is_read_in(tmp_path, before, last, blank):
    """A file is read in parts; the first one ends a few bytes after some long lines."""
    path, counts = tmp_path / "data.csv", []
    begin, tail = [b"ab,c,t", *blank], [b"4,,5", *blank, *blank, b"6,7,8", last]
    for end in (b"\n", b"\r\n", b"\r"):
        left = READ_BYTES - before - len(end.join([*begin, b""]))
        size, parts = 100_000, []
        while left > 0:
            parts.append(b"1,2,".ljust(min(size, left) - len(end), b"x"))
            left -= size
        lines = [*begin, *parts, *tail]
        path.write_bytes(end.join(lines))
        counts.append([])
        table = read_table(path, Roles("c"), check_rows=counts[-1].append)
        rows = [i + 1 for i, one in enumerate(lines) if one and i and one != b"4,,5"]
        assert table.X.index.tolist() == rows
    # quotes may hold ends of lines; empty lines are counted
    assert counts[0] == counts[1] == counts[2]
    assert b'"' in last or len(rows) + 1 <= counts[0][0] <= len(lines)


def test_a_file_of_blank_lines_is_empty(tmp_path):
    for text in (b"\n\n\n", b""):
        (tmp_path / "data.csv").write_bytes(text)
        with pytest.raises(DataError, match="is empty"):
            read_table(tmp_path / "data.csv", Roles("a"))


# --------------------------------------------------------------------------- columns


@pytest.fixture
def wide(tmp_path):
    """A table of many more columns than rows, and what they hold."""
    path = tmp_path / "wide.csv"
    numbers = np.random.default_rng(0).normal(size=(12, 3000)).round(3)
    frame = pd.DataFrame(numbers, columns=[f"c{i}" for i in range(3000)])
    frame.insert(7, "word", list("abcabcabcabc"))
    frame.loc[3, "c5"] = np.nan
    frame["flag"] = [True, False] * 6
    frame["count"] = np.arange(12)
    frame.assign(t=np.arange(12.0)).to_csv(path, index=False)
    return path, frame


def test_no_step_looks_at_the_columns_one_by_one(wide, monkeypatch):
    """Each look costs pandas a tenth of a millisecond: ten seconds for a hundred thousand."""
    path, _ = wide
    looks = []
    look = pd.DataFrame.__getitem__
    monkeypatch.setattr(
        pd.DataFrame, "__getitem__", lambda self, key: looks.append(key) or look(self, key)
    )
    table = read_table(path, Roles("t"))
    preparer = TablePreparer()
    preparer.fit_transform(table.X)
    preparer.transform(read_features(path)[0])
    assert len(looks) < 50
    for (
        _,
        _,
        places,
    ) in preparer.encoder_.transformers:
        assert places.dtype.kind == "i"


def test_a_wide_table_is_what_it_was(wide):
    path, frame = wide
    table = read_table(path, Roles("t"))
    preparer = TablePreparer()
    X = preparer.fit_rows(table.X)[0]
    assert list(X.columns) == list(frame.columns)
    assert X["word"].tolist() == frame["word"].tolist()
    numbers = frame.drop(columns="word").astype(float)
    read = X.drop(columns="word").reset_index(drop=True)
    pd.testing.assert_frame_equal(read, numbers, check_names=False)
    Z = preparer.encode(X)
    new = read_features(path)[0]
    np.testing.assert_array_equal(preparer.transform(new), Z)
    assert Z.shape == (12, 3002 + 3)
    flipped = new[list(new.columns[::-1])]  # columns are found by their names
    np.testing.assert_array_equal(preparer.transform(flipped), Z)


def test_a_wide_table_is_selected_on(onefit, wide, tmp_path):
    path, _ = wide
    model = tmp_path / "m.skops"
    done = onefit("select", path, "--target", "t", *SMALL, "--format", "json", "--model", model)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["data"]["columns"] == 3003
    assert onefit("predict", model, path).stdout.startswith(
        "prediction,lower,upper,novelty,unfamiliar\n"
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [("1e200", "too large in line 5"), ("inf", "infinite in line 5")],
)
def test_the_column_that_is_wrong_is_named_among_many(onefit, tmp_path, value, words):
    frame = pd.DataFrame(np.ones((12, 500)).astype(str), columns=[f"c{i}" for i in range(500)])
    frame.loc[3, ["c123", "c400"]] = value
    frame.assign(t=np.arange(12)).to_csv(tmp_path / "data.csv", index=False)
    done = onefit("select", tmp_path / "data.csv", "--target", "t", *SMALL)
    assert done.exit_code == BAD_DATA
    assert "'c123'" in done.stderr
    assert words in done.stderr


# --------------------------------------------------------------------------- one value


@pytest.mark.parametrize("value", [LONG, LONG.encode(), [LONG], "short", 3.0, np.float64(3.0)])
def test_a_value_is_quoted_by_its_beginning(value):
    said = shown(value)
    assert len(said) < 160
    assert said == repr(float(value)) if isinstance(value, float) else said[:3] == repr(value)[:3]
    if value is LONG:
        assert "5,000,000 characters" in said


def lines(*rows: str) -> str:
    return "\n".join(rows) + "\n"


#: files in which something of five megabytes is wrong, and the expected message
WRONG = {
    "a label that stands once": lines("a,t", *("1,u", "2,v") * 9, f"1,{LONG}"),
    "one label": lines("a,t", *[f"1,{LONG}"] * 2),
    "a word among numbers": lines("a,t", *(f"{i},{i}" for i in range(20)), f"1,{LONG}"),
    "texts": lines("a,t", *(f"{i},{i}{LONG[:400_000]}" for i in range(12))),
    "too many values": lines("a,t", "1,2", f"{LONG},1,2"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_long_value_is_not_echoed(onefit, tmp_path, what):
    path = tmp_path / "data.csv"
    path.write_text(WRONG[what])
    done = onefit("select", path, "--target", "t", *SMALL)
    assert done.exit_code == BAD_DATA, done.stderr[:500]
    assert len(done.output) < 500


def test_long_names_are_not_echoed(onefit, tmp_path):
    path, name = tmp_path / "data.csv", LONG[:9000]
    rows = [f"{i % 5},{i},1" for i in range(20)]
    path.write_text(lines(f"a,t,{name}", *rows))
    for options in ((), ("--drop", name[:-1]), ("--drop", name, "--target", name)):
        target = () if "--target" in options else ("--target", "no")
        done = onefit("select", path, *target, *options)
        assert done.exit_code == BAD_DATA
        assert len(done.output) < 600
    path.write_text(lines(f"a,{name},{name}", *rows))
    assert len(onefit("select", path, "--target", "a").output) < 300
    path.write_text(lines(f"a,{name}", *(f"{i % 5},{i}.5" for i in range(20))))
    done = onefit("select", path, "--target", name, *SMALL)
    assert done.exit_code == 0, done.stderr[:500]
    assert len(done.stdout) < 3000


def test_a_long_label_is_not_echoed_by_what_was_chosen(onefit, tmp_path):
    path, model = tmp_path / "data.csv", tmp_path / "m.skops"
    path.write_text(lines("a,t", *(f"{i},{LONG[:200_000] if i % 2 else 'v'}" for i in range(20))))
    done = onefit("select", path, "--target", "t", *SMALL, "--model", model)
    assert done.exit_code == 0, done.stderr[:500]
    assert len(done.output) < 4000
    new = tmp_path / "new.csv"
    new.write_text(lines("a", LONG))
    done = onefit("predict", model, new)
    assert done.exit_code == BAD_DATA
    assert len(done.output) < 300
    broken = tmp_path / "data.libsvm"
    broken.write_text(lines("1 1:2", f"1 1:{LONG}"))
    done = onefit("select", broken)
    assert done.exit_code == BAD_DATA
    assert len(done.output) < 500


def test_a_note_is_no_longer_than_an_error(onefit, tmp_path):
    path = tmp_path / "data.csv"
    rows = [f"{i},{i % 5}.5" for i in range(20)]
    path.write_text(lines("b,t", *rows, f"{LONG},1"))
    done = onefit("select", path, "--target", "t", *SMALL)
    assert done.exit_code == 0, done.stderr[:500]
    assert "holds numbers but for 'xxx" in done.stderr
    assert len(done.output) < 4000
