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
    write_report(regression, folder / "regression.html", title=HOSTILE, target=LINK)
    X, y = load_iris(return_X_y=True)
    labels = np.array([f"{one}{HOSTILE}{LINK}" for one in "abc"], dtype=object)[y]
    classes = KernelSearchCV(KernelClassifier(), GRID, cv=4).fit(X, labels)
    compare_criteria(classes, X, labels, ["gcv"])
    write_report(classes, folder / "classes.html", title=HOSTILE, target=LINK)
    grid = {"gamma": [0.01, 0.1, 1.0], "lam": np.logspace(-6, 0, 13).tolist()}
    many = KernelSearchCV(KernelClassifier(), grid, cv=3).fit(X, y)
    write_report(many, folder / "many.html", rows=load_iris(as_frame=True).data)
    return folder


def open_page(browser, path, fresh=False):
    """Show a page, unless it is shown already and need not be a fresh one."""
    if browser.current_url == path.as_uri() and not fresh:
        return
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(path.as_uri())


def requested(browser) -> list[str]:
    found = []
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            found.append(message["params"]["request"]["url"])
    return found


@pytest.mark.parametrize(("page", "figures"), [("classes", 3), ("regression", 3)])
def test_the_page_is_quiet_and_whole(browser, pages, page, figures):
    path = pages / f"{page}.html"
    open_page(browser, path, fresh=True)
    drawn = browser.execute_script("return document.querySelectorAll('figure svg').length")
    assert drawn == figures
    assert [entry["message"] for entry in browser.get_log("browser")] == []
    outside = [url for url in requested(browser) if not url.startswith("data:")]
    assert outside == [path.as_uri()]


@pytest.mark.parametrize("page", ["regression", "classes"])
def test_markup_in_names_is_text(browser, pages, page):
    open_page(browser, pages / f"{page}.html")
    run = browser.execute_script
    assert run("return window.hurt") is None
    assert run("return document.querySelectorAll('img, script, [onerror], [onclick]').length") == 0
    inner = "return [...document.querySelectorAll('a')].map(a => a.getAttribute('href') ?? '')"
    assert [href for href in run(inner) if not href.startswith("#")] == []
    assert run("return document.querySelector('h1').textContent").startswith(HOSTILE)
    text = run(
        "return [...document.querySelectorAll('svg text, td')].map(t => t.textContent).join()"
    )
    assert "<a href=" in text  # drawn literally


def test_figures_have_a_description_and_a_size(browser, pages):
    open_page(browser, pages / "classes.html")
    unfold(browser)
    found = browser.execute_script(
        "return [...document.querySelectorAll('[role=img]')].map(e => [e.ariaLabel,"
        "e.getBoundingClientRect().width, e.getBoundingClientRect().height])"
    )
    assert found
    for label, width, height in found:
        assert len(label) > 20
        assert width > 300
        assert height > 150


def unfold(browser):
    browser.execute_script("document.querySelectorAll('details').forEach(e => e.open = true)")


def test_everything_is_reached_by_the_keyboard(browser, pages):
    """The tab key stops at links, at tables that scroll, and at folded parts, which Enter opens."""
    from selenium.webdriver.common.keys import Keys

    open_page(browser, pages / "many.html", fresh=True)
    seen = []
    for _ in range(60):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        name = browser.switch_to.active_element.tag_name
        if name == "body":
            break
        seen.append(name)
        if name == "summary":
            browser.switch_to.active_element.send_keys(Keys.ENTER)
    run = browser.execute_script
    assert run("return [...document.querySelectorAll('details')].every(e => e.open)")
    count = "return document.querySelectorAll('a, summary, .wide').length"
    assert len(seen) >= run(count)
    assert {"a", "summary", "div"} == set(seen)


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("page", ["regression", "classes", "many"])
def test_nothing_is_cut_off_at_either_width(browser, pages, page, width, tmp_path):
    """Nothing is wider than the screen, and the score is seen without moving anything."""
    phone = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    try:
        open_page(browser, pages / f"{page}.html", fresh=True)
        run = browser.execute_script
        assert run("return document.documentElement.scrollWidth") <= width
        unfold(browser)
        assert run("return document.documentElement.scrollWidth") <= width
        right = "#candidates td:nth-child(2)"
        edge = f"return document.querySelector('{right}').getBoundingClientRect().right"
        assert run(edge) <= width
        sizes = run("return [...document.querySelectorAll('figure svg')].map(e => "
                    "[e.getBoundingClientRect().right, e.getScreenCTM().a])")  # fmt: skip
        assert len(sizes) >= 3
        assert all(end <= width and 10 * scale >= 8.5 for end, scale in sizes)
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
    asked = [("figure svg text", "fill"), ("figure svg path[style*=blue]", "stroke"),
             ("body", "backgroundColor")]  # fmt: skip
    seen = []
    for scheme in ("light", "dark"):
        media(scheme)
        open_page(browser, pages / "regression.html", fresh=True)
        seen.append([browser.execute_script(style, *one) for one in asked])
    assert seen == [
        ["rgb(27, 31, 36)", "rgb(47, 111, 201)", "rgb(255, 255, 255)"],
        ["rgb(232, 234, 237)", "rgb(106, 166, 242)", "rgb(22, 25, 29)"],
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
    texts = "h1, h2, h3, p, a, li, th, td, dt, dd, caption, summary, figcaption, footer, svg text"
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
    media("dark")  # on paper it is light nevertheless
    open_page(browser, pages / "regression.html", fresh=True)
    pdf = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    assert len(pdf) > 10_000
    media("dark", "print")
    style = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
    assert browser.execute_script(style, "nav", "display") == "none"
    assert browser.execute_script(style, "body", "backgroundColor") == "rgb(255, 255, 255)"
