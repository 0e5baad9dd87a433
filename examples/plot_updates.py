"""
==========================================
Keep a model up to date, row by row
==========================================

A model follows a stream: each day new rows are added and the oldest ones removed. After every
update it equals, within a certified error, a model retrained on the present rows.
"""

# %%
# A stream whose function changes slowly
# --------------------------------------
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import KFold

from onefit import KernelRegressor, heldout_predict
from onefit.losses import Quantile

random = np.random.default_rng(0)
WINDOW, DAILY, DAYS = 2000, 10, 10
n = WINDOW + DAILY * DAYS
X = random.uniform(-2, 2, size=(n, 2))
shift = np.linspace(0, 1, n)
y = np.sin(2 * X[:, 0] + shift) + 0.5 * X[:, 1] + 0.1 * random.normal(size=n)

# %%
# Update, and retrain for comparison
# ----------------------------------
settings = {"loss": Quantile(0.9, delta=0.1), "gamma": 0.5, "lam": 1e-3}
model = KernelRegressor(**settings).fit(X[:WINDOW], y[:WINDOW])
updating, retraining = [], []
largest = 0.0
for day in range(DAYS):
    new = slice(WINDOW + day * DAILY, WINDOW + (day + 1) * DAILY)
    start = perf_counter()
    model.add_rows(X[new], y[new]).remove_rows(np.arange(DAILY))
    updating.append(perf_counter() - start)
    rows = slice((day + 1) * DAILY, WINDOW + (day + 1) * DAILY)
    start = perf_counter()
    retrained = KernelRegressor(**settings).fit(X[rows], y[rows])
    retraining.append(perf_counter() - start)
    largest = max(largest, np.abs(model.predict(X) - retrained.predict(X)).max())
print(f"{DAYS} days: {sum(updating):.2f} s by updates, {sum(retraining):.2f} s by retraining")
print(f"largest difference of a prediction: {largest:.1e}; certified: {model.error_:.1e}")

# %%
plt.plot(np.arange(1, DAYS + 1), retraining, "o-", label="retraining")
plt.plot(np.arange(1, DAYS + 1), updating, "o-", label="update")
plt.ylim(0)
plt.xlabel("day")
plt.ylabel("seconds")
plt.legend()
plt.show()

# %%
# Held-out values follow
# ----------------------
# Without rows, ``heldout_predict`` evaluates the rows that the model holds, with its kernel matrix.
held = heldout_predict(model, cv=KFold(5, shuffle=True, random_state=0))
loss = mean_pinball_loss(held.targets, held.predictions, alpha=0.9)
print(f"held-out pinball loss: {loss:.4f}; exact in every fold: {held.exact.all()}")
