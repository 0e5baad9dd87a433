"""
===================================
Permutation test of a whole search
===================================

A search over 100 candidates reports the score of its best one. Could pure noise do as well? The
p-value includes the tuning: every permutation of the targets has its own best candidate.
"""

# %%
# Data
# ----
# The same rows twice: with targets that do not depend on them, and with targets that do.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import KFold

from onefit import KernelRegressor, KernelSearchCV
from onefit.permutation import permutation_test

random = np.random.default_rng(0)
X = random.normal(size=(80, 20))
noise = random.normal(size=80)
targets = {"noise": noise, "signal": 0.8 * np.sin(X[:, 0]) + noise}

# %%
# Test
# ----
# One kernel matrix and one factorisation per candidate serve all permutations.
grid = {"gamma": np.logspace(-3, 0, 10), "lam": np.logspace(-4, 1, 10)}
search = KernelSearchCV(KernelRegressor(), grid, cv=KFold(5, shuffle=True, random_state=0))
tests = {name: permutation_test(search, X, y, n_permutations=999) for name, y in targets.items()}
for name, found in tests.items():
    print(f"{name}: best R2 {found.score:.3f}, p-value {found.pvalue:.3f}")

# %%
# The grey bars are the best scores that permuted targets reach.
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for axis, (name, found) in zip(axes, tests.items(), strict=True):
    axis.hist(found.permutation_scores, bins=30, color="0.7")
    axis.axvline(found.score, color="tab:blue")
    axis.set(title=f"{name}: p = {found.pvalue:.3f}", xlabel="best R2 of the search")
plt.show()
