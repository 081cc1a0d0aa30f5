"""Page one: one frame for every question, and what each question puts into it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.record.finding import count_labels
from report import text
from report.analysis import Analysis
from report.claims.matching import smaller_notes
from report.compare.box import cards_behind
from report.compare.cells import Cell
from report.page.one import cost, device_limits, faster, holds, reach, sound, unanswered
from report.page.one.sound import too_large
from report.page.values import AnswerPage, Chip, PageOne, Sentence, Source, Systems
from report.trials.trial import TrialResult

CONSTRUCTED = "Constructed"
"""How the names of devices begin that no one measured."""
FRAMEWORKS = ("torch", "tensorflow", "mxnet", "chainer")
MOST_CHIPS = 4
_SEVERITY = {"stop": 0, "care": 1, "good": 2}


def page_one(analysis: Analysis, systems: Systems) -> PageOne:
    """Page one of an analysis, by what is asked."""
    kind, made = _answer_page(analysis, systems)
    own = [trial for trial in analysis.on_record if trial.session == analysis.lead and not analysis.of_others]
    shown = _counted_trials(analysis, made.cells)
    source = Source(
        written=analysis.request.now,
        started=min((trial.started_at for trial in own), default=None),
        plan=own[0].record.plan if own else "",
        software=_framework(own),
        trials=len(shown),
        failed=sum(trial.failure is not None for trial in shown),
    )
    card = text.short_card(own[0].card) if own else ""
    return PageOne(
        answer=made,
        about=Sentence(kind, {"own": card, **made.about}),
        source=source,
        chips=_choose_chips([*made.chips, *_chips(analysis, made.cells, shown, kind)]),
        constructed=any(
            trial.device_name.startswith(CONSTRUCTED) or trial.record.simulated for trial in analysis.shown
        ),
    )


def _answer_page(analysis: Analysis, systems: Systems) -> tuple[str, AnswerPage]:
    """What was asked, as far as the records have it; else which is faster."""
    question = analysis.question
    if question.kind == "cost" and analysis.costs:
        return "cost", cost.page(analysis, systems)
    if question.kind == "sound" and analysis.checks:
        return "sound", sound.page(analysis, systems)
    if analysis.of_others or not any(trial.session == analysis.lead for trial in analysis.on_record):
        return "nothing", unanswered.nothing_page(analysis, systems)
    if not any(cell.verdict != "invalid" for cell in analysis.own_cells):
        limits = device_limits.page(analysis, systems)
        return ("limits", limits) if limits else ("failed", unanswered.failed_page(analysis))
    pages = {"limits": device_limits.page, "holds": holds.page, "reach": reach.page}
    make = pages.get(question.kind)
    made = make(analysis, systems) if make else None
    if made:
        return question.kind, made
    page = faster.page(analysis, systems)
    behind = cards_behind(analysis.own) if question.by == "unit" else ()
    return "faster", replace(page, headline=Sentence("behind", {"one": behind[0]})) if behind else page


def _framework(own: Sequence[TrialResult]) -> str:
    """'torch 2.13.0', where the session ran one; the libraries beneath it have no room."""
    used = [dict(trial.stack.versions) for trial in own]
    found = {f"{name} {stack[name]}" for stack in used for name in FRAMEWORKS if stack.get(name)}
    return text.clean(found.pop(), 30) if len(found) == 1 else ""


def _counted_trials(analysis: Analysis, cells: Sequence[Cell]) -> list[TrialResult]:
    """The trials that page one counts: the leading session's, and all of its cells' sessions."""
    sessions = {(cell.machine, cell.session) for cell in cells}
    tried = {trial.path for trial in too_large(analysis.own)}
    return [
        trial
        for trial in analysis.on_record
        if (trial.session == analysis.lead and not analysis.of_others and trial.path not in tried)
        or (trial.session != analysis.lead and (trial.machine, trial.session) in sessions)
    ]


# Chips


def _choose_chips(found: Sequence[Chip]) -> tuple[Chip, ...]:
    """The worst first, and one that is good where anything is."""
    worst = sorted(found, key=lambda chip: _SEVERITY[chip.kind])
    good = [chip for chip in worst if chip.kind == "good"]
    others = [chip for chip in worst if chip.kind != "good"]
    return (*others[: MOST_CHIPS - bool(good)], *good[: max(1, MOST_CHIPS - len(others))])[:MOST_CHIPS]


def _chips(
    analysis: Analysis, cells: Sequence[Cell], trials: Sequence[TrialResult], kind: str
) -> Iterator[Chip]:
    """Yield what a reader must know of any answer: its data, its runs, and its software."""
    if any(cell.key.data_source == "generated" for cell in cells):
        yield Chip("stop", "generated-data", "workloads")
    if analysis.question.kind == "sound" or analysis.question.by == "unit":
        yield from _box_chips(analysis)
    yield from _run_chips(trials)
    if kind != "sound" and analysis.checks:
        state = analysis.checks[0].state
        yield Chip("good" if state == "sound" else "care", "card", "check", {"state": state})
    if any(cell.key.weights == "random" for cell in cells):
        yield Chip("care", "random-weights", "workloads")
    if any(smaller_notes(cell) for cell in cells):
        yield Chip("care", "scaled-down", "workloads")
    environments = [trial.environment for cell in cells for trial in cell.trials]
    if any(not used.pinned for used in environments):
        yield Chip("care", "unpinned", "ran")
    if any(used.base_substituted for used in environments):
        yield Chip("care", "other-base", "ran")
    if len({cell.machine for cell in cells}) > 1 and len({cell.stack for cell in cells}) == 1:
        yield Chip("good", "same-software", "ran")
    if cells and all(cell.key.data_source == "real" for cell in cells):
        yield Chip("good", "real-data")


def _box_chips(analysis: Analysis) -> Iterator[Chip]:
    """Yield the number of measured cards, and each card behind the others."""
    if analysis.box.present > 1:
        yield Chip("care" if analysis.box.missing else "good", "box", "ran", {"box": analysis.box})
    for behind in () if analysis.question.kind == "sound" else cards_behind(analysis.own)[1:3]:
        yield Chip("stop", "behind", "ran", {"behind": behind})


def _run_chips(trials: Sequence[TrialResult]) -> Iterator[Chip]:
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
    if trials and not failed and not invalid:
        yield Chip("good", "all-finished", data={"of": of})
    if any(cause.name == "busy-machine" for trial in trials for cause in trial.causes):
        yield Chip("care", "busy", "uncertainty")
