"""Whether a card is as it should be: each measured thing beside what is known, and what a check shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.record import Finding, Gpu
from harness.summary.trial_devices import mean_in_windows
from report import text
from report.analysis import Analysis
from report.charts.curves import CurveLine, CurvePanel, Curves
from report.charts.rows import KeyEntry, Mark, RowGroup, ScaleRow, ScaleRows
from report.compare.card_check import CheckedCard, CheckedSpeed, gpu_of
from report.compare.card_units import BoxCards
from report.expected.published_speeds import COMPILED
from report.page.filters import figure_text
from report.page.pictures import rows_picture
from report.page.values import AnswerPage, Chip, NamedSystem, Picture, Sentence, Systems
from report.trials.ceilings import GEMM

LABELS = {"copy": "Memory copy", "host": "Host to device", "device": "Device to host", "all": "All-reduce"}
KEY = (
    KeyEntry("this card", "measured"),
    KeyEntry("too slow", "measured", 1),
    KeyEntry("a sound card lies there", "band"),
)
SHARES = tuple((quarter / 4, f"{25 * quarter} %") for quarter in range(5))
CAP = "power-cap"
"""The finding that says for which share of a load the power limit held a card."""


@dataclass(frozen=True, slots=True)
class CardCheckView:
    """The worst card of the session with its pictures, and the states of all."""

    card: CheckedCard
    bands: Picture
    load: Picture
    rows: tuple[CheckedSpeed, ...]
    """Each measured thing, the worst first."""
    cards: tuple[tuple[Gpu | None, CheckedCard], ...]
    """What the driver says of each card, and its check."""
    box: BoxCards
    together: bool
    """Whether the rows are the medians of all cards, which are slow together."""
    gpu: Gpu | None
    """What the driver says of the card."""

    @property
    def cap(self) -> Finding | None:
        """That the power limit held the card during the load."""
        return next((one for one in self.card.longest.findings if one.name == CAP), None)

    @property
    def at_limit(self) -> str | None:
        """The product that the load was, where the power limit held it."""
        return GEMM.get(self.card.longest.key.precision) if self.cap else None

    @property
    def under_load(self) -> tuple[float | None, float | None, int | None]:
        """Mean clock in MHz, highest temperature in °C, and new memory errors that ECC did not correct."""
        telemetry = self.card.longest.record.telemetry
        if not telemetry or not telemetry.cards:
            return None, None, None
        seen = telemetry.cards[0]
        degrees = [value for value in seen.temperature_c.mean.values() if value] if seen.temperature_c else []
        return mean_in_windows(seen.sm_mhz, telemetry), max(degrees, default=None), seen.ecc_uncorrected


def label_speed(name: str) -> str:
    """'Matrix product, bf16', 'Host to device', 'ResNet-50, amp-fp16'"""
    model, *rest = name.split(":")
    if name.startswith("gemm_"):
        return f"Matrix product, {name.split('_')[1].partition('-')[0]}"
    if known := LABELS.get(name.split("_")[0]):
        return f"{known}, {rest[0]} cards" if rest else known
    return ", ".join([text.model_name(model), rest[0], *(word for word in rest if word == COMPILED)])


def viewed(analysis: Analysis) -> CardCheckView:
    """Return the leading session's check, of its worst card first."""
    card = analysis.checks[0]
    together = bool(card.slow_box and not card.slow)
    rows = card.box if together else card.speeds
    slow_first = sorted(rows, key=lambda row: (row.state != "slow", row.ratio or 1.0))
    return CardCheckView(
        card,
        rows_picture(
            ScaleRows((RowGroup("", tuple(map(_band, rows))),), "share of the peak", KEY, ticks=SHARES),
            "bands",
            "bands",
        ),
        _load(card),
        tuple(slow_first) if card.slow or together else tuple(rows),
        tuple((gpu_of(one.longest), one) for one in analysis.checks),
        analysis.box,
        together,
        gpu_of(card.longest),
    )


def page(analysis: Analysis, systems: Systems) -> AnswerPage:
    """Return the page of a card's check."""
    view = viewed(analysis)
    card = view.card
    watched = isinstance(view.load.chart, Curves) and len(view.load.chart.panels) > 1
    counts = [one.runs for one in card.speeds]
    sure = {"runs": (min(counts, default=0), max(counts, default=0)), "losses": _losses(card)}
    sure["unknown"] = [label_speed(one.name) for one in view.rows if one.low is None]
    do = {"state": card.state, "causes": [found.name for found in card.findings], "watched": watched}
    return AnswerPage(
        headline=_headline(view, systems),
        picture=view.load if card.flips else view.bands,
        template="sound",
        table=view,
        notes=(Sentence("check-sure", sure), Sentence("check-do", do)),
        following=_following(view, systems),
        chips=tuple(_chips(view)),
    )


def _following(view: CardCheckView, systems: Systems) -> Sentence:
    """Return how to measure a card at fault again, share one's own sound card's records, or check one."""
    if view.card.state not in ("sound", "unknown"):
        again = "invoke run --plan card-long report"
        if view.gpu and view.box.present > 1:
            again = f"invoke run --plan card-long --device {view.gpu.index} report"
        return Sentence("next-check", {"commands": (again,)})
    if systems.of(view.card.longest).here:
        return Sentence("next-share", {"commands": ("invoke gate --mine",)})
    return Sentence("next-card", {"commands": ("invoke build --plan card run report",)})


def _losses(card: CheckedCard) -> list[tuple[float, str]]:
    """The loss that would have been seen in each thing that is judged: products first, the smallest first."""
    found = [(one.smallest_loss, one.name) for one in card.known if one.smallest_loss is not None]
    ordered = sorted(found, key=lambda loss: (not loss[1].startswith("gemm_"), *loss))
    return [(loss, _plural(name)) for loss, name in ordered]


def _plural(name: str) -> str:
    """'bf16 products', else the thing's own name."""
    if not name.startswith("gemm_"):
        return label_speed(name)
    return f"{name.split('_')[1].partition('-')[0]} products"


def _headline(view: CardCheckView, systems: Systems) -> Sentence:
    """Return the card's state, and what shows it."""
    card = view.card
    own = systems.of(card.longest)
    return Sentence(
        f"check-{card.state}",
        {
            "own": NamedSystem(own.machine, own.card, text.short_card(own.card), own.slot, own.own),
            "row": view.rows[0],
            "card": card,
            "losses": _losses(card),
            "gpu": view.gpu,
            "cards": len(view.box.measured),
            "together": view.together,
        },
    )


def _chips(view: CardCheckView) -> Iterator[Chip]:
    """Yield what the driver says, what is not known, and what is as it should be."""
    card, gpu = view.card, view.gpu
    for found in card.findings:
        yield Chip("care", "driver", "check", {"found": found})
    if gpu and (gpu.remapping or gpu.ecc_uncorrected_ever):
        yield Chip("care", "worn-memory", "check")
    if gpu and gpu.vgpu_license == "unlicensed":
        yield Chip("care", "no-licence", "check")
    if cap := view.cap:
        yield Chip("care", "power-cap", "check", {"share": cap.data.get("share")})
    yield Chip("care", "minutes", "check", {"seconds": card.load[-1][0] if card.load else 0.0})
    if not card.differences:
        yield Chip("good", "same-bits", "check", {"replays": card.replays, "short": card.too_short})


def _band(of: CheckedSpeed) -> ScaleRow:
    """A thing as a share; where neither paper nor a sound card's range is known, its figure alone."""
    name, said = label_speed(of.name), figure_text(of.value, of.unit)
    whole = of.paper or (of.known.middle if of.known and of.low else None)
    if not whole:
        return ScaleRow(name, text=said)
    slow = of.low is not None and of.value < of.low
    band = (of.low / whole, of.high / whole) if of.low and of.high else None
    mark, note = Mark(of.value / whole, slot=int(slow)), "" if of.paper else "of what is known"
    return ScaleRow(name, (mark,), note, figure_text(mark.value, "share"), said, band)


def _load(card: CheckedCard) -> Picture:
    """Return the load's speed, and beside it the clock, the power and the temperature."""
    panels = [CurvePanel("Speed", "TFLOP/s over seconds", (CurveLine("", card.load),))]
    telemetry = card.longest.record.telemetry
    seen = telemetry.cards[0] if telemetry and telemetry.cards else None
    if telemetry and seen and telemetry.windows:
        begin, end = telemetry.windows[0][0], telemetry.windows[-1][1]
        for title, unit, stats in (
            ("Clock", "MHz", seen.sm_mhz),
            ("Power", "W", seen.power_watts),
            ("Temperature", "°C", seen.temperature_c),
        ):
            pairs = zip(telemetry.times.values(), stats.mean.values() if stats else (), strict=False)
            points = tuple(
                (at - begin, value) for at, value in pairs if at and value is not None and begin <= at <= end
            )
            if len(points) > 1:
                panels.append(CurvePanel(title, f"{unit} over seconds", (CurveLine("", points),)))
    alt = (
        f"{figure_text(card.load[0][1], 'TFLOP/s')} at first, {figure_text(card.load[-1][1])} at last"
        if card.load
        else ""
    )
    return Picture("load", Curves(tuple(panels)), alt, "load")
