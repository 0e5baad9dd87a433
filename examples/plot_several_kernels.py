"""
===================================================
Useless columns: one gamma each, or several kernels
===================================================

Two of six columns matter. A single bandwidth measures distances over all of them. A gradient search
finds a bandwidth per column (ARD), or weights for a list of kernels.
"""

# %%
# Data
# ----
import matplotlib.pyplot as plt
import numpy as np

from onefit import KernelGradientSearchCV, KernelRegressor, KernelSearchCV
from onefit.kernels import Bank, Gaussian, Linear, OnColumns
from onefit.relevance import relevance
from onefit.search import Interval

random = np.random.default_rng(0)
X, X_new = random.normal(size=(150, 6)), random.normal(size=(2000, 6))


def truth(X):
    """Depends on the first two columns."""
    return np.sin(2 * X[:, 0]) + np.cos(2 * X[:, 1])


y = truth(X) + 0.1 * random.normal(size=150)

# %%
# Three searches
# --------------
lam = Interval(1e-7, 1e1, points=8)
bank = Bank([Linear(), Gaussian(0.2), *(OnColumns(Gaussian(1.0), [k]) for k in range(6))])
one = KernelSearchCV(KernelRegressor(), {"gamma": np.logspace(-2, 1, 7), "lam": lam}, cv=5)
ard = KernelGradientSearchCV(
    KernelRegressor(), {"gamma": Interval(1e-4, 1e2, per_feature=True), "lam": lam}, cv=5
)
several = KernelGradientSearchCV(KernelRegressor(), {"kernel": bank, "lam": lam}, cv=5)
searches = {"one gamma": one, "a gamma per column": ard, "several kernels": several}
for name, search in searches.items():
    search.fit(X, y)
    error = np.sqrt(np.mean((search.predict(X_new) - truth(X_new)) ** 2))
    print(f"{name:20} cross-validated R2 {search.best_score_:.2f}, error on new rows {error:.2f}")

# %%
# Which columns matter?
# ---------------------
# ``relevance`` repeats the search on parts of the rows to show how stable the ranking is.
print("columns by relevance:", relevance(ard, X, y, cv=3).order.tolist())
figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
axes[0].bar(range(6), ard.best_params_["gamma"])
axes[0].set(title="gamma per column", xlabel="column")
names = ["linear", "all", *map(str, range(6))]
axes[1].bar(names, several.best_params_["kernel"].weights)
axes[1].set(title="weight per kernel", xlabel="kernel")
plt.show()
