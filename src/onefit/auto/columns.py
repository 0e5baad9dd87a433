"""The columns that matter to the model that was chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sklearn.base import clone, is_classifier

from onefit.auto import rules
from onefit.grids import default_grid
from onefit.relevance import Relevance, relevance
from onefit.search.continuous import Interval
from onefit.search_gradient import KernelGradientSearchCV

__all__ = ["find_relevance"]


def find_relevance(auto: Any) -> Relevance:
    """Of the prepared columns, by the chosen kernel with a gamma for each of them."""
    if auto.search_.best_estimator_.approximation is not None:
        raise ValueError(
            "relevance follows the gradient of the whole kernel, and the model has an "
            "approximation; raise minutes, or use fewer rows"
        )
    search, data = auto.search_, auto._planned.data
    Z, y, params = data.X, data.y, data.params
    best, labels = search.best_params_, is_classifier(search.estimator)
    kernel = "rbf" if best["kernel"] == "linear" else best["kernel"]
    seed = auto.random_state if isinstance(auto.random_state, int) else 0
    (grid,) = default_grid(Z, y if labels else None, kernel, random_state=seed)
    gammas, lams = grid["gamma"], grid["lam"]
    wide = {
        "gamma": Interval(1e-2 * min(gammas), max(gammas), per_feature=True),
        "lam": Interval(min(lams), max(lams), points=8),
        "kernel": [kernel],
    }
    loss = {name: [best[name]] for name in ("loss", "loss__threshold") if name in best}
    cv, _ = rules.choose_splits(5, len(y), auto._task, params.get("groups"), seed)
    # outliers made it choose by absolute errors
    scoring = search.scoring if search.criterion == "cv" else "neg_mean_absolute_error"
    again = KernelGradientSearchCV(
        clone(search.estimator), wide | loss, cv=cv, scoring=scoring, aggregate=search.aggregate,
        n_jobs=search.n_jobs,
    )  # fmt: skip
    found = relevance(again.fit(Z, y, **params), Z, y, cv=cv, **params)
    return replace(found, names=_names(auto.pipeline_.named_steps["prepare"], Z.shape[1]))


def _names(preparer: Any, columns: int) -> list[str]:
    names = getattr(preparer, "get_feature_names_out", None)
    return [str(i) for i in range(columns)] if names is None else [str(one) for one in names()]
