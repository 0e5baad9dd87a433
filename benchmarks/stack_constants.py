"""Constants of stack weights: the test error of stacks as each is changed alone.

The sets and splits are those of ``stacking.py``, without the sets of more than 600 rows. A search
over Gaussian, Laplace and linear kernels with 5 shuffled folds gives held-out predictions; every
candidate is fitted to all training rows for predictions of the test rows. So weights are learned
and tried many times from the same predictions. Columns:

- constant, value: of ``onefit.stack_weights``; "default" are the values that are there;
- ratio: geometric mean, over the sets, of the root mean squared error of the test rows over that
  with the defaults; of ``HUBER_SCALES`` with loss="huber", which it is for, and otherwise with the
  squared loss; smallest and largest: of a set;
- members: candidates with positive weight, on average.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import _harness as harness
import numpy as np
from _data import data_folder
from _harness import Row
from stacking import KERNELS, split_rows

SETS = ("servo", "ozone", "mpg", "pyrim", "triazines", "eunite2001", "bodyfat", "boston", "yacht")
VALUES = {
    "BAGS": (1, 5, 45),
    "MAX_STEPS": (5, 12, 50, 100),
    "MIN_WEIGHT": (0.0, 0.01, 0.04, 0.08),
    "MAX_PER_KERNEL": (1, 4, 10**9),
    "HUBER_SCALES": (1.0, 4.0),
}


def predictions(folder: Path, name: str, split: int) -> tuple[np.ndarray, ...]:
    """Held-out residuals, test residuals and kernels of all candidates."""
    from sklearn.base import clone
    from sklearn.model_selection import KFold

    from onefit import KernelRegressor, KernelSearchCV, default_grid
    from onefit.stack_candidates import SearchCandidates

    X, X_test, y, y_test = split_rows(folder, name, split)
    cv = KFold(5, shuffle=True, random_state=split)
    search = KernelSearchCV(KernelRegressor(), default_grid(X, kernel=KERNELS), cv=cv)
    found = SearchCandidates.of(search.fit(X, y), X, y, None)
    params = [search.cv_results_["params"][i] for i in found.indices]
    fits = [clone(search.estimator).set_params(**one).fit(X, y) for one in params]
    tested = np.column_stack([one.predict(X_test) for one in fits]) - y_test[:, None]
    return found.predictions[:, 0] - y[:, None], tested, found.kernels


def variants() -> Iterator[tuple[str, float]]:
    yield "default", np.nan
    yield from ((name, value) for name, values in VALUES.items() for value in values)


def errors(held: np.ndarray, tested: np.ndarray, kernels: np.ndarray) -> list[tuple[float, int]]:
    """The test error and the number of members of every variant."""
    from onefit import stack_weights as module

    found, s = [], np.ones(len(held))
    for name, value in variants():
        loss = "huber" if name == "HUBER_SCALES" else "squared"
        before = getattr(module, name, None)
        if before is not None:
            setattr(module, name, value)
        try:
            weights = module.stack_weights(held, s, loss, 0, kernels)
        finally:
            if before is not None:
                setattr(module, name, before)
        error = float(np.sqrt(np.mean(np.square(tested @ weights))))
        if loss == "huber":
            plain = module.stack_weights(held, s, loss, 0, kernels)
            error /= float(np.sqrt(np.mean(np.square(tested @ plain))))
        found.append((error, int(np.count_nonzero(weights))))
    return found


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--splits", type=int, default=5)
    args = parser.parse_args()
    names = SETS[:2] if args.quick else SETS
    logs, members = [], []
    for name in names:
        runs = []
        for split in range(2 if args.quick else args.splits):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                runs.append(errors(*predictions(data_folder(None), name, split)))
        each = np.array(runs)
        own = np.log(each[:, :, 0].mean(axis=0))
        huber = np.array([constant == "HUBER_SCALES" for constant, _ in variants()])
        logs.append(own - np.where(huber, 0.0, own[0]))
        members.append(each[:, :, 1].mean(axis=0))
        print(name, np.exp(logs[-1]).round(3), flush=True)
    rows: list[Row] = [
        {
            "constant": name,
            "value": "" if np.isnan(value) else f"{value:g}",
            "ratio": float(np.exp(one.mean())),
            "smallest": float(np.exp(one.min())),
            "largest": float(np.exp(one.max())),
            "members": float(count),
        }
        for (name, value), one, count in zip(
            variants(), np.array(logs).T, np.mean(members, axis=0), strict=True
        )
    ]
    stem = harness.stem("stack_constants", args.quick)
    harness.write_csv(args.out, stem, rows)
    about = (__doc__ or "").partition("\n\n")[2]
    parts = [("Errors", f"{about}\n{harness.table(rows)}")]
    harness.write_report(args.out, stem, "Constants of stack weights", parts)


if __name__ == "__main__":
    main()
