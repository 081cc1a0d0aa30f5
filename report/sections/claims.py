"""Published claims with their verdicts → one section per study, and its own figures drawn alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from harness.record import Claim
from report import text
from report.charts.intervals import Mark
from report.claims.judge import Judged
from report.sections.charts import intervals_panel, published_mark, ratios_panel
from report.sections.view import ClaimsView, Panel, Table
from report.trials.pairs import grouped_by

METRICS = {
    "protocol_seconds": "seconds",
    "epoch_seconds": "seconds of an epoch",
    "peak_bytes": "peak memory",
    "valid_loss": "validation loss",
    "train_loss": "training loss",
    "batch_ratio": "largest batch",
    "test_perplexity": "test perplexity",
}
RELATIONS = {"equal": "as", "less": "less than", "greater": "more than"}
ORDER_OF_WORDS = (
    "not reproduced",
    "does not hold here",
    "reproduced",
    "holds here",
    "inconclusive",
)


def views(judged: Sequence[Judged], *, alone: bool) -> tuple[ClaimsView, ...]:
    """A section per study; with `alone`, where nothing was measured, its seconds are drawn too."""
    studies = grouped_by(judged, lambda one: one.claim.study)
    return tuple(_view(study, found, place, alone) for place, (study, found) in enumerate(studies.items(), 1))


def verdicts(judged: Sequence[Judged]) -> Table | None:
    """How many claims of each study came to which verdict, and what kept the others away."""
    if not judged:
        return None
    rows = []
    for study, found in grouped_by(judged, lambda one: one.claim.study).items():
        counts = Counter(one.verdict.word for one in found)
        fields = Counter(
            reason.partition(":")[0] for one in found if not one.compared for reason in one.verdict.because
        )
        said = ", ".join(f"{n} {word}" for word, n in counts.items())
        why = "; ".join(f"{text.clean(field, 80)} ({n})" for field, n in fields.most_common(4))
        rows.append((text.clean(study, 40), str(len(found)), said, why or "–"))
    columns = ("Study", "Claims", "Verdicts", "Not comparable, because of")
    return Table("Published claims, by study", columns, tuple(rows))


def _view(study: str, found: Sequence[Judged], place: int, alone: bool) -> ClaimsView:
    met = sorted(
        (one for one in found if one.compared), key=lambda one: ORDER_OF_WORDS.index(one.verdict.word)
    )
    apart = [one for one in found if not one.compared]
    return ClaimsView(
        anchor=f"s-{place}",
        heading=f"Study {text.clean(study, 40)}",
        judged=_judged_table(met) if met else None,
        apart=_apart_table(apart, alone) if apart else None,
        caveats=tuple(dict.fromkeys(text.clean(said, 300) for one in found for said in one.claim.caveats)),
        panels=_panels([one.claim for one in found], f"s-{place}") if alone else (),
    )


def _judged_table(found: Sequence[Judged]) -> Table:
    rows = tuple(
        (describe(one.claim), published(one.claim), _here(one), _verdict(one), _basis(one)) for one in found
    )
    caption = (
        "Published figures held against the records of this page. Reproduced, holds here: the 90 % interval "
        "lies within the margin that the claim declares."
    )
    return Table(caption, ("Claim", "Published", "Here", "Verdict", "Because"), rows)


def _apart_table(found: Sequence[Judged], alone: bool) -> Table:
    columns = ("Claim", "Published", "Source") if alone else ("Claim", "Published", "Not comparable, because")
    rows = tuple(
        (
            describe(one.claim),
            published(one.claim),
            text.clean(one.claim.source, 120) if alone else text.clean("; ".join(one.verdict.because), 240),
        )
        for one in found
    )
    caption = "Published figures" if alone else "Not comparable here"
    return Table(caption, columns, rows)


def describe(claim: Claim) -> str:
    """What a claim says: in its own words, else its metric and its sides."""
    sides = _side(claim) if claim.over is None else f"{_side(claim, over=True)} over {_side(claim)}"
    metric = METRICS.get(claim.metric, claim.metric.replace("_", " "))
    if claim.kind == "order" and claim.over is not None:
        sides = f"{_side(claim)} {RELATIONS[claim.relation]} {_side(claim, over=True)}"
    said = text.clean(claim.words, 200) + "\n" if claim.words else ""
    return f"{said}{metric.capitalize()}: {sides}"


def _side(claim: Claim, *, over: bool = False) -> str:
    side = claim.over if over and claim.over else claim.of
    parts = [text.model_name(side.model), side.precision or ""]
    parts += [f"batch {side.batch_size}"] if side.batch_size else []
    parts += [side.layout] if side.layout else []
    parts += [text.short_card(side.card)] if side.card else []
    return " ".join(part for part in parts if part)


def published(claim: Claim) -> str:
    """The figure as published, in its unit."""
    if claim.value is None:
        return "–"
    sign = {"equal": "", "less": "under ", "greater": "over "}[claim.relation]
    said = figure(claim, claim.value)
    return f"{sign}{said}\n{'single run' if claim.runs == 1 else text.count(claim.runs or 0, 'run')}"


def figure(claim: Claim, value: float) -> str:
    """A value in a claim's unit."""
    if claim.kind == "ratio":
        return f"{text.times(value)} ×"
    if claim.metric in ("protocol_seconds", "epoch_seconds"):
        return text.seconds(value)
    if claim.metric == "peak_bytes":
        return text.gibibytes(value)
    if claim.metric == "accuracy":
        return f"{value * 100:.1f} %"
    return text.number(value, 4)


def _here(one: Judged) -> str:
    if one.measured is None:
        return "–"
    if one.claim.kind == "order":
        return f"{text.times(one.measured)} ×"
    n = max((cell.throughput.n for cell in one.cells), default=0)
    return f"{figure(one.claim, one.measured)}\nn = {n}"


def _verdict(one: Judged) -> str:
    star = one.verdict.s_star
    if star is None:
        return one.verdict.word
    return f"{one.verdict.word}\nup to a published spread of {star * 100:.1f} %"


def _basis(one: Judged) -> str:
    said = "; ".join(one.verdict.because)
    interval = one.verdict.interval
    if interval is not None:
        said += f"\n{text.number(interval.low, 3)} to {text.number(interval.high, 3)}"
        said += f", margin {one.verdict.margin:.0%}" if one.verdict.margin else ""
    return "\n".join(text.clean(part, 240) for part in said.split("\n"))


def _panels(claims: Sequence[Claim], anchor: str) -> tuple[Panel, ...]:
    """Seconds of whole protocols, and beside them the same over the fastest, a pair per model."""
    groups: dict[tuple[str, str], list[Claim]] = {}
    for claim in claims:
        if claim.kind == "absolute" and claim.metric == "protocol_seconds" and claim.value:
            groups.setdefault((claim.workload, claim.of.model), []).append(claim)
    found = []
    for place, ((_, model), members) in enumerate(groups.items(), 1):
        found += _pair(members, text.model_name(model), f"{anchor}-{place}")
    return tuple(panel for panel in found if panel is not None)


def _pair(members: Sequence[Claim], model: str, anchor: str) -> list[Panel | None]:
    fastest = min(claim.value for claim in members if claim.value is not None)
    epochs = {claim.epochs for claim in members if claim.epochs}
    unit = f"for {text.count(min(epochs), 'epoch')}; less is better" if len(epochs) == 1 else "less is better"
    seconds = [_alone(claim, claim.value, text.seconds(claim.value)) for claim in members]
    ratios = [(claim, (claim.value or 0.0) / fastest) for claim in members]
    scaled = [_alone(claim, value, text.times(value)) for claim, value in ratios]
    return [
        intervals_panel(f"{anchor}-seconds", f"{model}: seconds", unit, seconds),
        ratios_panel(f"{anchor}-scaled", f"{model}: time-scaled", "the fastest = 1.00", scaled),
    ]


def _alone(claim: Claim, value: float | None, said: str) -> Mark:
    """A published figure under its own study's heading, which need not be named again."""
    mark = published_mark(claim, value, said)
    return replace(mark, note=mark.note.removesuffix(f" · study {claim.study}"))
