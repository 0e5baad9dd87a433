"""The report in a real browser: no error, no request, no markup from the data."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_friedman1

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.report import compare_criteria, write_report
from onefit.report.comparison import write_comparison

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
    grid = {"gamma": [0.01, 0.1, 1.0], "lam": np.logspace(-6, 0, 13).tolist()}
    many = KernelSearchCV(KernelClassifier(), grid, cv=3).fit(X, y)
    write_report(many, folder / "many.html", y=y, rows=load_iris(as_frame=True).data)
    one, other = document(0.25, HOSTILE), document(0.5, LINK)
    write_comparison(one, other, (HOSTILE, LINK), folder / "compared.html")
    return folder


def document(error: float, target: str) -> dict:
    """What a selection prints as JSON, all of whose names are markup."""
    best = {"rank": 1, "params": {HOSTILE: LINK}, "error": error, "standard_error": 0.1,
            "method": "eigen", "interval": [error - 0.1, error + 0.1]}  # fmt: skip
    return {"data": {"file": HOSTILE, "rows": 9, "columns": 2, "target": "t", "seed": 0},
            "task": "regression", "metric": HOSTILE, "best": best, "ranking": [best],
            "reasons": [target], "candidates": 1, "splits": 5}  # fmt: skip


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


@pytest.mark.parametrize(("page", "figures"), [("classes", 7), ("regression", 6)])
def test_the_page_is_quiet_and_whole(browser, pages, page, figures):
    path = pages / f"{page}.html"
    open_page(browser, path, fresh=True)
    drawn = browser.execute_script("return document.querySelectorAll('.figure > svg').length")
    places = browser.execute_script("return document.querySelectorAll('[data-figure]').length")
    assert places == figures
    assert drawn >= figures
    assert [entry["message"] for entry in browser.get_log("browser")] == []
    outside = [url for url in requested(browser) if not url.startswith(("data:", "blob:"))]
    assert outside == [path.as_uri()]


@pytest.mark.parametrize("page", ["regression", "classes", "compared"])
def test_markup_in_names_is_text(browser, pages, page):
    open_page(browser, pages / f"{page}.html")
    run = browser.execute_script
    assert run("return window.hurt") is None
    assert run("return document.querySelectorAll('img, [onerror], [onclick]').length") == 0
    inner = "return [...document.querySelectorAll('a')].map(a => a.getAttribute('href') ?? '')"
    assert [href for href in run(inner) if not href.startswith("#")] == []
    assert run("return document.querySelector('h1').textContent").startswith(HOSTILE)
    shown = "svg text, .legend button, td"
    text = run(f"return [...document.querySelectorAll('{shown}')].map(t => t.textContent).join()")
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
    heat = browser.find_elements("css selector", "#figure-surface-0 rect[data-tip]")[4]
    scroll_to(browser, heat)
    ActionChains(browser).move_to_element_with_offset(heat, 25, 8).perform()
    label = browser.find_element("id", "tip").text
    for words in ("gamma = 0.1", "lam = 0.01", "R² =", "exact, error bound"):
        assert words in label


def test_the_legend_hides_and_shows(browser, pages):
    open_page(browser, pages / "regression.html")
    seen = (
        "return [...document.querySelectorAll('#figure-heldout [data-trace]')]"
        ".map(g => getComputedStyle(g).visibility)"
    )
    assert browser.execute_script(seen) == ["visible", "visible"]
    click(browser, "#heldout .legend button")
    assert browser.execute_script(seen) == ["hidden", "visible"]
    click(browser, "#heldout .legend button")
    assert browser.execute_script(seen) == ["visible", "visible"]


def click(browser, query):
    found = browser.find_element("css selector", query)
    scroll_to(browser, found)
    found.click()


def scroll_to(browser, element):
    """Scroll, and wait for the event of it, which hides labels and comes with the next frame."""
    browser.execute_async_script(
        "const [element, done] = arguments; element.scrollIntoView({block: 'center'});"
        "requestAnimationFrame(() => requestAnimationFrame(done))",
        element,
    )


def column(browser, section, place):
    rows = f"#{section} tbody tr"
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].filter(r => r.offsetHeight)"
        ".map(r => r.cells[arguments[1]].textContent)",
        rows,
        place,
    )


def test_tables_sort_filter_and_unfold(browser, pages):
    open_page(browser, pages / "many.html", fresh=True)
    assert column(browser, "ranking", 0) == [str(i) for i in range(1, 13)]
    click(browser, "#ranking th:nth-child(5) button")  # lam, ascending
    lams = [float(one) for one in column(browser, "ranking", 4)]
    assert len(lams) == 12
    assert lams == sorted(lams)
    click(browser, "#ranking th:nth-child(5) button")
    assert float(column(browser, "ranking", 4)[0]) == 1.0
    browser.find_element("css selector", "#ranking input").send_keys("0.01 1e-06")
    found = list(zip(column(browser, "ranking", 3), column(browser, "ranking", 4), strict=True))
    assert found == [("0.01", "1e-06")]
    browser.execute_script(
        "const i = document.querySelector('#ranking input'); i.value = '';"
        "i.dispatchEvent(new Event('input'))"
    )
    click(browser, "#ranking [data-all]")
    assert len(column(browser, "ranking", 0)) == 39


def test_tables_and_pictures_are_saved(browser, pages):
    open_page(browser, pages / "regression.html", fresh=True)
    browser.execute_script(
        "window.saved = []; const make = URL.createObjectURL;"
        "URL.createObjectURL = (blob) => { blob.text().then(t => saved.push(t)); "
        "return make.call(URL, blob); }"
    )
    click(browser, "#influence [data-save]")
    click(browser, "#curve [data-picture]")
    browser.execute_async_script("setTimeout(arguments[0], 200)")
    table, picture = browser.execute_script("return window.saved")
    assert table.lstrip("\ufeff").startswith("row,truth,held-out value,influence\r\n")
    assert picture.startswith("<svg")
    assert "R²" in picture


@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("page", ["regression", "classes", "many", "compared"])
def test_nothing_is_cut_off_at_either_width(browser, pages, page, width, tmp_path):
    """Nothing is wider than the screen, and the score is seen without moving anything."""
    phone = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    try:
        open_page(browser, pages / f"{page}.html", fresh=True)
        run = browser.execute_script
        assert run("return document.documentElement.scrollWidth") <= width
        if page != "compared":
            right = "#ranking td:nth-child(2)"
            edge = f"return document.querySelector('{right}').getBoundingClientRect().right"
            assert run(edge) <= width
        sizes = run("return [...document.querySelectorAll('.figure > svg')].map(e => "
                    "[e.getBoundingClientRect().right, e.getScreenCTM().a])")  # fmt: skip
        assert all(end <= width and 12 * scale >= 8.5 for end, scale in sizes)
        folder = os.environ.get("ONEFIT_SCREENSHOTS")
        place = tmp_path if folder is None else Path(folder)
        tall = phone | {"height": min(6000, run("return document.documentElement.scrollHeight"))}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", tall)
        picture = place / f"{page}_{width}.png"
        assert browser.save_screenshot(str(picture))
        assert colours(picture) > 20  # a page, not a blank
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def colours(picture) -> int:
    from PIL import Image  # which comes with matplotlib

    with Image.open(picture) as found:
        return len(found.getcolors(2**24))


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
    style = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
    asked = [("#figure-curve text", "fill"), (".grid line", "stroke"), ("body", "backgroundColor")]
    seen = []
    for scheme in ("light", "dark"):
        media(scheme)
        open_page(browser, pages / "regression.html", fresh=True)
        seen.append([browser.execute_script(style, *one) for one in asked])
    assert seen == [
        ["rgb(27, 31, 36)", "rgb(213, 218, 224)", "rgb(255, 255, 255)"],
        ["rgb(232, 234, 237)", "rgb(58, 65, 73)", "rgb(22, 25, 29)"],
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
    texts = "h1, h2, p, a, th, td, dt, dd, button, caption, figcaption, footer, svg text:not(.cell)"
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
    assert browser.execute_script(style, ".tools", "display") == "none"
