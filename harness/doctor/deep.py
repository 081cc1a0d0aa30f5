"""What the records of plan `deep` say of each path that a long plan will need: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.record import Energy, Failure, Record, Session, TrialSpec, Variant
from harness.record.finding import sentence
from harness.units import size

OWN = "smoke"
"""The workload whose models are paths; the plan's others are real ones, taken a step far."""
CLOCK = "clock"
TITLES = {
    "eager": "arithmetic",
    "compiled": "arithmetic by torch.compile",
    CLOCK: "step clock",
    "memory-wall": "words at the memory wall",
    "collectives": "collectives over loopback",
    "apex": "Apex",
    "tuning": "convolution search and its cache",
    "folders": "writing back",
}
WITH_PRECISION = ("eager", "compiled")
ABSENT = ("unsupported", "no-device")
REMEDIES = {
    "eager": "`invoke build --plan deep` again; if it stays, leave this precision out of the plan",
    "compiled": "leave the profile 'tuned' out of the plan, or set the option compile = false",
    CLOCK: "look whether other work shares the card, and whether its clocks are locked",
    "memory-wall": "report the words: a batch sweep on this card would take its end for an error",
    "collectives": "plan one card a trial (gpus = 1) until the driver and its library fit each other",
    "apex": "build with GPUDYNO_APEX=none: fp16-master then has our own master weights",
    "tuning": "leave the profile 'tuned' out of the plan",
    "folders": "look who owns results/ and the user's state, and whether the engine maps users; "
    "of a temporary folder, set TMPDIR to one on a disk without noexec",
}
AGAIN = "`invoke doctor --deep` once more, when the machine is quiet"
REMEDIES_BY_REASON = {
    "timeout": "look whether the machine does other work; a long plan would need a longer time limit",
    "killed": "free memory of the host, or give the engine more",
    "disk-full": "make room first",
    "bad-data": "`invoke build --plan deep` fetches it again",
    "engine-gone": "start the engine again",
}
NUMERIC_CAUSES = ("precision", "not-finite", "clock")
"""What makes a trial invalid whatever it was measured for."""


@dataclass(frozen=True, slots=True)
class Path:
    """How one path ended; a remedy where it is broken or was not reached, and nowhere else."""

    word: Literal["works", "broken", "not here"]
    name: str
    sentence: str
    remedy: str = ""


def judge(session: Session, records: Iterable[Record]) -> tuple[Path, ...]:
    """Return every path of a session of the plan."""
    last = {record.trial.id: record for record in sorted(records, key=lambda record: record.attempt)}
    judged = sorted(
        (_of_trial(trial, last.get(trial.id)) for trial in session.trials), key=lambda path: path.name
    )
    left = (Path("not here", item.what, item.reason) for item in session.left_out)
    return (*judged, *_telemetry(last.values()), *left)


def lines(paths: Sequence[Path]) -> list[str]:
    """One line a path, its remedy below it, and how many ended in which word."""
    marks = {"works": "works    ", "broken": "BROKEN   ", "not here": "not here "}
    shown = []
    for path in paths:
        shown.append(f"{marks[path.word]}{path.name}: {path.sentence}")
        if path.remedy:
            shown.append(" " * 9 + "→ " + path.remedy)
    counts = {word: sum(path.word == word for path in paths) for word in marks}
    shown.append(f"{counts['works']} work, {counts['broken']} broken, {counts['not here']} not here")
    return shown


def _of_trial(trial: TrialSpec, record: Record | None) -> Path:
    name = name_of(trial.asked.workload, trial.asked.variant)
    if record is None:
        return Path("not here", name, "it was not taken: the time was over", AGAIN)
    if record.failure is not None:
        return _failed(trial, name, record.failure)
    causes = record.summary.causes if record.summary else ()
    wrong = [sentence(cause) for cause in causes if cause.name in NUMERIC_CAUSES]
    if wrong:
        return Path("broken", name, "; ".join(wrong), _remedy(trial, "error"))
    return Path("works", name, "; ".join(_facts(record)))


def _failed(trial: TrialSpec, name: str, failure: Failure) -> Path:
    message = failure.message.splitlines()[0] if failure.message else failure.reason
    if failure.reason in ABSENT:
        return Path("not here", name, message)
    if failure.reason == "out-of-memory" and trial.asked.workload != OWN:
        return Path("not here", name, f"it does not fit into this device's memory: {message}")
    return Path(
        "broken", name, f"{failure.reason} at {failure.stage}: {message}", _remedy(trial, failure.reason)
    )


def _remedy(trial: TrialSpec, reason: str) -> str:
    if reason in REMEDIES_BY_REASON:
        return REMEDIES_BY_REASON[reason]
    if trial.asked.workload == OWN:
        return REMEDIES[trial.asked.variant.model]
    return "leave it out of the plan; its record has the log's end"


def name_of(workload: str, variant: Variant) -> str:
    """Return a path in a few words."""
    if workload == OWN:
        title = TITLES[variant.model]
        return f"{title} in {variant.precision}" if variant.model in WITH_PRECISION else title
    pixels = f" {variant.image_size} px" if variant.image_size else ""
    parallel = variant.options.get("parallel", "")
    several = f", {variant.gpus} devices {parallel}".rstrip() if variant.gpus > 1 else ""
    tuned = ", tuned" if variant.profile == "tuned" else ""
    return (
        f"{workload} {variant.model}{pixels} {variant.precision} batch {variant.batch_size}{several}{tuned}"
    )


def _facts(record: Record) -> Iterator[str]:
    measured = record.measurement
    if measured is None:
        return
    if record.trial.asked.workload == OWN:
        yield from measured.notes
        return
    steps = measured.window.steps
    yield f"{steps} step{'s' if steps > 1 else ''}, {record.wall_seconds:.0f} s with its start"
    memory = measured.memory
    peak = memory.reserved_peak_bytes or memory.allocated_peak_bytes or memory.process_peak_bytes
    if peak is not None:
        yield f"{size(peak)} of memory"
    if measured.data.source == "generated":
        yield "generated data"


def _telemetry(records: Iterable[Record]) -> Iterator[Path]:
    """Yield the samplers beside the trial that kept the device busy, and two sources of energy."""
    beside = [
        record
        for record in records
        if record.measurement
        and (record.trial.asked.workload, record.trial.asked.variant.model) == (OWN, CLOCK)
    ]
    if not beside:
        return
    record, telemetry = beside[0], beside[0].telemetry
    remedy = "its record's `telemetry` says why; without it a session cannot show throttling or neighbours"
    if telemetry is None or not telemetry.samples:
        yield Path("broken", "telemetry", "nothing was sampled", remedy)
        return
    on_gpu = record.trial.asked.device != "cpu"
    missing = "; ".join(f"no {name}: {why}" for name, why in sorted(telemetry.missing.items()))
    said = f"{telemetry.samples} samples from {telemetry.source if on_gpu else 'the system'}"
    said += f" ({missing})" if missing else ""
    lost = on_gpu and (telemetry.source == "none" or not telemetry.cards)
    yield Path("broken" if lost else "works", "telemetry", said, remedy if lost else "")
    yield _energy(telemetry.energy)


def _energy(energy: Energy) -> Path:
    if energy.joules is None:
        return Path("not here", "energy", energy.unknown_because or "no source tells of it")
    said = f"{energy.joules:,.0f} J by {energy.method}"
    if energy.disagreement is not None and energy.sampled_joules is not None:
        said += f", {energy.sampled_joules:,.0f} J by sampled power: {energy.disagreement:+.1%} apart"
    else:
        said += ", from one source alone"
    if energy.warning:
        return Path("broken", "energy", f"{said}; {energy.warning}", "do not decide by joules on this card")
    return Path("works", "energy", said)
