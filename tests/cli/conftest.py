"""A small table with numbers, text, truth values and gaps, and the command line in this process."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from onefit.cli.app import app


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    random = np.random.default_rng(0)
    n = 80
    size, age = random.normal(size=n), random.uniform(20, 60, n)
    colour = random.choice(["red", "green", "blue"], n)
    price = 3 * size + 0.1 * age + 2 * (colour == "red") + 0.3 * random.normal(size=n)
    data = pd.DataFrame({"size": size, "age": age, "colour": colour, "new": age < 40})
    data.loc[3, "size"] = np.nan
    data.loc[5, "colour"] = None
    return data.assign(price=price, kind=np.where(price > price.mean(), "dear", "cheap"))


@pytest.fixture
def csv(frame, tmp_path):
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def onefit():
    """Call the command line; the result has exit_code, stdout and stderr."""

    def call(*arguments: object):
        return CliRunner().invoke(app, [str(one) for one in arguments])

    return call
