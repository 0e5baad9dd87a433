"""Numbers and sentences."""

from __future__ import annotations

import datetime

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.metrics import balanced_accuracy_score

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit._format import cell, labels, number, percent, settings
from onefit.report.facts import Facts
from onefit.report.words import KnownTargets, headline, merit
from onefit.uncertainty.baseline import weighted_quantile

X, y = make_friedman1(60, noise=0.1, random_state=0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (17634.2, "17,600"), (1234567, "1,234,567"), (0.046415, "0.0464"), (1e-5, "1e-05"),
        (999.6, "1,000"), (0.0, "0"), (np.float32(0.1), "0.1"), (2.5e12, "2.5e+12"),
        (float("nan"), "–"), (-np.inf, "-inf"), (None, "–"), (True, "True"), ("rbf", "rbf"),
        (-17634.2, "-17,600"), (np.int64(12), "12"),
    ],
)  # fmt: skip
def test_numbers(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1998, "1,998"), (1998.0, "1,998"), (123456, "123,456"), (0.12345, "0.1235"),
        (np.datetime64("2021-03-05"), "2021-03-05"),
        (datetime.datetime(2021, 3, 5), "2021-03-05"),
        (datetime.datetime(2021, 3, 5, 10, 30), "2021-03-05 10:30:00"),
        ("Gent", "Gent"), (None, "–"), (np.datetime64("NaT"), "–"), ("x" * 99, "x" * 59 + "…"),
    ],
)  # fmt: skip
def test_cells(value, text):
    assert cell(value) == text
    assert (cell(123456, plain=True), cell(1998.0, plain=True)) == ("123456", "1998")


def test_labels_differ_and_settings_are_short():
    assert labels([0.1, 0.1 + 1e-9]) == ["0.1", "0.100000001"]
    assert settings({"kernel": "rbf", "lam": 0.0123456}) == "kernel=rbf, lam=0.0123"


@pytest.mark.parametrize(
    ("scoring", "shown"),
    [(None, "root mean squared error"), ("neg_mean_absolute_error", "mean absolute error")],
)
def test_the_factor_is_that_of_the_errors(scoring, shown):
    search = KernelSearchCV(KernelRegressor(), {"gamma": [0.1], "lam": [1e-4]}, scoring=scoring)
    facts = Facts(search.fit(X, y))
    held = search.heldout_.predictions
    if scoring is None:
        means = np.empty(60)
        for train, test in zip(search.folds_.train, search.folds_.test, strict=True):
            means[test] = y[train].mean()
        ratio = np.sqrt(np.square(y - means).mean() / np.square(y - held).mean())
    else:
        ratio = search.headline_.baseline / search.headline_.score
    said = merit(facts, KnownTargets.of(facts)).sentence
    assert ratio > 1.5
    assert f"By {shown}, this is {ratio:.2g} times better than always predicting the me" in said


def test_no_factor_where_the_baseline_is_not_beaten():
    noise = np.random.default_rng(0).normal(size=60)
    search = KernelSearchCV(KernelRegressor(), {"lam": [1e-3, 1.0]}, cv=5).fit(X, noise)
    facts = Facts(search)
    assert facts.verdict
    assert "better" not in merit(facts, KnownTargets.of(facts)).sentence


def test_shares_of_rows_are_by_weight():
    """Rows without weight are in no number of the sentence, and others in proportion."""
    weight = np.random.default_rng(0).choice([0.0, 1.0, 5.0], 60)
    search = KernelSearchCV(KernelRegressor(), {"lam": [1e-3, 1.0]}, cv=5, aggregate="pooled")
    facts = Facts(search.fit(X, y, sample_weight=weight))
    off = np.abs(y - search.heldout_.predictions)
    half, most = (number(np.median(np.repeat(off, weight.astype(int)))),
                  number(weighted_quantile(off, weight, 0.9)))  # fmt: skip
    said = merit(facts, KnownTargets.of(facts)).sentence
    assert f"typically off by {half}; 9 of 10 rows (by weight) are within {most}." in said

    labels = y > 16.0
    search = KernelSearchCV(KernelClassifier(), {"lam": [1e-3, 1.0]}, cv=5, aggregate="pooled")
    facts = Facts(search.fit(X, labels, sample_weight=weight))
    common = max(np.average(labels, weights=weight), np.average(~labels, weights=weight))
    found = merit(facts, KnownTargets.of(facts))
    recall = balanced_accuracy_score(labels, search.heldout_.labels, sample_weight=weight)
    assert found.sentence.startswith(f"{percent(search.best_score_)} of the rows (by weight) get")
    assert [one for one, _ in found.numbers] == [
        percent(search.best_score_), percent(common), percent(recall)
    ]  # fmt: skip


def test_the_headline_has_the_same_numbers():
    search = KernelSearchCV(KernelRegressor(), {"lam": [1e-5, 1e-3, 1.0]}, cv=5).fit(X, y)
    facts = Facts(search)
    lines = headline(facts, target="yield")
    assert lines[0] == merit(facts, KnownTargets.of(facts), "yield").sentence
    assert f"R², all held-out rows: {number(search.best_score_, 4)}" in lines[1] or facts.headline
    assert lines[2] == f"Chosen: {settings(search.best_params_)}"
    assert f"{facts.near.sum()} of 3 candidates" in lines[3]
