"""Which commit made a page."""

from __future__ import annotations

import subprocess

import pytest

from onefit_papers import provenance


@pytest.fixture
def package(tmp_path):
    """A repository with two packages and results beside them; the folder of one package."""
    for name in ("src", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text("x = 1\n")
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for asked in (["init", "-q"], ["add", "-A"], [*author, "commit", "-qm", "one"]):
        subprocess.run(["git", "-C", str(tmp_path), *asked], check=True)
    return tmp_path / "src"


def test_results_do_not_make_a_package_dirty_but_changes_do(package):
    clean = provenance.commit([package])
    assert len(clean) == 12
    (package.parent / "results.md").write_text("made by the run")
    assert provenance.commit([package]) == clean
    (package / "a.py").write_text("x = 2\n")
    assert provenance.commit([package]) == clean + provenance.DIRTY
    (package / "a.py").write_text("x = 1\n")
    (package / "b.py").write_text("")
    assert provenance.commit([package]) == clean + provenance.DIRTY


def test_changes_of_either_package_count(package):
    both = [package, package.parent / "other"]
    clean = provenance.commit(both)
    assert clean == provenance.commit([package])
    (both[1] / "a.py").write_text("x = 2\n")
    assert provenance.commit(both) == clean + provenance.DIRTY
    assert provenance.commit([package]) == clean


def test_the_packages_are_onefit_and_this_one():
    assert [folder.name for folder in provenance.SOURCES] == ["onefit", "onefit_papers"]


def test_a_folder_without_history(tmp_path):
    assert provenance.commit([tmp_path]) == "not a source tree"


def test_machine_and_software_have_names():
    assert "logical cores" in provenance.machine()
    assert "numpy" in provenance.software()
