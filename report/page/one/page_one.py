"""Page one: one frame for every question, and what each question puts into it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from harness.record.finding import count_labels
from report import text
from report.analysis import Analysis
from report.claims.claimed_work import smaller_notes
from report.compare.card_units import cards_behind
from report.compare.cells import Cell
from report.page.one import cost, faster, holds, limits, reach, sound, unanswered
from report.page.values import AnswerPage, Chip, PageOne, Quantity, Sentence, Source, SystemRuns, Systems
from report.trials.key import LOADER_ALONE, grouped_by
from report.trials.trial import TrialResult

CONSTRUCTED = "Constructed"
"""How the names of devices begin that no one measured."""
FRAMEWORKS = ("torch", "tensorflow", "mxnet", "chainer")
DISTURBANCES = ("busy-machine", "slowdown", "stalled")
"""The findings of single trials that page one counts."""
MOST_CHIPS, MOST_FRAMEWORKS = 4, 2
_SEVERITY = {"stop": 0, "care": 1, "good": 2}


def page_one(analysis: Analysis, systems: Systems) -> PageOne:
    """Page one of an analysis, by what is asked."""
    kind, made = _answer_page(analysis, systems)
    own = analysis.leading_trials
    shown = _counted_trials(analysis, made.cells)
    source = _source(analysis, shown)
    cards = dict.fromkeys(trial.card for trial in own)
    card = text.short_card(next(iter(cards)) if len(cards) == 1 else own[0].device_model) if own else ""
    answering = {trial.path for trial in own} | {trial.path for cell in made.cells for trial in cell.trials}
    chips = (*made.chips, *_chips(analysis, made.cells, shown, kind, source.missing))
    return PageOne(
        answer=made,
        about=Sentence(kind, {"own": card, **made.about}),
        source=source,
        chips=tuple(sorted(chips, key=lambda chip: _SEVERITY[chip.kind])[:MOST_CHIPS]),
        constructed=any(
            trial.device_name.startswith(CONSTRUCTED) or trial.record.simulated for trial in analysis.shown
        ),
        ran=_system_runs([trial for trial in shown if trial.path in answering], systems),
    )


def _answer_page(analysis: Analysis, systems: Systems) -> tuple[str, AnswerPage]:
    """What was asked, as far as the records have it; else which is faster."""
    question = analysis.question
    if question.kind == "cost" and analysis.costs:
        return "cost", cost.page(analysis, systems)
    if question.kind == "sound" and analysis.checks:
        return "sound", sound.page(analysis, systems)
    if not analysis.leading_trials:
        return "nothing", unanswered.nothing_page(analysis, systems)
    if not any(cell.verdict != "invalid" for cell in analysis.own_cells):
        reached = limits.page(analysis, systems)
        return ("limits", reached) if reached else ("failed", unanswered.failed_page(analysis))
    pages = {"limits": limits.page, "holds": holds.page, "reach": reach.page}
    if (make := pages.get(question.kind)) and (made := make(analysis, systems)):
        return question.kind, made
    page = faster.page(analysis, systems)
    behind = cards_behind(analysis.own) if question.by == "unit" else ()
    return "faster", replace(page, headline=Sentence("behind", {"one": behind[0]})) if behind else page


def _source(analysis: Analysis, shown: Sequence[TrialResult]) -> Source:
    """Return what page one counts, of all its sessions together."""
    ids = dict.fromkeys(trial.session for trial in shown)
    sessions = [session for session in analysis.evidence.results.sessions if session.id in ids]
    planned = {(session.id, trial.id) for session in sessions for trial in session.trials}
    recorded = {(trial.session, trial.record.trial.id) for trial in analysis.on_record}
    days = sorted(trial.record.started_at.date() for trial in shown)
    return Source(
        written=analysis.request.now,
        days=(days[0], days[-1]) if days else None,
        sessions=tuple(ids),
        plans=tuple(dict.fromkeys(trial.record.plan for trial in shown)),
        software=_frameworks(shown),
        trials=len(shown),
        failed=sum(trial.failure is not None for trial in shown),
        missing=len(planned - recorded),
    )


def _frameworks(shown: Iterable[TrialResult]) -> tuple[str, ...]:
    """'torch 2.13.0' of each that ran; the libraries beneath them have no room, nor have more than two."""
    used = [dict(trial.stack.versions) for trial in shown]
    found = dict.fromkeys(f"{name} {stack[name]}" for stack in used for name in FRAMEWORKS if stack.get(name))
    return tuple(text.clean(name, 30) for name in found) if len(found) <= MOST_FRAMEWORKS else ()


def _system_runs(trials: Iterable[TrialResult], systems: Systems) -> tuple[SystemRuns, ...]:
    """Return when each system of page one ran, the leading session's first, and how long its windows are."""
    found = []
    for of in grouped_by((trial for trial in trials if trial.record.measurement), systems.of).values():
        days = sorted(trial.record.started_at.date() for trial in of)
        lengths = [each.window.seconds for trial in of if (each := trial.record.measurement)]
        windows = Quantity(max(lengths), "seconds", min(lengths), max(lengths))
        found.append(SystemRuns(systems.of(of[0]).name, (days[0], days[-1]), windows))
    return tuple(found)


def _counted_trials(analysis: Analysis, cells: Sequence[Cell]) -> list[TrialResult]:
    """The trials that page one counts by their last attempt: the leading session's, then of its cells'."""
    sessions = {(cell.machine, cell.session) for cell in cells if cell.session != analysis.lead}
    beside = (trial for trial in analysis.on_record if (trial.machine, trial.session) in sessions)
    attempts = sorted((*analysis.leading_trials, *beside), key=lambda trial: trial.record.attempt)
    last = {(trial.session, trial.record.trial.id): trial for trial in attempts}
    return sorted(last.values(), key=lambda trial: trial.session != analysis.lead)


# Chips


def _chips(
    analysis: Analysis, cells: Sequence[Cell], trials: Sequence[TrialResult], kind: str, missing: int
) -> Iterator[Chip]:
    """Yield what a reader must know of any answer: its data, its runs, and its software."""
    yield from _work_chips(cells)
    if analysis.question.kind == "sound" or analysis.question.by == "unit":
        yield from _box_chips(analysis)
    yield from _run_chips(trials, missing)
    if kind != "sound" and analysis.checks:
        state = analysis.checks[0].state
        yield Chip("good" if state == "sound" else "care", "card", "check", {"state": state})
    yield from _software_chips(cells)
    if cells and all(cell.key.data_source == "real" for cell in cells):
        yield Chip("good", "real-data")


def _work_chips(cells: Sequence[Cell]) -> Iterator[Chip]:
    """Yield what holds of works, with the models of these where it does not hold of all."""
    trained = [cell for cell in cells if cell.key.protocol != LOADER_ALONE]
    works = (
        ("generated-data", [cell for cell in cells if cell.key.data_source == "generated"]),
        ("synthetic-data", [cell for cell in cells if cell.key.data_source == "synthetic"]),
        ("random-weights", [cell for cell in trained if cell.key.weights == "random"]),
        ("scaled-down", [cell for cell in cells if smaller_notes(cell)]),
    )
    for name, found in works:
        if found:
            models = dict.fromkeys(text.model_name(cell.key.model) for cell in found)
            data = {"models": [*models] if len(found) < len(cells) else []}
            yield Chip("stop" if name == "generated-data" else "care", name, "workloads", data)


def _software_chips(cells: Sequence[Cell]) -> Iterator[Chip]:
    environments = [trial.environment for cell in cells for trial in cell.trials]
    if any(not used.pinned for used in environments):
        yield Chip("care", "unpinned", "ran")
    if any(used.base_substituted for used in environments):
        yield Chip("care", "other-base", "ran")
    if len({cell.machine for cell in cells}) > 1 and len({cell.stack for cell in cells}) == 1:
        yield Chip("good", "same-software", "ran")


def _box_chips(analysis: Analysis) -> Iterator[Chip]:
    """Yield the number of measured cards, and each card behind the others."""
    if analysis.box.present > 1:
        yield Chip("care" if analysis.box.missing else "good", "box", "ran", {"box": analysis.box})
    for behind in () if analysis.question.kind == "sound" else cards_behind(analysis.own)[1:3]:
        yield Chip("stop", "behind", "ran", {"behind": behind})


def _run_chips(trials: Sequence[TrialResult], missing: int) -> Iterator[Chip]:
    of, failed = len(trials), [trial for trial in trials if trial.failure]
    invalid = [trial for trial in trials if trial.verdict == "invalid" and not trial.failure]
    if failed:
        ((reason, _),) = Counter(trial.failure.reason for trial in failed if trial.failure).most_common(1)
        works = dict.fromkeys(
            f"{text.model_name(one.key.model)} batch {one.key.batch_size}" for one in failed
        )
        yield Chip(
            "care", "failed", "ran", {"count": len(failed), "of": of, "reason": reason, "works": [*works]}
        )
    if invalid:
        causes = count_labels(trial.causes for trial in invalid)
        data = {"count": len(invalid), "of": of, "cause": causes[0][0] if causes else ""}
        yield Chip("care", "invalid", "ran", data)
    if missing:
        yield Chip("care", "missing", "ran", {"count": missing, "of": of + missing})
    elif trials and not failed and not invalid:
        yield Chip("good", "all-finished", data={"of": of})
    met = Counter(name for trial in trials for name in {cause.name for cause in trial.causes})
    for name in filter(met.__getitem__, DISTURBANCES):
        yield Chip("care", "disturbed", "ran", {"name": name, "count": met[name], "of": of})
