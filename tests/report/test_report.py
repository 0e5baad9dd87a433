"""The HTML file: what is in it, and that it needs nothing else."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_friedman1

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit._format import number, percent
from onefit.diagnostics import influence
from onefit.features import Nystrom
from onefit.heldout import Influence
from onefit.learning import learning_curve
from onefit.losses import Expectile, Quantile
from onefit.permutation import permutation_test
from onefit.report import compare_criteria, write_report

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

X, y = make_friedman1(50, random_state=0)
Z, classes = load_iris(return_X_y=True)
GRID = {"gamma": [0.01, 0.1], "lam": [1e-4, 1e-2, 1.0]}
HOSTILE = "-->]]></svg></script><b onclick=x>&amp;\u2028%{x}${y}{{ 1 }}"


class Page(HTMLParser):
    """The tags of a page, and its text without drawings."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.source = text
        self.feed(text)
        self.ids = {attrs["id"] for tag, attrs in self.tags if "id" in attrs}

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))

    @property
    def figures(self) -> list[str]:
        """What the figures show, in words."""
        return [attrs["aria-label"] for _, attrs in self.tags if attrs.get("role") == "img"]

    def part(self, name: str) -> str:
        """The source of a section."""
        end = "</details>" if f'<details id="{name}"' in self.source else "</section>"
        return self.source.partition(f'id="{name}"')[2].partition(end)[0]

    def table(self, title: str) -> list[list[str]]:
        """The cells of a table."""
        body = self.source.partition(f'aria-label="{title}"')[2].partition("</tbody>")[0]
        rows = body.partition("<tbody>")[2].split("</tr>")
        found = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.S) for row in rows]
        return [row for row in found if row]


def make(folder, search, **options) -> Page:
    path = write_report(search, folder / "r.html", **options)
    return Page(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def regression():
    return KernelSearchCV(KernelRegressor(), GRID, cv=5).fit(X, y)


def test_the_verdict_comes_first_in_plain_words(regression, tmp_path):
    page = make(tmp_path, regression, title="Friedman", target="yield")
    missed = np.abs(y - regression.heldout_.predictions)
    half, most = (number(float(np.quantile(missed, share))) for share in (0.5, 0.9))
    top = page.part("verdict")
    said = f"Predictions of yield are typically off by {half}; 9 of 10 rows are within {most}."
    assert said in top
    headline = regression.headline_
    ratio = np.sqrt((1 - headline.baseline) / (1 - headline.score))
    assert f"this is {ratio:.2g} times better than always predicting the mean" in top
    low, high = headline.interval
    assert f"{number(low)} to {number(high)}" in top
    assert top.count("<strong>") == 3
    assert "of the expected R²" in top
    assert any("held-out prediction for 50 rows" in one for one in page.figures)
    assert "Warning" not in page.source


def test_the_parts_of_the_page(regression, tmp_path):
    page = make(tmp_path, regression)
    assert {"verdict", "data", "candidates", "specialists", "plan", "again"} <= page.ids
    assert not {"criteria", "relevance"} & page.ids
    assert [attrs["id"] for tag, attrs in page.tags if tag == "section"] == [
        "verdict", "data", "candidates", "specialists",
    ]  # fmt: skip
    assert len(page.figures) == 3
    assert all(len(one) > 20 for one in page.figures)
    assert "Exact: held-out predictions of the choice equal those of refitting" in page.part("plan")


def test_without_held_out_values_the_metric_remains(tmp_path):
    search = KernelSearchCV(KernelRegressor(), GRID, cv=3).fit(X, y)
    del search.heldout_  # as with very many streamed rows
    page = make(tmp_path, search)
    assert len(page.figures) == 2
    assert "95\u00a0% interval of the expected R²" in page.source


def test_a_classification(tmp_path):
    search = KernelSearchCV(KernelClassifier(), GRID, cv=3).fit(Z, classes)
    page = make(tmp_path, search)
    right = np.mean(search.heldout_.labels == classes)
    top = page.part("verdict")
    assert f"{percent(right)} of the rows get the right label while they are held out" in top
    assert f"always predicting the most frequent class (0) is right for {percent(1 / 3)}" in top
    assert sum("Confusion matrix" in one for one in page.figures) == 1
    assert not any("Reliability" in one for one in page.figures)  # no probabilities
    recall = [np.mean(search.heldout_.labels[classes == one] == one) for one in range(3)]
    assert [row[2] for row in page.table("Class by class")] == [percent(one) for one in recall]


@pytest.mark.parametrize("loss", ["log", "squared"])
def test_probabilities_have_a_reliability_curve(tmp_path, loss):
    search = KernelSearchCV(KernelClassifier(loss=loss), {"lam": [1e-2]}, cv=3).fit(Z, classes)
    given = {} if loss == "log" else {"calibrated": search.calibrate("sigmoid")}
    page = make(tmp_path, search, **given)
    assert any("Reliability" in one for one in page.figures)


def test_a_choice_that_does_not_beat_the_baseline_is_marked(tmp_path):
    rare = (np.arange(classes.size) % 30 == 0).astype(int)
    search = KernelSearchCV(KernelClassifier(), GRID, cv=3, aggregate="pooled").fit(Z, rare)
    top = make(tmp_path, search).part("verdict")
    assert "Warning:" in top
    assert "the baseline (always the most frequent class)" in top
    assert f"0 ({percent(29 / 30)}), 1 ({percent(1 / 30)})" in top
    assert not (search.heldout_.labels == 1).any()
    assert f"<strong>{percent(0.5)}</strong><span>balanced accuracy" in top


def test_quantiles_are_judged_by_their_shares(tmp_path):
    search = KernelSearchCV(KernelRegressor(Quantile([0.2, 0.8])), {"lam": [1e-2]}, cv=3)
    search.fit(X, y)
    below = (y[:, None] <= search.heldout_.predictions).mean(axis=0)
    top = make(tmp_path, search).part("verdict")
    assert f"{percent(below[0])} are below the predicted 0.2 quantile" in top
    assert f"{percent(below[1])} are below the predicted 0.8 quantile" in top
    single = KernelSearchCV(KernelRegressor(Quantile(0.8)), {"lam": [1e-2]}, cv=3)
    below = np.mean(y <= single.fit(X, y).heldout_.predictions)
    page = make(tmp_path, single)
    assert page.figures[0].endswith(f"; {percent(below)} of the rows are below the line.")


def test_the_data_are_described(regression, tmp_path):
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame(
        {
            "id": np.arange(100_000, 100_050),
            "sold": pandas.date_range("2021-03-01", periods=50),
            "size": np.where(np.arange(50) < 5, np.nan, 20_000.5),
            "<town>": ["Gent", "Leuven"] * 25,
        }
    )
    options = {"about": {"preprocessing": "3 <of> 5"}, "notes": ["7 rows were dropped"],
               "reasons": ["squared loss: fast"]}  # fmt: skip
    page = make(tmp_path, regression, rows=rows, command="onefit select a.csv", **options)
    data = page.part("data")
    for words in ("<dd>50</dd>", "3 &lt;of&gt; 5", "<li>7 rows were dropped.</li>",
                  "<li>Squared loss: fast.</li>", "5 (2.5\u00a0% of all cells)"):  # fmt: skip
        assert words in data
    columns = page.table("Columns")
    assert columns[0] == ["id", "number", "0.0\u00a0%", "50", "100000 to 100049"]
    assert '<th scope="col" class="n">missing</th>' in data
    assert '<th scope="col">type</th>' in data
    assert columns[1][-1] == "2021-03-01 to 2021-04-19"
    assert columns[2][2] == "10.0\u00a0%"
    assert columns[3] == ["&lt;town&gt;", "text", "0.0\u00a0%", "2", "Gent, Leuven"]
    assert all(re.fullmatch(r"1000\d\d", row[4]) for row in page.table(INFLUENTIAL))
    assert all(row[5].startswith("2021-") for row in page.table(INFLUENTIAL))
    assert "onefit select a.csv" in page.part("again")
    copies = pandas.DataFrame({"a": [1.0] * 3 + list(range(2, 49))})
    assert "2 rows equal an earlier row" in make(tmp_path, regression, rows=copies).source


INFLUENTIAL = "Rows with the largest influence"


def test_the_most_influential_row_comes_first(regression, tmp_path):
    pull = np.square(influence(regression.best_estimator_, X, y)).mean(axis=1)
    first = make(tmp_path, regression).table(INFLUENTIAL)[0]
    assert int(first[0]) == pull.argmax()
    assert first[3] == number(float(np.sqrt(pull.max())) / 50)


def test_influence_is_that_of_the_weighted_fit(tmp_path):
    """The change of all predictions when the weight of a row is doubled."""
    s = np.random.default_rng(0).uniform(0.2, 5.0, 50)
    search = KernelSearchCV(KernelRegressor(), {"lam": [1e-2]}).fit(X, y, sample_weight=s)
    first = make(tmp_path, search).table(INFLUENTIAL)[0]
    more = s * (1.0 + 1e-5 * (np.arange(50) == int(first[0])))
    best, again = search.best_estimator_, KernelRegressor(lam=1e-2).fit(X, y, sample_weight=more)
    change = np.square((again.predict(X) - best.predict(X)) / 1e-5).mean() ** 0.5
    assert float(first[3]) == pytest.approx(change, rel=1e-2)


def test_rows_of_many_have_the_largest_errors(tmp_path):
    many, target = make_friedman1(1600, noise=1.0, random_state=0)
    search = KernelSearchCV(KernelRegressor(), {"lam": [1e-2]}, cv=3).fit(many, target)
    first = make(tmp_path, search).table("Rows with the largest error")[0]
    assert int(first[0]) == np.abs(target - search.heldout_.predictions).argmax()


def test_rows_must_be_a_table_of_the_same_rows(regression, tmp_path):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match="rows must be a pandas DataFrame, got ndarray"):
        make(tmp_path, regression, rows=X)
    with pytest.raises(ValueError, match="rows has 49 rows, and the search was fitted to 50"):
        make(tmp_path, regression, rows=pandas.DataFrame(X[1:]))


def test_hostile_text_is_escaped_everywhere(tmp_path):
    pandas = pytest.importorskip("pandas")
    labels = np.array([f"{HOSTILE}{one}" for one in "abc"], dtype=object)[classes]
    search = KernelSearchCV(KernelClassifier(), GRID, cv=3).fit(Z, labels)
    rows = pandas.DataFrame({HOSTILE: labels})
    about = {"title": HOSTILE, "target": HOSTILE, "about": {HOSTILE: HOSTILE},
             "notes": [HOSTILE], "reasons": [HOSTILE], "command": HOSTILE}  # fmt: skip
    page = make(tmp_path, search, rows=rows, **about)
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"b", "script"}
    assert not any("onclick" in attrs for _, attrs in page.tags)
    assert "&lt;b onclick" in page.source


def test_nothing_is_fetched_and_no_script_runs(regression, tmp_path):
    page = make(tmp_path, regression)
    assert not any("src" in attrs for _, attrs in page.tags)
    links = [attrs[name] for _, attrs in page.tags for name in attrs if name.endswith("href")]
    assert links
    assert all(link.startswith(("#", "data:")) for link in links)
    assert "default-src 'none'" in page.source
    assert "script-src" not in page.source


def test_ids_are_unique_and_links_lead_somewhere(regression, tmp_path):
    page = make(tmp_path, regression)
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [attrs[name] for _, attrs in page.tags for name in attrs if name.endswith("href")]
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    clips = set(re.findall(r"url\(#([^)]*)\)", page.source))
    assert clips <= set(ids)


class Largest:
    """A criterion that prefers the largest lam."""

    name = "largest <lam>"

    def check(self, problem):
        pass

    def evaluate(self, evidence):
        return -np.array(evidence.lams), [""] * len(evidence.lams)


def test_candidates_are_ranked_by_what_chose(tmp_path):
    search = KernelSearchCV(KernelRegressor(), GRID, cv=3, criterion=Largest()).fit(X, y)
    page = make(tmp_path, search)
    best = search.cv_results_["mean_test_score"][search.best_index_]
    first = page.table("All 6 candidates")[0]
    assert first[:2] == ["1", number(float(best), 4)]  # rank and score come first
    assert first[3] == "-1.000"  # the criterion, which is minus the lam
    rows = page.table("What each criterion would choose")
    assert [row[0] for row in rows] == ["cv", "largest &lt;lam&gt;"]
    scores = search.cv_results_["mean_test_score"]
    assert rows[1][4].startswith(number(float(scores.max() - best), 2))


def test_criteria_are_compared(tmp_path):
    search = KernelSearchCV(KernelRegressor(), GRID, cv=3).fit(X, y)
    compare_criteria(search, X, y, ["loo", "gcv"])
    page = make(tmp_path, search)
    assert [row[0] for row in page.table("What each criterion would choose")] == [
        "cv",
        "loo",
        "gcv",
    ]
    assert "criteria" in page.ids


def test_the_search_writes_its_own_report(regression, tmp_path):
    path = regression.report(tmp_path / "own.html", title="Mine")
    assert "<h1>Mine</h1>" in path.read_text(encoding="utf-8")


def test_the_edge_of_the_grid_is_named(tmp_path):
    inside = KernelSearchCV(KernelRegressor(), {"lam": [1e-12, 1e-3, 1e6]}, cv=5).fit(X, y)
    assert inside.best_params_["lam"] == 1e-3
    assert "edge of the grid" not in make(tmp_path, inside).source
    outside = KernelSearchCV(KernelRegressor(), {"lam": [1e-3, 1e5, 1e6]}, cv=5).fit(X, y)
    page = make(tmp_path, outside)
    assert "edge of the grid: lam is the smallest tried" in page.part("candidates")


@pytest.mark.parametrize(
    "options",
    [
        {"method": "race", "estimator": KernelRegressor(loss="huber")},
        {"method": Influence(order=1)},
        {"refit": False},
        {"aggregate": "median"},
        {"refit": lambda table: 0},
        {"param_grid": {"loss": ["huber", "squared"], "lam": [1e-2, 1.0]}},
        {"param_grid": {"gamma": ["scale", 0.1], "lam": [1e-2, 1.0]}},
        {"param_grid": {}},
        {"scoring": "neg_root_mean_squared_error"},
        {"scoring": "explained_variance"},
    ],
)
def test_other_searches(tmp_path, options):
    search = KernelSearchCV(KernelRegressor(), GRID, cv=3).set_params(**options).fit(X, y)
    page = make(tmp_path, search)
    assert "typically off by" in page.part("verdict")
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", page.source, flags=re.S)
    assert bool(page.table(INFLUENTIAL)) == (search.refit is not False)


def test_other_data(tmp_path):
    K = X @ X.T
    search = KernelSearchCV(KernelRegressor(kernel="precomputed"), {"lam": [1e-2, 1.0]}, cv=3)
    assert make(tmp_path, search.fit(K, y)).table(INFLUENTIAL)
    search = KernelSearchCV(KernelRegressor(), GRID, cv=3).fit(sparse.csr_matrix(X), y)
    assert make(tmp_path, search).table(INFLUENTIAL)
    many = np.column_stack([y, -y])
    search = KernelSearchCV(KernelRegressor(), GRID, cv=3).fit(X, many)
    page = make(tmp_path, search, target="yield")
    assert [one.split()[:2] for one in page.figures[:2]] == [["yield", "1"], ["yield", "2"]]
    levels = KernelRegressor(Expectile([0.2, 0.8]))
    search = KernelSearchCV(levels, {"lam": [1e-2, 1.0]}, cv=3).fit(X, y)
    page = make(tmp_path, search, target="yield")
    assert [one.split()[:2] for one in page.figures[:2]] == [["yield", "1"], ["yield", "2"]]
    assert "quantile" not in page.part("verdict")
    search = KernelSearchCV(KernelClassifier(), GRID, cv=3, refit=False).fit(Z, classes)
    assert any("Confusion matrix" in one for one in make(tmp_path, search).figures)


def test_candidates_without_a_score_are_gaps(tmp_path):
    search = KernelSearchCV(KernelRegressor(), GRID, cv=5).fit(X, y)
    failed = 5 if search.best_index_ != 5 else 4
    table = search.cv_results_
    for name in [name for name in table if "_test_score" in name and "rank" not in name]:
        table[name][failed] = np.nan
    rows = make(tmp_path, search).table("All 6 candidates")
    assert [row[1] for row in rows].count("–") == 1


def test_a_page_of_many_rows_and_candidates_stays_small(tmp_path):
    many, target = make_friedman1(3000, random_state=0)
    grid = {"gamma": np.logspace(-3, 0, 3).tolist(), "lam": np.logspace(-6, 2, 400).tolist()}
    estimator = KernelRegressor(approximation=Nystrom(20))
    search = KernelSearchCV(estimator, grid, cv=3).fit(many, target)
    page = make(tmp_path, search)
    assert len(page.source.encode()) < 1_000_000
    assert "The best 500 of 1,200 candidates" in page.source


def test_further_results_are_shown_with_their_figures(tmp_path):
    X, y = make_friedman1(60, random_state=0)
    search = KernelSearchCV(KernelRegressor(gamma=0.3), {"lam": [1e-3, 1e-1]}, cv=3).fit(X, y)
    tested = permutation_test(search, X, y, n_permutations=19)
    curve = learning_curve(search, X, y, train_sizes=[10, 20, 30], cv=3)
    plain = write_report(search, tmp_path / "plain.html").read_text()
    page = write_report(search, tmp_path / "both.html", further=[tested, curve]).read_text()
    assert "Further results" not in plain
    assert page.count("<svg") == plain.count("<svg") + 2
    assert f"p-value of the whole search {tested.pvalue:.3g}" not in plain
    assert f"P-value of the whole search {tested.pvalue:.3g}" in page
    assert f"{curve.mean[-1]:.4g} from 30." in page
