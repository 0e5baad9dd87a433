"""Held-out error and processor time of ``select`` on tables of mixed types.

Six tables are drawn with a seed, similar to well-known ones (their columns, spellings and
gaps; the rows are made up): diamonds, flights, used cars, listings of flats, salaries of employees,
support tickets. Two are public sets whose columns are spelled as a spreadsheet would have them:
``heart`` (codes as words, gaps as "n.a.") and ``mpg`` (units, makers, dates); they need
``ONEFIT_DATA_DIR``. Rows are divided once: ``select`` sees the training rows, the error is that of
the others, as a share of the error of the mean (regression) or of the rows (classification).

``--encoders``: ``own`` is the package's preparation; ``skrub`` reads the columns as the package
does, and encodes them by skrub's ``TableVectorizer``, ``StringEncoder`` and ``DatetimeEncoder``;
``scikit-learn`` is ``own`` with texts projected by scikit-learn's classes alone. Rows that are in
``results/mixed_tables.csv`` are not run again.

Usage: python benchmarks/mixed_tables.py [--encoders own skrub] [--tables cars] [--seeds 0 1]
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _harness import write_report
from scipy.stats import wilcoxon
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onefit.prepare import TablePreparer
from onefit.tables import WrittenNumbers

Array = np.ndarray
RESULTS = Path(__file__).parent / "results"
#: rows of a made-up table, of which the share is held out
ROWS, TEST_SHARE = 1500, 1 / 3

HOW = """Six tables are drawn with a seed, similar to well-known ones: columns, spellings and
gaps are theirs, rows are made up (1,500 each). Two are public data whose columns are spelled as in
a spreadsheet. A third of the rows is held out; `select` with default options sees the others. The
error is the root mean squared error as a share of that of the mean of the training rows, or the
share of wrong labels. All encoders see columns that the package has read (units, decimal commas,
gap codes, dates with names of months): skrub alone would read most of them as text.

- *own*: `TablePreparer`.
- *skrub*: `TableVectorizer` with `StringEncoder`, circular `DatetimeEncoder`, numbers and parts of
  dates with variance 1.
- *scikit-learn*: *own*, where texts of many values are projected by `HashingVectorizer`,
  `TfidfTransformer` and `TruncatedSVD` alone, without one size for all columns of a text."""
DECISION = """`TablePreparer` stays, and skrub is no dependency: over all tables neither is better.
Single tables differ. On *flights*, where hour and season have a large effect, skrub's parts of
dates, which are larger, have a smaller error. Parts of dates of twice their size in `TablePreparer`
were tried with the Matern kernel: the error was 6 % smaller on *flights*, 1 % smaller on *cars*
(one seed), 1 % larger on *tickets* and *flats*; and 4 % larger on *mpg* (all kernels, one seed),
where the place in the week is noise. So their size stays. scikit-learn's classes alone would save
two lines of `TextEncoder`, the common size, and are better on none of the tables by more than
0.2 %."""


def diamonds(rng: Any) -> tuple[pd.DataFrame, Array]:
    """Ordered qualities as words, a price in dollars beside two measures."""
    n, cuts = ROWS, ["Fair", "Good", "Very Good", "Premium", "Ideal"]
    clarities = ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"]
    carat = np.round(np.exp(rng.normal(-0.4, 0.55, n)), 2)
    cut, color, clarity = rng.integers(5, size=n), rng.integers(7, size=n), rng.integers(8, size=n)
    quality = 0.03 * cut - 0.075 * color + 0.11 * clarity
    y = 7.8 + 1.75 * np.log(carat) + quality + rng.normal(0, 0.1, n)
    depth = np.round(rng.normal(61.7, 1.4, n), 1)
    frame = pd.DataFrame(
        {
            "carat": carat,
            "cut": np.take(cuts, cut),
            "color": np.take(list("DEFGHIJ"), color),
            "clarity": np.take(clarities, clarity),
            "depth": [f"{one}%" for one in depth],
            "x": np.round(6.3 * carat ** (1 / 3) + rng.normal(0, 0.05, n), 2),
        }
    )
    return frame, y


def flights(rng: Any) -> tuple[pd.DataFrame, Array]:
    """A time of departure whose hour, weekday and season matter, airlines and 60 airports."""
    n = ROWS
    minutes = rng.integers(0, 365 * 24 * 60, n) // 5 * 5
    when = pd.Timestamp("2023-01-01 00:00") + pd.to_timedelta(minutes, unit="min")
    codes = np.array(["".join(one) for one in rng.choice(list("ABCDEFGHIKLMNOPRSTUW"), (60, 3))])
    origin = rng.choice(["JFK", "LGA", "EWR"], n)
    place, airline = rng.geometric(0.06, n) % 60, rng.integers(9, size=n)
    miles = rng.integers(200, 2700, 60)[place]
    hour, day = np.asarray(when.hour + when.minute / 60), np.asarray(when.day_of_year)
    y = 12 * np.maximum(hour - 7, -2) / 6 + 9 * np.cos(2 * np.pi * day / 365)
    y += rng.normal(0, 6, 9)[airline] + rng.normal(0, 5, 60)[place] + 8.0 * (when.day_of_week == 4)
    y += rng.normal(0, 8, n)
    frame = pd.DataFrame(
        {
            "departure": when.strftime("%Y-%m-%d %H:%M"),
            "carrier": np.take(["UA", "B6", "EV", "DL", "AA", "MQ", "US", "9E", "WN"], airline),
            "origin": origin,
            "dest": codes[place],
            "distance": [f"{one:,} mi" for one in miles],
        }
    )
    return frame, np.asarray(y)


def cars(rng: Any) -> tuple[pd.DataFrame, Array]:
    """Model lines as text of some 200 spellings, decimal commas, dates with names of months."""
    n = ROWS
    makers = ["Volkswagen", "Opel", "Ford", "Renault", "BMW", "Audi", "Skoda", "Toyota", "Fiat"]
    lines = ["Corsa", "Golf", "Focus", "Clio", "Touring", "Avant", "Fabia", "Yaris", "Panda"]
    trims = ["", " 1.2", " 1.4 TSI", " 1.6", " 2.0 TDI", " Sport", " 2.0 TDI Sport", " Style"]
    extra = np.array([0.0, 0.05, 0.15, 0.1, 0.3, 0.25, 0.5, 0.12])
    maker, trim = rng.integers(9, size=n), rng.integers(8, size=n)
    line = np.where(rng.random(n) < 0.6, maker, rng.integers(9, size=n))
    km, age = rng.gamma(2.0, 45000, n), rng.gamma(2.2, 3.0, n)
    first = pd.Timestamp("2024-06-01") - pd.to_timedelta(np.round(age * 365), unit="D")
    power = 55 + 60 * extra[trim] / 0.5 + rng.normal(0, 9, n)
    y = 9.7 + rng.normal(0, 0.15, 9)[maker] + rng.normal(0, 0.2, 9)[line] + extra[trim]
    y += -0.11 * age - km / 4e5 + 0.002 * power + rng.normal(0, 0.1, n)
    names = [f"{makers[m]} {lines[i]}{trims[t]}" for m, i, t in zip(maker, line, trim, strict=True)]
    thousands = [f"{round(one):,} km" for one in km]
    frame = pd.DataFrame(
        {
            "model": [one.upper() if rng.random() < 0.1 else one for one in names],
            "mileage": np.where(rng.random(n) < 0.06, "unknown", thousands),
            "registered": first.strftime("%d-%b-%Y"),
            "kW": [f"{one:.1f}".replace(".", ",") for one in power],
            "fuel": rng.choice(["petrol", "diesel", "hybrid"], n, p=[0.6, 0.35, 0.05]),
            "accident": np.where(rng.random(n) < 0.1, "yes", "no"),
        }
    )
    y -= 0.25 * (frame["accident"] == "yes").to_numpy()
    return frame, y


def flats(rng: Any) -> tuple[pd.DataFrame, Array]:
    """Titles of listings, nearly all different, whose words matter; amounts with units."""
    n = ROWS
    good = {"renovated": 0.18, "balcony": 0.08, "penthouse": 0.45, "garden": 0.12, "quiet": 0.04,
            "to renovate": -0.3, "ground floor": -0.1, "studio": -0.05, "luxury": 0.3,
            "near park": 0.1, "furnished": 0.03, "attic": -0.08}  # fmt: skip
    streets = ["Main", "Park", "Station", "Church", "Mill", "School", "Castle", "River", "Lake"]
    districts = ["Old Town", "North", "South", "Harbour", "Hill", "University", "West", "East"]
    area, rooms = np.exp(rng.normal(4.2, 0.4, n)), rng.integers(1, 6, n)
    district = rng.integers(8, size=n)
    titles, value = [], np.zeros(n)
    for i in range(n):
        words = rng.choice(list(good), rng.integers(1, 5), replace=False)
        value[i] = sum(good[one] for one in words)
        titles.append(f"{', '.join(words)} flat, {rng.choice(streets)} St {rng.integers(1, 200)}")
    listed = pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D")
    y = 8.3 + 0.9 * np.log(area) + value + rng.normal(0, 0.25, 8)[district] + 0.02 * rooms
    y += 0.0002 * np.asarray((listed - pd.Timestamp("2022-01-01")).days) + rng.normal(0, 0.1, n)
    frame = pd.DataFrame(
        {
            "title": titles,
            "area": [f"{one:.1f} m²" for one in area],
            "rooms": rooms,
            "district": np.take(districts, district),
            "fee": np.where(rng.random(n) < 0.15, "-", [f"€{one:.2f}" for one in 3 * area]),
            "listed": listed.strftime("%d/%m/%Y"),
        }
    )
    return frame, y


def salaries(rng: Any) -> tuple[pd.DataFrame, Array]:
    """Job titles of about 300 spellings that share words, departments, dates of entry."""
    n = ROWS
    levels = {"": 0.0, "Senior ": 0.25, "Lead ": 0.35, "Assistant ": -0.2, "Chief ": 0.6}
    jobs = {"Police Officer": 0.1, "Bus Operator": -0.2, "Librarian": -0.1, "Engineer": 0.35,
            "Accountant": 0.2, "Firefighter": 0.15, "Nurse": 0.2, "Program Manager": 0.4,
            "Office Clerk": -0.3, "Social Worker": 0.0, "Mechanic": -0.05,
            "Planner": 0.15}  # fmt: skip
    grades = {" I": 0.0, " II": 0.08, " III": 0.16, "": 0.03, " (part-time)": -0.4}
    picked = [[rng.choice(list(one)) for one in (levels, jobs, grades)] for _ in range(n)]
    value = np.array([levels[a] + jobs[b] + grades[c] for a, b, c in picked])
    years = rng.gamma(2.0, 6.0, n)
    entered = pd.Timestamp("2020-12-31") - pd.to_timedelta(np.round(365 * years), unit="D")
    department, gender = rng.integers(37, size=n), rng.choice(["F", "M"], n)
    y = 10.9 + value + 0.015 * np.minimum(years, 25) + rng.normal(0, 0.05, 37)[department]
    y += rng.normal(0, 0.08, n)
    frame = pd.DataFrame(
        {
            "gender": np.where(rng.random(n) < 0.02, None, gender),
            "department": [f"D{one:02}" for one in department],
            "position": ["".join(one) for one in picked],
            "entered": entered.strftime("%m/%d/%Y"),
            "full_time": rng.random(n) < 0.9,
        }
    )
    return frame, y


def tickets(rng: Any) -> tuple[pd.DataFrame, Array]:
    """Which support tickets escalate: short texts, hour of the day, plan; classes."""
    n = ROWS
    words = {"crash": 1.2, "invoice": -0.4, "login": 0.0, "slow": 0.5, "refund": 0.9, "typo": -1.0,
             "urgent": 1.6, "question": -1.1, "data loss": 2.0, "thanks": -1.2,
             "export": 0.1}  # fmt: skip
    score, texts = np.zeros(n), []
    for i in range(n):
        drawn = rng.choice(list(words), rng.integers(1, 4), replace=False)
        score[i] = sum(words[one] for one in drawn)
        texts.append(f"{' '.join(drawn)} #{rng.integers(10**5)}")
    hour = rng.integers(0, 24, n)
    when = pd.Timestamp("2024-03-01") + pd.to_timedelta(
        rng.integers(0, 200, n) * 24 + hour, unit="h"
    )
    score += 0.8 * np.cos(2 * np.pi * (hour - 2) / 24) + rng.logistic(0, 0.5, n)
    frame = pd.DataFrame(
        {
            "subject": texts,
            "opened": when.strftime("%Y-%m-%d %H:%M:%S"),
            "plan": rng.choice(["free", "team", "enterprise"], n),
            "seats": np.where(rng.random(n) < 0.1, "n/a", rng.integers(1, 500, n).astype(str)),
        }
    )
    score += 0.6 * (frame["plan"] == "enterprise").to_numpy()
    return frame, np.where(score > 0.6, "escalated", "closed")


def _public(name: str) -> Array:
    folder = Path(os.environ.get("ONEFIT_DATA_DIR", "data"))
    return np.loadtxt(folder / f"{name}.csv.gz", delimiter=",", skiprows=1)


def heart(rng: Any) -> tuple[pd.DataFrame, Array]:
    """Patients: codes as words, one cell in twelve of four columns a gap code."""
    X = _public("heart")
    names = ["age", "sex", "pain", "pressure", "cholesterol", "sugar", "ecg", "rate", "angina",
             "oldpeak", "slope", "vessels", "thal"]  # fmt: skip
    frame = pd.DataFrame(X[:, :-1], columns=names)
    frame["sex"] = np.where(frame["sex"] == 1, "male", "female")
    frame["pain"] = np.take(["typical", "atypical", "other", "none"], X[:, 2].astype(int) - 1)
    frame["sugar"] = np.where(frame["sugar"] == 1, "yes", "no")
    frame["angina"] = np.where(frame["angina"] == 1, "yes", "no")
    frame["thal"] = frame["thal"].map({3.0: "normal", 6.0: "fixed", 7.0: "reversable"})
    for column in ("pressure", "cholesterol", "rate", "oldpeak"):
        gaps = rng.random(len(frame)) < 1 / 12
        frame[column] = np.where(gaps, "n.a.", frame[column].astype(str))
    return frame, np.where(X[:, -1] > 0, "disease", "healthy")


def mpg(rng: Any) -> tuple[pd.DataFrame, Array]:
    """Cars: units, thousands separators, the year as a date, the origin as a word."""
    X = _public("mpg")
    frame = pd.DataFrame(
        {
            "cylinders": X[:, 0],
            "displacement": [f"{one:g} cu" for one in X[:, 1]],
            "power": np.where(rng.random(len(X)) < 0.05, "?", [f"{one:g} hp" for one in X[:, 2]]),
            "weight": [f"{one:,.0f} lb" for one in X[:, 3]],
            "acceleration": X[:, 4],
            "made": [f"1 July {1900 + int(one)}" for one in X[:, 5]],
            "origin": np.take(["USA", "Europe", "Japan"], X[:, 6].astype(int) - 1),
        }
    )
    return frame, X[:, -1]


TABLES: dict[str, Callable[[Any], tuple[pd.DataFrame, Array]]] = {
    one.__name__: one for one in (diamonds, flights, cars, flats, salaries, tickets, heart, mpg)
}


class ReadDates(WrittenNumbers):
    """Columns read as the package reads them, dates as moments: what skrub encodes."""

    def transform(self, X: Any, dayfirst: bool | None = None) -> pd.DataFrame:
        found = super().transform(X, dayfirst)
        dates = [name for name, how in self.how_.items() if how["kind"] == "date"]
        return found.assign(**{one: pd.to_datetime(found[one], unit="D") for one in dates})

    def fit_transform(self, X: Any, y: Any = None) -> pd.DataFrame:
        return self.fit(X).transform(X)

    def fit(self, X: Any, y: Any = None) -> WrittenNumbers:
        super().fit_transform(X)
        return self


def by_skrub() -> Any:
    """skrub's encoders on columns that the package has read; numbers and dates have variance 1."""
    from skrub import DatetimeEncoder, StringEncoder, TableVectorizer

    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    dates = DatetimeEncoder(periodic_encoding="circular", add_weekday=True)
    table = TableVectorizer(
        numeric=numbers,
        datetime=make_pipeline(dates, clone(numbers)),
        high_cardinality=StringEncoder(random_state=0),
    )
    return make_pipeline(ReadDates(), table)


def by_scikit_learn() -> Any:
    """The package's preparation, with text by scikit-learn's classes alone: no common size."""
    return TablePreparerWithPlainText()


class PlainText(TransformerMixin, BaseEstimator):
    """Projected weights of groups of letters, as TruncatedSVD gives them."""

    def fit(self, X: Any, y: Any = None) -> PlainText:
        words = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 4), n_features=4096)
        self.steps_ = make_pipeline(words, TfidfTransformer(), TruncatedSVD(30, random_state=0))
        self.steps_.fit(X.iloc[:, 0].astype(str))
        return self

    def transform(self, X: Any) -> Array:
        return np.asarray(self.steps_.transform(X.iloc[:, 0].astype(str)))


class TablePreparerWithPlainText(TablePreparer):
    """Columns as the package prepares them, but for text of many values."""

    def _make_encoder(self, rows: Any) -> Any:
        found = super()._make_encoder(rows)
        parts = [
            (name, PlainText() if name.startswith("long") else one, places)
            for name, one, places in found.transformers
        ]
        return ColumnTransformer(parts)


ENCODERS: dict[str, Callable[[], Any]] = {
    "own": TablePreparer, "skrub": by_skrub, "scikit-learn": by_scikit_learn
}  # fmt: skip


def run(name: str, seed: int, encoders: str) -> dict[str, Any]:
    """Error and processor seconds of one table."""
    from onefit import select

    rng = np.random.default_rng([seed, *name.encode()])
    frame, y = TABLES[name](rng)
    test = rng.permutation(len(y)) < TEST_SHARE * len(y)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = select(frame[~test], y[~test], prepare=ENCODERS[encoders]())
        predicted = found.predict(frame[test])
    seconds = time.process_time() - start
    if y.dtype.kind in "OU":
        error = float((predicted != y[test]).mean())
    else:
        rest = predicted - y[test]
        error = float(np.sqrt(np.square(rest).mean() / np.square(y[test] - y[~test].mean()).mean()))
    best = found.best_params_
    width = int(found.pipeline_.named_steps["prepare"].transform(frame[:3]).shape[1])
    return {
        "encoders": encoders, "table": name, "seed": seed, "rows": int((~test).sum()),
        "columns": width, "kernel": best["kernel"], "error": round(error, 4),
        "seconds": round(seconds, 1),
    }  # fmt: skip


def compared(table: pd.DataFrame) -> str:
    """Mean errors by table, and a paired test of each alternative over all tables and seeds."""
    errors = table.pivot_table("error", ["table", "seed"], "encoders")
    means = errors.groupby("table", sort=False).mean()
    names = [one for one in ENCODERS if one in errors]
    lines = [f"| table | {' | '.join(names)} |", f"|---{'|---' * len(names)}|"]
    lines += [
        f"| {name} | {' | '.join(f'{row[one]:.3f}' for one in names)} |"
        for name, row in means.iterrows()
    ]
    for other in names[1:]:
        # a table counts once: its seeds are draws of one kind of table
        ratio = np.log(means[other] / means["own"])
        worse, better = int((ratio > 0).sum()), int((ratio < 0).sum())
        test = wilcoxon(ratio) if np.any(ratio != 0) else None
        p = "1" if test is None else f"{test.pvalue:.2g}"
        lines += ["", f"**{other} against own**: the error is {np.exp(ratio.mean()):.3f} times as "
                  f"large (geometric mean over {len(ratio)} tables), larger in {worse}, smaller in "
                  f"{better}; Wilcoxon's signed-rank test of the tables: p = {p}."]  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    flags = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    flags.add_argument("--encoders", nargs="*", default=list(ENCODERS))
    flags.add_argument("--tables", nargs="*", default=list(TABLES))
    flags.add_argument("--seeds", nargs="*", type=int, default=[0, 1])
    options = flags.parse_args()
    path = RESULTS / "mixed_tables.csv"
    rows = list(csv.DictReader(path.open())) if path.exists() else []
    known = {(one["encoders"], one["table"], int(one["seed"])) for one in rows}
    for wanted in product(options.seeds, options.tables, options.encoders):
        seed, name, encoders = wanted
        if (encoders, name, seed) in known:
            continue  # resumes where it was stopped
        rows.append(run(name, seed, encoders))
        print(rows[-1], flush=True)
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[-1]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    table = pd.read_csv(path)
    made = [f"- **{name}**: {(draw.__doc__ or '').strip()}" for name, draw in TABLES.items()]
    parts = [
        ("How the tables are made", HOW + "\n\n" + "\n".join(made)),
        ("Errors on new rows", compared(table)),
        ("Decision", DECISION),
    ]
    write_report(RESULTS, "mixed_tables", "Encoders for tables of mixed types", parts)


if __name__ == "__main__":
    main()
