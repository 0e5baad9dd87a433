"""``onefit compare``: what two selections printed, side by side."""

from __future__ import annotations

import json

import pytest

typer = pytest.importorskip("typer")
testing = pytest.importorskip("typer.testing")

from onefit.cli.app import app  # noqa: E402


def run(*words):
    return testing.CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    rows = [f"{i},{i % 7},{(i * i) % 11},{3 * i % 5 + i / 10}" for i in range(40)]
    table = folder / "rows.csv"
    table.write_text("\n".join(["a,b,c,y", *rows]) + "\n")
    found = []
    for kernel in ("rbf", "linear"):
        done = run("select", table, "--target", "y", "--kernel", kernel, "--folds", 4, "--format",
                   "json")  # fmt: skip
        assert done.exit_code == 0, done.output
        found.append(folder / f"{kernel}.json")
        found[-1].write_text(done.stdout)
    return found


def test_two_runs_are_compared_split_by_split(documents, tmp_path):
    page = tmp_path / "compared.html"
    done = run("compare", *documents, "--report", page)
    assert done.exit_code == 0, done.output
    assert "Split by split" in done.output
    assert "kernel=linear" in done.output
    assert "<h1>rbf and linear</h1>" in page.read_text(encoding="utf-8")


def test_the_splits_of_a_document_are_those_of_the_search(documents):
    found = json.loads(documents[0].read_text())
    assert len(found["best"]["errors_of_splits"]) == 4
    assert found["data"]["seed"] == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "is not JSON"), ("[]", "has no 'data'"), ('{"data": {}}', "has no 'task'")],
)
def test_what_is_no_selection_is_refused(documents, tmp_path, text, message):
    other = tmp_path / "other.json"
    other.write_text(text)
    done = run("compare", documents[0], other)
    assert done.exit_code == 3
    assert message in done.output


def test_a_missing_file_and_folder_are_named(documents, tmp_path):
    done = run("compare", documents[0], tmp_path / "none.json")
    assert done.exit_code == 3
    assert "cannot read" in done.output
    done = run("compare", *documents, "--report", tmp_path / "no" / "page.html")
    assert done.exit_code == 2
    assert "no folder" in done.output
