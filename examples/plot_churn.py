"""
=================================
Churn: decisions that have a cost
=================================

A support vector machine ranks customers by their risk of leaving. Calibrated probabilities turn the
ranking into decisions of the smallest expected cost. No model is refitted.
"""

# %%
# Data
# ----
# One customer in five leaves. A call costs 1; a customer who leaves without a call costs 40.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from onefit import KernelClassifier, KernelSearchCV

X, leaves = make_classification(
    1600, 8, n_informative=5, weights=[0.8], flip_y=0.05, class_sep=0.8, random_state=0
)
X = StandardScaler().fit_transform(X)
X, X_new, y, y_new = train_test_split(X, leaves, train_size=600, stratify=leaves, random_state=0)

# %%
# A search
# --------
grid = {"gamma": [0.03, 0.1, 0.3], "lam": np.logspace(-5, -1, 5)}
search = KernelSearchCV(KernelClassifier(loss="smoothed_hinge"), grid, cv=5, scoring="roc_auc")
search.fit(X, y)
print(f"area under the ROC curve: {search.best_score_:.3f}")

# %%
# Three ways to decide
# --------------------
# The plain model counts errors. A threshold is tuned for the balanced accuracy. Calibrated
# probabilities and the costs give the decision of the smallest expected cost.
CALL, LOSS = 1.0, 40.0
deciders = {
    "plain": search,
    "balanced accuracy": search.tune_threshold("balanced_accuracy"),
    "expected cost": search.minimise_cost({0: {1: CALL}, 1: {0: LOSS, 1: CALL}}),
}
for name, model in deciders.items():
    called = model.predict(X_new) == 1
    cost = CALL * called.sum() + LOSS * (y_new[~called] == 1).sum()
    print(f"{name:18} {called.sum():4d} calls, cost per customer {cost / y_new.size:.3f}")

# %%
# Are the probabilities right?
# ----------------------------
# On new customers, the share that leaves follows the predicted probability.
probability = search.calibrate("sigmoid").predict_proba(X_new)[:, 1]
edges = np.quantile(probability, np.linspace(0, 1, 9))
part = np.clip(np.searchsorted(edges, probability) - 1, 0, 7)
plt.plot([0, 1], [0, 1], color="0.7")
plt.plot(
    [probability[part == k].mean() for k in range(8)],
    [y_new[part == k].mean() for k in range(8)],
    "o-",
)
plt.xlabel("predicted probability")
plt.ylabel("share that leaves")
plt.show()
