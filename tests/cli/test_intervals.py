"""Intervals of ``onefit predict`` are made on the splits of ``onefit select``."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import TimeSeriesSplit

from onefit import select

FLAGS = ("--kernels", "rbf", "--cv", 4)


def made(seed=0, count=25, size=4):
    """Groups with a level of their own, in the order of time."""
    random = np.random.default_rng(seed)
    group = np.repeat(np.arange(count), size)
    x = random.normal(size=count)[group] + 0.1 * random.normal(size=count * size)
    y = np.sin(x) + random.normal(size=count)[group] + 0.1 * random.normal(size=count * size)
    day = np.arange(count * size)
    return pd.DataFrame({"x": x, "group": [f"g{i}" for i in group], "day": day, "y": y})


def saved(onefit, frame, folder, *flags):
    frame.to_csv(folder / "data.csv", index=False)
    model = folder / "m.skops"
    done = onefit("select", folder / "data.csv", "--target", "y", "--model", model, *FLAGS, *flags)
    assert done.exit_code == 0, done.stderr
    return model


def predicted(onefit, model, rows, folder, *flags):
    rows.to_csv(folder / "new.csv", index=False)
    done = onefit("predict", model, folder / "new.csv", *flags)
    assert done.exit_code == 0, done.stderr
    return pd.read_csv(io.StringIO(done.stdout)), done.stderr


@pytest.mark.parametrize("kind", ["groups", "time", "rows"])
def test_splits_of_the_model(onefit, tmp_path, kind):
    """As the same selection gives them in Python."""
    frame, new = made(), made(1, 3)
    roles = {"groups": ("--groups", "group", "--drop", "day"), "time": ("--time", "day"),
             "rows": ("--drop", "group", "--drop", "day")}  # fmt: skip
    drop = () if kind != "time" else ("--drop", "group")
    model = saved(onefit, frame, tmp_path, *roles[kind], *drop)
    found, _ = predicted(onefit, model, new[["x"]], tmp_path, "--level", 0.8)
    groups = np.unique(frame["group"], return_inverse=True)[1] if kind == "groups" else None
    cv = {"groups": 4, "time": TimeSeriesSplit(4), "rows": 4}[kind]
    selection = select(frame[["x"]], frame["y"], kernels="rbf", cv=cv, groups=groups)
    expected = selection.predict_interval(new[["x"]], alpha=0.2)
    assert expected.method == ("forward" if kind == "time" else "cv+")
    assert expected.units == {"groups": pytest.approx(25), "time": 80, "rows": 100}[kind]
    for name in ("prediction", "lower", "upper"):
        np.testing.assert_allclose(found[name], getattr(expected, name), rtol=1e-6)


def test_too_few_groups_for_the_level(onefit, tmp_path):
    model = saved(onefit, made(count=6, size=10), tmp_path, "--groups", "group", "--drop", "day")
    new = made(1, 2)[["x"]]
    found, told = predicted(onefit, model, new, tmp_path)
    assert "lower" not in found.columns
    assert "the 6 groups of the training rows allow for a --level of 0.857 at most" in told
    found, told = predicted(onefit, model, new, tmp_path, "--level", 0.857)
    assert (found["lower"] < found["upper"]).all()
    assert "groups" not in told


def test_weights_count_in_intervals(onefit, tmp_path):
    frame = made()
    frame["w"] = np.where(np.arange(len(frame)) < 50, 2.0, 0.5)
    drop = ("--drop", "group", "--drop", "day")
    weighted = saved(onefit, frame, tmp_path, "--sample-weight", "w", *drop)
    found, _ = predicted(onefit, weighted, made(1, 3)[["x"]], tmp_path)
    weight = frame["w"].to_numpy()
    expected = select(
        frame[["x"]], frame["y"], kernels="rbf", cv=4, sample_weight=weight
    ).predict_interval(made(1, 3)[["x"]])
    np.testing.assert_allclose(found["lower"], expected.lower, rtol=1e-6)
