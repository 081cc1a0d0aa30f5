"""A view → HTML, Markdown and chart files, all in memory. Every string is escaped where it is written."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from html import escape

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from report import svg
from report.view import PageView

SCRIPTS = ("page.js",)
"""Written into the page, each allowed by its hash; without them everything is still there."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """The texts of a page: HTML, Markdown, and each chart's file name with its SVG."""

    html: str
    markdown: str
    charts: tuple[tuple[str, str], ...]


def render(view: PageView) -> Rendered:
    """The view as HTML, as Markdown, and its charts as files of their own."""
    drawings = [panel for w in view.workloads for panel in w.overview]
    drawings += [panel for w in view.workloads for c in w.contests for panel in c.panels]
    drawings += [panel for study in view.claims for panel in study.panels]
    drawings += view.money.panels if view.money else ()
    drawings += [one.panel for one in view.limits if one.panel]
    html = Environment(
        loader=PackageLoader("report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    html.filters["drawing"] = Markup
    html.filters["plain"] = "{:.15g}".format
    sheet = html.get_template("page.css").render(charts=svg.style(None), light=svg.LIGHT, dark=svg.DARK)
    scripts = [html.get_template(name).render() for name in _scripts(view)]
    plain = Environment(
        loader=PackageLoader("report"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    plain.filters["md"] = markdown_text
    markdown = plain.get_template("page.md").render(page=view)
    return Rendered(
        html=html.get_template("page.html").render(
            page=view,
            sheet=Markup(sheet),
            sheet_hash=_digest(sheet),
            scripts=[Markup(script) for script in scripts],
            script_hashes=[_digest(script) for script in scripts],
        ),
        markdown=re.sub(r"\n{3,}", "\n\n", markdown),
        charts=tuple((f"{panel.name}.svg", svg.standalone(panel.drawing)) for panel in drawings),
    )


def _scripts(view: PageView) -> tuple[str, ...]:
    return (*SCRIPTS, "money.js") if view.money and view.money.numbers else SCRIPTS


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def markdown_text(text: str) -> str:
    """Text that a Markdown table cell shows as it is."""
    said = " · ".join(escape(text, quote=False).split("\n"))
    for character in "\\`*_[]|~":
        said = said.replace(character, f"\\{character}")
    return said
