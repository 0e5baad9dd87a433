"""Which commit made a page."""

from __future__ import annotations

import subprocess

import pytest

from onefit.reproduce import provenance


@pytest.fixture
def package(tmp_path):
    """A repository with a package and results beside it."""
    inner = tmp_path / "src"
    inner.mkdir()
    (inner / "a.py").write_text("x = 1\n")
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for asked in (["init", "-q"], ["add", "-A"], [*author, "commit", "-qm", "one"]):
        subprocess.run(["git", "-C", str(tmp_path), *asked], check=True)
    return inner


def test_results_do_not_make_a_package_dirty_but_changes_do(package):
    clean = provenance.commit(package)
    assert len(clean) == 12
    (package.parent / "results.md").write_text("made by the run")
    assert provenance.commit(package) == clean
    (package / "a.py").write_text("x = 2\n")
    assert provenance.commit(package) == clean + provenance.DIRTY
    (package / "a.py").write_text("x = 1\n")
    (package / "b.py").write_text("")
    assert provenance.commit(package) == clean + provenance.DIRTY


def test_a_folder_without_history(tmp_path):
    assert provenance.commit(tmp_path) == "not a source tree"


def test_machine_and_software_have_names():
    assert "logical cores" in provenance.machine()
    assert "numpy" in provenance.software()
