"""Published claims with their verdicts → one section per study, and its own figures drawn alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from harness.record import Claim
from report import text
from report.charts.intervals import Mark
from report.claims.judge import Judged
from report.sections import names
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
    "auc": "area under the curve",
    "device_utilization": "time that the device is busy",
    "device_memory_share": "share of the device's memory",
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
    studies = grouped_by(judged, lambda result: result.claim.study)
    return tuple(
        _view(study, results, place, alone) for place, (study, results) in enumerate(studies.items(), 1)
    )


def verdicts(judged: Sequence[Judged]) -> Table | None:
    """How many claims of each study came to which verdict, and what kept the others away."""
    if not judged:
        return None
    rows = []
    for study, results in grouped_by(judged, lambda result: result.claim.study).items():
        counts = Counter(result.verdict.word for result in results)
        fields = Counter(
            reason.partition(":")[0]
            for result in results
            if not result.compared
            for reason in result.verdict.because
        )
        words = ", ".join(f"{n} {word}" for word, n in counts.items())
        why = "; ".join(f"{text.clean(field, 80)} ({n})" for field, n in fields.most_common(4))
        rows.append((text.clean(study, 40), str(len(results)), words, why or "–"))
    columns = ("Study", "Claims", "Verdicts", "Not comparable, because of")
    return Table("Published claims, by study", columns, tuple(rows))


def _view(study: str, results: Sequence[Judged], place: int, alone: bool) -> ClaimsView:
    met = sorted(
        (result for result in results if result.compared),
        key=lambda result: ORDER_OF_WORDS.index(result.verdict.word),
    )
    apart = [result for result in results if not result.compared]
    return ClaimsView(
        anchor=f"s-{place}",
        heading=f"Study {text.clean(study, 40)}",
        judged=_judged_table(met) if met else None,
        apart=_apart_table(apart, alone) if apart else None,
        caveats=tuple(
            dict.fromkeys(text.clean(caveat, 300) for result in results for caveat in result.claim.caveats)
        ),
        panels=_panels([result.claim for result in results], f"s-{place}") if alone else (),
    )


def _judged_table(results: Sequence[Judged]) -> Table:
    rows = tuple(
        (describe(result.claim), published(result.claim), _here(result), _verdict(result), _basis(result))
        for result in results
    )
    caption = (
        "Published figures held against the records of this page. Reproduced, holds here: the 90 % interval "
        "lies within the margin that the claim declares."
    )
    return Table(caption, ("Claim", "Published", "Here", "Verdict", "Because"), rows)


def _apart_table(results: Sequence[Judged], alone: bool) -> Table:
    columns = ("Claim", "Published", "Source") if alone else ("Claim", "Published", "Not comparable, because")
    rows = tuple(
        (
            describe(result.claim),
            published(result.claim),
            text.clean(result.claim.source, 120)
            if alone
            else text.clean("; ".join(result.verdict.because), 240),
        )
        for result in results
    )
    caption = "Published figures" if alone else "Not comparable here"
    return Table(caption, columns, rows)


def describe(claim: Claim) -> str:
    """What a claim says: in its own words, else its metric and its sides."""
    sides = _side(claim) if claim.over is None else f"{_side(claim, over=True)} over {_side(claim)}"
    metric = METRICS.get(claim.metric, claim.metric.replace("_", " "))
    if claim.kind == "order" and claim.over is not None:
        sides = f"{_side(claim)} {RELATIONS[claim.relation]} {_side(claim, over=True)}"
    words = text.clean(claim.words, 200) + "\n" if claim.words else ""
    return f"{words}{metric.capitalize()}: {sides}"


def _side(claim: Claim, *, over: bool = False) -> str:
    side = claim.over if over and claim.over else claim.of
    parts = [text.model_name(side.model), side.precision or ""]
    parts += names.variant(side)
    parts += [side.layout] if side.layout else []
    parts += [text.short_card(side.card)] if side.card else []
    return " ".join(part for part in parts if part)


def published(claim: Claim) -> str:
    """The figure as published, in its unit."""
    if claim.value is None:
        return "–"
    sign = {"equal": "", "less": "under ", "greater": "over "}[claim.relation]
    value = figure(claim, claim.value)
    return f"{sign}{value}\n{'single run' if claim.runs == 1 else text.count(claim.runs or 0, 'run')}"


def figure(claim: Claim, value: float) -> str:
    """A value in a claim's unit."""
    if claim.kind == "ratio":
        return f"{text.times(value)} ×"
    if claim.metric in ("protocol_seconds", "epoch_seconds", "step_seconds", "inference_seconds"):
        return text.seconds(value)
    if claim.metric == "peak_bytes":
        return text.gibibytes(value)
    if claim.metric == "accuracy":
        return f"{value * 100:.1f} %"
    return text.number(value, 4)


def _here(result: Judged) -> str:
    if result.measured is None:
        return "–"
    if result.claim.kind == "order":
        return f"{text.times(result.measured)} ×"
    n = max((cell.throughput.n for cell in result.cells), default=0)
    return f"{figure(result.claim, result.measured)}\nn = {n}"


def _verdict(result: Judged) -> str:
    star = result.verdict.s_star
    if star is None:
        return result.verdict.word
    return f"{result.verdict.word}\nup to a published spread of {star * 100:.1f} %"


def _basis(result: Judged) -> str:
    words = "; ".join(result.verdict.because)
    interval = result.verdict.interval
    if interval is not None:
        words += f"\n{text.number(interval.low, 3)} to {text.number(interval.high, 3)}"
        words += f", margin {result.verdict.margin:.0%}" if result.verdict.margin else ""
    return "\n".join(text.clean(part, 240) for part in words.split("\n"))


def _panels(claims: Sequence[Claim], anchor: str) -> tuple[Panel, ...]:
    """Seconds of whole protocols, and beside them the same over the fastest, a pair per model."""
    groups: dict[tuple[str, str], list[Claim]] = {}
    for claim in claims:
        if claim.kind == "absolute" and claim.metric == "protocol_seconds" and claim.value:
            groups.setdefault((claim.workload, claim.of.model), []).append(claim)
    drawn = []
    for place, ((_, model), members) in enumerate(groups.items(), 1):
        drawn += _pair(members, text.model_name(model), f"{anchor}-{place}")
    return tuple(panel for panel in drawn if panel is not None)


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


def _alone(claim: Claim, value: float | None, words: str) -> Mark:
    """A published figure under its own study's heading, which need not be named again."""
    mark = published_mark(claim, value, words)
    return replace(mark, note=mark.note.removesuffix(f" · study {claim.study}"))
