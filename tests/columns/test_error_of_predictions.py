"""``error_`` covers the rounding of predictions, where coefficients cancel."""

import numpy as np
import pytest

from onefit import KernelRegressor


@pytest.mark.parametrize("lam", [1e-13, 1e-11, 1e-6])
def test_coefficients_that_cancel(lam):
    """With a linear kernel and a tiny ridge, a grows as 1 / lam, and K a loses digits."""
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    y = X @ [1.0, 2.0, 3.0] + 0.1 * random.normal(size=60)
    model = KernelRegressor(kernel="linear", lam=lam).fit(X, y)
    Z, t = X - X.mean(axis=0), y - y.mean()
    w = np.linalg.solve(Z.T @ Z + 60 * lam * np.eye(3), Z.T @ t)
    wanted = y.mean() + Z @ w  # accurate: the problem in three coefficients is well conditioned
    gap = np.abs(model.predict(X) - wanted).max()
    assert gap <= model.error_
    assert gap > 1e-6 if lam == 1e-13 else gap < 1e-5
