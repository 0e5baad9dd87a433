"""
===========================================
House prices: from a table to a saved model
===========================================

A table with numbers, text, dates and missing values; several sales in the same street. One call
prepares the columns and chooses a model, the report says how good it is, and the model is saved
and loaded again.
"""

# %%
# Data
# ----
# 400 sales. The price depends on area, age, quality, on the district, and on the street, which is
# not a feature: sales in one street are not independent.
import pickle
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from onefit import AutoKernelRegressor

random = np.random.default_rng(0)
n = 400
street = random.integers(0, 60, n)
district = np.array(["north", "south", "old town"])[street % 3]
houses = pd.DataFrame(
    {
        "area": random.uniform(40, 250, n).round(),
        "year": random.integers(1900, 2024, n),
        "district": district,
        "quality": random.choice(["poor", "fair", "good"], n),
        "sold": pd.Timestamp("2021-01-01") + pd.to_timedelta(random.integers(0, 1000, n), "D"),
    }
)
houses.loc[random.choice(n, 40, replace=False), "area"] = np.nan
value = 2.0 * houses["area"].fillna(140) + 0.4 * (houses["year"] - 1900)
value += houses["district"].map({"north": 0, "south": 40, "old town": 90})
value += houses["quality"].map({"poor": -60, "fair": 0, "good": 50})
price = value + 30 * random.normal(size=60)[street] + 20 * random.normal(size=n)
print(houses.head())

# %%
# Choose a model
# --------------
# ``groups`` keeps the sales of a street on one side of every split. Without it, the score would be
# that of new sales in known streets.
new = street >= 50
model = AutoKernelRegressor(scoring="rmse", random_state=0)
with warnings.catch_warnings(action="ignore"):  # the note on dates, which is shown below
    model.fit(houses[~new], price[~new], groups=street[~new])
print(model.summary())

# %%
# The expected error on new streets, and the error on ten streets that were kept apart:
found = model.search_.headline_
low, high = found.interval
predicted = model.predict(houses[new])
error = np.sqrt(np.mean((predicted - price[new]) ** 2))
print(f"expected {-found.score:.0f} ({-high:.0f} to {-low:.0f}), on new streets {error:.0f}")

# %%
# Intervals
# ---------
# Each interval contains the price of about nine in ten houses of a new street.
interval = model.predict_interval(houses[new])
order = np.argsort(predicted)
rows = np.arange(order.size)
plt.fill_between(rows, interval.lower[order], interval.upper[order], alpha=0.3, label="interval")
plt.plot(rows, predicted[order], label="prediction")
plt.plot(rows, price[new].to_numpy()[order], ".", color="black", label="price")
plt.xlabel("houses of new streets, by prediction")
plt.legend()
plt.show()

# %%
# Save and reload
# ---------------
# The saved model reads the raw table: text, dates and missing values. ``model.pipeline_`` is the
# same as a plain scikit-learn pipeline; ``onefit select --model`` writes it with skops.
again = pickle.loads(pickle.dumps(model))
print(np.array_equal(again.predict(houses[new]), predicted))
