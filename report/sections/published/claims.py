"""Published claims: how many can be checked here, what the others need, and each study's verdicts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from harness.record import Claim, Side
from report import text
from report.claims.judgeable import Way
from report.claims.judged import Judged
from report.sections.view import ClaimsView, StudyView, Table
from report.trials.pairs import grouped_by

METRICS = {
    "protocol_seconds": "seconds",
    "epoch_seconds": "seconds of an epoch",
    "peak_bytes": "peak memory",
    "valid_loss": "validation loss",
    "train_loss": "training loss",
    "batch_ratio": "largest batch",
    "test_perplexity": "test perplexity",
    "best_accuracy": "best accuracy",
    "early_fall": "mean fall between the first ten epochs",
    "epochs_to_target": "epochs",
    "seconds_to_target": "seconds",
    "auc": "area under the curve",
    "device_utilization": "time that the device is busy",
    "device_memory_share": "share of the device's memory",
}
RELATIONS = {"equal": "as", "less": "less than", "greater": "more than"}
HOLDS, FAILS, OPEN = (
    {"reproduced", "holds here"},
    {"not reproduced", "does not hold here"},
    {"inconclusive"},
)
ORDER_OF_WORDS = ("not reproduced", "does not hold here", "reproduced", "holds here", "inconclusive")
MOST_REASONS = 12
MOST_VALUES = 4
"""Values that one reason names before it only gives their number."""
_INSTEAD = " instead of "
RUN_THEM = "invoke run --claims here --budget 2h"
NO_WAYS: Mapping[str, Way] = MappingProxyType({})


def views(
    judged: Sequence[Judged], drawn: Sequence[StudyView], ways: Mapping[str, Way], *, alone: bool
) -> tuple[ClaimsView, ...]:
    """A section per study; `alone` says that nothing was measured, so that none is judged.

    `ways` are what would judge the claims that no record meets, by their ids.
    """
    studies = grouped_by(judged, lambda result: result.claim.study)
    return tuple(
        _view(study, results, place, [view for view in drawn if view.study == study], ways, alone=alone)
        for place, (study, results) in enumerate(studies.items(), 1)
    )


def checked(judged: Sequence[Judged], ways: Mapping[str, Way] = NO_WAYS) -> str:
    """How many claims this machine can check, and what came of it; empty where there are none.

    Those that no record meets and one of the `ways` would count as waiting for a run.
    """
    if not judged:
        return ""
    words = [result.verdict.word for result in judged if result.compared]
    waiting = sum(not result.compared and result.claim.id in ways for result in judged)
    if not words and not waiting:
        none = f"None of {text.count(len(judged), 'published claim')} can be checked by these runs."
        return f"{none} `invoke claims --here` names those that this machine can check."
    kinds = ((HOLDS, "holds", "hold"), (FAILS, "does not", "do not"), (OPEN, "is open", "are open"))
    counts = [(sum(word in kind for word in words), one, many) for kind, one, many in kinds]
    if not counts[-1][0]:
        counts.pop()
    if waiting:
        counts.append((waiting, "needs one more command", "need one more command"))
    here = f"{len(words) + waiting} can be checked on this machine"
    of = f"Of {text.count(len(judged), 'published claim')} {here}"
    if not words:
        return f"{of}. None is judged yet: `{RUN_THEM}` judges as many as two hours allow."
    came = ", ".join(f"{n} {one if n == 1 else many}" for n, one, many in counts)
    command = f": `{RUN_THEM}`" if waiting else ""
    return f"{of}: {came}{command}."


def by_metric(compared: Sequence[Judged]) -> str:
    """'Of accuracy 2 of 5 hold (1 open), of seconds 1 of 1.'"""
    parts: list[str] = []
    by_name = grouped_by(compared, lambda each: METRICS.get(each.claim.metric, each.claim.metric))
    for metric, results in sorted(by_name.items(), key=lambda each: -len(each[1]))[:MOST_VALUES]:
        hold, open_ = (sum(result.verdict.word in kind for result in results) for kind in (HOLDS, OPEN))
        what = text.clean(metric.replace("_", " "), 40)
        undecided = f" ({open_} open)" if open_ else ""
        parts.append(f"of {what} {hold} of {len(results)}{'' if parts else ' hold'}{undecided}")
    more = [f"{len(by_name) - MOST_VALUES} other kinds below"] if len(by_name) > MOST_VALUES else []
    return f"{text.sentence(', '.join([*parts, *more]))}."


def verdicts(judged: Sequence[Judged]) -> Table | None:
    """How many claims of each study came to which verdict; null where none came to one."""
    rows, without = [], []
    for study, results in grouped_by(judged, lambda result: result.claim.study).items():
        counts = Counter(result.verdict.word for result in results)
        if any(result.compared for result in results):
            words = ", ".join(f"{n} {word}" for word, n in counts.items())
            rows.append((text.clean(study, 40), str(len(results)), words))
        else:
            without.append(results)
    if not rows:
        return None
    if without:
        others = text.count(len(without), "other study", "other studies")
        rows.append((others, str(sum(map(len, without))), "none is comparable here"))
    return Table("Published claims, by study", ("Study", "Claims", "Verdicts"), tuple(rows))


def unmet(judged: Sequence[Judged], ways: Mapping[str, Way] = NO_WAYS) -> Table | None:
    """What would make claims comparable that are not, each with how many need it; the most first.

    With `ways`, by claim, each says which commands would judge how many of them here, and in how long.
    """
    apart = [result for result in judged if not result.compared]
    needs = grouped_by(apart, lambda result: _needs(result.verdict.because))
    ordered = sorted(needs.items(), key=lambda need: -len(need[1]))
    rows = [
        (_need(fields, results), str(len(results)), _studies(results), _commands(results, ways))
        for fields, results in ordered[:MOST_REASONS]
    ]
    rest = [result for _, results in ordered[MOST_REASONS:] for result in results]
    if rest:
        others = "for other reasons, which the tables below name"
        rows.append((others, str(len(rest)), _studies(rest), _commands(rest, ways)))
    if not rows:
        return None
    caption = "What the other claims need, or why nothing can judge them."
    columns = ("Need, or reason", "Claims", "Studies", "Here, by")
    if not any(ways.get(result.claim.id) for result in apart):
        return Table(caption, columns[:-1], tuple(row[:-1] for row in rows))
    return Table(caption, columns, tuple(rows))


def _commands(results: Sequence[Judged], ways: Mapping[str, Way]) -> str:
    """'`invoke run --plan perbos`, about 9.0 h: 80 claims', a line for each plan."""
    met = [way for result in results if (way := ways.get(result.claim.id)) is not None]
    lines = []
    for name, alike in grouped_by(met, lambda way: way.line).items():
        trials: dict[str, float] = {}
        for way in alike:
            trials |= way.seconds_by_trial
        claims = text.count(len(alike), "claim")
        lines.append(f"invoke run --plan {name}, about {text.duration(sum(trials.values()))}: {claims}")
    return "\n".join(lines[:MOST_VALUES]) or "–"


def _own_way(result: Judged, ways: Mapping[str, Way]) -> str:
    way = ways.get(result.claim.id)
    if way is None:
        return ""
    return f"\ninvoke run --claim {result.claim.id}, about {text.duration(way.seconds)} here"


def _needs(because: Sequence[str]) -> tuple[str, ...]:
    """What reasons are about: another model alone where that is one, and a precision only where it is all."""
    fields = tuple(map(_field, because))
    if "model" in fields:
        return ("model",)
    return tuple(field for field in fields if field != "precision") or fields


def _field(reason: str) -> str:
    """What a reason is about, where another value would do; else the whole reason."""
    return reason.partition(": ")[0] if _INSTEAD in reason else reason


def _need(fields: Sequence[str], results: Sequence[Judged]) -> str:
    reasons = list(dict.fromkeys(reason for result in results for reason in result.verdict.because))
    parts = []
    for field in fields:
        wanted = dict.fromkeys(
            _wanted(reason) for reason in reasons if _INSTEAD in reason and _field(reason) == field
        )
        parts.append(f"{field} {_some(list(wanted))}" if wanted else field)
    return text.clean("; ".join(parts), 200)


def _wanted(reason: str) -> str:
    """'PyTorch 1.11' of 'stack: PyTorch 2.13.0 instead of 1.11', '48' of 'batch size: 32 instead of 48'."""
    field, _, values = reason.partition(": ")
    measured, _, claimed = values.partition(_INSTEAD)
    if field == "model":
        return text.model_name(claimed)
    name = measured.rpartition(" ")[0] if field == "stack" else ""
    return f"{name} {claimed}".strip()


def _some(values: Sequence[str]) -> str:
    if len(values) <= MOST_VALUES:
        return " or ".join(values)
    return f"{', '.join(values[: MOST_VALUES - 1])} or {len(values) - MOST_VALUES + 1} others"


def _studies(results: Iterable[Judged]) -> str:
    return ", ".join(dict.fromkeys(text.clean(result.claim.study, 40) for result in results))


def _view(
    study: str,
    results: Sequence[Judged],
    place: int,
    drawn: Sequence[StudyView],
    ways: Mapping[str, Way],
    *,
    alone: bool,
) -> ClaimsView:
    met = sorted(
        (result for result in results if result.compared),
        key=lambda result: ORDER_OF_WORDS.index(result.verdict.word),
    )
    shown = {claim for view in drawn for claim in view.claims} if alone else set()
    apart = [result for result in results if not result.compared and result.claim.id not in shown]
    caveats = dict.fromkeys(text.clean(caveat, 300) for result in results for caveat in result.claim.caveats)
    leads = bool(met) or any(view.measured or alone for view in drawn)
    table = _apart_table(apart, ways, alone) if apart else None
    return ClaimsView(
        anchor=f"s-{place}",
        heading=f"Study {text.clean(study, 40)}",
        judged=_judged_table(met) if met else None,
        apart=table,
        caveats=tuple(caveats),
        drawn=tuple(drawn),
        leads=leads,
        folded=_folded(table, 0 if leads else len(drawn), bool(caveats)),
    )


def _folded(apart: Table | None, drawings: int, caveats: bool) -> str:
    """'2 drawings, 14 published figures and the caveats of its figures'"""
    parts = [text.count(drawings, "drawing")] if drawings else []
    parts += [f"{len(apart.rows)} {apart.caption[0].lower()}{apart.caption[1:]}"] if apart else []
    parts += ["the caveats of its figures"] if caveats else []
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


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


def _apart_table(results: Sequence[Judged], ways: Mapping[str, Way], alone: bool) -> Table:
    columns = ("Claim", "Published", "Source") if alone else ("Claim", "Published", "Not comparable, because")
    rows = tuple(
        (
            row_label(result.claim),
            published(result.claim),
            text.clean(result.claim.source, 120)
            if alone
            else text.clean("; ".join(result.verdict.because), 240) + _own_way(result, ways),
        )
        for result in results
    )
    caption = "Published figures that are not drawn" if alone else "Not comparable here"
    return Table(caption, columns, rows)


def describe(claim: Claim) -> str:
    """What a claim says: in its own words, and beneath them its metric and its sides."""
    words = text.clean(claim.words, 200) + "\n" if claim.words else ""
    return f"{words}{short(claim)}"


def row_label(claim: Claim) -> str:
    """A claim in one line; its own words where it has no figure."""
    if claim.value is not None or claim.kind == "order" or not claim.words:
        return short(claim)
    card = f" ({text.short_card(claim.of.card)})" if claim.of.card else ""
    return f"{text.clean(claim.words, 100)}{card}"


def short(claim: Claim) -> str:
    """A claim's metric and its sides, what both have said once: enough to tell it from the others."""
    metric = METRICS.get(claim.metric, claim.metric.replace("_", " ")).capitalize()
    metric += (
        f" after {text.count(claim.epochs, 'epoch')}" if claim.kind == "quality" and claim.epochs else ""
    )
    metric += f" to {text.target(claim.target)}" if claim.target is not None else ""
    of = _side(claim.of)
    if claim.over is None:
        return f"{metric}: {' '.join(of)}"
    over = _side(claim.over)
    common = [part for part in of if part in over]
    sides = [" ".join(part for part in side if part not in common) or "the same" for side in (of, over)]
    if claim.kind == "order":
        between = f"{sides[0]} {RELATIONS[claim.relation]} {sides[1]}"
    else:
        between = f"{sides[1]} over {sides[0]}"
    return f"{', '.join([metric, ' '.join(common)]) if common else metric}: {between}"


def _side(side: Side) -> list[str]:
    parts = [
        text.short_card(side.card) if side.card else "",
        text.model_name(side.model),
        side.precision or "",
        f"batch {side.batch_size}" if side.batch_size else "",
        f"{side.gpus} devices" if side.gpus > 1 else "",
        f"{side.data_mode} data" if side.data_mode else "",
        side.layout or "",
        f"{side.image_size} px" if side.image_size else "",
        *(f"{name} {value}" for name, value in side.options.items()),
    ]
    return [text.clean(part, 60) for part in parts if part]


def published(claim: Claim) -> str:
    """The figure as published, in its unit."""
    if claim.value is None:
        return "–"
    sign = {"equal": "", "less": "under ", "greater": "over "}[claim.relation]
    value = as_printed(claim, claim.value)
    return f"{sign}{value}\n{'single run' if claim.runs == 1 else text.count(claim.runs or 0, 'run')}"


def as_printed(claim: Claim, value: float) -> str:
    """A published value with the digits of its source, where these are known and the unit is the source's."""
    converted = claim.kind == "ratio" or claim.metric in ("peak_bytes", "accuracy", "best_accuracy")
    if converted or not claim.half_digit:
        return figure(claim, value)
    places = max(0, round(-math.log10(2 * claim.half_digit)))
    return f"{value:,.{places}f}{' s' if claim.unit == 's' else ''}"


SECONDS = ("protocol_seconds", "epoch_seconds", "step_seconds", "inference_seconds", "seconds_to_target")


def figure(claim: Claim, value: float) -> str:
    """A value in a claim's unit."""
    if claim.kind == "ratio":
        return f"{text.times(value)} ×"
    if claim.metric in SECONDS:
        return text.seconds(value)
    if claim.metric == "peak_bytes":
        return text.gibibytes(value)
    if claim.metric in ("accuracy", "best_accuracy"):
        return f"{value * 100:.1f} %"
    return text.number(value, 4)


def in_brief(result: Judged) -> str:
    """A claim that met a record in one line: 'Validation loss: ResNet-50, published 1.23, here 1.45'."""
    said, printed, here = (
        words.partition("\n")[0] for words in (describe(result.claim), published(result.claim), _here(result))
    )
    if "–" in (printed, here):
        return f"“{said.rstrip('.')}”" if result.claim.words else said.rstrip(".")
    return f"{said.rstrip('.')}, published {printed}, here {here}"


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
