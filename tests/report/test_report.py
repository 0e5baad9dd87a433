"""The HTML file: what is in it, and that it needs nothing else."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_friedman1

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.diagnostics import influence
from onefit.heldout import Influence
from onefit.report import compare_criteria, write_report
from onefit.report.facts import Facts
from onefit.report.sections import sections
from onefit.scoring import one_standard_error
from onefit.stream import Nystrom

pytest.importorskip("jinja2")

X, y = make_friedman1(50, random_state=0)
Z, classes = load_iris(return_X_y=True)
GRID = {"gamma": [0.01, 0.1], "lam": [1e-4, 1e-2, 1.0]}
HOSTILE = "</script><b onclick=x>&amp;\u2028%{x}${y}{{ 1 }}"


class Page(HTMLParser):
    """Titles, links and labels of a page, and the data of its figures."""

    def __init__(self, text: str, figures: dict[str, Any]) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.figures = figures

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))

    @property
    def sections(self) -> list[str | None]:
        return [attrs["id"] for tag, attrs in self.tags if tag == "section"]


def make(folder, search, **options) -> tuple[Page, str]:
    path = write_report(search, folder / "r.html", **options)
    text = path.read_text(encoding="utf-8")
    parts = sections(Facts(search), options.get("y"), options.get("target", "target"))
    return Page(text, {one.anchor: one.figure for one in parts if one.figure}), text


@pytest.fixture(scope="module")
def regression():
    return KernelSearchCV(KernelRegressor(), GRID, cv=5).fit(X, y)


def test_sections_of_a_regression(regression, tmp_path):
    page, text = make(tmp_path, regression, y=y, title="Friedman", target="yield")
    parts = ["ranking", "surface-0", "curve", "heldout", "residuals", "influence", "plan"]
    assert page.sections == ["summary", "expected", *parts, "again", "methods"]
    heat = page.figures["surface-0"]["data"][0]
    scores = regression.cv_results_["mean_test_score"].reshape(2, 3)
    np.testing.assert_allclose(heat["z"], scores)
    points = page.figures["heldout"]["data"][0]
    np.testing.assert_allclose(points["x"], regression.heldout_.predictions)
    np.testing.assert_allclose(points["y"], y)
    bars = page.figures["curve"]["data"][0]["error_y"]["array"]
    assert len(bars) == 3
    assert "equal those of refitting every split" in text


def test_every_figure_is_described(regression, tmp_path):
    page, _ = make(tmp_path, regression, y=y)
    drawn = [attrs for _, attrs in page.tags if "data-figure" in attrs]
    assert {attrs["data-figure"] for attrs in drawn} == set(page.figures)
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in drawn)


def test_the_most_influential_row_comes_first(regression, tmp_path):
    _, text = make(tmp_path, regression, y=y)
    pull = influence(regression.best_estimator_, X, y)
    first = re.search(r'id="influence".*?<tbody>\s*<tr><td>(\d+)</td>', text, re.S)
    assert int(first[1]) == np.square(pull).mean(axis=1).argmax()


def test_without_targets_there_is_no_truth(regression, tmp_path):
    page, _ = make(tmp_path, regression)
    parts = ["ranking", "surface-0", "curve", "plan", "again", "methods"]
    assert page.sections == ["summary", "expected", *parts]


def test_sections_of_a_classification(tmp_path):
    search = KernelSearchCV(KernelClassifier(), GRID, cv=3).fit(Z, classes)
    page, _ = make(tmp_path, search, y=classes)
    assert {"roc", "confusion", "calibration"} <= set(page.sections)
    counts = np.array(page.figures["confusion"]["data"][0]["z"])
    assert counts.sum() == classes.size
    assert np.trace(counts) / classes.size == pytest.approx(
        np.mean(search.heldout_.predictions.argmax(axis=1) == classes)
    )
    assert len(page.figures["roc"]["data"]) == 4
    assert len(page.figures["calibration"]["data"]) == 4


def test_the_baseline_is_beside_the_error(regression, tmp_path):
    _, text = make(tmp_path, regression, y=y)
    found = regression.headline_
    for words in ("always the mean", f"{found.score:.4g}", f"{found.baseline:.4g}"):
        assert words in text
    assert "Look twice" not in text


def test_a_choice_that_does_not_beat_the_baseline_is_told(tmp_path):
    rare = (np.arange(classes.size) % 30 == 0).astype(int)
    search = KernelSearchCV(KernelClassifier(), GRID, cv=3, aggregate="pooled").fit(Z, rare)
    _, text = make(tmp_path, search, y=rare)
    assert "Look twice:" in text
    assert "the baseline (always the most frequent class)" in text
    assert "shares of the classes 0 (96.7%), 1 (3.3%)" in text


def test_calibration_curves_are_those_of_held_out_probabilities(tmp_path):
    from sklearn.calibration import calibration_curve

    two = classes > 1
    search = KernelSearchCV(KernelClassifier(loss="log"), {"lam": [1e-2]}, cv=3).fit(Z, two)
    page, text = make(tmp_path, search, y=two)
    curve = page.figures["calibration"]["data"][0]
    happened, said = calibration_curve(two, search.heldout_.proba[:, 1], n_bins=10,
                                       strategy="quantile")  # fmt: skip
    np.testing.assert_allclose(curve["x"], said)
    np.testing.assert_allclose(curve["y"], happened)
    assert "by the loss itself" in text


def test_two_classes_have_one_curve(tmp_path):
    two = classes > 0
    search = KernelSearchCV(KernelClassifier(), {"lam": [1e-4, 1.0]}, cv=3).fit(Z, two)
    page, _ = make(tmp_path, search, y=two)
    assert "surface-0" not in page.figures
    assert len(page.figures["roc"]["data"]) == 2


def test_hostile_text_is_escaped_everywhere(tmp_path):
    labels = np.array([f"{HOSTILE}{one}" for one in "abc"], dtype=object)[classes]
    search = KernelSearchCV(KernelClassifier(), GRID, cv=3).fit(Z, labels)
    page, text = make(tmp_path, search, y=labels, title=HOSTILE, target=HOSTILE)
    plain, _ = make(tmp_path, search, y=labels, title="title", target="target")
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    assert "<b onclick" not in text
    names = page.figures["confusion"]["data"][0]["x"]
    assert all("<b onclick" in name for name in names)  # data are kept, the drawing escapes
    assert "&lt;b onclick" in text


def test_nothing_is_fetched(regression, tmp_path):
    page, text = make(tmp_path, regression, y=y)
    outside = [attrs for _, attrs in page.tags if "src" in attrs]
    assert outside == []
    hrefs = [attrs["href"] for _, attrs in page.tags if "href" in attrs]
    assert all(href.startswith(("#", "data:")) for href in hrefs)
    assert "default-src 'none'" in text


def test_doubtful_cells_are_marked(tmp_path):
    search = KernelSearchCV(KernelRegressor(), GRID, cv=3, method=Influence(order=1)).fit(X, y)
    page, text = make(tmp_path, search, y=y)
    marks = {one["name"]: one for one in page.figures["surface-0"]["data"]}
    doubtful = ~search.cv_results_["exact"]
    assert len(marks["not exact"]["x"]) == doubtful.sum() > 0
    assert len(marks["chosen"]["x"]) == 1
    assert "are approximations" in text


class Largest:
    """A criterion that prefers the largest lam."""

    name = "largest <lam>"

    def check(self, problem):
        pass

    def evaluate(self, evidence):
        return -np.array(evidence.lams), [""] * len(evidence.lams)


def test_criteria_are_compared(tmp_path):
    search = KernelSearchCV(KernelRegressor(), GRID, cv=3, criterion=Largest()).fit(X, y)
    page, text = make(tmp_path, search, y=y)
    assert {"criteria", "criteria-curves"} <= set(page.sections)
    assert "0 of 1 criteria take the candidate with the best" in text
    points, best = page.figures["criteria"]["data"]
    assert points["y"] == ["cv", "largest <lam>"]
    scores = search.cv_results_["mean_test_score"]
    np.testing.assert_allclose(points["x"], [scores.max(), scores[search.best_index_]])
    np.testing.assert_allclose(best["x"], scores.max())
    assert "<b onclick" not in text


def test_curves_of_criteria_follow_their_kernels(tmp_path):
    labels = classes.astype(str)
    grid = [{"kernel": ["rbf"], **GRID}, {"kernel": ["linear"], "lam": [1e-2, 1.0]}]
    search = KernelSearchCV(KernelClassifier(), grid, cv=3, scoring="accuracy").fit(Z, labels)
    compare_criteria(search, Z, labels, ["loo", "gcv"])
    figure = make(tmp_path, search)[0].figures["criteria-curves"]
    assert len(figure["data"]) == 6
    table = search.cv_results_
    for place, name in ((2, "loo"), (4, "gcv")):
        line, star = figure["data"][place : place + 2]
        column = table[f"criterion_{name}"]
        pick = int(column.argmin())
        assert star["x"] == [table["params"][pick]["lam"]]
        assert star["y"] == pytest.approx([column[pick]])
        assert min(line["y"]) == star["y"][0]
        assert line["yaxis"] == f"y{place // 2 + 1}"
        assert figure["layout"][f"yaxis{place // 2 + 1}"]["title"]["text"] == name
    assert figure["layout"]["yaxis"]["title"]["text"] == "error rate"
    assert min(figure["data"][0]["y"]) == pytest.approx(1 - table["mean_test_score"].max())


def test_the_search_writes_its_own_report(regression, tmp_path):
    path = regression.report(tmp_path / "own.html", y=y, title="Mine")
    assert "<h1>Mine</h1>" in path.read_text(encoding="utf-8")


def test_the_edge_of_the_grid_is_told(regression, tmp_path):
    inside = KernelSearchCV(KernelRegressor(), {"lam": [1e-12, 1e-3, 1e6]}, cv=5).fit(X, y)
    assert inside.best_params_["lam"] == 1e-3
    assert "beyond the grid" not in make(tmp_path, inside)[1]
    outside = KernelSearchCV(KernelRegressor(), {"lam": [1e-3, 1e5, 1e6]}, cv=5).fit(X, y)
    assert "The lam is the smallest tried: better ones may lie beyond" in make(tmp_path, outside)[1]


@pytest.mark.parametrize(
    "options",
    [
        {"method": "race", "estimator": KernelRegressor(loss="huber")},
        {"refit": False},
        {"refit": one_standard_error},
        {"aggregate": "median"},
        {"param_grid": {"loss": ["huber", "squared"], "lam": [1e-2, 1.0]}},
        {"param_grid": {"gamma": ["scale", 0.1], "lam": [1e-2, 1.0]}},
        {"param_grid": {}},
    ],
)
def test_other_searches(tmp_path, options):
    search = KernelSearchCV(KernelRegressor(), GRID, cv=3).set_params(**options).fit(X, y)
    page, _ = make(tmp_path, search, y=y)
    assert {"ranking", "curve", "heldout", "plan"} <= set(page.sections)
    assert ("influence" in page.sections) == (search.refit is not False)


def test_other_data(tmp_path):
    K = X @ X.T
    search = KernelSearchCV(KernelRegressor(kernel="precomputed"), {"lam": [1e-2, 1.0]}, cv=3)
    page, _ = make(tmp_path, search.fit(K, y), y=y)
    assert "influence" in page.sections
    search = KernelSearchCV(KernelRegressor(), GRID, cv=3).fit(sparse.csr_matrix(X), y)
    assert "influence" in make(tmp_path, search, y=y)[0].sections
    many = np.column_stack([y, -y])
    search = KernelSearchCV(KernelRegressor(), GRID, cv=3).fit(X, many)
    assert "heldout" not in make(tmp_path, search, y=many)[0].sections
    search = KernelSearchCV(KernelClassifier(), GRID, cv=3, refit=False).fit(Z, classes)
    assert "confusion" in make(tmp_path, search, y=classes)[0].sections


def test_candidates_without_a_score_are_gaps(tmp_path):
    search = KernelSearchCV(KernelRegressor(), GRID, cv=5).fit(X, y)
    failed = 5 if search.best_index_ != 5 else 4
    table = search.cv_results_
    for name in [name for name in table if "_test_score" in name and "rank" not in name]:
        table[name][failed] = np.nan
    table["reason"][failed] = "not <finite>"
    heat = make(tmp_path, search, y=y)[0].figures["surface-0"]["data"][0]
    assert np.ravel(heat["z"]).tolist().count(None) == 1
    assert "not <finite>" in heat["text"][failed // 3][failed % 3]


def test_the_ranking_shows_what_it_follows(tmp_path):
    search = KernelSearchCV(KernelRegressor(), GRID, cv=3, criterion=Largest()).fit(X, y)
    _, text = make(tmp_path, search)
    first = re.search(r'id="ranking".*?<tbody>\s*<tr>(.*?)</tr>', text, re.S)
    best = search.cv_results_["mean_test_score"][search.best_index_]
    assert first[1].startswith(f"<td>1</td><td>{best:.4g}</td>")  # rank and score come first
    assert "<td>-1</td>" in first[1]  # the criterion, which is minus the lam
    assert '<th scope="col">criterion</th>' in text


def test_the_summary_says_what_the_data_are_and_how_sure_the_choice_is(regression, tmp_path):
    about = {"missing values": "3 <of> 500"}
    _, text = make(tmp_path, regression, y=y, about=about, command="onefit select a.csv")
    top = text.partition('id="summary"')[2].partition("</section>")[0]
    for words in ("<dd>50</dd>", "3 &lt;of&gt; 500", "95% interval", "how sure", "always the mean"):
        assert words in top
    again = text.partition('id="again"')[2]
    assert "onefit select a.csv" in again
    assert "KernelRegressor()" in again
    assert "scikit-learn" in again


def test_influential_rows_have_their_names_and_values(regression, tmp_path):
    pandas = pytest.importorskip("pandas")
    names = [f"plot {i}" for i in range(len(y))]
    rows = pandas.DataFrame(X[:, :3].round(3), columns=["a", "b", "<c>"], index=names)
    text = make(tmp_path, regression, y=y, rows=rows)[1]
    part = text.partition('id="influence"')[2].partition("</section>")[0]
    assert "<td>plot " in part
    assert '<th scope="col">&lt;c&gt;</th>' in part
    with pytest.raises(ValueError, match="rows has 49 rows and y has 50"):
        make(tmp_path, regression, y=y, rows=rows[1:])


def test_classes_are_judged_one_by_one(tmp_path):
    from sklearn.metrics import recall_score

    search = KernelSearchCV(KernelClassifier(), GRID, cv=3).fit(Z, classes)
    text = make(tmp_path, search, y=classes)[1]
    part = text.partition('id="by-class"')[2].partition("</section>")[0]
    for value in recall_score(classes, search.heldout_.labels, average=None):
        assert f"<td>{value:.3f}</td>" in part
    matrix = text.partition('id="confusion"')[2].partition("</svg>")[0]
    assert matrix.count('class="cell') == 9


def test_residuals_are_measured(regression, tmp_path):
    page, text = make(tmp_path, regression, y=y)
    missed = y - regression.heldout_.predictions
    part = text.partition('id="residuals"')[2].partition("</section>")[0]
    assert f"<td>{np.abs(missed).mean():.4g}</td>" in part
    np.testing.assert_allclose(page.figures["residuals"]["data"][0]["y"], missed)


def test_a_page_of_many_rows_and_candidates_stays_small(tmp_path):
    many, target = make_friedman1(3000, random_state=0)
    grid = {"gamma": np.logspace(-3, 0, 3).tolist(), "lam": np.logspace(-6, 2, 400).tolist()}
    estimator = KernelRegressor(approximation=Nystrom(20))
    search = KernelSearchCV(estimator, grid, cv=3).fit(many, target)
    text = make(tmp_path, search, y=target)[1]
    assert len(text.encode()) < 1_500_000
    assert "The best 1000 of 1200" in text


def test_lams_that_look_alike_keep_their_cells(tmp_path):
    lams = [0.1, 0.1 + 1e-9, 0.1 + 2e-9]
    search = KernelSearchCV(KernelRegressor(), {"gamma": [0.1, 1.0], "lam": lams}, cv=3).fit(X, y)
    heat = make(tmp_path, search, y=y)[0].figures["surface-0"]["data"][0]
    assert len(set(heat["x"])) == 3


def test_rows_must_be_a_table(regression, tmp_path):
    with pytest.raises(TypeError, match="rows must be a pandas DataFrame, got ndarray"):
        make(tmp_path, regression, y=y, rows=X)
