"""From what a trial left behind to its record, made and written: measured, or why it failed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path

from harness.engine.container import run_name
from harness.engine.interface import Exit
from harness.engine.local import LOG
from harness.errors import RecordError
from harness.files import Files, command_output, free_bytes
from harness.image.images import load_images
from harness.image.lock import lock_differences
from harness.image.second_lock import known_locks, locked_packages
from harness.plan import own_file
from harness.record import (
    SCHEMA,
    Environment,
    Failure,
    Harness,
    Load,
    Machine,
    Measurement,
    Model,
    Record,
    Reported,
    Session,
    TrialSpec,
    store,
)
from harness.record.strict_model import Moment
from harness.record.trial_spec import Name
from harness.redact import WITHHELD, redact_value
from harness.run.own_program import git_root
from harness.summary.contradictions import unasked_terms
from harness.summary.statistics import judge_trial
from harness.telemetry import recorder

STARTED = "started.json"
"""In the work folder of an attempt: what its record needs of its beginning."""
MEASUREMENT = "measurement.json"
ARCHIVED_COMMIT = ".commit"
"""The file of an archive that holds its commit."""
FAILURE = "failure.json"

MOST_BYTES = 32 * 2**20
"""The most bytes that a workload writes at its end: a million steps are 8 MB."""

MEASURED_BYTES = 1_000_000
"""The most bytes of a measurement in its record, with its series packed."""

IN_THE_LOG = "its message names a folder or an address, and is in its log alone"
FULL_BYTES = 2**20
"""Where less is free than this, what a process could not write says nothing of its trial."""

_MACHINERY = frozenset({"killed", "engine-gone", "disk-full", "cancelled", "preempted", "node-failed"})
_KILLED = (137, -9, 143, -15)

NO_STEP_SECONDS = 600.0
"""How long several devices may be silent before their first step."""
NO_STEP = (
    "its devices made no first step in {minutes:.0f} min, as where they do not reach each other's memory; "
    "try NCCL_P2P_DISABLE=1"
)
_SAID = re.compile(
    r"\b(?:Error \d{2,4}: [^(\n]+|CUDA driver error: .+|CUDA unknown error[^(\n]*"
    r"|CUDA error: (?!device-side|an illegal|out of memory|invalid).+"
    r"|NCCL (?:error|failure)[^\n]*|hip\w*Error\w+[^\n]*"
    r"|(?:ImportError|ModuleNotFoundError): .+|\S+\.so[.\d]*: cannot open shared object file.*)"
)
_FOLDERS = re.compile(r"(?<![:/\w])(?:/[^\s/:()']+)+/")


class TrialJob(Model):
    """One trial as a run or a cluster takes it up: what its record needs that is known before it starts."""

    trial: TrialSpec
    plan: Name
    order: int
    environment: Environment
    harness: Harness
    nodes: int = 1


class Started(TrialJob):
    """What the record of an attempt needs of the time at which it begins."""

    attempt: int
    session: str
    block: int
    started_at: Moment
    machine: Machine
    cards_given: tuple[int, ...] = ()
    load: Load

    @property
    def name(self) -> str:
        """Return the attempt's name, as its engine knows it."""
        return run_name(self.session, self.trial.id, self.attempt)


def lay_out_input(work: Path, trial: TrialSpec, beside: str) -> None:
    """Write what a trial reads: what is asked of it, and the user's file or program `beside` it, if any."""
    store.write_whole(work / "in" / "trial.json", trial.model_dump_json(indent=1) + "\n", replace=True)
    if beside:
        store.write_whole(work / "in" / own_file.NAME, beside, replace=True)


def assemble_record(
    started: Started,
    exit: Exit,
    output: Path,
    *,
    wall_seconds: float,
    locked: tuple[Mapping[str, str], bool] | None,
) -> Record:
    """Return the record of one attempt; `locked` comes from locked_packages, null without a lock."""
    measurement, problem, environment = None, "", started.environment
    try:
        measurement = _read_measurement(started.trial, output)
    except RecordError as error:
        problem = error.problem
    if measurement is not None and locked is not None:
        # 'Pinned' is a fact checked in every trial: what is installed equals the lock.
        wrong = lock_differences(locked[0], measurement.packages, over_base=locked[1])
        environment = _with_differences(environment, wrong)
    return Record.model_validate(
        {
            **dict(started),
            "record": SCHEMA,
            "status": "ok" if measurement is not None else "failed",
            # A clock that was set while nobody watched the trial may make less of it than it measured.
            "wall_seconds": max(wall_seconds, measurement.window.seconds if measurement else 0.0),
            "environment": environment,
            "measurement": measurement,
            "failure": None if measurement else _failure(started, exit, output, problem),
        }
    )


def _with_differences(environment: Environment, wrong: Sequence[str]) -> Environment:
    """Return the environment as unpinned, where something is `wrong` with what is installed."""
    if not wrong:
        return environment
    shown = ", ".join(wrong[:5]) + (f" and {len(wrong) - 5} more" if len(wrong) > 5 else "")
    reasons = (*environment.unpinned_because, f"installed differs from the lock: {shown}")
    return environment.model_copy(update={"pinned": False, "unpinned_because": reasons})


def _read_output(path: Path) -> str | None:
    """Return a file's text; null where there is none. Raises RecordError for one that is too large."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise RecordError(f"{path.name} has more than {MOST_BYTES} bytes")
    return content.decode(errors="replace")


def _read_measurement(trial: TrialSpec, output: Path) -> Measurement | None:
    """Return the measurement, null for none; raises RecordError for one of another trial."""
    text = _read_output(output / MEASUREMENT)
    if text is None:
        return None
    measurement = Measurement.parse(text, MEASUREMENT)
    if wrong := next(unasked_terms(trial.asked, measurement), ""):
        raise RecordError(f"{MEASUREMENT}: {wrong}")
    size = len(measurement.model_dump_json())
    if size > MEASURED_BYTES:
        most = f"a record would hold {size} bytes of it, and holds {MEASURED_BYTES} at most"
        raise RecordError(f"{MEASUREMENT}: {most}")
    return measurement


def _failure(started: Started, exit: Exit, output: Path, problem: str) -> Failure:
    stage, reason, message = _failure_cause(exit, output, problem)
    ours = started.trial.asked.own is None and started.trial.asked.file is None
    if ours and reason in ("error", "no-device") and (said := fault_words(exit.log)):
        message = f"{message}: {said}"
    return Failure.model_validate(
        {
            "kind": "machinery" if reason in _MACHINERY else "trial",
            "stage": stage,
            "reason": reason,
            "message": message[:2000] if redact_value(message) != WITHHELD else IN_THE_LOG,
            "exit_code": exit.code,
        }
    )


def fault_words(log: str) -> str:
    """Return what the driver or the loader said last in a log, without folders; empty where neither did."""
    said = [found[0].strip() for found in _SAID.finditer(log)]
    words = _FOLDERS.sub("", said[-1])[:200] if said else ""
    return words if redact_value(words) != WITHHELD else ""


def repeated_fault(ran: Sequence[Record]) -> str:
    """Return in what the last two trials failed alike on the same devices by the machine's fault, else ''."""
    if len(ran) < 2 or ran[-2].cards_given != ran[-1].cards_given:
        return ""
    before, last = (_fault(record) for record in ran[-2:])
    return last if last == before else ""


def faulty_trials(records: Sequence[Record]) -> frozenset[str]:
    """Return the ids of the trials that a fault of the machine failed, where it ended a line with them."""
    ordered = sorted(records, key=lambda record: record.started_at)
    fault = repeated_fault(ordered)
    return frozenset(record.trial.id for record in ordered if fault and _fault(record) == fault)


def _fault(record: Record) -> str:
    failure = record.failure
    if failure is None:
        return ""
    words = fault_words(failure.message)
    if failure.reason == "no-device" or NO_STEP[-20:] in failure.message:
        words = words or failure.message
    return words


def read_failure(output: Path) -> Reported | None:
    """Return what a trial wrote of its failure; null where it wrote nothing that can be read."""
    try:
        text = _read_output(output / FAILURE)
        return None if text is None else Reported.parse(text, FAILURE)
    except RecordError:
        return None


def _failure_cause(exit: Exit, output: Path, problem: str) -> tuple[str, str, str]:
    """Return stage, reason and message of a failure, the most telling source first."""
    code = exit.code
    if problem:
        return "collect", "bad-measurement", problem
    if exit.cause is not None:
        return "collect" if exit.cause == "engine-gone" else "train", exit.cause, exit.said
    reported = read_failure(output)
    if reported is not None:
        return reported.stage, reported.reason, reported.message
    if code is None or code in _KILLED:
        outside = "it was killed from outside before its measurement was written"
        return "collect", "killed", outside
    free = free_bytes(output)
    if free is not None and free < FULL_BYTES:
        full = f"it ended with code {code} and left no measurement, and the disk is full"
        return "collect", "disk-full", full
    return "start", "error", f"it ended with code {code} and left no measurement"


SayLine = Callable[[str], None]

SAID_LINES = 6


def conclude_attempt(
    root: Path,
    opened: Session,
    started: Started,
    work: Path,
    exit: Exit,
    say: SayLine,
    *,
    wall_seconds: float,
) -> Record:
    """Write the record of an attempt that took `wall_seconds`; raises as store.write_record does."""
    environment = started.environment
    lock = environment.lock_sha256
    locked = _locked_packages(root, environment.image, lock) if lock else None
    out = work / "out"
    made = assemble_record(started, exit, out, wall_seconds=wall_seconds, locked=locked)
    recorder.stop_sampling(work)
    record = recorder.add_telemetry(made, work)
    record = record.model_copy(update={"summary": judge_trial(record)})
    store.write_record(root, opened, record)
    # The log's end is shown to the user; no record has it, since it may name folders and people.
    last = [line.rstrip() for line in exit.log.splitlines() if line.strip()][-SAID_LINES:]
    if record.failure is not None and last:
        say("\n".join((f"the end of its log, {work / LOG}:", *(f"  {line[:200]}" for line in last))))
    return record


@cache
def _locked_packages(root: Path, image: str, sha256: str) -> tuple[Mapping[str, str], bool]:
    """Return what the lock of that hash pins, else the image's lock where the clone lost the former."""
    return locked_packages(root, known_locks(root).get(sha256) or load_images(root).image(image))


def this_harness(root: Path) -> Harness:
    """Return this gpudyno as records name it.

    git is asked where its top folder is this tree, and not where the tree lies in someone else's. A tree of
    an archive has its commit in a file, and nothing says whether it was changed since.
    """
    git = partial(command_output, "git", "-C", str(root))
    if git_root(root) != root.resolve():
        archived = Files(root).text(ARCHIVED_COMMIT) or ""
        commit = archived if re.fullmatch(r"[0-9a-f]{40}", archived) else None
        return Harness(version=version("gpudyno"), revision=commit)
    head, changed = git("rev-parse", "HEAD"), git("status", "--porcelain", "--untracked-files=no")
    modified = None if changed is None else bool(changed.strip())
    return Harness(version=version("gpudyno"), revision=head and head.strip(), modified=modified)
