"""From the arguments of an estimator to a loss, and every refusal."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from registries import LOSS_IDS, LOSSES

from onefit.losses import (
    LOSSES as BY_NAME,
)
from onefit.losses import (
    EpsilonQuadratic,
    Huber,
    InPairs,
    Log,
    Loss,
    MissingDerivativeError,
    SmoothedHinge,
    Squared,
    get_loss,
    require,
)


@pytest.mark.parametrize("name", BY_NAME)
def test_every_name_gives_its_loss(name):
    cls = BY_NAME[name]
    task = "regression" if cls.task == "any" else cls.task
    loss = get_loss(name, task)
    assert loss == cls()
    assert loss.name == name
    assert isinstance(loss, Loss)


def test_squared_serves_both_tasks():
    assert get_loss("squared", "classification") == get_loss("squared", "regression") == Squared()


def test_an_object_is_passed_through():
    loss = Huber(2.0)
    assert get_loss(loss, "regression") is loss
    assert get_loss(loss, "classification") is loss  # of the residual from +-1: a robust LS-SVM


@pytest.mark.parametrize(("loss", "task"), LOSSES, ids=LOSS_IDS)
def test_losses_are_values(loss, task):
    for twin in (pickle.loads(pickle.dumps(loss)), copy.deepcopy(loss)):
        assert twin == loss
        assert hash(twin) == hash(loss)
    assert eval(repr(loss), vars(__import__("onefit.losses", fromlist=["x"]))) == loss


@pytest.mark.parametrize(
    ("name", "task", "meant"),
    [
        ("hubber", "regression", "huber"),
        ("epsilon_quadratc", "regression", "epsilon_quadratic"),
        ("smooth_hinge", "classification", "smoothed_hinge"),
    ],
)
def test_a_near_name_is_suggested(name, task, meant):
    with pytest.raises(ValueError, match=f"loss='{name}' is not known; did you mean '{meant}'"):
        get_loss(name, task)


def test_a_name_of_the_other_task_is_refused():
    with pytest.raises(ValueError, match="Known for regression: 'squared', 'huber'"):
        get_loss("log", "regression")
    with pytest.raises(ValueError, match="Known for classification: 'squared', 'smoothed_hinge'"):
        get_loss("huber", "classification")


def test_a_loss_of_labels_cannot_regress():
    with pytest.raises(ValueError, match=r"loss=Log\(\) is for labels -1 and \+1"):
        get_loss(Log(), "regression")


def test_a_class_is_not_a_loss():
    with pytest.raises(TypeError, match="loss must be an object, got the class Huber: call it"):
        get_loss(Huber, "regression")


@pytest.mark.parametrize("loss", [None, 3, object()])
def test_an_object_without_the_members_is_refused(loss):
    with pytest.raises(MissingDerivativeError, match=r"needs 'name', .*'gradient'.* of the loss"):
        get_loss(loss, "regression")


def test_require_names_what_is_missing():
    require(Huber(1.0), "x", "value", "gradient")
    message = r"'order 2' needs 'third' .* Huber\(threshold=1.0\)"
    with pytest.raises(MissingDerivativeError, match=message):
        require(Huber(1.0), "order 2", "gradient", "third")
    with pytest.raises(MissingDerivativeError, match=r"'order 2' needs 'third' .* InPairs"):
        require(InPairs(SmoothedHinge()), "order 2", "gradient", "third")


BAD = [0.0, -1.0, np.nan, np.inf, "1", None, True]


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize(("cls", "name"), [(Huber, "threshold"), (SmoothedHinge, "delta")])
def test_widths_must_be_positive(cls, name, value):
    with pytest.raises(ValueError, match=f"{name} must be a positive finite number, got .*; .*use"):
        cls(value)


@pytest.mark.parametrize("value", BAD[1:-1])
def test_epsilon_must_not_be_negative(value):
    with pytest.raises(ValueError, match=r"epsilon must be a positive finite number, got .*; or 0"):
        EpsilonQuadratic(value)
    assert EpsilonQuadratic(0).value(np.ones(1), np.full(1, 3.0)) == 4.0


def test_parameters_become_plain_floats():
    """A NumPy float64 would turn float32 arrays into float64 ones."""
    u = np.linspace(-2, 2, 5, dtype=np.float32)
    for loss in (
        Huber(np.float64(0.5)),
        SmoothedHinge(np.float64(0.5)),
        EpsilonQuadratic(np.float64(0.5)),
    ):
        assert loss.gradient(np.ones_like(u), u).dtype == np.float32
        assert "np." not in repr(loss)
