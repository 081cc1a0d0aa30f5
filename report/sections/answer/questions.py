"""Page one: the questions that a reader comes with, each with its answer in a sentence or two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from harness.summary.checks import INPUT_WAIT_LIMIT
from report import text
from report.analysis import Analysis
from report.comparisons.cells import Cell, fewest_runs
from report.comparisons.speedups import FULL_PRECISION, Speedup, best_of_each_workload
from report.comparisons.time_breakdown import time_breakdown
from report.sections import acceptance
from report.sections.answer.confidence import sure
from report.sections.answer.faster import faster, some
from report.sections.answer.lead import lead, leading_cells
from report.sections.answer.memory import memory, on
from report.sections.costs import section, wording
from report.sections.costs.charts import price_line
from report.sections.limits.bottleneck import boxes_differ
from report.sections.names import apart, setting, work
from report.sections.published import claims
from report.sections.sureness.changes import would_change
from report.sections.view import Question
from report.stats.intervals import BLOCKS_NEEDED, Ranking
from report.trials.key import LOADER_ALONE
from report.trials.trial import Trial

BASELINES = {
    "fp32-ieee": "full 32-bit arithmetic",
    "fp32-tf32": "32-bit numbers multiplied with 10 bits of mantissa (TF32)",
    "fp32-default": "the framework's default, which may not be full 32-bit arithmetic",
}
MIXED = {
    "fp16-master": "In fp16-master the arithmetic has 16 bits, and weights are kept in 32.",
    "amp-fp16": "In amp-fp16 autocast takes 16 or 32 bits for each operation.",
    "amp-bf16": "In amp-bf16 autocast takes bfloat16 or 32 bits for each operation.",
}
RELATIVE = ("ratio", "order", "trend")
"""Kinds of claim about what is faster or better than what: they are told before single figures."""
MOST_NAMED = 3
NOTHING_MEASURED = "Nothing was measured, so speed, memory and published numbers stay open."
REMEDIES = {
    "out-of-memory": "The work did not fit into the memory: give the plan a smaller `batch_size`.",
    "timeout": "The time ran out: raise the plan's `timeout_seconds`.",
    "no-device": "The device was not found: `invoke doctor` says what is missing.",
    "disk-full": "The disk is full: `invoke build --clean` lists what can go.",
    "bad-data": "The data is not what it should be: `invoke build` fetches it again.",
    "engine-gone": "The container engine went away: start it again.",
}
SEE_LOG = "The end of each log stands under “What failed?” below."
FIRST = (
    "`invoke build run report` measures it for the first time; `invoke plan` says for how long.",
    "`invoke claims --here` says which of these figures it can judge, and in how many hours.",
)


def questions(analysis: Analysis) -> tuple[Question, ...]:
    """The answers of page one, in the order in which they are asked."""
    asked = _of_figures(analysis) if analysis.groups else _of_none(analysis)
    return tuple(question for question in asked if question.sentences)


def _of_none(analysis: Analysis) -> tuple[Question, ...]:
    """Where no figure can be shown: what failed, or how to begin."""
    if not analysis.own:
        return (Question("How is this machine measured?", FIRST, ""),)
    return (
        Question("What failed?", (*_failed(analysis), NOTHING_MEASURED), "failures"),
        Question("What can be done?", tuple(_remedies(analysis)), "failures"),
        Question("How is it tried again?", tuple(_again(analysis)), ""),
    )


def _of_figures(analysis: Analysis) -> tuple[Question, ...]:
    leading = leading_cells(analysis)
    own = {id(cell) for cell in analysis.measured_here}
    cells = [cell for cell in leading if id(cell) in own] or analysis.measured_here
    turning = "doubt" if analysis.costs is None or analysis.costs.answer is None else "money"
    return (
        Question("Which is faster, and by how much?", tuple(faster(analysis)), "expected"),
        Question("What does it cost?", tuple(_cost(analysis)), "money"),
        Question("What would change the answer?", tuple(_turns(analysis)), turning),
        Question("Do the published numbers hold here?", tuple(_published(analysis)), "claims"),
        Question("How sure is this?", tuple(sure(analysis, leading or cells)), "doubt"),
        Question("What limits the speed?", tuple(_limits(analysis, cells)), "limits"),
        Question("Does mixed precision pay?", tuple(_precision(analysis, cells)), "workloads"),
        Question(
            "How much memory and energy does it take?",
            tuple(_memory(analysis, _with_the_other(analysis, leading or cells))),
            "workloads",
        ),
        Question("What differs between the systems?", tuple(_differs(analysis)), "stacks"),
        Question("What failed?", tuple(_failed(analysis)), "failures"),
        Question("When is a delivered machine accepted?", acceptance.in_brief(analysis), "acceptance"),
        Question("How is the main figure measured again?", tuple(_again(analysis)), "workloads"),
    )


def _with_the_other(analysis: Analysis, cells: Sequence[Cell]) -> list[Cell]:
    """These, and what the other system of the leading pair did of the same work."""
    works = {cell.key for cell in cells}
    sides = [cell for first in analysis.expectations[:1] for cell in first.cells if cell.key in works]
    return list({id(cell): cell for cell in (*cells, *sides)}.values())


def _cost(analysis: Analysis) -> Iterator[str]:
    costs, purchase = analysis.costs, analysis.evidence.purchase
    if costs is None or costs.answer is None or purchase is None:
        yield from _unpriced(analysis)
        return
    yield from wording.pair_sentences(costs, purchase.currency)
    yield wording.work_sentence(costs.inputs)
    if left_out := wording.left_out_sentence(costs.inputs):
        yield left_out
    yield from wording.contents_sentences(costs, purchase.currency)
    if power := wording.power_sentence(costs):
        yield power


def _unpriced(analysis: Analysis) -> Iterator[str]:
    """Without prices: by speed alone, how much more each may cost."""
    view = section.view(analysis)
    if view is not None:
        first = analysis.expectations[0] if analysis.expectations else None
        if first is not None and first.ranking in (Ranking.FIRST_LOOK, Ranking.SINGLE):
            yield f"Of the works alone whose runs may be ranked: {view.answer[:1].lower()}{view.answer[1:]}"
        else:
            yield view.answer
    if analysis.evidence.purchase is None:
        yield "No prices are known: enter them with `invoke quote`."


def _turns(analysis: Analysis) -> Iterator[str]:
    costs, purchase = analysis.costs, analysis.evidence.purchase
    if costs is None or costs.answer is None or costs.pair is None or purchase is None:
        yield from would_change(analysis.expectations)[:2]
        if analysis.expectations and analysis.expectations[0].ranking is Ranking.RANKED:
            yield "The assumption that matters most is how far units of one model differ."
        return
    yield from wording.turning_sentences(costs, purchase.currency)
    on_one_line = len({costs.numbers.cards[place].rented for place in costs.pair}) == 1
    drawn = price_line(costs, purchase.currency) is not None and on_one_line
    if not drawn and (turn := wording.other_turn(costs, purchase.currency)):
        yield turn
    if costs.sensitivities:
        yield wording.most_sentence(costs.sensitivities[0], costs.numbers, costs.pair, purchase.currency)


def _published(analysis: Analysis) -> Iterator[str]:
    checked = claims.checked(analysis.verdicts, analysis.question.ways)
    if checked and checked != lead(analysis):
        yield checked
    compared = [judged for judged in analysis.verdicts if judged.compared]
    if compared and analysis.evidence.purchase is None:
        yield claims.by_metric(compared)
    failed = [judged for judged in compared if judged.verdict.word in claims.FAILS]
    if failed and analysis.evidence.purchase is None:
        first = min(failed, key=lambda judged: judged.claim.kind not in RELATIVE)
        study = text.clean(first.claim.study, 40)
        yield f"One that does not hold here, of study {study}: {claims.in_brief(first)}."


def _limits(analysis: Analysis, cells: Sequence[Cell]) -> Iterator[str]:
    timed = [(breakdown, cell) for cell in cells if (breakdown := time_breakdown(cell)) is not None]
    if cells and all(cell.key.protocol == LOADER_ALONE for cell in cells):
        yield "Nothing was trained: these runs time the loader alone."
        return
    if not timed:
        yield "How long the device waited for input was not measured."
        return
    breakdown, cell = max(timed, key=lambda pair: pair[0].input_wait)
    waits = text.percent(breakdown.input_wait)
    twice = 1 / (1 - breakdown.compute / 2)
    kind = "processor" if cell.trials[0].record.trial.asked.device == "cpu" else "card"
    if breakdown.input_wait <= INPUT_WAIT_LIMIT and breakdown.compute > 0.5:
        yield f"The {kind} itself."
    else:
        yield f"Not the {kind} alone."
    longest = f"{waits} of the time" if breakdown.input_wait >= 0.005 else "under 1 % of the time"
    yield f"The longest wait for data is {longest}: {work(cell, cells)}{on(analysis, cell)}."
    yield f"For that work a {kind} twice as fast would train {text.times(twice)} times as fast."


def _precision(analysis: Analysis, cells: Sequence[Cell]) -> Iterator[str]:
    own = set(map(id, analysis.measured_here))
    mixed = (gain for gain in analysis.speedups if gain.of.key.precision not in FULL_PRECISION)
    gains = [gain for gain in mixed if id(gain.of) in own]
    strict = [gain for gain in gains if gain.over.key.precision == "fp32-ieee"] or gains
    best = best_of_each_workload(strict)
    if not best:
        used = {cell.key.precision for cell in cells}
        named = [f"{BASELINES[name]} ({name})" for name in FULL_PRECISION if name in used]
        ran = f"all of it ran in {text.joined(named)}" if named and len(used) == len(named) else ""
        yield f"It was not measured: {ran or 'no 16-bit precision ran beside a 32-bit one'}."
        return
    over = best[0].over
    yield f"The baseline is {BASELINES[over.key.precision]} ({over.key.precision}){on(analysis, over)}."
    yield from (
        MIXED[name] for name in dict.fromkeys(gain.of.key.precision for gain in best) if name in MIXED
    )
    sized = sorted(best, key=lambda gain: _parameters(gain.of))
    if len({gain.of.key.model for gain in sized}) < 2:
        yield _gain(sized[0], "", cells)
    elif _parameters(sized[0].of):
        yield _gain(sized[0], "the smallest model, ", cells)
        yield _gain(sized[-1], "the largest, ", cells)
    else:
        yield from (_gain(gain, "", cells) for gain in (sized[0], sized[-1]))
    told = (sized[0], sized[-1])
    if any(gain.of.key.batch_size != gain.over.key.batch_size and _as_published(gain) for gain in told):
        yield "Each precision ran at its published batch, so batch and precision change together."


def _as_published(gain: Speedup) -> bool:
    return gain.of.key.protocol.startswith("published/")


def _parameters(cell: Cell) -> float:
    measured = cell.trials[0].record.measurement
    count = measured.structure.get("parameters") if measured else None
    return float(count or 0)


def _gain(gain: Speedup, which: str, among: Sequence[Cell]) -> str:
    millions = _parameters(gain.of) / 1e6
    size = f" ({text.number(millions, 2)} million weights)" if millions else ""
    interval = gain.ratio.interval
    speed = text.times(gain.ratio.estimate)
    spread = f" ({text.times(interval.low)} to {text.times(interval.high)})" if interval else " (single runs)"
    slower = "slower: " if interval and interval.high < 1 and gain.ranking is Ranking.RANKED else ""
    word = {
        Ranking.TIED: ", so no difference is shown",
        Ranking.FIRST_LOOK: ": a first look, and no ranking",
    }.get(gain.ranking, "")
    of, over = gain.of.key, gain.over.key
    others = (cell.key for cell in among if cell.key.precision == of.precision)
    model = f"{text.model_name(of.model)}{size}{setting(of)}{apart(of, others, said=('batch_size',))}"
    at, than = "", ""
    if of.batch_size != over.batch_size:
        at, than = f" at batch {of.batch_size}", f" as {over.precision} at batch {over.batch_size}"
    return f"On {which}{model}, {of.precision}{at} is {slower}{speed} times as fast{than}{spread}{word}."


def _memory(analysis: Analysis, cells: Sequence[Cell]) -> Iterator[str]:
    yield from memory(analysis, cells)
    records = [trial.record for cell in cells for trial in cell.trials]
    energies = [record.telemetry.energy for record in records if record.telemetry]
    known = [cell for cell in cells if cell.joules.mean is not None]
    if known:
        most = max(known, key=lambda cell: cell.joules.mean or 0.0)
        unit = text.clean(most.trials[0].sample_unit, 20)
        yield f"At most {text.number(most.joules.mean)} J of energy for one {unit}, by {work(most, cells)}."
        return
    reasons = Counter(energy.unknown_because for energy in energies if energy.unknown_because)
    why = f": {text.clean(reasons.most_common(1)[0][0], 160)}" if reasons else ""
    if not energies:
        why = ": no sensor was read"
    yield f"Energy is not known{why}."


def _differs(analysis: Analysis) -> Iterator[str]:
    fields = {name: values for group in analysis.groups for name, values in group.stacks}
    if fields:
        named = [
            f"{text.clean(name, 30)} ({' against '.join(text.clean(v, 30) for v in values[:2])})"
            for name, values in fields.items()
        ]
        yield f"The software differs: {some(named)}."
    if one_name := _one_name(analysis):
        yield one_name
    boxes = boxes_differ((*analysis.own, *analysis.shown))
    if boxes:
        yield boxes
    if not fields and analysis.expectations:
        yield "Their software is the same."


def _one_name(analysis: Analysis) -> str:
    """What tells two machines apart that were given one label; empty where labels differ."""
    pair = analysis.expectations[0] if analysis.expectations else None
    compared = {system.machine for system in (pair.fast, pair.slow)} if pair else set()
    labels = {trial.machine: trial.machine_label for trial in analysis.shown if trial.machine in compared}
    names = {label.rpartition(" (")[0] for label in labels.values()}
    own = next((trial.machine for trial in analysis.own), None)
    if len(labels) != 2 or len(names) != 1 or names == {""} or own not in labels:
        return ""
    other = next(label for machine, label in labels.items() if machine != own)
    ids = (text.clean(label.rpartition(" (")[2].rstrip(")"), 12) for label in (labels[own], other))
    this, that = ids
    return f"Both machines are called {text.clean(names.pop(), 40)}: this one is {this}, the other {that}."


def _failed(analysis: Analysis) -> Iterator[str]:
    failed = [trial for trial in analysis.own if trial.failure is not None]
    beside = _beside(analysis)
    theirs = sum(trial.failure is not None for trial in beside)
    if not failed:
        where = " on this machine" if theirs else " on either machine" if beside else ""
        yield f"Nothing{where}."
    else:
        yield _first_failure(analysis, failed)
    if beside and (failed or theirs):
        yield f"Of {text.count(len(beside), 'trial')} on the other, {theirs or 'none'} failed."


def _beside(analysis: Analysis) -> list[Trial]:
    """What the other system of the leading pair ran, in the sessions that are compared."""
    own = {trial.machine for trial in analysis.own}
    compared = {(cell.machine, cell.session) for first in analysis.expectations[:1] for cell in first.cells}
    others = {(machine, session) for machine, session in compared if machine not in own}
    return [trial for trial in analysis.trials if (trial.machine, trial.session) in others]


def _first_failure(analysis: Analysis, failed: Sequence[Trial]) -> str:
    """How many failed and why, and what the first was."""
    reasons = Counter(trial.failure.reason.replace("-", " ") for trial in failed if trial.failure)
    key = failed[0].key
    card = text.the(text.short_card(failed[0].device_name))
    first = f"{text.model_name(key.model)} in {key.precision} at batch {key.batch_size} on {card}"
    of = f"{text.count(len(failed), 'trial')} of {len(analysis.own):,}"
    if len(failed) == 1:
        return f"{of}: {next(iter(reasons))}, {first}."
    named = ", ".join(f"{reason} ({n})" for reason, n in reasons.most_common(MOST_NAMED))
    return f"{of}: {named}; the first was {first}."


def _remedies(analysis: Analysis) -> Iterator[str]:
    """What each reason of a failure asks for."""
    reasons = dict.fromkeys(trial.failure.reason for trial in analysis.own if trial.failure)
    yield from dict.fromkeys(REMEDIES.get(reason, SEE_LOG) for reason in reasons)


def _again(analysis: Analysis) -> Iterator[str]:
    asked = dict.fromkeys((trial.record.plan, trial.record.environment.image) for trial in analysis.own)
    for plan, image in asked:
        each = ", on each machine." if analysis.expectations else "."
        yield f"By `{text.run_again(plan, image)}`{each}"
    if analysis.question.longer:
        yield f"For tests long enough to be ranked: `{analysis.question.longer}`."
        return
    cells = analysis.measured_here
    if fewest_runs(cells) >= BLOCKS_NEEDED > max(cell.blocks for cell in cells):
        sittings = f"spread the runs over {BLOCKS_NEEDED} sittings, an hour apart"
        yield f"Add `--blocks {BLOCKS_NEEDED}` to {sittings}, for surer figures."
