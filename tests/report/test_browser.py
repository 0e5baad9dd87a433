"""The report in a real browser: no error, no request, no markup from the data."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_friedman1

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.report import compare_criteria, write_report

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

HOSTILE = "</script><script>window.hurt=1</script><img src=x onerror='window.hurt=1'>"
LINK = "<a href='https://example.com/leak' onclick='window.hurt=1'>name</a>"
GRID = {"gamma": [0.01, 0.1, 1.0], "lam": [1e-4, 1e-2, 1.0]}


@pytest.fixture(scope="module")
def browser():
    program = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("chromium and chromedriver are not installed: make browser")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        "--window-size=1200,900",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=driver)
    found = webdriver.Chrome(options=options, service=service)
    yield found
    found.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A regression and a classification, all of whose names are markup."""
    folder = tmp_path_factory.mktemp("pages")
    X, y = make_friedman1(60, random_state=0)
    regression = KernelSearchCV(KernelRegressor(), GRID, cv=4).fit(X, y)
    compare_criteria(regression, X, y, ["loo", "gcv"])
    write_report(regression, folder / "regression.html", y=y, title=HOSTILE, target=LINK)
    X, y = load_iris(return_X_y=True)
    labels = np.array([f"{one}{HOSTILE}{LINK}" for one in "abc"], dtype=object)[y]
    classes = KernelSearchCV(KernelClassifier(), GRID, cv=4).fit(X, labels)
    compare_criteria(classes, X, labels, ["gcv"])
    write_report(classes, folder / "classes.html", y=labels, title=HOSTILE, target=LINK)
    return folder


def open_page(browser, path, fresh=False):
    """Show a page, unless it is shown already and need not be a fresh one."""
    from selenium.webdriver.support.ui import WebDriverWait

    if browser.current_url == path.as_uri() and not fresh:
        return
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(path.as_uri())
    ready = "return document.documentElement.dataset.ready === 'yes'"
    WebDriverWait(browser, 30).until(lambda one: one.execute_script(ready))


def requested(browser) -> list[str]:
    found = []
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            found.append(message["params"]["request"]["url"])
    return found


@pytest.mark.parametrize(("page", "figures"), [("classes", 7), ("regression", 5)])
def test_the_page_is_quiet_and_whole(browser, pages, page, figures):
    path = pages / f"{page}.html"
    open_page(browser, path, fresh=True)
    drawn = browser.execute_script("return document.querySelectorAll('.main-svg').length")
    places = browser.execute_script("return document.querySelectorAll('[data-figure]').length")
    assert places == figures
    assert drawn >= figures
    assert [entry["message"] for entry in browser.get_log("browser")] == []
    outside = [url for url in requested(browser) if not url.startswith(("data:", "blob:"))]
    assert outside == [path.as_uri()]


def test_no_button_sends_the_figure_away(browser, pages):
    open_page(browser, pages / "regression.html")
    inner = "[...document.querySelectorAll('#figure-curve .modebar-btn')]"
    titles = browser.execute_script(f"return {inner}.map(one => one.dataset.title)")
    assert titles == [
        "Download plot as a PNG",
        "Zoom",
        "Pan",
        "Zoom in",
        "Zoom out",
        "Reset axes",
    ]


@pytest.mark.parametrize("page", ["regression", "classes"])
def test_markup_in_names_is_text(browser, pages, page):
    open_page(browser, pages / f"{page}.html")
    run = browser.execute_script
    assert run("return window.hurt") is None
    assert run("return document.querySelectorAll('img, [onerror], [onclick]').length") == 0
    inner = "return [...document.querySelectorAll('a')].map(a => a.getAttribute('href') ?? '')"
    assert [href for href in run(inner) if not href.startswith("#")] == []
    assert run("return document.querySelector('h1').textContent") == HOSTILE
    text = run("return [...document.querySelectorAll('svg text')].map(t => t.textContent).join()")
    assert "<a href=" in text  # drawn literally


def test_every_figure_has_a_description_a_title_and_a_size(browser, pages):
    open_page(browser, pages / "classes.html")
    found = browser.execute_script(
        "return [...document.querySelectorAll('[data-figure]')].map(e => [e.getAttribute('role'),"
        "e.getAttribute('aria-label'), e.closest('section').querySelector('h2').textContent,"
        "e.getBoundingClientRect().width, e.getBoundingClientRect().height])"
    )
    for role, label, title, width, height in found:
        assert role == "img"
        assert len(label) > 20
        assert title
        assert width > 300
        assert height > 150
    tables = "return [...document.querySelectorAll('table')].every(t => t.caption.textContent)"
    assert browser.execute_script(tables)


def test_hovering_shows_the_candidate(browser, pages):
    from selenium.webdriver.common.action_chains import ActionChains

    open_page(browser, pages / "regression.html")
    heat = browser.find_element("css selector", "#figure-surface-0 .nsewdrag")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", heat)
    ActionChains(browser).move_to_element(heat).pause(0.5).perform()
    label = browser.find_element("css selector", "#figure-surface-0 .hoverlayer").text
    for words in ("gamma = 0.1", "lam = 0.01", "R² =", "exact, error bound"):
        assert words in label


def test_the_legend_hides_and_shows(browser, pages):
    open_page(browser, pages / "regression.html")
    shown = "return document.getElementById('figure-heldout').data.map(t => t.visible ?? true)"
    assert browser.execute_script(shown) == [True, True]
    entry = browser.find_element("css selector", "#figure-heldout .legendtoggle")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", entry)
    entry.click()
    for _ in range(50):
        if browser.execute_script(shown)[0] == "legendonly":
            break
        browser.execute_async_script("setTimeout(arguments[0], 50)")
    assert browser.execute_script(shown) == ["legendonly", True]


def test_panels_do_not_overlap(browser, pages):
    open_page(browser, pages / "regression.html")
    domains = browser.execute_script(
        "const l = document.getElementById('figure-criteria-curves')._fullLayout;"
        "return ['', 2, 3].map(i => [l['xaxis' + i].domain, l['yaxis' + i].domain])"
    )
    places = [(round(x[0], 3), round(y[0], 3)) for x, y in domains]
    assert len(set(places)) == 3
    assert domains[0][0][1] < domains[1][0][0]


@pytest.fixture
def media(browser):
    """Emulate a colour scheme or print; undone at the end."""

    def emulate(scheme="", medium=""):
        features = [{"name": "prefers-color-scheme", "value": scheme}] if scheme else []
        command = {"media": medium, "features": features}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", command)

    yield emulate
    emulate()


def test_dark_mode_changes_page_and_figures(browser, pages, media):
    ink = "return document.getElementById('figure-curve').layout.font.color"
    grid = "return document.getElementById('figure-criteria-curves').layout.yaxis3.gridcolor"
    paper = "return getComputedStyle(document.body).backgroundColor"
    seen = []
    for scheme in ("light", "dark"):
        media(scheme)
        open_page(browser, pages / "regression.html", fresh=True)
        seen.append([browser.execute_script(one) for one in (ink, grid, paper)])
    assert seen == [
        ["#1b1f24", "#d5dae0", "rgb(255, 255, 255)"],
        ["#e8eaed", "#3a4149", "rgb(22, 25, 29)"],
    ]


def luminance(colour: str) -> float:
    """Of the web's contrast rule (WCAG 2)."""
    parts = [float(one) / 255 for one in colour.partition("(")[2].rstrip(")").split(",")[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(("scheme", "medium"), [("light", ""), ("dark", ""), ("dark", "print")])
def test_all_text_has_contrast(browser, pages, media, scheme, medium):
    media(scheme, medium)
    open_page(browser, pages / "regression.html", fresh=True)
    texts = "h1, h2, p, a, th, td, caption, figcaption, footer, svg text"
    colours = browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].filter(e => e.textContent.trim())"
        ".map(e => e instanceof SVGElement ? getComputedStyle(e).fill : getComputedStyle(e).color)",
        texts,
    )
    paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert len(colours) > 50
    for colour in set(colours):
        low, high = sorted((luminance(colour), luminance(paper)))
        assert (high + 0.05) / (low + 0.05) >= 4.5, colour


def test_it_prints(browser, pages, media):
    media("dark")  # on paper it is light all the same
    open_page(browser, pages / "regression.html", fresh=True)
    pdf = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    assert len(pdf) > 10_000
    media("dark", "print")
    style = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
    assert browser.execute_script(style, "nav", "display") == "none"
    assert browser.execute_script(style, "body", "backgroundColor") == "rgb(255, 255, 255)"
    assert browser.execute_script(style, ".modebar", "display") == "none"
