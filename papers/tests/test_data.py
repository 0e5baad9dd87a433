"""The loader: where a set comes from, and what it refuses."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file
from sklearn.utils import Bunch

from onefit_papers.data import SHAPES, Loader, scale

SERVO = SHAPES["servo"][:2]


def _rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    n, d, labelled = SHAPES[name]
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.5, 1.0, 2.0) if labelled else rng.standard_normal(n)
    return rng.standard_normal((n, d)), y


def _downloads(name: str, rows: str):
    """What fetches a set of one name, with the rows of another."""

    def fetch(asked, version, as_frame, parser):
        assert (asked, version, as_frame) == (name, 1, False)
        X, y = _rows(rows)
        return Bunch(data=X, target=np.where(y == 1.0, "Mine", "Rock").astype(object))

    return fetch


@pytest.fixture
def folder(tmp_path):
    X, y = _rows("servo")
    header = ",".join([*(f"x{i + 1}" for i in range(X.shape[1])), "y"])
    lines = [
        header,
        *(",".join(repr(float(v)) for v in (*row, t)) for row, t in zip(X, y, strict=True)),
    ]
    with gzip.open(tmp_path / "servo.csv.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    dump_svmlight_file(*_rows("heart"), str(tmp_path / "heart"), zero_based=False)
    return tmp_path


def test_csv_file(folder):
    X, y = _rows("servo")
    found = Loader(folder).load("servo")
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.y, y)
    assert found.source == "data directory, servo.csv.gz"
    assert not found.labelled


def test_libsvm_file_with_labels_of_any_name(folder):
    X, y = _rows("heart")
    found = Loader(folder).load("heart")
    np.testing.assert_allclose(found.X, X)
    np.testing.assert_array_equal(found.y, np.where(y == 2.0, 1.0, -1.0))
    assert found.source == "data directory, heart"


def test_the_setting_names_the_folder(folder, monkeypatch):
    monkeypatch.setenv("ONEFIT_DATA_DIR", str(folder))
    assert Loader().load("servo").X.shape == SERVO


def test_openml_where_the_folder_lacks_the_set(folder, monkeypatch):
    monkeypatch.setattr("sklearn.datasets.fetch_openml", _downloads("sonar", "sonar"))
    found = Loader(folder).load("sonar")
    assert found.source == "OpenML"
    assert set(found.y) == {-1.0, 1.0}


def test_a_copy_of_another_shape_is_refused(folder, monkeypatch):
    monkeypatch.setattr("sklearn.datasets.fetch_openml", _downloads("sonar", "heart"))
    with pytest.raises(ValueError, match=r"OpenML has 270 rows of 13 features.*208 of 60"):
        Loader(folder).load("sonar")


def test_a_set_that_is_nowhere(folder, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"fourclass.*put fourclass.csv.gz"):
        Loader(folder).load("fourclass")
    monkeypatch.delenv("ONEFIT_DATA_DIR", raising=False)
    with pytest.raises(FileNotFoundError, match="no data directory is set"):
        Loader().load("fourclass")


def test_wrong_names(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a folder"):
        Loader(tmp_path / "absent")
    with pytest.raises(ValueError, match="did you mean 'heart'"):
        Loader(tmp_path).load("hart")


def test_scalings_leave_constant_columns_alone():
    X = np.array([[1.0, 5.0, 0.0], [3.0, 5.0, 1.0], [2.0, 5.0, 4.0]])
    low = scale(X, "minmax")
    np.testing.assert_allclose(low[:, [0, 2]].min(axis=0), -1.0)
    np.testing.assert_allclose(low[:, [0, 2]].max(axis=0), 1.0)
    standard = scale(X, "standard")
    np.testing.assert_allclose(standard.mean(axis=0), 0.0, atol=1e-15)
    np.testing.assert_allclose(standard.std(axis=0), [1.0, 0.0, 1.0])
    assert np.isfinite(low).all()
    np.testing.assert_array_equal(scale(X, "raw"), X)


def test_every_set_of_the_papers_is_in_the_directory(data_dir):
    loader = Loader(data_dir)
    for name, (n, d, labelled) in SHAPES.items():
        found = loader.load(name)
        assert found.X.shape == (n, d)
        assert (set(found.y) == {-1.0, 1.0}) == labelled
