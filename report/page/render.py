"""A view → HTML, Markdown and chart files, all in memory. Every string is escaped where it is written."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from report.charts.drawing import Drawing, as_png, draw, undrawn
from report.charts.style import DARK
from report.sections.ran.reruns import WHAT_READING_SHOWS
from report.sections.view import PageView, Panel

SCRIPTS = ("page.js",)
"""Written into the page, each allowed by its hash; without them everything is still there."""

MOST_PROBLEMS = 20
MOST_CHARACTERS = 60_000
"""Code hosts refuse a comment of more than 65,536."""

_NOTHING = "\N{WORD JOINER}"
_HYPHENED = re.compile(r"(?<![^\s`(])(?=[^\s`]{3,24}(?![^\s`]))[^\s`]*-[^\s`]+")


@dataclass(frozen=True, slots=True)
class Rendered:
    """The texts of a page: HTML, Markdown, and each chart's file name with its content."""

    html: str
    markdown: str
    charts: tuple[tuple[str, bytes], ...]


def render(view: PageView, *, png: bool = False, drawn: bool = True) -> Rendered:
    """The view as HTML and Markdown, and its charts as SVG files; with `png` as PNG, too, for Markdown.

    Where it is not to be `drawn`, a drawing holds its title and description alone.
    """
    panels = _panels(view)
    traces = [panel for w in view.workloads for c in w.groups for panel in c.traces]
    drawings = {
        panel.name: draw(panel.chart, panel.name, panel.title, panel.unit, panel.alt)
        if drawn
        else undrawn(panel.name, panel.title, panel.alt)
        for panel in (*panels, *traces)
    }
    files = [(f"{panel.name}.svg", drawings[panel.name].file.encode()) for panel in panels]
    files += [(f"{panel.name}.png", as_png(panel.chart, panel.title, panel.unit)) for panel in panels if png]
    return Rendered(_html(view, drawings), _markdown(view, "png" if png else "svg"), tuple(files))


def _panels(view: PageView) -> list[Panel]:
    """The charts that stand in the Markdown too: all but those of single trials."""
    panels = [view.study.panel] if view.study else []
    panels += [view.picture] if view.picture else []
    panels += view.frameworks.panels if view.frameworks else ()
    panels += [panel for w in view.workloads for panel in w.overview]
    panels += [panel for w in view.workloads for c in w.groups for panel in c.panels]
    panels += [study.panel for claims in view.claims for study in claims.drawn]
    panels += view.costs.panels if view.costs else ()
    panels += [limits.panel for limits in view.limits if limits.panel]
    return panels + [fleet.panel for fleet in view.fleets]


def _markdown(view: PageView, ending: str) -> str:
    template = _plain(markdown_text).get_template("page.md")
    return _closed_up(template.render(page=view, ending=ending))


def _html(view: PageView, drawings: Mapping[str, Drawing]) -> str:
    html = _escaping()
    sheet = html.get_template("page.css").render(dark=DARK)
    scripts = [html.get_template(name).render() for name in SCRIPTS]
    return html.get_template("page.html").render(
        page=view,
        drawings={name: Markup(drawing.page) for name, drawing in drawings.items()},
        sheet=Markup(sheet),
        sheet_hash=_digest(sheet),
        scripts=[Markup(script) for script in scripts],
        script_hashes=[_digest(script) for script in scripts],
    )


def comment(view: PageView | None, problems: Sequence[str], happened: Sequence[str] = ()) -> str:
    """What a code host shows below a contribution: its first screen as Markdown, or why it is refused.

    `happened` is what its trials met, in sentences. Nobody is called by it, and nothing linked: whatever the
    records say stays text.
    """
    made = _plain(inert_markdown).get_template("comment.md")
    shown = {
        "page": view,
        "problems": problems[:MOST_PROBLEMS],
        "count": len(problems),
        "happened": happened,
        "reading": WHAT_READING_SHOWS,
    }
    body = _closed_up(made.render(shown))
    return body if len(body) <= MOST_CHARACTERS else f"{body[:MOST_CHARACTERS]}\n\n… cut here"


def coded(text: str) -> Markup:
    """A sentence whose commands, between backticks, are set as code.

    No short word breaks at its hyphen, and no number before its per cent.
    """
    kept = _HYPHENED.sub(r"<i>\g<0></i>", str(escape(text))).replace(" %", "\N{NO-BREAK SPACE}%")
    parts = re.split(r"`([^`]+)`", kept)
    parts[1::2] = [f"<code>{command}</code>" for command in parts[1::2]]
    return Markup("".join(parts))


def inert(text: str) -> str:
    """Text in which a code host finds no name to call, no number to link, and no address."""
    return re.sub(r"(?<=[@#])|(?<=:)(?=//)|(?<=www)(?=\.)", _NOTHING, text)


def inert_markdown(text: str) -> str:
    """Text for a Markdown table cell of a code host's comment."""
    return inert(markdown_text(text))


@cache
def _escaping() -> Environment:
    made = Environment(
        loader=PackageLoader("report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["coded"] = coded
    return made


@cache
def _plain(escaped: Callable[[str], str]) -> Environment:
    made = Environment(
        loader=PackageLoader("report.page"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters["md"] = escaped
    made.filters["coded"] = lambda text: re.sub(r"\\`([^`]+)\\`", r"`\1`", escaped(text))
    return made


def _closed_up(markdown: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", markdown)


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def markdown_text(text: str) -> str:
    """Text that a Markdown table cell shows as it is."""
    line = " · ".join(escape(text, quote=False).split("\n"))
    for character in "\\`*_[]|~":
        line = line.replace(character, f"\\{character}")
    return line
