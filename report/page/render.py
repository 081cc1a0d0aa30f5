"""A page → HTML, Markdown and chart files, all in memory. Every string is escaped where it is written."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from html import escape as escape_tags
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined, pass_context
from jinja2.bccache import Bucket
from jinja2.runtime import Context
from markupsafe import Markup, escape

from harness.record import PRECISIONS
from harness.record.finding import finding_sentence
from harness.summary.device_checks import machine_findings
from report.charts.card import ShareCard, draw_card
from report.charts.drawing import draw_chart
from report.charts.style import DARK
from report.compare.cells import states_of
from report.compare.named_sides import GateReason, NamedSides, least_loss
from report.page.filters import FILTERS
from report.page.one import sound
from report.page.parts import ran
from report.page.values import Page, PageOne, Picture, Sentence
from report.stats.contrast import LEAST_PROCESSES
from report.stats.intervals import LEVEL
from report.text import clean

_READING: Mapping[str, Callable[..., Any]] = {
    "image": ran.image_of,
    "meaning": lambda label: PRECISIONS[label].words,
    "remarks": machine_findings,
    "sentence": finding_sentence,
    "states": states_of,
    "checked": sound.label_speed,
}
"""What templates ask of records."""

LONGEST_NAME = 24
_HYPHENED = re.compile(r"<code>.*?</code>|<[^>]*>|\w[\w.]*(?:-[\w.]+)+")
_TABLE_ROWS = re.compile(r"(?<=\|\n)\n+(?=\|(?!.*\n+\| ---))")
"""The blank lines between two rows of one table: not those before the head of a next one."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """The texts of a page: HTML, Markdown, and the files beside them by their paths."""

    html: str
    markdown: str
    files: Mapping[str, bytes]


@dataclass(slots=True)
class _Drawings:
    """Draws each picture of a page once, under the title that a template gives it."""

    files: dict[str, bytes] = field(default_factory=dict)
    pages: dict[str, Markup] = field(default_factory=dict)

    def on_page(self, picture: Picture, title: str, sub: str = "") -> Markup:
        """The picture as SVG in both layouts; as a file it has its title in it."""
        if picture.name not in self.pages:
            words = Markup(title).striptags(), Markup(sub).striptags(), picture.alt
            drawing = draw_chart(picture.chart, picture.name, *words)
            self.pages[picture.name] = Markup(drawing.page)
            self.files[f"charts/{picture.name}.svg"] = drawing.file.encode()
        return self.pages[picture.name]

    def in_markdown(self, picture: Picture, title: str, sub: str = "") -> Markup:
        """The picture as a link to its file."""
        self.on_page(picture, title, sub)
        return Markup(f"![{markdown_text(picture.alt)}](charts/{picture.name}.svg)")


def render(page: Page) -> Rendered:
    """Return the page as HTML and Markdown, and its charts and its card as files."""
    drawings = _Drawings()
    given = {"page": page, "systems": page.systems, "analysis": page.analysis}
    html = _html("page.html", drawings.on_page, **given)
    markdown = _markdown("page.md", drawings.in_markdown, markdown_text, **given)
    return Rendered(html, markdown, drawings.files | draw_card(share_card(given)))


def render_gallery(entries: Sequence[PageOne]) -> str:
    """Return the page of cards that leads to each entry's own page, in a folder named by its session."""
    return _html("gallery.html", _leave_undrawn, entries=entries)


def share_card(given: Mapping[str, Any]) -> ShareCard:
    """Return the card of a page in the words of page one."""
    about, headline, title, doubt, source = terminal_text("card.md", **given).splitlines()
    picture = given["page"].one.answer.picture
    return ShareCard(about, headline, title, doubt, source, picture and picture.chart)


def answer_text(headline: Sentence) -> str:
    """Return a headline as the terminal shows it."""
    return terminal_text("answer.md", headline=headline)


def terminal_text(template: str, **given: Any) -> str:
    """Return the lines of a template as the terminal shows them, without empty ones and marks of Markdown."""
    written = _markdown(template, _leave_undrawn, str, **given).replace("**", "")
    return re.sub(r"\n{2,}", "\n", written).strip()


def comparison_text(
    found: NamedSides,
    differ: Iterable[str],
    limit: float | None,
    reasons: Sequence[GateReason],
) -> str:
    """Return two sides as the terminal shows them, with what a gate at `limit` refuses."""
    losses = [least_loss(ratio, limit) if limit else None for ratio in found.comparison.ratios]
    given = {"it": found, "differ": tuple(differ), "limit": limit, "reasons": reasons, "losses": losses}
    return terminal_text("compare.md", **given)


def _html(name: str, drawing: Callable[..., Markup], **given: Any) -> str:
    """Return a page with its style sheet, whose hash its policy allows."""
    sheet = _fill_template("page.css", "html", drawing, escape, dark=DARK)
    digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    given = {**given, "sheet": Markup(sheet), "sheet_hash": digest}
    return _fill_template(name, "html", drawing, escape, **given)


def _leave_undrawn(*_: object) -> Markup:
    """Return nothing in place of a picture."""
    return Markup("")


def _markdown(name: str, drawing: Callable[..., Markup], escaped: Callable[[str], str], **given: Any) -> str:
    written = _fill_template(name, "md", drawing, escaped, **given)
    return _TABLE_ROWS.sub("", re.sub(r"\n{3,}", "\n\n", written))


def _fill_template(
    name: str,
    kind: Literal["html", "md"],
    drawing: Callable[..., Markup],
    escaped: Callable[[str], str],
    **given: Any,
) -> str:
    """Return a template filled in, with the macros of a kind and its way to escape words."""
    template = _environment().get_template(name)
    return template.render(macros=f"macros.{kind}", draw=drawing, escaped=escaped, **given)


class _Compiled(FileSystemBytecodeCache):
    """Templates as Python keeps its modules: compiled beside them, where that can be written to."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                Path(self.directory).mkdir(exist_ok=True)
                super().dump_bytecode(bucket)


@cache
def _environment() -> Environment:
    """One for all texts, since compiling the templates takes longer than filling them in."""
    beside = Path(__file__).with_name("__pycache__")
    made = Environment(
        loader=PackageLoader("report.page"),
        bytecode_cache=_Compiled(str(beside), f"%s.{version('jinja2')}.cache"),
        # What is compiled follows from its source alone, not from a filter's code.
        optimized=False,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.do"],
        finalize=_escape_value,
    )
    made.filters.update(FILTERS, **_READING)
    made.filters.update(unbroken=_keep_unbroken, written=_escape_value, clean=_clean, as_column=_as_column)
    made.globals.update(as_column=_as_column, coded=_code_line, level=f"{LEVEL * 100:.0f}\N{NO-BREAK SPACE}%")
    made.globals["least_processes"] = LEAST_PROCESSES
    return made


@pass_context
def _escape_value(context: Context, value: object) -> Markup:
    """What a template writes: words by the text's own syntax, marks as they are."""
    return value if isinstance(value, Markup) else Markup(context["escaped"](str(value)))


@pass_context
def _clean(context: Context, value: object, limit: int = 80) -> Markup:
    """Return what a record says, cut, and escaped before a template joins it to marks."""
    return Markup(context["escaped"](clean(value, limit)))


def _keep_unbroken(words: object) -> Markup:
    """Return HTML whose short names with a hyphen stay on one line: 'ResNet-18', 'fp32-ieee'."""

    def kept(found: re.Match[str]) -> str:
        whole = found[0].startswith("<") or len(found[0]) > LONGEST_NAME
        return found[0] if whole else f'<span class="nb">{found[0]}</span>'

    return Markup(_HYPHENED.sub(kept, escape(words)))


def _code_line(line: str) -> Markup:
    """A line as Markdown's code."""
    return Markup(f"`{str(line).replace('`', '')}`")


def _as_column(column: Any) -> dict[str, Any]:
    """A column of a table with all that the macros ask of it, of a mapping or of its name alone.

    `t` is its name, `sub` the line below it, `h` the name that a phone prints before each cell.
    """
    given = column if isinstance(column, dict) else {"t": column}
    return {"t": "", "sub": "", "h": "", "left": False, "cls": "", **given}


def markdown_text(text: str) -> str:
    """Text that a Markdown table cell shows as it is."""
    line = " · ".join(escape_tags(text, quote=False).split("\n"))
    for character in "\\`*_[]|~#":
        line = line.replace(character, f"\\{character}")
    return line
