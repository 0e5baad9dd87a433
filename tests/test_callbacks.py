"""Callbacks without those of scikit-learn, which older versions do not have."""

from __future__ import annotations

import importlib
import sys

import pytest

import onefit.callbacks


@pytest.fixture
def plain(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.callback", None)
    yield importlib.reload(onefit.callbacks)
    monkeypatch.undo()
    importlib.reload(onefit.callbacks)


class Recorder:
    def __init__(self):
        self.told = []

    def setup(self, estimator, context):
        self.told.append("setup")

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.told.append(("begin", context.task_name, context.max_subtasks))

    def on_fit_task_end(self, estimator, context):
        self.told.append(("end", context.task_name, context.max_subtasks))


def search_of(plain):
    class Search(plain.CallbackSupportMixin):
        @plain.with_callbacks
        def fit(self, fail=False):
            context = self._init_callback_context(max_subtasks=1)
            context.call_on_fit_task_begin(estimator=self, X=None)
            inner = context.subcontext(task_name="kernel", task_id=3)
            inner.call_on_fit_task_begin(estimator=self)
            if fail:
                raise RuntimeError("no")
            inner.call_on_fit_task_end(estimator=self)
            context.call_on_fit_task_end(estimator=self, X=None)
            return self

    return Search()


def test_callbacks_are_told_of_tasks(plain):
    one, other = Recorder(), Recorder()
    search = search_of(plain).set_callbacks(one, other)
    assert search.fit() is search
    tasks = [("begin", "fit", 1), ("begin", "kernel", 0), ("end", "kernel", 0), ("end", "fit", 1)]
    assert one.told == other.told == ["setup", *tasks, "teardown"]
    search.set_callbacks().fit()
    assert len(one.told) == 6


def test_callbacks_are_torn_down_after_an_error(plain):
    recorder = Recorder()
    with pytest.raises(RuntimeError, match="no"):
        search_of(plain).set_callbacks(recorder).fit(fail=True)
    assert recorder.told[-1] == "teardown"
