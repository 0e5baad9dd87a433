"""When to gather the rows of K that a product needs, and when to read all of them.

Processor milliseconds of K V by both, for columns V in which only a part of the rows is not zero.
It sets ``_MAX_GATHERED_SHARE`` and ``_MAX_GATHERED_SHARE_OF_ONE`` of onefit.linalg.blas. One
thread, best of five runs.
"""

from __future__ import annotations

import time

import _harness as harness
import numpy as np

from onefit.linalg import blas

ROWS = 2265
PARTS = (0.1, 0.25, 0.4, 0.55, 0.7, 0.85)


def milliseconds(action) -> float:
    spent = []
    for _ in range(5):
        start = time.process_time()
        action()
        spent.append(time.process_time() - start)
    return 1e3 * min(spent)


def main() -> None:
    random, rows = np.random.default_rng(0), []
    for dtype in (np.float32, np.float64):
        K = random.normal(size=(ROWS, ROWS)).astype(dtype)
        K = K + K.T
        for columns in (1, 10, 150):
            for part in PARTS:
                V = np.asfortranarray(random.normal(size=(ROWS, columns)).astype(dtype))
                V[random.permutation(ROWS)[int(part * ROWS) :]] = 0.0
                found = {"dtype": dtype.__name__, "columns": columns, "part of the rows": part}
                for name, most in (("gathered ms", 1.0), ("whole ms", 0.0)):
                    blas._MAX_GATHERED_SHARE = blas._MAX_GATHERED_SHARE_OF_ONE = most
                    found[name] = milliseconds(lambda K=K, V=V: blas.row_product(K, V))
                rows.append(found)
    print(harness.table(rows))


if __name__ == "__main__":
    main()
