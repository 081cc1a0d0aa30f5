"""Page one of a card's check: whether it is as it should be, and each measured thing beside what is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness.record import Gpu
from report import text
from report.analysis import Analysis
from report.charts.curves import CurveLine, CurvePanel, Curves
from report.charts.marks import KeyEntry
from report.charts.rows import Mark, RowGroup, ScaleRow, ScaleRows
from report.compare.card_check import PLANS, CheckedCard, CheckedSpeed, State, gpu_of
from report.page.filters import value
from report.page.values import Chip, Headline, Picture, Quantity, Systems
from report.text import number
from report.trials.trial import TrialResult

LABELS = {"copy": "Memory copy", "host": "Host to device", "device": "Device to host", "all": "All-reduce"}
KEY = (
    KeyEntry("this card", "measured"),
    KeyEntry("too slow", "measured", 1),
    KeyEntry("a sound card lies there", "band"),
)
SHARES = tuple((quarter / 4, f"{25 * quarter} %") for quarter in range(5))


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """One measured thing as the table has it."""

    label: str
    of: CheckedSpeed
    value: Quantity
    sound: Quantity
    ratio: Quantity
    paper: Quantity
    loss: Quantity


@dataclass(frozen=True, slots=True)
class CardCheckView:
    """The worst card of the session with its pictures, and the states of all."""

    card: CheckedCard
    bands: Picture
    load: Picture
    rows: tuple[CheckedRow, ...]
    """The worst first."""
    cards: tuple[tuple[str, State], ...]
    """Each card's unit and state."""
    gpu: Gpu | None
    """What the driver says of the card."""
    too_large: tuple[TrialResult, ...] = ()
    """What was tried in a batch that did not fit."""


def label(name: str) -> str:
    """'Product, bf16', 'Host to device', 'ResNet-50, amp-fp16'"""
    model, *rest = name.split(":")
    if name.startswith("gemm_"):
        return f"Product, {name.split('_')[1].partition('-')[0]}"
    if known := LABELS.get(name.split("_")[0]):
        return f"{known}, {rest[0]} cards" if rest else known
    return f"{text.model_name(model)}, {rest[0]}"


def checked(analysis: Analysis) -> CardCheckView:
    """Return the leading session's check, of its worst card first."""
    card = analysis.checks[0]
    rows = [_row(speed) for speed in card.speeds]
    return CardCheckView(
        card,
        _bands(rows),
        _load(card),
        tuple(
            sorted(
                rows, key=lambda row: (row.of.state != "slow", row.of.ratio if row.of.state == "slow" else 0)
            )
        ),
        tuple((one.unit[:6], one.state) for one in analysis.checks),
        gpu_of(card.longest),
        too_large(analysis.own),
    )


def too_large(trials: Sequence[TrialResult]) -> tuple[TrialResult, ...]:
    """Return the trials whose batch the plan halved until it fitted: no failures of a check."""
    of_check = [trial for trial in trials if trial.record.plan in PLANS[:2]]
    fitted = {(trial.session, trial.key.model) for trial in of_check if not trial.failure}
    tried = [trial for trial in of_check if (trial.session, trial.key.model) in fitted]
    return tuple(one for one in tried if one.failure and one.failure.reason == "out-of-memory")


def _row(of: CheckedSpeed) -> CheckedRow:
    ratio = of.ratio if of.low is not None else None
    value, sound = Quantity(of.value, of.unit), Quantity(of.value, of.unit, of.low, of.high)
    paper, loss = Quantity(of.paper, of.unit), Quantity(of.smallest_loss, "share")
    return CheckedRow(label(of.name), of, value, sound, Quantity(ratio, "ratio"), paper, loss)


def _bands(rows: Sequence[CheckedRow]) -> Picture:
    """Return shares of the paper's peak, and of what is known where no paper says it."""
    drawn = tuple(map(_band, rows))
    alt = "; ".join(f"{row.label} {row.text} {row.small}" for row in drawn)
    return Picture("bands", ScaleRows((RowGroup("", drawn),), "share of the peak", KEY, ticks=SHARES), alt)


def _band(row: CheckedRow) -> ScaleRow:
    """A thing as a share; where neither paper nor a sound card's range is known, its figure alone."""
    of, figure = row.of, f"{number(row.of.value)} {row.of.unit}"
    whole = of.paper or (of.known.middle if of.known and of.low else None)
    if not whole:
        return ScaleRow(row.label, text=figure, small="too little is known")
    slow = of.low is not None and of.value < of.low
    band = (of.low / whole, of.high / whole) if of.low and of.high else None
    mark, note = Mark(of.value / whole, slot=int(slow)), "" if of.paper else "of what is known"
    return ScaleRow(row.label, (mark,), note, value(Quantity(mark.value, "share")), figure, band)


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
        f"{number(card.load[0][1])} TFLOP/s at first, {number(card.load[-1][1])} at last" if card.load else ""
    )
    return Picture("load", Curves(tuple(panels)), alt)


def headline(view: CardCheckView, systems: Systems) -> Headline:
    """Return the answer: the card's state, and what shows it."""
    card = view.card
    return Headline(
        f"check-{card.state}",
        {
            "own": replace(systems.of(card.longest), name=text.short_card(card.longest.card)),
            "row": view.rows[0],
            "link": card.link,
            "slow": len(card.slow),
            "known": len(card.known),
            "of": len(card.speeds),
            "flips": card.flips,
            "differs": card.differences[0] if card.differences else None,
        },
    )


def chips(view: CardCheckView) -> Iterator[Chip]:
    """Yield what a reader must know: what is not known, what the driver says, and what is as it should be."""
    card = view.card
    for found in card.findings:
        yield Chip("care", "driver", "check", {"found": found})
    gpu = view.gpu
    if gpu and (gpu.remapping or gpu.ecc_uncorrected_ever):
        yield Chip("care", "worn-memory", "check")
    if gpu and gpu.vgpu_license == "unlicensed":
        yield Chip("care", "no-licence", "check")
    tried = sorted(view.too_large, key=lambda trial: trial.key.batch_size)
    asked = {trial.key.model: trial.key.batch_size for trial in tried}
    for row in view.rows:
        model, *rest = row.of.name.split(":")
        if model in asked:
            yield Chip(
                "care", "halved", "check", {"name": row.label, "batch": rest[1], "asked": asked[model]}
            )
    if len(card.known) < len(card.speeds):
        yield Chip("care", "known", "check", {"of": len(card.speeds), "known": len(card.known)})
    yield Chip("care", "minutes", "check", {"seconds": card.load[-1][0] if card.load else 0.0})
    if not card.flips and card.load:
        yield Chip("good", "one-speed")
    if not card.differences:
        yield Chip("good", "same-bits", "check", {"replays": card.replays})


def notes(view: CardCheckView) -> tuple[Headline, ...]:
    """Return how sure it is, what to do, and what comes next."""
    card = view.card
    losses = [speed.smallest_loss for speed in card.known if speed.smallest_loss is not None]
    sure = {
        "runs": max((speed.runs for speed in card.speeds), default=0),
        "least": Quantity(min(losses), "share") if losses else None,
        "most": Quantity(max(losses), "share") if losses else None,
    }
    commands = ("invoke run --plan card-long report",) if card.state != "sound" else ("invoke gate --mine",)
    next_one = Headline("next-check" if card.state != "sound" else "next-share", {"commands": commands})
    causes = [found.name for found in card.findings]
    watched = isinstance(view.load.chart, Curves) and len(view.load.chart.panels) > 1
    return (
        Headline("check-sure", sure),
        Headline("check-do", {"state": card.state, "causes": causes, "watched": watched}),
        next_one,
    )
