"""
===============
Quantile curves
===============

Five quantiles of a target whose noise depends on x, from one search. Curves that cross are sorted,
and held-out rows correct their coverage.
"""

# %%
# Data and search
# ---------------
import matplotlib.pyplot as plt
import numpy as np

from onefit import KernelRegressor, KernelSearchCV
from onefit.losses import Quantile
from onefit.quantiles import heldout_shift, rearrange

random = np.random.default_rng(0)
x = random.uniform(-2, 2, size=300)
y = np.sin(2 * x) + (0.1 + 0.3 * np.abs(x)) * random.normal(size=300)

levels = [0.05, 0.25, 0.5, 0.75, 0.95]
grid = {"gamma": [0.3, 1.0, 3.0], "lam": [1e-5, 1e-4, 1e-3, 1e-2]}
search = KernelSearchCV(KernelRegressor(loss=Quantile(levels)), grid, cv=5).fit(x[:, None], y)
print({name: float(value) for name, value in search.best_params_.items()})

# %%
# Coverage
# --------
# Share of new targets below each curve, without and with the shift that held-out rows suggest.
shift = heldout_shift(search.heldout_, levels)
x_new = random.uniform(-2, 2, size=5000)
y_new = np.sin(2 * x_new) + (0.1 + 0.3 * np.abs(x_new)) * random.normal(size=5000)
for name, add in {"without": 0.0, "with": shift}.items():
    curves = rearrange(search.predict(x_new[:, None]) + add, levels)
    print(name, (y_new[:, None] <= curves).mean(axis=0).round(3))

# %%
# Curves
# ------
line = np.linspace(-2, 2, 200)
curves = rearrange(search.predict(line[:, None]) + shift, levels)
plt.fill_between(line, curves[:, 0], curves[:, 4], alpha=0.2, label="5 % to 95 %")
plt.fill_between(line, curves[:, 1], curves[:, 3], alpha=0.4, label="25 % to 75 %")
plt.plot(line, curves[:, 2], label="median")
plt.plot(x, y, ".", color="black", markersize=3)
plt.legend()
plt.show()
