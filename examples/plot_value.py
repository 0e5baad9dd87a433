"""
==========================
The value of training rows
==========================

Some labels are flipped. Removal values (the held-out score with a row less the score without it)
and Shapley values rank the rows, and the flipped ones are among the last. No model is refitted.
"""

# %%
# Data
# ----
# Two moons, with 5 % of the labels flipped.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from onefit import KernelClassifier, KernelSearchCV
from onefit.value import removal_values, shapley_values

X, y = make_moons(300, noise=0.2, random_state=0)
flipped = np.random.default_rng(0).choice(y.size, 15, replace=False)
y[flipped] = 1 - y[flipped]

# %%
# Values
# ------
grid = {"gamma": [0.3, 1.0, 3.0], "lam": np.logspace(-4, 0, 9)}
search = KernelSearchCV(KernelClassifier("squared"), grid, cv=5).fit(X, y)
found = {
    "removal": removal_values(search, X, y),
    "Shapley": shapley_values(search, X, y, n_permutations=50, min_rows=15, random_state=0),
}
for name, one in found.items():
    print(f"{name}: {np.isin(one.worst[:15], flipped).sum()} of 15 flipped rows among the last 15")

# %%
# Circles are flipped rows; the darker a point, the less its value.
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for axis, (name, one) in zip(axes, found.items(), strict=True):
    points = axis.scatter(*X.T, c=one.values, cmap="viridis", s=14)
    axis.plot(*X[flipped].T, "o", color="tab:red", markerfacecolor="none", markersize=9)
    axis.set_title(name)
    figure.colorbar(points, ax=axis)
plt.show()
