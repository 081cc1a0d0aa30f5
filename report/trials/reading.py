"""Records → trials, with what may be believed of each: a figure that cannot be is invalid, and says why."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from harness.errors import UserError
from harness.record import Finding, Machine, Session, finding
from harness.record.published.cards import FILE, Card, differs_in_memory, find_card, load_cards
from harness.record.store import Results, Stored, read_results, results_folder
from harness.summary import contradictions
from harness.summary.device_checks import start_findings
from harness.summary.statistics import UNKNOWN, Bound, differing_part, is_this_version, judge_trial
from harness.summary.trial_devices import used_cards
from report.trials.ceilings import Device, ceilings, device_of, roofline_point
from report.trials.key import Key, Stack, grouped_by, without_fields
from report.trials.table import table_of
from report.trials.trial import TrialResult, trial_of

if TYPE_CHECKING:
    from pandas import DataFrame

LINEAR_SLACK = 0.05
"""Superlinear scaling by more than this is not explained by caches and scatter."""


def load(path: str | Path) -> DataFrame:
    """The table of all trials in a results folder, or in a clone or an unpacked bundle around it.

    Warns of each file that cannot be read. Raises UserError where there is no results folder.
    """
    root = Path(path).resolve()
    if root.name == "results" and not results_folder(root).is_dir():
        root = root.parent
    if not results_folder(root).is_dir():
        raise UserError(
            f"'{path}' is no results folder and holds none", remedy="name a clone or its results/"
        )
    results = results_of(root)
    for problem in results.problems:
        warnings.warn(problem, stacklevel=2)
    return table_of(read_trials(results.records, cards_of(root), results.sessions))


def results_of(root: Path) -> Results:
    """Return all that is in results/; a summary that its raw samples do not give is named and replaced."""
    results, records, named = read_results(root), [], []
    for stored in results.records:
        kept = stored.record.summary
        recomputed = judge_trial(stored.record) if kept is not None else None
        if wrong := differing_part(stored.record, recomputed):
            if is_this_version(stored.record):
                named.append(
                    f"{stored.path}: its raw samples do not give its summary's '{wrong}', and are believed"
                )
            stored = Stored(stored.path, stored.record.model_copy(update={"summary": recomputed}))
        records.append(stored)
    return replace(results, records=tuple(records), problems=(*results.problems, *named))


def cards_of(root: Path) -> tuple[Card, ...]:
    """The cards of results/cards.toml; none where there is no such file."""
    return load_cards(root) if (root / FILE).exists() else ()


def read_trials(
    records: Sequence[Stored], cards: Sequence[Card], sessions: Sequence[Session] = ()
) -> tuple[TrialResult, ...]:
    """Return each record as a trial, in the order of their start; a trial with impossible figures is invalid.

    What only a session's trials together show is added to the findings of each; the ceilings measured on its
    own device say what a trial waits for.
    """
    by_device = ceilings(stored.record for stored in records)
    of_sessions = start_findings([stored.record for stored in records])
    short_ids = _short_ids(stored.record.machine for stored in records)
    turns, looks = _turns(records, sessions), {session.id: session.looks or () for session in sessions}
    plain = tuple(map(trial_of, records))
    marks = model_marks(plain)
    trials = []
    for trial, found in zip(plain, of_sessions, strict=True):
        read = replace(
            trial,
            bound=_bound_of(trial, by_device),
            short_id=short_ids.get(trial.machine, ""),
            turn=turns[trial.session],
            looks=looks.get(trial.session, ()),
            model_mark=marks.get(trial.path, ""),
        )
        trials.append(read.with_findings(*found) if found and trial.summary else read)
    return check_trials(sorted(trials, key=lambda trial: (trial.record.started_at, trial.path)), cards)


def _turns(records: Sequence[Stored], sessions: Sequence[Session]) -> dict[str, int]:
    """Return each session's place among its machine's: those without a number by date, then by their number.

    A session's id begins with its date.
    """
    numbers = {session.id: session.number or 0 for session in sessions}
    turns: dict[str, int] = {}
    for of_machine in grouped_by((one.record for one in records), lambda record: record.machine.id).values():
        begun = {
            session: (numbers.get(session, 0), session[:8], min(record.started_at for record in own))
            for session, own in grouped_by(of_machine, lambda record: record.session).items()
        }
        turns |= {session: turn for turn, session in enumerate(sorted(begun, key=begun.__getitem__), 1)}
    return turns


def _short_ids(machines: Iterable[Machine]) -> dict[str, str]:
    """Return the start of the id of each machine that shares its label with another one."""
    named = {(machine.label, machine.id) for machine in machines}
    shared = Counter(label for label, _ in named)
    return {identity: identity[:4] for label, identity in named if shared[label] > 1}


def model_marks(trials: Sequence[TrialResult]) -> dict[str, str]:
    """Return, by path, what distinguishes devices of one name that have another memory or chip."""
    marks: dict[str, str] = {}
    for named in grouped_by(trials, lambda trial: trial.device_name).values():
        if named[0].stack.device == "cpu":
            continue
        chips = {trial.device_capability for trial in named} - {None}
        sizes = sorted({size for trial in named if (size := trial.device_memory_bytes)})
        several = any(map(differs_in_memory, sizes, sizes[1:]))
        for trial in named:
            size = trial.device_memory_bytes
            # Of one model's sizes the drivers' are a little apart: the largest is the one that is sold.
            sold = max((each for each in sizes if size and not differs_in_memory(size, each)), default=0)
            memory = f"{sold / 2**30:.0f} GB" if several and sold else ""
            chip = trial.device_capability or "" if len(chips) > 1 else ""
            marks[trial.path] = " ".join(filter(None, (memory, chip)))
    return marks


def _bound_of(trial: TrialResult, by_device: Mapping[Device, Mapping[str, float]]) -> Bound:
    device = device_of(trial.record)
    if device is None or trial.summary is None:
        return UNKNOWN
    measured = {} if trial.is_ceiling else by_device.get(device, {})
    return roofline_point(trial.record, trial.summary, (), measured).bound


def check_trials(trials: Sequence[TrialResult], cards: Sequence[Card]) -> tuple[TrialResult, ...]:
    """The same trials in the same order; what cannot be is invalid, and a finding says why."""
    once = list(trials)
    # A measurement counts once: the first record with a series of step times.
    for copy, first in contradictions.find_copies([trial.record for trial in trials]):
        what = f"its step times are those of {trials[first].path}"
        once[copy] = once[copy].with_findings(finding("contradicts-itself", what=what))
    believed = (trial for trial in once if trial.verdict != "invalid" and trial.samples_per_second)
    single = {
        work: median(trial.samples_per_second or 0.0 for trial in own)
        for work, own in grouped_by(believed, _work_key).items()
    }
    flagged = (
        (trial, _impossible_findings(trial, cards, single) if trial.samples_per_second else ())
        for trial in once
    )
    return tuple(trial.with_findings(*flags) if flags else trial for trial, flags in flagged)


_Work = tuple[Key, str, str, Stack]


def _work_key(trial: TrialResult, key: Key | None = None) -> _Work:
    """What a throughput may be held against: another host, or stack, may feed a card much faster."""
    return key or trial.key, trial.device_model, trial.machine, trial.stack


def _impossible_findings(
    trial: TrialResult, cards: Sequence[Card], single: Mapping[_Work, float]
) -> tuple[Finding, ...]:
    said = contradictions.record_contradictions(trial.record)
    found = (
        _above_peak(trial, cards),
        _above_linear(trial, single),
        *(finding("contradicts-itself", what=what) for what in said),
    )
    return tuple(flag for flag in found if flag)


def _above_peak(trial: TrialResult, cards: Sequence[Card]) -> Finding | None:
    """A peak on paper is at the reference boost clock; a card does more where its clock goes higher."""
    share = roofline_point(trial.record, trial.summary, cards, {}).utilization if trial.summary else None
    if share is None or share <= 1:
        return None
    card = find_card(trial.device_name, cards)
    highest_mhz = max((gpu.clock_max_mhz or 0 for gpu in used_cards(trial.record)), default=0)
    if card is None or highest_mhz <= (card.boost_mhz or math.inf):
        return finding("above-peak", share=share)
    share *= (card.boost_mhz or 0.0) / highest_mhz
    return finding("above-peak", share=share, highest_mhz=highest_mhz) if share > 1 else None


def _above_linear(trial: TrialResult, single: Mapping[_Work, float]) -> Finding | None:
    """A throughput on several devices of more than their number times that of one."""
    devices = trial.key.gpus
    alone = single.get(_work_key(trial, without_fields(trial.key, "gpus"))) if devices > 1 else None
    gain = (trial.samples_per_second or 0.0) / alone if alone else 0.0
    over = gain > devices * (1 + LINEAR_SLACK)
    return finding("above-linear", devices=devices, gain=gain) if over else None
