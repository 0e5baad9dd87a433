"""How often onefit.select takes Huber's loss, by the law of the noise, and what it gains by it.

Simulated regressions with a known function, clean and contaminated. For every law and size:

- suspected: the rule for outliers held, so that Huber's loss was tried at all;
- Huber chosen: and it won;
- error: root mean squared distance to the true function on new rows, the median over the sets, of
  select's winner and of the search over the squared loss alone that it begins with;
- better, worse: sets in which select's winner is nearer to (further from) the function than the
  squared loss's by more than 5 %.
"""

from __future__ import annotations

import _harness as harness
import numpy as np
from _harness import Row

LAWS = ("normal", "Laplace", "t3", "outliers 3 %", "outliers 10 %")
#: function and number of rows
CASES = (("friedman", 100), ("sine", 200))
TEST = 500


def noise(law: str, n: int, random: np.random.Generator) -> np.ndarray:
    """Errors of the law; the bulk has standard deviation 1 (t3: 1.7, Laplace: 1.4)."""
    if law == "Laplace":
        return random.laplace(size=n)
    if law == "t3":
        return random.standard_t(3, size=n)
    errors = random.normal(size=n)
    if law.startswith("outliers"):
        part = float(law.split()[1]) / 100.0
        rows = random.permutation(n)[: round(part * n)]
        errors[rows] += random.choice([-1.0, 1.0], rows.size) * random.uniform(10, 20, rows.size)
    return errors


def sample(function: str, law: str, n: int, seed: int) -> tuple[np.ndarray, ...]:
    """Rows, targets, new rows and the function's values there; noise a fifth of the signal."""
    random = np.random.default_rng([seed, n, *map(ord, law + function)])
    if function == "sine":
        X = random.uniform(-3.0, 3.0, size=(n + TEST, 1))
        f = 7.0 * np.sin(2.0 * X[:, 0])
    else:
        X = random.uniform(size=(n + TEST, 5))
        f = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2
        f += 10.0 * X[:, 3] + 5.0 * X[:, 4]
    return X[:n], f[:n] + noise(law, n, random), X[n:], f[n:]


def one(function: str, law: str, n: int, seed: int) -> tuple[bool, bool, float, float]:
    """Suspected, Huber chosen, error of select's winner, error of the squared loss's."""
    from onefit import select
    from onefit.auto import outliers

    X, y, X_test, f_test = sample(function, law, n, seed)
    first = []

    def keep(search, *data):
        first.append(search)
        return robust(search, *data)

    robust, outliers.robust_search = outliers.robust_search, keep
    try:
        found = select(X, y, stack=False, random_state=seed)
    finally:
        outliers.robust_search = robust
    squared = first[0] if first else found.search_
    Z_test = found.pipeline_.named_steps["prepare"].transform(X_test)
    machines = (found.search_, squared)
    errors = [float(np.sqrt(np.mean((s.predict(Z_test) - f_test) ** 2))) for s in machines]
    return bool(first), found.best_params_.get("loss") == "huber", errors[0], errors[1]


def row(function: str, law: str, n: int, sets: int) -> Row:
    suspected, chosen, ours, squared = map(
        np.array, zip(*(one(function, law, n, seed) for seed in range(sets)), strict=True)
    )
    return {
        "function": function,
        "noise": law,
        "n": n,
        "sets": sets,
        "suspected": int(suspected.sum()),
        "Huber chosen": int(chosen.sum()),
        "error": float(np.median(ours)),
        "error of squared": float(np.median(squared)),
        "better": int((ours < squared / 1.05).sum()),
        "worse": int((ours > squared * 1.05).sum()),
    }


def arguments():
    flags = harness.parser(__doc__, rounds=1)
    flags.add_argument("--sets", type=int, default=50, help="simulated data sets a row")
    given = flags.parse_args()
    if given.quick:
        given.sets = 2
    return given


def main() -> None:
    flags = arguments()
    rows = []
    for function, n in CASES:
        for law in LAWS:
            rows.append(row(function, law, n, flags.sets))
            print(rows[-1], flush=True)
    name = harness.stem("outlier_rule", flags.quick)
    harness.write_csv(flags.out, name, rows)
    about = (__doc__ or "").partition("\n\n")[2]
    parts = [("Huber's loss by the law of the noise", f"{about}\n{harness.table(rows)}")]
    title = "The outlier rule of select"
    print(harness.write_report(flags.out, name, title, parts).read_text())


if __name__ == "__main__":
    main()
