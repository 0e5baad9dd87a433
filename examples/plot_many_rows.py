"""
==============
A million rows
==============

Features replace the kernel matrix, and the rows stay in files. This page runs on 20,000 rows, to be
quick; change ``ROWS`` for more. Memory does not grow with the number of rows.
"""

# %%
# Files
# -----
import tempfile
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from onefit import KernelRegressor, KernelSearchCV
from onefit.features import Nystrom
from onefit.rows import HashKFold

ROWS, FILES = 20_000, 4  # ROWS = 1_000_000 takes a few minutes
random = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())
for i in range(FILES):
    X = random.normal(size=(ROWS // FILES, 4))
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    frame["y"] = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * random.normal(size=len(X))
    frame.to_parquet(folder / f"part-{i}.parquet")

# %%
# How many features?
# ------------------
# A search over bandwidths and penalties, for several numbers of landmarks.
grid = {"gamma": [0.03, 0.1, 0.3], "lam": np.logspace(-7, -2, 6)}
sizes, scores, seconds = [30, 100, 300], [], []
for m in sizes:
    start = perf_counter()
    search = KernelSearchCV(KernelRegressor(approximation=Nystrom(m)), grid, cv=HashKFold(5))
    search.fit(folder, "y")
    seconds.append(perf_counter() - start)
    scores.append(search.best_score_)
    print(f"{m:4d} landmarks: R2 {scores[-1]:.3f} with gamma {search.best_params_['gamma']}")

# %%
# The best possible R2 is 0.98 here, since a part of the target is noise.
figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
axes[0].semilogx(sizes, scores, "o-")
axes[0].set(xlabel="landmarks", ylabel="cross-validated R2")
axes[1].loglog(sizes, seconds, "o-")
axes[1].set(xlabel="landmarks", ylabel="seconds")
plt.show()
