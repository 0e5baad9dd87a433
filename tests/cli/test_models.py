"""Model files of harmless types that are not models: one sentence and an exit code, no crash."""

from __future__ import annotations

import zipfile

import numpy as np
import pandas as pd
import pytest
from command_line import onefit as run_onefit
from sklearn.model_selection import TimeSeriesSplit
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from onefit import AutoKernelClassifier, AutoKernelRegressor
from onefit.cli.errors import BAD_DATA, TOO_LARGE
from onefit.cli.model import TRUSTED, load_model, save_model
from onefit.config import config_context

skops = pytest.importorskip("skops.io")

SMALL = ("--kernels", "rbf", "--cv", 3)


#: harmless types that are not a model
OTHERS = {
    "a list": lambda found: [1, 2],
    "an estimator": lambda found: StandardScaler(),
    "a pipeline without what prediction needs": lambda found: Pipeline(found.steps),
    "notes that are a list": lambda found: setattr(found, "onefit_", ["target"]) or found,
    "no target": lambda found: found.onefit_.pop("target") and found,
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory, frame):
    """A model that is one, and data for it."""
    folder = tmp_path_factory.mktemp("model")
    frame.to_csv(folder / "data.csv", index=False)
    select = ("select", folder / "data.csv", "--target", "price", "--drop", "kind", *SMALL)
    done = run_onefit(*select, "--model", folder / "m.skops")
    assert done.exit_code == 0, done.stderr
    return folder


@pytest.mark.parametrize("other", OTHERS)
def test_trusted_types_that_are_no_model(onefit, plain, tmp_path, other):
    found = skops.load(plain / "m.skops", trusted=list(TRUSTED))
    path = tmp_path / "m.skops"
    skops.dump(OTHERS[other](found), path)
    done = onefit("predict", path, plain / "data.csv")
    assert done.exit_code == BAD_DATA, done.output
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("onefit: m.skops is not a model that onefit select --model wrote (")
    assert len(line) < 400


def test_a_model_is_one(onefit, plain, tmp_path):
    found = skops.load(plain / "m.skops", trusted=list(TRUSTED))
    skops.dump(found, tmp_path / "m.skops")
    done = onefit("predict", tmp_path / "m.skops", plain / "data.csv")
    assert done.exit_code == 0
    assert done.stderr.startswith("scored on the 80 rows that have the target: root mean squared")


def test_a_model_that_unpacks_to_more_than_the_memory(onefit, plain):
    with zipfile.ZipFile(plain / "m.skops") as file:
        assert sum(one.file_size for one in file.infolist()) > 1000
    with config_context(memory_bytes=1000.0):
        done = onefit("predict", plain / "m.skops", plain / "data.csv")
    assert done.exit_code == TOO_LARGE
    assert "unpacks to" in done.stderr


@pytest.mark.parametrize("cv", [TimeSeriesSplit(4, gap=8), TimeSeriesSplit(4, max_train_size=15)])
def test_intervals_of_a_saved_model_are_by_the_training_parts_of_its_search(cv, tmp_path):
    table, y = _table()
    auto = AutoKernelRegressor(kernels="rbf", cv=cv).fit(table, y)
    save_model(auto, tmp_path / "model.skops", "y")
    model, expected = load_model(tmp_path / "model.skops"), auto.predict_interval(table[:5], 0.3)
    found = model.interval(model.preparer.read(table[:5]), 0.3)
    assert found.method == expected.method == "forward"
    assert found.upper == pytest.approx(expected.upper)


def test_novelty_of_a_saved_classifier_is_that_of_the_fitted_one(tmp_path):
    table, y = _table()
    auto = AutoKernelClassifier(kernels="rbf", loss="smoothed_hinge").fit(table, y > 0.5)
    save_model(auto, tmp_path / "model.skops", "y")
    model = load_model(tmp_path / "model.skops")
    assert len(model.estimator.X_fit_) < len(table)
    new = table + 0.5
    found = model.known.novelty(model.preparer.encode(model.preparer.read(new))).ratio
    assert auto.unfamiliar(new).novelty == pytest.approx(found)


def _table():
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.normal(size=(80, 2)), columns=["a", "b"])
    return table, (np.sin(2 * table.a) + 0.3 * random.normal(size=80)).to_numpy()


def test_predictions_do_not_replace_the_rows(onefit, plain):
    data = plain / "data.csv"
    before = data.read_bytes()
    done = onefit("predict", plain / "m.skops", data, "--output", data)
    assert done.exit_code == 2
    assert "data.csv is the file of the rows; name another one" in done.stderr
    assert data.read_bytes() == before
