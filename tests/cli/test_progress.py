"""Progress goes to the terminal's stderr, and only there."""

from __future__ import annotations

import io

import numpy as np

from onefit import KernelRegressor, KernelSearchCV
from onefit.cli.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def fit(monkeypatch, stream) -> KernelSearchCV:
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    search = KernelSearchCV(KernelRegressor(), {"gamma": [0.1, 1.0, 2.0]}, cv=3)
    X = np.random.default_rng(0).normal(size=(20, 2))
    with progress(search):
        search.fit(X, X[:, 0])
    return search


def test_a_bar_on_a_terminal(monkeypatch, capsys):
    stream = Terminal()
    search = fit(monkeypatch, stream)
    assert "kernels" in stream.getvalue()
    assert "3/3" in stream.getvalue()
    assert not hasattr(search, "_skl_callbacks")
    assert capsys.readouterr().out == ""


def test_silence_elsewhere(monkeypatch, capsys):
    stream = io.StringIO()
    fit(monkeypatch, stream)
    assert stream.getvalue() == ""
    assert capsys.readouterr().out == ""
