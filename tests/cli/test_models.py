"""Model files of harmless types that are no models: one sentence and an exit code, no crash."""

from __future__ import annotations

import importlib
import json
import sys
import zipfile

import numpy as np
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from onefit import KernelRegressor
from onefit.cli.errors import BAD_DATA, TOO_LARGE
from onefit.cli.model import TRUSTED
from onefit.cli.skops_io import _passed_over, skops_io
from onefit.kernels import Gaussian
from onefit.tables import ColumnReader

skops = pytest.importorskip("skops.io")

SMALL = ("--kernel", "rbf", "--folds", 3)


def machine(found: Pipeline) -> KernelRegressor:
    return found.named_steps["machine"]


def set_about(found: Pipeline, **values: object) -> Pipeline:
    found.onefit_ = found.onefit_ | values
    return found


def set_machine(found: Pipeline, **values: object) -> Pipeline:
    vars(machine(found)).update(values)
    return found


def without(found: Pipeline, name: str) -> Pipeline:
    del vars(machine(found))[name]
    return found


def about_without(found: Pipeline, name: str) -> Pipeline:
    del found.onefit_[name]
    return found


def set_training(found: Pipeline, **values: object) -> Pipeline:
    return set_about(found, training=found.onefit_["training"] | values)


def steps(found: Pipeline, **changed: object) -> Pipeline:
    """Steps by their names; None leaves one out."""
    parts = (dict(found.steps) | changed).items()
    other = Pipeline([(name, one) for name, one in parts if one is not None])
    other.onefit_ = found.onefit_
    return other


def renamed(found: Pipeline) -> Pipeline:
    found.steps = [(f"step {i}", one) for i, (_, one) in enumerate(found.steps)]
    return found


def set_reader(found: Pipeline, **values: object) -> Pipeline:
    vars(found.named_steps["read"]).update(values)
    return found


#: what was done to a model, by a name
CHANGES = {
    "a list": lambda found: [1, 2],
    "an estimator": lambda found: StandardScaler(),
    "a pipeline without notes": lambda found: Pipeline(found.steps),
    "notes that are a list": lambda found: setattr(found, "onefit_", ["target"]) or found,
    "no target": lambda found: about_without(found, "target"),
    "no columns": lambda found: about_without(found, "columns"),
    "no training rows": lambda found: about_without(found, "training"),
    "a target that is a number": lambda found: set_about(found, target=3),
    "no reader": lambda found: steps(found, read=None),
    "another reader": lambda found: steps(found, read=StandardScaler()),
    "a reader without a fit": lambda found: steps(found, read=ColumnReader()),
    "a reader of other columns": lambda found: set_reader(found, columns_=["a", "b"]),
    "a reader that knows nothing": lambda found: set_reader(found, how_=None),
    "a column read in no way": lambda found: set_reader(found, how_={"colour": {"kind": 3}}),
    "a reader without words": lambda found: set_reader(found, words="french"),
    "columns that are none": lambda found: set_about(found, columns=None),
    "other columns": lambda found: set_about(found, columns=["a", "b"]),
    "a number of columns": lambda found: set_about(found, columns=4),
    "too few targets": lambda found: set_training(found, y=np.ones(3)),
    "no targets": lambda found: set_about(found, training=None),
    "targets that are text": lambda found: set_training(found, y=["a"] * 80),
    "splits of other rows": lambda found: set_training(found, fold=np.zeros(3, dtype=int)),
    "splits without a number": lambda found: set_training(found, fold=np.full(80, np.nan)),
    "a reach that is a text": lambda found: set_about(found, reach="far"),
    "rows without a number": lambda found: set_about(found, units=None),
    "groups of other rows": lambda found: set_training(found, groups=np.zeros(3, dtype=int)),
    "other names of steps": renamed,
    "an encoder without a fit": lambda found: steps(found, columns=MaxAbsScaler()),
    "no machine": lambda found: steps(found, machine=StandardScaler()),
    "a machine without a fit": lambda found: steps(found, machine=KernelRegressor()),
    "no coefficients": lambda found: without(found, "dual_coef_"),
    "too few coefficients": lambda found: set_machine(found, dual_coef_=np.ones(3)),
    "coefficients that are not finite": lambda found: set_machine(
        found, dual_coef_=np.full(80, np.nan)
    ),
    "coefficients that are text": lambda found: set_machine(found, dual_coef_="abc"),
    "other training rows": lambda found: set_machine(found, X_fit_=np.ones((80, 2))),
    "no kernel": lambda found: set_machine(found, kernel_=None),
    "a kernel that is no kernel": lambda found: set_machine(found, kernel=5),
    "a kernel of a text": lambda found: set_machine(found, kernel_=spoilt(Gaussian(1.0))),
    "an impossible lam": lambda found: set_machine(found, lam="a"),
    "an unknown loss": lambda found: set_machine(found, loss="none"),
    "no gamma": lambda found: without(found, "gamma"),
}


def spoilt(kernel: Gaussian) -> Gaussian:
    object.__setattr__(kernel, "gamma", "wide")
    return kernel


@pytest.fixture(scope="module")
def plain(tmp_path_factory, frame):
    """A model that is one, and data for it."""
    from typer.testing import CliRunner

    from onefit.cli.app import app

    folder = tmp_path_factory.mktemp("model")
    frame.to_csv(folder / "data.csv", index=False)
    select = ("select", folder / "data.csv", "--target", "price", "--drop", "kind", *SMALL)
    done = CliRunner().invoke(app, [*map(str, select), "--model", str(folder / "m.skops")])
    assert done.exit_code == 0, done.stderr
    return folder


@pytest.mark.parametrize("change", CHANGES)
def test_trusted_types_that_are_no_model(onefit, plain, tmp_path, change):
    found = skops.load(plain / "m.skops", trusted=list(TRUSTED))
    path = tmp_path / "m.skops"
    skops.dump(CHANGES[change](found), path)
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


def test_a_model_that_unpacks_to_more_than_the_memory(onefit, plain, monkeypatch):
    monkeypatch.setattr("onefit.cli.model.available_memory", lambda: 1000.0)
    with zipfile.ZipFile(plain / "m.skops") as file:
        assert sum(one.file_size for one in file.infolist()) > 1000
    done = onefit("predict", plain / "m.skops", plain / "data.csv")
    assert done.exit_code == TOO_LARGE
    assert "unpacks to" in done.stderr


def test_wrappers_are_passed_over_for_a_while_only():
    name = "wsgiref.simple_server"  # nobody here has imported it
    sys.modules.pop(name, None)
    with _passed_over((name, "json")):
        with pytest.raises(ImportError):
            importlib.import_module(name)
        assert importlib.import_module("json") is json  # it was there already
    assert importlib.import_module(name)
    assert hasattr(skops_io(), "get_untrusted_types")
