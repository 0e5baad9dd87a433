"""What the checks of onefit.select find: copies of rows, and columns that tell the target.

Real data: every ``.csv.gz`` of the data folder.

- copies: rows that equal an earlier one in target and features;
- strongest column: the one that alone explains the largest share of the target on held-out rows
  (R^2 of its ranks, or of the labels);
- winner: the share that select's winner explains, on at most 2,000 rows; it is computed only where
  a column explains 95 % or more;
- named: whether select warns of the column.

Simulated data, 20 sets a row: R^2 of select on rows of pure noise, each there twice, with copies
kept together and with plain shuffled folds; and how often select warns of a column, where it is the
target in another form, and where it is a strong predictor (it explains 97 % of the variance) that
another column adds to.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import _harness as harness
import numpy as np
import pandas as pd
from _data import data_folder
from _harness import Row

MOST_ROWS = 2000


def real(path: Path) -> Row:
    """One data set."""
    from onefit import select
    from onefit.auto import data_checks as checks
    from onefit.auto.rules import choose_task
    from onefit.prepare import TablePreparer

    frame = pd.read_csv(path, low_memory=False)
    target = "target" if "target" in frame else frame.columns[-1]
    frame = frame[frame[target].notna()].reset_index(drop=True)
    X = TablePreparer().fit_rows(frame.drop(columns=target))[0]
    y = frame[target].to_numpy()
    task, _ = choose_task(y)
    name, share = max(checks.shares_of_columns(X, y, task, None), key=lambda one: one[1])
    row: Row = {
        "data": path.name.removesuffix(".csv.gz"), "task": task, "rows": len(y),
        "columns": X.shape[1], "copies": checks.find_copies(X, y).count,
        "strongest column": name, "share": share, "winner": float("nan"), "named": "no",
    }  # fmt: skip
    if share >= checks.STRONG_SHARE:
        draw = np.random.default_rng(0)
        some = np.sort(draw.choice(len(y), min(MOST_ROWS, len(y)), replace=False))
        found = select(X.iloc[some], y[some], task=task)
        row["winner"] = checks.explained(found.search_, y[some], task)
        row["named"] = "yes" if any("alone explains" in one for one in found.notes_) else "no"
    return row


def doubled(sets: int) -> Row:
    """R^2 of noise, each row of it twice."""
    from sklearn.model_selection import KFold

    from onefit import select

    scores = []
    for seed in range(sets):
        random = np.random.default_rng(seed)
        X, y = random.normal(size=(200, 5)), random.normal(size=200)
        X, y = np.vstack([X, X]), np.concatenate([y, y])
        plain = KFold(5, shuffle=True, random_state=0)
        scores.append([select(X, y, cv=cv).best_score_ for cv in (5, plain)])
    kept, apart = np.array(scores).T
    return {
        "rows of noise": 200, "copies": 200, "sets": sets,
        "median R2, copies together": float(np.median(kept)),
        "largest": float(kept.max()),
        "median R2, plain folds": float(np.median(apart)),
    }  # fmt: skip


#: the column that is added to four others, by the target and those
COLUMNS = {
    "1.1 y": lambda y, X: 1.1 * y,
    "exp(y), rounded to 3 digits": lambda y, X: np.round(np.exp(y), 3),
    "y + 5 % noise": lambda y, X: y + 0.05 * X[:, 3],
    "strong predictor": None,
}


def named(what: str, n: int, sets: int) -> Row:
    """How often the column is named."""
    from onefit import select

    count, others = 0, 0
    for seed in range(sets):
        random = np.random.default_rng(seed)
        X, e = random.normal(size=(n, 4)), random.normal(size=n)
        if COLUMNS[what] is None:
            y, Z = 6 * X[:, 0] + X[:, 1] + 0.1 * e, X[:, [1, 2, 3, 0]]
        else:
            y = X[:, 0] + X[:, 1] ** 2 + e
            Z = np.c_[X[:, :3], COLUMNS[what](y, X)]
        notes = [one for one in select(Z, y).notes_ if "alone explains" in one]
        count += any(one.startswith("column 3 ") for one in notes)
        others += any(not one.startswith("column 3 ") for one in notes)
    return {"column": what, "n": n, "sets": sets, "named": count, "another named": others}


def main() -> None:
    flags = harness.parser(__doc__, rounds=1)
    flags.add_argument("--data", type=Path, default=None)
    flags.add_argument("--sets", type=int, default=20)
    given = flags.parse_args()
    sets = 2 if given.quick else given.sets
    paths = sorted(data_folder(given.data).rglob("*.csv.gz"))[: 6 if given.quick else None]
    with warnings.catch_warnings(action="ignore"):
        rows = [real(path) for path in paths]
        copies = [doubled(sets)]
        columns = [named(what, n, sets) for what in COLUMNS for n in (50, 300)]
    name = harness.stem("data_checks", given.quick)
    harness.write_csv(given.out, name, rows)
    about = (__doc__ or "").partition("\n\n")[2]
    found = sum(row["named"] == "yes" for row in rows)
    count = f"{len(rows)} data sets, of which a column is named in {found}."
    parts = [
        ("Real data", f"{about}\n{count}\n\n{harness.table(rows)}"),
        ("Copies of noise", harness.table(copies)),
        ("Columns that are named", harness.table(columns)),
    ]
    title = "Copies of rows, and columns that leak the target"
    print(harness.write_report(given.out, name, title, parts).read_text())


if __name__ == "__main__":
    main()
