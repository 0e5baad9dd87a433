"""Default grids against the papers' lists."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.grids import LAMS_ICML, LAMS_JMLR, bandwidths, default_grid

random = np.random.default_rng(0)
X = random.normal(size=(80, 3))
y = X[:, 0] + 0.1 * random.normal(size=80)


def test_lists_of_the_papers():
    assert len(LAMS_JMLR) == 13
    assert max(LAMS_JMLR) == pytest.approx(0.05)
    assert min(LAMS_JMLR) == pytest.approx(5e-6)
    assert (LAMS_ICML[0], LAMS_ICML[-1], len(LAMS_ICML)) == (2**-7, 4.0, 10)
    (grid,) = default_grid(X, style="powers")
    expected = 1 / (2 * 2.0 ** np.arange(-6, 9))  # exp(-d^2 / (2 tau))
    np.testing.assert_allclose(grid["gamma"], np.sort(expected))
    np.testing.assert_allclose(grid["lam"], LAMS_ICML)


def test_bandwidths_are_quantiles_of_the_distances():
    found = bandwidths(X)
    assert len(found) == 12
    distances = np.sort(pdist(X))
    assert 2 * found[0] in distances or np.isclose(distances, 2 * found[0]).any()
    assert found[0] * 2 == pytest.approx(found[1])
    assert found[-1] == pytest.approx(2 * found[-2])
    shares = np.searchsorted(distances, found[2:-2]) / distances.size
    np.testing.assert_allclose(
        shares, np.array([50, 100, 150, 200, 250, 300, 400, 450]) / 500, atol=0.06
    )
    np.testing.assert_array_equal(bandwidths(X), bandwidths(X))
    assert (bandwidths(X, random_state=1) != found).any()


def test_bandwidths_do_not_depend_on_the_number_of_rows():
    wide = np.random.default_rng(1).normal(size=(3000, 3))
    np.testing.assert_allclose(bandwidths(wide)[2:-2], bandwidths(X)[2:-2], rtol=0.25)


def test_kernels_take_the_distance_they_are_made_of():
    (gaussian,) = default_grid(X, kernel="rbf")
    np.testing.assert_allclose(gaussian["gamma"], np.sort(1 / bandwidths(X) ** 2))
    (matern,) = default_grid(X, kernel="matern32")
    np.testing.assert_allclose(matern["gamma"], np.sort(1 / bandwidths(X)))
    (laplace,) = default_grid(X, kernel="laplacian")
    np.testing.assert_allclose(laplace["gamma"], np.sort(1 / bandwidths(X, "manhattan")))
    assert bandwidths(X, "manhattan")[-1] > bandwidths(X)[-1]


def test_lams_in_units_of_the_kernel_and_the_scaling():
    (linear,) = default_grid(10 * X, kernel="linear")
    size = np.mean(np.sum((10 * X) ** 2, axis=1))
    np.testing.assert_allclose(linear["lam"], size * np.sort(LAMS_JMLR))
    assert set(linear) == {"kernel", "lam"}
    (total,) = default_grid(X, scaling="total")
    np.testing.assert_allclose(total["lam"], 80 * np.sort(LAMS_JMLR))
    degrees = default_grid(X, kernel="poly")
    assert [part["kernel__degree"] for part in degrees] == [[1], [2], [3]]
    assert degrees[2]["lam"][0] > degrees[0]["lam"][0]


def test_labels_add_larger_lams():
    (grid,) = default_grid(X, y > 0)
    assert set(grid["lam"]) == set(LAMS_JMLR) | set(LAMS_ICML)
    (grid,) = default_grid(X, y)
    assert set(grid["lam"]) == set(LAMS_JMLR)


def test_searches_take_them():
    grid = default_grid(X, y, kernel=["rbf", "linear"])
    search = KernelSearchCV(KernelRegressor(), grid, cv=5).fit(X, y)
    assert search.best_score_ > 0.95
    search = KernelSearchCV(KernelClassifier(), default_grid(X, y > 0), cv=5).fit(X, y > 0)
    assert search.best_score_ > 0.85


def test_odd_samples():
    with pytest.raises(ValueError, match=r"all rows of X .* are equal"):
        bandwidths(np.ones((9, 2)))
    with pytest.raises(ValueError, match="at least two"):
        bandwidths(np.ones((1, 2)))
    twins = np.repeat(np.arange(3.0), 20)[:, None]
    assert (bandwidths(twins) > 0).all()
    np.testing.assert_allclose(bandwidths(sparse.csr_array(X)), bandwidths(X))
    assert default_grid(np.zeros((5, 2)), kernel="linear")[0]["lam"] == sorted(LAMS_JMLR)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "rbff"}, "did you mean 'rbf'"),
        ({"style": "quantile"}, "did you mean 'quantiles'"),
        ({"scaling": "sum"}, "Known: 'mean', 'total'"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        default_grid(X, **options)
