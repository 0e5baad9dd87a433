"""
=======================
Would more data help?
=======================

A learning curve with a band over splits and random orders, and one-step-ahead errors of a time
series. All models come from one factor per order.
"""

# %%
# Learning curve
# --------------
import matplotlib.pyplot as plt
import numpy as np

from onefit import KernelRegressor, KernelSearchCV
from onefit.learning import expanding_window, learning_curve

random = np.random.default_rng(0)
X = random.uniform(-2, 2, size=(500, 3))
y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * random.normal(size=500)
grid = {"gamma": [0.1, 0.3, 1.0], "lam": [0.03, 0.1, 0.3, 1.0]}
search = KernelSearchCV(KernelRegressor(scaling="total"), grid, cv=5).fit(X, y)
curve = learning_curve(search, X, y, n_permutations=5, random_state=0)
for size, score in zip(curve.train_sizes, curve.mean, strict=True):
    print(f"{size:4d} rows: R2 {score:.3f}")

# %%
# The curve is nearly flat at its end: a few more rows would change little.
curve.plot()
plt.show()

# %%
# Time
# ----
# The model of all rows before predicts each row of a series; errors fall as it grows.
t = np.arange(400.0)
series = np.sin(t / 12) + 0.2 * random.normal(size=400)
lags = np.lib.stride_tricks.sliding_window_view(series, 6)[:-1]
model = KernelRegressor(gamma=0.1, lam=0.3, scaling="total")
found = expanding_window(model, lags, series[6:])
size = np.abs(found.residuals)
plt.figure()
plt.plot(size, ".", markersize=3)
plt.plot(np.convolve(size, np.ones(40) / 40, "valid"))
plt.xlabel("rows before")
plt.ylabel("absolute one-step-ahead error")
plt.show()
