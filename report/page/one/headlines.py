"""What page one says: its headline, its chips, the worst first, and its three notes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from harness.record import FULL_PRECISION
from harness.record.finding import count_labels
from harness.summary.bound import speedup_limit
from report import text
from report.analysis import Analysis
from report.claims.matching import smaller
from report.compare.cells import Cell, Ratio, cell_ratio, fewest_runs, runs_of_figures, time_breakdown
from report.compare.pairs import Expectation
from report.compare.precisions import best_of_each_workload
from report.compare.ranking import works
from report.compare.scaling import APART, Scaling, parallelism_of, ranks_of, scalings
from report.metrics import CLAIMED
from report.page.filters import setting, work
from report.page.one.check import too_large
from report.page.one.measured import leading
from report.page.values import Chip, Headline, Quantity, Systems, between, quantity, rate
from report.stats.intervals import BLOCKS_NEEDED, FLOOR_RUNS, HEADLINE_RUNS
from report.text import model_name
from report.trials.key import LOADER_ALONE
from report.trials.trial import TrialResult

HELD_BACK = 0.5
"""The share of a step: a device that computes for less is held back by something else."""
WIDE = 1.5
"""Times its low end: a range around 1 that ends higher shows neither a gain nor that there is none."""
JUDGE_MORE = "invoke run --claims here --budget 2h"
FIRST = "invoke build run report"
MOST_CHIPS = 6
MOST_GOOD = 2
MOST_NAMED = 2
_ORDER = {"stop": 0, "care": 1, "good": 2}


def of_pair(expectation: Expectation, systems: Systems) -> Headline:
    """How many times as fast one of two systems does the work that both did."""
    fast = systems.of(expectation.fast)
    slow = systems.of(expectation.slow)
    state = expectation.standing if expectation.standing in ("faster", "tied") else "faster-unranked"
    unclear = expectation.vague or expectation.units is None
    times = between(expectation.best, expectation.model if state == "tied" else expectation.units)
    data = {"fast": fast, "slow": slow, "times": times}
    data["first_look"] = expectation.ranked and expectation.blocks_assumed is not None
    if expectation.divided:
        most, least = (
            end(expectation.benchmarks, key=lambda each: each.ratio.estimate) for end in (max, min)
        )
        data |= {"times": quantity(most.ratio), "inverse": quantity(least.ratio.inverse)}
        data["first_look"] = data["first_look"] or not expectation.ranked
        return Headline("pair-divided", data)
    return Headline("pair-unclear" if unclear else f"pair-{state}", data)


def of_speeds(analysis: Analysis, systems: Systems, *, ranked: bool) -> Headline:
    """How fast this machine trains its first model: the fastest cell, with its precision."""
    cells = [cell for cell in leading(analysis) if cell.throughput.mean is not None]
    if not cells:
        invalid = sum(trial.verdict == "invalid" for trial in analysis.own)
        return Headline("all-invalid", {"own": systems.own[0], "invalid": invalid})
    alike = [cell for cell in cells if cell.key.model == cells[0].key.model]
    cell = max(alike, key=lambda cell: cell.throughput.mean or 0)
    data = {"own": systems.of(cell), "name": f"{text.model_name(cell.key.model)}{setting(cell.key)}"}
    data |= {"rate": _stated(rate(cell)), "first_look": not ranked}
    return Headline("speeds", data | {"precision": cell.key.protocol != LOADER_ALONE and cell.key.precision})


def of_published(analysis: Analysis, systems: Systems) -> Headline | None:
    """How many times as fast as published this machine does the same work; settled figures first."""
    answered = [
        (answer, answer.cell)
        for answer in analysis.answers
        if answer.times is not None
        and answer.cell is not None
        and answer.cell.session == analysis.lead
        and CLAIMED[answer.claim.metric].kind == "duration"
    ]
    if not answered:
        return None
    answer, cell = min(answered, key=lambda each: (each[0].first_look, not each[1].ranked))
    times = Quantity(answer.times, "", answer.low, answer.high)
    slower = answer.times is not None and answer.times < 1
    data = {
        "own": systems.of(cell),
        "model": model_name(cell.key.model),
        "precision": cell.key.precision,
        "card": answer.claim.of.card or "the published machine",
        "times": _inverse(times) if slower else times,
        "slower": slower,
        "loader": cell.key.data_mode if "loader" in answer.differs else "",
        "first_look": answer.first_look,
    }
    return Headline("published", data)


def _inverse(times: Quantity) -> Quantity:
    value, low, high = (1 / end if end else None for end in (times.value, times.high, times.low))
    return Quantity(value, times.unit, low, high)


def finding(analysis: Analysis, systems: Systems, *, ranked: bool) -> Headline:
    """Return a published figure's answer; else what 16 bits gain and where not, and where the device idles.

    Where none of it was measured or seen, how it scales, which framework is fastest; last, how fast it is.
    """
    if answer := of_published(analysis, systems):
        return answer
    cells = [cell for cell in leading(analysis) if cell.ranked or not ranked]
    own = set(map(id, cells))
    gains = [
        gain
        for gain in analysis.speedups
        if id(gain.of) in own
        and gain.of.key.precision not in FULL_PRECISION
        and (gain.over.ranked or not ranked)
    ]
    strict = [gain for gain in gains if gain.over.key.precision == "fp32-ieee"] or gains
    found = [(gain, quantity(gain.ratio)) for gain in best_of_each_workload(strict)]
    shown = [each for each in found if not each[1].tied] or sorted(found, key=lambda each: is_vague(each[1]))[
        :1
    ]
    idles = (each for cell in cells if (each := _idle(cell)))
    idle = max(idles, key=lambda each: each["share"], default=None)
    if idle is None and all(of.tied for _, of in found):
        if scaled := of_scaling(cells, systems, ranked=ranked):
            return scaled
        if not found:
            beside = of_frameworks(analysis, systems, ranked=ranked)
            return beside or of_speeds(analysis, systems, ranked=ranked)
    data: dict[str, Any] = {"own": systems.of(cells[0]), "first_look": not ranked, "idle": idle, "gain": None}
    if shown:
        gain, times = max(shown, key=lambda each: abs(math.log(each[1].value or 1)))
        key, model = gain.of.key, text.model_name(gain.of.key.model)
        equal = (other for other, of in found if of.tied and not is_vague(of))
        names = [text.model_name(other.of.key.model) for other in equal]
        data["own"] = systems.of(gain.of)
        data["gain"] = {"model": model, "precision": key.precision, "over": gain.over.key.precision}
        data |= {"times": times, "without": list(dict.fromkeys(name for name in names if name != model))}
        data["vague"] = is_vague(times)
    return Headline("gain", data)


def is_vague(times: Quantity) -> bool:
    """Whether a range that shows no difference is too wide to call the two equal."""
    return times.tied and times.low is not None and times.high is not None and times.high > WIDE * times.low


def of_scaling(cells: Sequence[Cell], systems: Systems, *, ranked: bool) -> Headline | None:
    """Return how many times as fast the most devices or virtual ranks that share a step are as one device."""
    ratios = [
        (cell, ratio)
        for family in scalings(cells)
        for cell in family.cells
        if ranks_of(cell) > 1 and parallelism_of(cell) != APART and (ratio := _over_single(family, cell))
    ]
    if not ratios:
        return None
    cell, ratio = max(ratios, key=lambda each: (each[0].key.gpus, ranks_of(each[0])))
    data = {"own": systems.of(cell), "model": text.model_name(cell.key.model)}
    data |= {"virtual": ranks_of(cell) if cell.key.gpus == 1 else None, "times": quantity(ratio)}
    return Headline("scaling", {**data, "first_look": not ranked})


def _over_single(family: Scaling, cell: Cell) -> Ratio | None:
    """Return its speed over one device's; of virtual ranks by the whole training, as the picture has it."""
    if cell.key.gpus > 1:
        return family.over_single(cell)
    single = family.single(cell.key.precision)
    return cell_ratio(single, cell, "seconds") if single else None


def of_frameworks(analysis: Analysis, systems: Systems, *, ranked: bool) -> Headline | None:
    """Return the fastest framework of a work, and how far one of the leading session is from it."""
    for did in works(analysis.measured_here, analysis.lead):
        first, *others = did.alike
        own = [line for line in others if line.cell.session == analysis.lead]
        if not own and first.cell.session != analysis.lead:
            continue
        slow = (own or others)[-1]
        ratio = cell_ratio(first.cell, slow.cell, "throughput")
        sure = ratio and ratio.interval and not ratio.first_look and first.cell.ranked and slow.cell.ranked
        times = quantity(ratio)
        data = {"model": text.model_name(first.cell.key.model), "own": systems.of(first.cell)}
        slower = None if times.tied else {"name": slow.name, "times": times}
        tied = [first.name, *([slow.name] if times.tied else [])]
        first_look = not (ranked and sure)
        return Headline("frameworks", {**data, "tied": tied, "slower": slower, "first_look": first_look})
    return None


def _idle(cell: Cell) -> dict[str, Any] | None:
    """Return the share of a step in which the device did not compute, where it is more than half of it."""
    parts = time_breakdown(cell)
    if parts is None or parts.compute >= HELD_BACK:
        return None
    data = {"model": text.model_name(cell.key.model), "precision": cell.key.precision}
    device = cell.trials[0].record.trial.asked.device
    return data | {"share": 1 - parts.compute, "data": parts.input_wait > HELD_BACK, "device": device}


def _stated(quantity: Quantity) -> Quantity:
    """The quantity, without its value where its range is wider than itself."""
    low, high, value = quantity.low, quantity.high, quantity.value
    wide = low is not None and high is not None and value is not None and high - low > abs(value)
    return Quantity(None, quantity.unit) if wide else quantity


def how_sure(analysis: Analysis, cells: Sequence[Cell]) -> Headline:
    """Runs and sessions of a figure, the work that is least certain, and what other units may do."""
    timed = [cell for cell in cells if cell.throughput.interval and analysis.subject != "class"]
    widest = max(timed, key=lambda cell: cell.throughput.relative_width, default=None)
    data = {
        "runs": fewest_runs(cells),
        "most": max(runs_of_figures(cells), default=0),
        "blocks": max((cell.blocks for cell in cells), default=1),
        "widest": work(widest, cells) if widest else "",
        "spread": quantity(widest.throughput, "") if widest else None,
        "invalid": len(invalid_of(trials_of(analysis, cells))),
        "short": any(cell.verdict == "unproven" for cell in cells),
    }
    return Headline("how-sure", data)


def what_limits(cells: Sequence[Cell]) -> Headline:
    """Return where a step goes in the work that computes least, and what a faster device would gain."""
    trained = [cell for cell in cells if cell.key.protocol != LOADER_ALONE]
    known = [(breakdown, cell) for cell in trained if (breakdown := time_breakdown(cell)) is not None]
    if not known:
        return Headline("limits-unknown" if trained or not cells else "limits-loader")
    breakdown, cell = min(known, key=lambda each: each[0].compute)
    data = {
        "device": cell.trials[0].record.trial.asked.device,
        "waits": Quantity(breakdown.input_wait, "share"),
        "compute": breakdown.compute,
        "idle": breakdown.other,
        "twice": quantity(speedup_limit(1 - breakdown.compute)),
        "work": work(cell, trained),
    }
    return Headline("limits", data)


def again(analysis: Analysis, *, each: bool = False) -> Headline:
    """The line that measures the leading session once more, in blocks of time where its runs are enough."""
    own, cells = analysis.own, leading(analysis)
    if analysis.request.longer:
        return Headline("next-longer", {"commands": (analysis.request.longer,)})
    blocks = max((trial.record.block for trial in own), default=1)
    line = text.run_again(own[0].record.plan, own[0].record.environment.image) if own else FIRST
    needs = ["longer"] if 2 * sum(cell.verdict == "unproven" for cell in cells) > len(cells) else []
    needs += ["runs"] if len({trial.repeat for trial in own}) < BLOCKS_NEEDED else []
    state = "next-plan" if needs else "next-blocks" if blocks < BLOCKS_NEEDED else "next-again"
    line += f" --blocks {BLOCKS_NEEDED}" if state == "next-blocks" else ""
    return Headline(state, {"commands": (line,), "each": each, "needs": needs})


def judge_more(analysis: Analysis) -> Headline:
    """The line that judges more claims here."""
    met = {judged.claim.id for judged in analysis.verdicts if judged.compared}
    waiting = [name for name in analysis.request.ways if name not in met]
    commands = (JUDGE_MORE,)
    return Headline("next-claims", {"commands": commands, "waiting": len(waiting)})


def chips(analysis: Analysis, cells: Sequence[Cell], more: Sequence[Chip] = ()) -> tuple[Chip, ...]:
    """Return the chips of the headline's cells, the worst first; `more` are those of one purpose alone."""
    found = [*_data(cells), *more, *_runs(analysis, cells), *_software(cells)]
    found.sort(key=lambda chip: _ORDER[chip.kind])
    good = [chip for chip in found if chip.kind == "good"][:MOST_GOOD]
    others = [chip for chip in found if chip.kind != "good"]
    return (*others[: MOST_CHIPS - len(good)], *good)


def _data(cells: Sequence[Cell]) -> Iterator[Chip]:
    if not cells:
        return
    if any(cell.key.data_source == "generated" for cell in cells):
        yield Chip("stop", "generated-data", "workloads")
    elif all(cell.key.data_source == "real" for cell in cells):
        yield Chip("good", "real-data")
    if any(cell.verdict == "unproven" for cell in cells):
        yield Chip("care", "too-short", "uncertainty")
    if fewest_runs(cells):
        yield confidence(cells)
    if any(cell.key.weights == "random" for cell in cells):
        yield Chip("care", "random-weights", "workloads")
    if any(smaller(cell) for cell in cells):
        yield Chip("care", "scaled-down", "workloads")
    if any(cell.length.projected and cell.seconds.n for cell in cells):
        yield Chip("care", "projected", "uncertainty")


def confidence(cells: Sequence[Cell]) -> Chip:
    """How far the figures carry: in three levels, by runs, sessions, length and data."""
    runs, blocks = fewest_runs(cells), max((cell.blocks for cell in cells), default=0)
    weak = any(cell.verdict == "unproven" or cell.key.data_source == "generated" for cell in cells)
    level = 3 if runs >= HEADLINE_RUNS and blocks >= BLOCKS_NEEDED else 2
    level = 1 if weak or runs < FLOOR_RUNS else level
    return Chip(
        "good" if level == 3 else "care",
        "confidence",
        "uncertainty",
        {"level": level, "runs": runs, "most": max(runs_of_figures(cells)), "blocks": max(blocks, 1)},
    )


def trials_of(analysis: Analysis, cells: Sequence[Cell]) -> list[TrialResult]:
    """Return the trials that page one counts: the leading session's, and all of its cells' sessions."""
    sessions = {(cell.machine, cell.session) for cell in cells}
    beside = (trial for trial in analysis.trials if trial.session != analysis.lead)
    tried = {trial.path for trial in too_large(analysis.own)}
    own = (trial for trial in analysis.own if trial.path not in tried)
    return [*own, *(trial for trial in beside if (trial.machine, trial.session) in sessions)]


def invalid_of(trials: Sequence[TrialResult]) -> list[TrialResult]:
    """Return the trials that finished and count nowhere."""
    return [trial for trial in trials if trial.verdict == "invalid" and trial.failure is None]


def _runs(analysis: Analysis, cells: Sequence[Cell]) -> Iterator[Chip]:
    trials = trials_of(analysis, cells)
    of, failed, invalid = len(trials), [trial for trial in trials if trial.failure], invalid_of(trials)
    if failed:
        reasons = Counter(trial.failure.reason for trial in failed if trial.failure)
        ((reason, _),) = reasons.most_common(1)
        works = dict.fromkeys(
            f"{model_name(trial.key.model)} batch {trial.key.batch_size}" for trial in failed
        )
        data = {"count": len(failed), "of": of, "reason": reason, "works": [*works]}
        yield Chip("care", "failed", "ran", data)
    if invalid:
        causes = count_labels(trial.causes for trial in invalid)
        cause = causes[0][0] if causes else ""
        yield Chip("care", "invalid", "ran", {"count": len(invalid), "of": of, "cause": cause})
    if trials and not failed and not invalid:
        yield Chip("good", "all-finished", data={"of": of})
    if any(pair.blocks_assumed and pair.standing == "first look" for pair in analysis.expectations[:1]):
        yield Chip("care", "few-hours", "uncertainty")
    if any(cause.name == "busy-machine" for trial in trials for cause in trial.causes):
        yield Chip("care", "busy", "uncertainty")


def _software(cells: Sequence[Cell]) -> Iterator[Chip]:
    environments = [trial.environment for cell in cells for trial in cell.trials]
    if any(not used.pinned for used in environments):
        yield Chip("care", "unpinned", "ran")
    if any(used.base_substituted for used in environments):
        yield Chip("care", "other-base", "ran")
    if len({cell.machine for cell in cells}) > 1:
        if len({cell.stack for cell in cells}) == 1:
            yield Chip("good", "same-software", "ran")
        else:
            yield Chip("care", "other-software", "ran", {"in": _differing(cells)[:MOST_NAMED]})


def _differing(cells: Sequence[Cell]) -> list[str]:
    """The parts of the software that are not the same for all cells."""
    stacks = [{"driver": cell.stack.driver, **dict(cell.stack.versions)} for cell in cells]
    names = dict.fromkeys(name for stack in stacks for name in stack)
    return [name for name in names if len({stack.get(name) for stack in stacks}) > 1]
