"""A view → HTML, Markdown and chart files, all in memory. Every string is escaped where it is written."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from report import svg
from report.sections.view import PageView

SCRIPTS = ("page.js",)
"""Written into the page, each allowed by its hash; without them everything is still there."""

MOST_PROBLEMS = 20
MOST_CHARACTERS = 60_000
"""Code hosts refuse a comment of more than 65,536."""

_NOTHING = "\N{WORD JOINER}"


@dataclass(frozen=True, slots=True)
class Rendered:
    """The texts of a page: HTML, Markdown, and each chart's file name with its SVG."""

    html: str
    markdown: str
    charts: tuple[tuple[str, str], ...]


def render(view: PageView) -> Rendered:
    """The view as HTML, as Markdown, and its charts as files of their own."""
    drawings = [panel for w in view.workloads for panel in w.overview]
    drawings += [panel for w in view.workloads for c in w.groups for panel in c.panels]
    drawings += [panel for study in view.claims for panel in study.panels]
    drawings += view.costs.panels if view.costs else ()
    drawings += [one.panel for one in view.limits if one.panel]
    html = Environment(
        loader=PackageLoader("report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    html.filters["drawing"] = Markup
    html.filters["coded"] = coded
    html.filters["plain"] = "{:.15g}".format
    sheet = html.get_template("page.css").render(charts=svg.style(None), light=svg.LIGHT, dark=svg.DARK)
    scripts = [html.get_template(name).render() for name in _scripts(view)]
    markdown = _plain(markdown_text).get_template("page.md").render(page=view)
    return Rendered(
        html=html.get_template("page.html").render(
            page=view,
            sheet=Markup(sheet),
            sheet_hash=_digest(sheet),
            scripts=[Markup(script) for script in scripts],
            script_hashes=[_digest(script) for script in scripts],
        ),
        markdown=_closed_up(markdown),
        charts=tuple((f"{panel.name}.svg", svg.standalone(panel.drawing)) for panel in drawings),
    )


def comment(view: PageView | None, problems: Sequence[str]) -> str:
    """What a code host shows below a contribution: its first screen as Markdown, or why it is refused.

    Nobody is called by it, and nothing linked: whatever the records say stays text.
    """
    made = _plain(lambda text: inert(markdown_text(text))).get_template("comment.md")
    said = _closed_up(made.render(page=view, problems=problems[:MOST_PROBLEMS], count=len(problems)))
    return said if len(said) <= MOST_CHARACTERS else f"{said[:MOST_CHARACTERS]}\n\n… cut here"


def coded(text: str) -> Markup:
    """A sentence whose commands, between backticks, are set as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text)))


def inert(text: str) -> str:
    """Text in which a code host finds no name to call, no number to link, and no address."""
    return re.sub(r"(?<=[@#])|(?<=:)(?=//)|(?<=www)(?=\.)", _NOTHING, text)


def _plain(escaped: Callable[[str], str]) -> Environment:
    made = Environment(
        loader=PackageLoader("report.page"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters["md"] = escaped
    return made


def _closed_up(markdown: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", markdown)


def _scripts(view: PageView) -> tuple[str, ...]:
    return (*SCRIPTS, "money.js") if view.costs and view.costs.numbers else SCRIPTS


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def markdown_text(text: str) -> str:
    """Text that a Markdown table cell shows as it is."""
    said = " · ".join(escape(text, quote=False).split("\n"))
    for character in "\\`*_[]|~":
        said = said.replace(character, f"\\{character}")
    return said
