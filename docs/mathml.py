"""Formulas as MathML, made while MkDocs builds; ``mkdocs.yml`` lists this file under ``hooks``.

Pages have TeX between dollars. ``pymdownx.arithmatex`` marks it, and here it becomes MathML, which
browsers draw by themselves: a page that is opened from disk needs no script and no network.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from xml.etree import ElementTree

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>([.,:;?)]*)', re.DOTALL
)
OPEN = '<mo stretchy="false">&#x00028;'

#: what browsers need to be told to space a formula as TeX does
SPACING = (
    # bars of absolute values and norms, slashes and periods are no relations
    (
        r'<mo(?: (?:fence|stretchy)="false")*>(&#x0007C;|&#x02016;|&#x0002F;|&#x0002E;)</mo>',
        r'<mo stretchy="false" lspace="0em" rspace="0em">\1</mo>',
    ),
    # a minus behind another operator is a sign
    (
        r"(<mo[^>]*>(?:&#x0003D;|&#x00028;|&#x0002C;)</mo>(?:<mspace[^>]*>)?)<mo>&#x02212;</mo>",
        r'\1<mo form="prefix">&#x02212;</mo>',
    ),
    # names of functions: close to their parenthesis, a thin space elsewhere
    (rf"<mo>([a-z]{{2,}})</mo>(?={OPEN})", r'<mo lspace="0.17em" rspace="0em">\1</mo>'),
    (r"<mo>([a-z]{2,})</mo>", r'<mo lspace="0.17em" rspace="0.17em">\1</mo>'),
    (r'(^<math[^>]*><mrow>|</mo>)(<msub>)?<mo lspace="0.17em"', r'\1\2<mo lspace="0em"'),
)
BOLD_DIGIT = re.compile(r'<mn mathvariant="bold">(\d)</mn>')


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Replace the formulas of a page; one that cannot be converted is an error.

    Punctuation behind a formula goes with it, so that no line begins with a comma.
    """

    def replaced(found: re.Match[str]) -> str:
        tag, tex = found[1], unescape(found[2]).strip()
        try:
            formula = mathml(tex, display=tag == "div")
        except Exception as error:
            raise PluginError(f"{page.file.src_uri}: no MathML for {tex!r} ({error})") from error
        return f'<{tag} class="arithmatex">{formula}{found[3]}</{tag}>'

    return FORMULA.sub(replaced, html)


def mathml(tex: str, display: bool) -> str:
    """A formula as a ``math`` element."""
    text = convert(tex, display="block" if display else "inline")
    for pattern, spaced in SPACING:
        text = re.sub(pattern, spaced, text)
    text = BOLD_DIGIT.sub(lambda found: f"<mn>&#x{0x1D7CE + int(found[1]):X};</mn>", text)
    ElementTree.fromstring(text)
    if "\\" in text:
        raise ValueError("a command is not known")
    return text
