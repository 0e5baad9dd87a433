"""
==================================================
Prediction intervals that follow the data
==================================================

One data set, four kinds of prediction intervals for kernel regression: CV+ with one width for all
rows, CV+ with local widths, full conformal sets, and conformalised quantiles. No model is
refitted: the models of all folds come from one fit.
"""

# %%
# Data
# ----
# The noise grows with x, and there are no training rows between 3 and 4.
import matplotlib.pyplot as plt
import numpy as np

from onefit import KernelRegressor, predict_interval
from onefit.losses import Quantile

random = np.random.default_rng(0)


def draw(n):
    """Draw rows and targets."""
    x = random.uniform(0, 6, size=n)
    x = x[(x < 3) | (x > 4)]
    return x[:, None], np.sin(2 * x) + (0.05 + 0.1 * x) * random.normal(size=x.size)


X, y = draw(250)
X_test, y_test = draw(4000)
grid = np.linspace(0, 6, 241)[:, None]

# %%
# Intervals
# ---------
ridge = KernelRegressor(gamma=2.0, lam=1e-3)
quantiles = KernelRegressor(loss=Quantile([0.05, 0.5, 0.95]), gamma=2.0, lam=1e-4)
KINDS = {
    "CV+": (ridge, {}),
    "CV+, local widths": (ridge, {"width": "local"}),
    "full conformal": (ridge, {"method": "full"}),
    "conformalised quantiles": (quantiles, {}),
}
for name, (model, options) in KINDS.items():
    found = predict_interval(model, X, y, X_test, alpha=0.1, **options)
    inside = (found.lower <= y_test) & (y_test <= found.upper)
    left, right = X_test[:, 0] < 3, X_test[:, 0] > 4
    print(
        f"{name:24} coverage {inside.mean():.3f} (x < 3: {inside[left].mean():.3f}, "
        f"x > 4: {inside[right].mean():.3f}), mean width {np.mean(found.upper - found.lower):.2f}"
    )

# %%
# All of them cover about 90 % of new targets. Only the quantiles come close to that for small and
# for large x separately: they follow the noise. Local widths follow the density of the training
# rows: they open in the gap.
figure, axes = plt.subplots(2, 2, figsize=(9, 6), sharex=True, sharey=True, layout="constrained")
for axis, (name, (model, options)) in zip(axes.flat, KINDS.items(), strict=True):
    found = predict_interval(model, X, y, grid, alpha=0.1, **options)
    axis.fill_between(grid[:, 0], found.lower, found.upper, alpha=0.3)
    axis.plot(grid[:, 0], found.prediction)
    axis.plot(X[:, 0], y, ".", color="black", markersize=2)
    axis.set_title(name)
plt.show()
