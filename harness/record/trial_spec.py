"""What is asked of one trial, all of it known before it starts."""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from harness.device_kinds import DeviceKind
from harness.record.strict_model import LeftOutIfNull, Model, short_hash
from harness.record.vocabulary.precision import Precision

DataSource = Literal["real", "synthetic", "generated"]
"""synthetic is what a protocol asks for; generated is used where the real data could not be had."""

DataMode = Literal["host", "device", "cached"]
"""Where a step's input comes from: the loader as published, the same work on the device, or fixed tensors."""


Role = Literal["timing", "full", "batch-sweep"]
"""What a measure of a plan is for: short trials with repeats, whole protocols, one batch size of a sweep."""

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
OptionValue = bool | int | float | str
Sha1 = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
"""Git's id of a commit or a tree."""
ProtocolName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*/[1-9][0-9]*$")]

Targets = Annotated[tuple[Annotated[float, Field(gt=0)], ...], Field(exclude_if=lambda targets: not targets)]
"""Values of the trial's own quality: accuracies (0 to 1) to be reached, perplexities or losses to fall to."""


class Limit(Model):
    """Where a trial stops before its protocol ends; a null stops nothing.

    `seconds` is training time; the step that crosses it is finished. With `seconds_at_most` it is the least:
    the trial goes on until its last level has held, or the most is reached. `valid_batches` caps each
    validation.
    """

    epochs: Annotated[int, Field(ge=1)] | None = None
    steps: Annotated[int, Field(ge=1)] | None = None
    seconds: Annotated[float, Field(gt=0)] | None = None
    seconds_at_most: LeftOutIfNull[Annotated[float, Field(gt=0)]] = None
    valid_batches: Annotated[int, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _least_is_below_most(self) -> Self:
        if self.seconds_at_most is not None and self.seconds_at_most < (self.seconds or math.inf):
            least = "missing" if self.seconds is None else f"{self.seconds:g}"
            raise ValueError(
                f"seconds_at_most is {self.seconds_at_most:g} and seconds, the least, is {least}: "
                "the most must not be below the least"
            )
        return self


class Variant(Model):
    """One way to run a workload. Image sizes in pixels, sequence lengths in tokens, batch per device."""

    model: Annotated[str, Field(min_length=1, max_length=64)]
    precision: Precision
    batch_size: Annotated[int, Field(ge=1)]
    data_mode: DataMode
    image_size: Annotated[int, Field(ge=1)] | None = None
    sequence_length: Annotated[int, Field(ge=1)] | None = None
    layout: Literal["contiguous", "channels_last"] = "contiguous"
    profile: Literal["default", "tuned"] = "default"
    gpus: Annotated[int, Field(ge=1)] = 1
    options: dict[str, OptionValue] = {}
    limit: Limit = Limit()


PathInClone = Annotated[str, Field(pattern=r"^\w[\w. -]*(/\w[\w. -]*)*\.(py|toml)$", max_length=200)]


class OwnFile(Model):
    """A user's own workload or program: its path in the clone, and the SHA-256 of its bytes."""

    name: PathInClone
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class OwnProgram(Model):
    """A user's own program as it lies in a folder; what would name a place or hold a secret is withheld."""

    command: Annotated[tuple[Annotated[str, Field(max_length=1000)], ...], Field(min_length=1)]
    folder_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """The hash of its files' names, modes and contents."""
    at: str = ""
    """Where in its folder it starts."""
    keep: tuple[str, ...] = ()
    """Folders that it is shown and that are no part of its own."""
    env: tuple[str, ...] = ()
    """Names of variables that reach it; no value is kept."""
    match: str | None = None
    """The pattern by which its lines are read; null where they are read by themselves."""
    metric: str | None = None
    per_step: Annotated[float, Field(gt=0)] | None = None
    """Samples of a step, as its user says."""
    steps: Annotated[int, Field(ge=1)] | None = None
    """After how many counted steps it is stopped; null: after a time."""


Variables = Annotated[
    dict[
        Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")],
        Annotated[str, Field(max_length=200)],
    ],
    Field(exclude_if=lambda variables: not variables),
]
"""What is set in the environment of its process, by name."""

StackKey = tuple[str, str | None, tuple[tuple[str, str], ...]]
"""What identifies the software of a trial: environment, lock and variables."""


class TrialRequest(Model):
    """The part of a trial that its id is a hash of."""

    workload: Name
    protocol: ProtocolName
    variant: Variant
    data: DataSource
    weights: Literal["pretrained", "random"] | None = None
    device: DeviceKind
    environment: Name
    lock_sha256: str | None = None
    file: LeftOutIfNull[OwnFile] = None
    own: LeftOutIfNull[OwnProgram] = None
    variables: Variables = {}
    """Environment variables of its stack beyond the image's own, as a second stack in one session has."""
    card: LeftOutIfNull[Annotated[int, Field(ge=0)]] = None
    """Its card's place among those of the session, where a plan measures each; null begins at the first."""

    @property
    def stack(self) -> StackKey:
        """Return what identifies its software."""
        return self.environment, self.lock_sha256, tuple(sorted(self.variables.items()))

    @property
    def work(self) -> str:
        """Return all else that is asked, which trials of two stacks share."""
        without: dict[str, object] = {"environment": "any", "lock_sha256": None, "variables": {}}
        return self.model_copy(update=without).canonical()


class TrialSpec(Model):
    """One variant, one repeat: one fresh process in one container."""

    id: str
    asked: TrialRequest
    repeat: Annotated[int, Field(ge=1)]
    seed: int
    timeout_seconds: Annotated[float, Field(gt=0)]
    targets: Targets = ()
    """What the report derives the time to; no trial ends earlier for them, so its id does not have them."""

    @classmethod
    def from_request(
        cls, asked: TrialRequest, repeat: int, *, seed: int, timeout_seconds: float, targets: Targets = ()
    ) -> Self:
        """Return a trial with the id that its content gives it."""
        return cls(
            id=trial_id(asked, repeat),
            asked=asked,
            repeat=repeat,
            seed=seed,
            timeout_seconds=timeout_seconds,
            targets=targets,
        )

    @property
    def digest_on_any_card(self) -> str:
        """Return the hash of what is asked, which trials of several cards share."""
        return _digest(self.asked.model_copy(update={"card": None}).model_dump_json())

    @model_validator(mode="after")
    def _id_is_the_contents(self) -> Self:
        if self.id != trial_id(self.asked, self.repeat):
            raise ValueError(f"id {self.id!r} is not what its content gives")
        return self


def trial_id(asked: TrialRequest, repeat: int) -> str:
    """Return workload, repeat, and the hash of what is asked: a safe file name."""
    workload = re.sub(r"[^a-z0-9_]", "-", asked.workload)
    return f"{workload}-r{repeat}-{_digest(asked.model_dump_json())}"


@lru_cache(maxsize=256)
def _digest(asked: str) -> str:
    """Return the hash of what is asked: the repeats of a session ask the same."""
    return short_hash(json.loads(asked))


def work_words(asked: TrialRequest) -> str:
    """Return what is asked of a trial in a few words."""
    variant = asked.variant
    size = f" {variant.image_size} px" if variant.image_size else ""
    extra = f" {special_words(variant)}" if special_words(variant) else ""
    extra += "".join(f" {name}={value}" for name, value in asked.variables.items())
    return (
        f"{asked.workload} {asked.protocol} {variant.model}{size} {variant.precision} "
        f"batch {variant.batch_size}{extra} {variant.data_mode}{_limit_words(variant.limit)}"
    )


def _limit_words(limit: Limit) -> str:
    """Return how long a trial goes on."""
    if limit.steps is not None:
        return f" {limit.steps} steps"
    if limit.seconds is not None:
        return f" {limit.seconds:g} s"
    if limit.epochs is None:
        return " whole"
    return " 1 epoch" if limit.epochs == 1 else f" {limit.epochs} epochs"


def special_words(variant: Variant) -> str:
    """Return what is not as usual: several devices and how they share work, a layout, a profile, options."""
    parallel = variant.options.get("parallel")
    words = (
        f"{variant.gpus} devices{f' {parallel}' if parallel else ''}" if variant.gpus > 1 else "",
        variant.layout if variant.layout != "contiguous" else "",
        variant.profile if variant.profile != "default" else "",
    )
    options = (
        name.replace("_", " ") if value is True else f"{name.replace('_', ' ')} {value}"
        for name, value in sorted(variant.options.items())
        if name != "parallel" and value is not False
    )
    return " ".join(word for word in (*words, *options) if word)
