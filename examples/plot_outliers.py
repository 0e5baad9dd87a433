"""
========================================
Outliers, in the fit and in the choice
========================================

Fifty points around a sine, and one outlier (section 6.1 of the JMLR 2008 paper).
A robust loss protects the fit; a robust criterion protects the choice of the parameters.
"""

# %%
# Data
# ----
import matplotlib.pyplot as plt
import numpy as np

from onefit import AutoKernelRegressor, KernelRegressor, KernelSearchCV
from onefit.criteria import InfluenceLoo
from onefit.diagnostics import influence
from onefit.losses import Huber

random = np.random.default_rng(0)
x = random.uniform(2, 11, 50)
clean = np.sin(x) + 0.2 * random.standard_normal(50)
X, y = np.append(x, 4.0)[:, None], np.append(clean, 5.0)  # the last row is an outlier
line = np.linspace(2, 11, 181)


def model(loss):
    """Kernel regression without an intercept, as in the paper."""
    return KernelRegressor(loss, gamma=0.25, lam=1e-3, fit_intercept=False)


# %%
# Which rows influence the fit?
# ------------------------------
# ``influence`` is the change of each prediction per unit of weight given to a row.
effect = np.abs(influence(model("squared"), X, y)).max(axis=1)
print("row with the largest influence:", effect.argmax(), "of", len(y))

# %%
# A robust fit
# ------------
# The squared loss follows the outlier. The Huber loss, linear beyond ``threshold``, does not.
for name, loss in {"squared": "squared", "Huber": Huber(0.2)}.items():
    curve = model(loss).fit(X, y).predict(line[:, None])
    print(f"{name}: distance from the sine {np.sqrt(np.mean((curve - np.sin(line)) ** 2)):.2f}")
    plt.plot(line, curve, label=name)
plt.plot(X, y, ".", color="black")
plt.plot(line, np.sin(line), "--", color="0.6", label="sine")
plt.legend()
plt.show()

# %%
# A robust choice
# ---------------
# With squared errors, one large residual decides which bandwidth wins, although the fit is robust.
sigmas = np.linspace(0.5, 4, 36)
for judge in ("squared", "absolute"):
    criterion = InfluenceLoo(order=5, loss=judge)
    search = KernelSearchCV(model(Huber(0.2)), {"gamma": 1 / sigmas**2}, criterion=criterion)
    search.fit(X, y)
    plt.plot(
        sigmas, search.cv_results_["criterion"] / search.cv_results_["criterion"].min(), label=judge
    )
plt.xlabel("bandwidth")
plt.ylabel("criterion over its minimum")
plt.ylim(0.95, 2)
plt.legend()
plt.show()

# %%
# Everything in one call
# ----------------------
# ``AutoKernelRegressor`` looks for outliers among the held-out residuals. Where it finds some, it
# chooses ``lam``, the bandwidth and the threshold by absolute errors.
for name, rows in {"clean": slice(0, 50), "with the outlier": slice(None)}.items():
    found = AutoKernelRegressor(stack=False).fit(X[rows], y[rows])
    distance = np.sqrt(np.mean((found.predict(line[:, None]) - np.sin(line)) ** 2))
    loss = found.best_params_.get("loss", "squared")
    print(f"{name}: {loss} loss, distance from the sine {distance:.2f}")
