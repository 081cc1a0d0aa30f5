"""A record: trial, environment, machine, and a measurement or a failure, in one self-contained file."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from harness.record.finding import Finding
from harness.record.machine import Environment, Load, Machine
from harness.record.measurement import Measurement
from harness.record.strict_model import LeftOutIfNull, Model, Moment, Number
from harness.record.telemetry import Telemetry
from harness.record.trial_spec import Name, StackKey, TrialSpec, Variables

SCHEMA = 2

SessionId = Annotated[str, Field(pattern=r"^[0-9]{8}-[0-9a-f]{6}$")]


Stage = Literal["start", "setup", "data", "train", "valid", "checkpoint", "test", "collect"]
Reason = Literal[
    "out-of-memory",
    "not-finite",
    "no-device",
    "timeout",
    "cancelled",
    "preempted",
    "node-failed",
    "killed",
    "engine-gone",
    "disk-full",
    "bad-measurement",
    "bad-data",
    "unsupported",
    "error",
]


class Reported(Model):
    """out/failure.json: why a workload ended early, in its own words."""

    stage: Stage
    reason: Reason
    message: Annotated[str, Field(max_length=2000)]


class Failure(Reported):
    """Why there is no measurement. `machinery` failures are tried again, a trial's own are results."""

    kind: Literal["trial", "machinery"]
    exit_code: int | None = None


class Steady(Model):
    """The steady part of the step times, found by change points and drift."""

    kind: Literal["flat", "recurrent", "warm-up", "slowdown", "none", "unproven"]
    first_step: int
    """Steps before it were cut."""
    changes: tuple[int, ...] = ()
    slope: Number | None = None
    """Relative change over the steady part, of a line through it."""
    slope_error: Number | None = None
    """The slope's standard error, which knows that neighbouring steps are alike."""
    mean_error: Number | None = None
    """The relative standard error of the steady part's mean, by its slow movement alone."""


class Summary(Model):
    """Statistics of one trial: a cache of what the raw samples say."""

    throughput: Number
    """Samples per second over the host window."""
    step_seconds_median: Number
    step_seconds_p5: Number
    step_seconds_p95: Number
    steady: Steady
    input_share: Number | None = None
    """The share of the steady steps' time spent waiting for input; no more than the device was idle."""
    host_bound_share: Number | None = None
    """The share of the steady steps' time in which no kernel ran on the device."""
    epoch_seconds: Number | None = None
    """Seconds of a whole epoch, validation included; projected where no whole one ran."""
    protocol_seconds: Number | None = None
    """Seconds of the whole protocol; projected unless it ran to its end."""
    projected: bool
    verdict: Literal["valid", "warn", "invalid", "unproven"]
    findings: tuple[Finding, ...] = ()
    """What the verdict follows from, and notes on what is normal and worth knowing."""

    @property
    def causes(self) -> tuple[Finding, ...]:
        """Return the findings that speak against the trial."""
        return tuple(found for found in self.findings if found.severity != "note")

    @property
    def notes(self) -> tuple[Finding, ...]:
        """Return the findings that do not speak against the trial."""
        return tuple(found for found in self.findings if found.severity == "note")


class Harness(Model):
    """Which gpudyno made the record."""

    version: str
    revision: str | None = None
    modified: bool | None = None


class Record(Model):
    """results/<date>/<machine>-<session>/<trial>.json"""

    record: Literal[2]
    status: Literal["ok", "failed"]
    session: SessionId
    attempt: Annotated[int, Field(ge=1)] = 1
    order: Annotated[int, Field(ge=0)]
    """The place of the trial in its session's randomised order."""
    block: Annotated[int, Field(ge=1)] = 1
    plan: Name
    started_at: Moment
    wall_seconds: Annotated[float, Field(ge=0, le=1e9)]
    trial: TrialSpec
    environment: Environment
    machine: Machine
    cards_given: tuple[int, ...] = ()
    """Indices, among the machine's cards of the trial's kind, of those it was given, its first one first.

    Empty on a processor, and in records from before this was kept.
    """
    nodes: Annotated[int, Field(ge=1)] = 1
    """Over how many machines its devices are spread evenly; `machine` and `cards_given` are of the first."""
    load: Load = Load()
    measurement: Measurement | None = None
    failure: Failure | None = None
    summary: Summary | None = None
    telemetry: Telemetry | None = None
    harness: Harness
    warnings: tuple[Finding, ...] = ()
    """What happened within the session; a summary repeats the findings that are no notes."""

    @model_validator(mode="after")
    def _either_measured_or_failed(self) -> Self:
        expected = (self.status == "ok", self.status == "failed")
        if (self.measurement is not None, self.failure is not None) != expected:
            raise ValueError(f"status {self.status!r} does not fit what the record holds")
        return self

    @property
    def ended_at(self) -> datetime:
        """Return when its trial ended."""
        return self.started_at + timedelta(seconds=self.wall_seconds)

    @property
    def simulated(self) -> bool:
        """Return whether the device was simulated, so that nothing was measured."""
        return self.measurement is not None and self.measurement.device.simulated


QuestionKind = Literal["faster", "reach", "holds", "sound", "cost", "limits"]
Factor = Literal[
    "machine", "unit", "precision", "framework", "stack", "gpus", "batch", "loader", "model", "side"
]


class Question(Model):
    """One of six questions.

    `faster`: which side, by one factor; `reach`: how soon a quality; `holds`: whether published figures do;
    `sound`: whether a card is as it should be; `cost`: which offer; `limits`: what a device does at most.
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    kind: Annotated[QuestionKind, Field(alias="is")]
    by: LeftOutIfNull[Factor] = None
    """The one field in which the sides of `faster` differ; null where nothing was varied."""

    @model_validator(mode="after")
    def _by_belongs_to_faster(self) -> Self:
        if self.by is not None and self.kind != "faster":
            raise ValueError(f"'by' goes with is = 'faster', and this is '{self.kind}'")
        return self


def question_words(given: object) -> object:
    """Return `faster by precision` as the fields of a question, and all that is no text as it is."""
    if not isinstance(given, str):
        return given
    kind, _, by = given.strip().partition(" by ")
    return {"is": kind.strip()} | ({"by": by.strip()} if by else {})


class LeftOut(Model):
    """Trials that a budget or a machine left out, and why."""

    what: str
    trials: Annotated[int, Field(ge=1)]
    reason: str


class Against(Model):
    """The second stack of a session, whose trials are mixed with the first stack's in random order."""

    asked: Annotated[tuple[str, ...], Field(min_length=1)]
    """As `torch==2.12.1`, `image:cuda126` or `env:NAME=VALUE`."""
    environment: Name
    lock_sha256: str | None = None
    variables: Variables = {}

    @property
    def stack(self) -> StackKey:
        """Return the environment, lock and variables that identify its trials."""
        return self.environment, self.lock_sha256, tuple(sorted(self.variables.items()))


class Session(Model):
    """session.json: one plan on one machine from one clone, however long the pauses."""

    session: Literal[1]
    id: SessionId
    plan: Name
    plan_sha256: str
    machine: str
    label: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    started_at: Moment
    order_seed: int
    budget_seconds: float | None = None
    trials: tuple[TrialSpec, ...]
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    blocks: tuple[int, ...] = ()
    """The block of time in which the plan has each trial, in their order; 0 for a full-length one."""
    against: LeftOutIfNull[Against] = None
    cards: Annotated[tuple[str, ...], Field(exclude_if=lambda cards: not cards)] = ()
    """The units of its cards by place, where its plan measures each of several."""
    question: LeftOutIfNull[Question] = None
    """What its plan asked, or its line in place of that."""
    looks: LeftOutIfNull[tuple[Annotated[int, Field(ge=1)], ...]] = None
    """After how many repeats its two sides are looked at, of which each takes turns on the device with the
    other of its repeat, the first in the order of `trials` beginning; null where each has it for itself."""
    number: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Its place among this machine's sessions over all clones, from 1: a gap is a session that is missing."""

    @property
    def block_of(self) -> dict[str, int]:
        """Return the plan's block of each trial by the trial's id; empty for a session of one block."""
        return dict(zip((trial.id for trial in self.trials), self.blocks, strict=False))


def session_id(started_at: datetime, digits: str) -> str:
    """Return the UTC date and six hex digits."""
    return f"{started_at:%Y%m%d}-{digits}"
