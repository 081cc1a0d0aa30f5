"""What each question gives to the frame of page one: its headline, picture, table, notes and next step."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from harness.record import Record, Session
from report import text
from report.analysis import Analysis
from report.compare.cells import Cell, time_breakdown
from report.compare.comparison import compare_sides
from report.page.filters import work_name
from report.page.values import Sentence
from report.stats.intervals import BLOCKS_NEEDED
from report.trials.factors import among_sessions
from report.trials.key import LOADER_ALONE, grouped_by
from report.trials.trial import TrialResult

FIRST = "invoke build run report"
MOST_TOGETHER = 3
"""Other sessions that a line names beside the leading one."""


def cores_of(record: Record) -> float | None:
    """Return how many of its cores a processor lent to a trial; null of a card."""
    return record.machine.cpu.usable if record.trial.asked.device == "cpu" else None


def limiting_shares(cells: Sequence[Cell]) -> Sentence:
    """Return where a step goes in the work that computes least, and what a faster device would gain.

    A step that stalled counts as computing where the device has no clock, so works with such are left out.
    """
    trained = [cell for cell in cells if cell.key.protocol != LOADER_ALONE]
    known = [(breakdown, cell) for cell in trained if (breakdown := time_breakdown(cell)) is not None]
    if not known:
        return Sentence("limits-unknown" if trained or not cells else "limits-loader")
    known = [each for each in known if not _has_stalled(each[1])]
    if not known:
        return Sentence("limits-stalled")
    parts, cell = min(known, key=lambda each: each[0].compute)
    several = len({(each.machine, each.trials[0].device_model) for each in trained}) > 1
    return Sentence(
        "limits",
        {
            "work": work_name(cell, trained),
            "parts": parts,
            "device": cell.trials[0].record.trial.asked.device,
            "card": text.short_card(cell.trials[0].device_model) if several else "",
        },
    )


def _has_stalled(cell: Cell) -> bool:
    return any(found.name == "stalled" for trial in cell.trials for found in trial.causes)


def repeat_line(analysis: Analysis) -> Sentence:
    """The lines that measure what was named once more, in blocks of time where it has that many repeats.

    Several machines have one line, of the plan that repeats most; else each session has its own.
    """
    ran = grouped_by(analysis.on_record, lambda trial: trial.session)
    own = analysis.leading_trials
    if not own:
        return Sentence("next-first", {"commands": (FIRST,)})
    first, on = own[0].record, text.short_card(own[0].card)
    if analysis.request.longer:
        return Sentence("next-longer", {"commands": (analysis.request.longer,), "on": on})
    tried = dict.fromkeys(asked.command for trial in own if (asked := trial.record.trial.asked.own))
    if tried:
        return Sentence(
            "next-again", {"commands": (_try_line([*tried]),), "on": on, "trials": 0, "timed_on": ""}
        )
    if analysis.request.questions and first.plan not in analysis.request.questions:
        return Sentence("next-plan-gone", {"commands": (FIRST,), "plan": first.plan})
    named = analysis.request.named or (analysis.lead,)
    sessions = [one for one in analysis.evidence.results.sessions if one.id in named and one.id in ran]
    images = {ran[one.id][0].record.environment.image for one in sessions}
    if analysis.question.by == "machine" and len(sessions) > 1:
        sessions, on = [max(sessions, key=_count_rounds)], ""
    rounds, done = min(map(_count_rounds, sessions), default=0), max(trial.record.block for trial in own)
    each_its_own = len(images) > len(sessions) == 1
    blocks = done < BLOCKS_NEEDED <= rounds and not own[0].is_ceiling and not each_its_own
    lines = [_run_line(ran[one.id][0], blocks, each_its_own) for one in sessions] or [_run_line(own[0])]
    attempts = sorted((one for each in sessions for one in ran[each.id]), key=lambda one: one.record.attempt)
    # An attempt before the last may have been stopped early.
    last = {(one.session, one.record.trial.id): one for one in attempts}
    return Sentence(
        "next-blocks" if blocks else "next-again",
        {
            "commands": tuple(dict.fromkeys(lines)),
            "on": on,
            "timed_on": text.short_card(ran[sessions[0].id][0].card) if sessions else "",
            "trials": len(last),
            "planned": max(len(last), sum(len(one.trials) for one in sessions)),
            "seconds": sum(trial.record.wall_seconds for trial in last.values()),
        },
    )


def _count_rounds(session: Session) -> int:
    """Return how often a session repeats what blocks of time may hold: full-length trials are in none."""
    return len({trial.repeat for trial in session.trials if session.block_of.get(trial.id) != 0})


def _run_line(trial: TrialResult, blocks: bool = False, each_its_own: bool = False) -> str:
    """Return the line that runs a trial's plan again; machines of several images have `each_its_own`."""
    plan, image = (text.clean(name, 64) for name in (trial.record.plan, trial.record.environment.image))
    line = f"invoke run --plan {plan} --image {image} --new-session"
    line = line.replace(f" --image {image}", "") if each_its_own else line
    return f"{line} --blocks {BLOCKS_NEEDED}" if blocks else line


def together_line(analysis: Analysis) -> Sentence | None:
    """The line that compares the leading session with others of its plan; null where none has another side.

    Of each side that it lacks the newest session is named whose figures can be compared with its own.
    """
    factor, own = analysis.question.by, analysis.own_cells
    if factor is None or not own:
        return None
    rule, plan = among_sessions(factor), own[0].trials[0].record.plan
    known = {rule.values(cell.trials[0]) for cell in own}
    of_plan = (cell for cell in analysis.cells if cell.trials[0].record.plan == plan)
    found = []
    for session, cells in sorted(grouped_by(of_plan, lambda cell: cell.session).items(), reverse=True):
        sides = {rule.values(cell.trials[0]) for cell in cells}
        if sides - known and compare_sides(factor, (*own, *cells), rule=rule).ratios:
            known |= sides
            found.append(session)
    if not found:
        return None
    named = (analysis.lead, *found[:MOST_TOGETHER])
    command = " ".join(("invoke report", *(f"--session {session}" for session in named)))
    return Sentence("next-together", {"commands": (command,)})


def alike_line(analysis: Analysis) -> Sentence:
    """The line that measures work alike where the sides did none: to repeat theirs would compare nothing."""
    if any(trial.record.trial.asked.own for trial in analysis.own):
        return Sentence("next-own-alike", {"commands": ()})
    return together_line(analysis) or Sentence("next-alike", {"commands": (FIRST,)})


def _try_line(commands: Sequence[Sequence[str]]) -> str:
    """'invoke try "python train.py"', with the second command where there are two."""
    first, *others = (shlex.quote(text.clean(shlex.join(words), 200)) for words in commands)
    return " ".join(("invoke try", first, *(f"--against-command {other}" for other in others[:1])))


def runs_of(cells: Sequence[Cell], *, settled: bool = False) -> tuple[int, int]:
    """Return the fewest and the most processes behind a figure; those of settled windows if `settled`."""
    counts = [n for cell in cells if (n := cell.throughput.n if settled else len(cell.all_runs.values))]
    return min(counts, default=0), max(counts, default=0)
