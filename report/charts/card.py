"""The card to share: a headline, one picture of few rows, one line of doubt, and what makes it again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from io import BytesIO

import matplotlib.image

from report.charts.drawing import (
    DPI,
    Chart,
    Sheet,
    StyledText,
    document,
    drawn_body,
    fit_words,
    own_settings,
    words_of,
)
from report.charts.rows import ScaleRows
from report.charts.style import DARK, DESK, INK, PAPER, RULE, wrap_text

WIDTH, HEIGHT, EDGE = 1200.0, 630.0, 44.0
MOST_ROWS = 7
SIZES = (36.0, 32.0, 28.0, 25.0, 22.0, 20.0)
"""The headline takes the first by which it fits into two lines."""
TOP, FOOT, SMALL = 188.0, 92.0, 18.0
"""Room above and below the picture, and the size of other texts, px."""


@dataclass(frozen=True, slots=True)
class ShareCard:
    """The texts of a card, and the chart of page one."""

    about: str
    headline: str
    title: str
    doubt: str
    source: str
    chart: Chart | None


@own_settings()
def draw_card(card: ShareCard) -> dict[str, bytes]:
    """Return a card's files by their names: SVG, which follows its reader's light or dark, PNG on white."""
    frame, room = _frame(card), (WIDTH - 2 * EDGE, HEIGHT - TOP - FOOT)
    words = words_of("card", "gpudyno", f"{card.about}. {card.headline} {card.doubt}")
    dark = "".join(f'[fill="{on}"]{{fill:{to}}}[stroke="{on}"]{{stroke:{to}}}' for on, to in DARK.items())
    svg = f"<style>@media (prefers-color-scheme:dark){{{dark}}}</style>{words}"
    svg += f'<rect width="100%" height="100%" fill="{PAPER}"/>{drawn_body(frame, "card")}'
    if card.chart is not None:
        sheet = _few_rows(card.chart).sheet(DESK)
        scale = min(room[0] / sheet.width, room[1] / sheet.height)
        across, down = sheet.width * scale, sheet.height * scale
        svg += f'<svg x="{EDGE:g}" y="{TOP:g}" width="{across:g}" height="{down:g}" '
        svg += f'viewBox="0 0 {sheet.width:g} {sheet.height:g}">{drawn_body(sheet, "card-chart")}</svg>'
        pixels = matplotlib.image.imread(BytesIO(_png(sheet, scale)))
        frame.figure.figimage(pixels, int(EDGE), int(HEIGHT - TOP) - pixels.shape[0])
    svg = document("card", "", "card", (0, 0, WIDTH, HEIGHT), svg)
    return {"card.svg": f"{svg}\n".encode(), "card.png": _png(frame, 1.0)}


def _frame(card: ShareCard) -> Sheet:
    """All but the picture."""
    frame, room = Sheet(WIDTH, HEIGHT), WIDTH - 2 * EDGE
    head = [StyledText("gpudyno", SMALL, True, INK), StyledText(card.about, SMALL)]
    frame.run(EDGE, 50, fit_words(head, room))
    size = next(
        (one for one in SIZES if not wrap_text(card.headline, 0.97 * room, one, True)[-1].endswith("…")),
        SIZES[-1],
    )
    for place, line in enumerate(wrap_text(card.headline, 0.97 * room, size, True)):
        frame.text(EDGE, 56 + (1.28 * place + 1.1) * size, line, size=size, bold=True, colour=INK)
    frame.run(EDGE, TOP - 14, fit_words([StyledText(card.title, SMALL - 1)], room))
    frame.line([(EDGE, HEIGHT - FOOT + 16), (WIDTH - EDGE, HEIGHT - FOOT + 16)], {"color": RULE, "lw": 1.0})
    frame.run(EDGE, HEIGHT - FOOT + 44, fit_words([StyledText(card.doubt, SMALL, False, INK)], room))
    frame.run(EDGE, HEIGHT - FOOT + 72, fit_words([StyledText(card.source, SMALL - 2)], room))
    return frame


def _few_rows(chart: Chart) -> Chart:
    """Return a chart of rows with the first of them alone; another is as it is."""
    if not isinstance(chart, ScaleRows):
        return chart
    left, groups = MOST_ROWS, []
    for group in chart.groups:
        if rows := group.rows[:left]:
            groups.append(replace(group, rows=rows))
            left -= len(rows)
    return replace(chart, groups=tuple(groups))


def _png(sheet: Sheet, scale: float) -> bytes:
    sheet.figure.patch.set_visible(True)
    target = BytesIO()
    sheet.figure.savefig(target, format="png", dpi=scale * DPI, facecolor=PAPER, metadata={"Software": None})
    return target.getvalue()
