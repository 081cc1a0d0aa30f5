"""The comparability key: what must be equal before two figures may be in one row."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from typing import TypeVar

from harness.record import Environment, Record, TrialRequest
from harness.record.trial_spec import OwnProgram
from harness.summary.trial_devices import cards_of_kind, used_cards

SIDE = "side"
"""An option that distinguishes equal trials, and that no workload acts on: it keeps no figures apart."""

PARALLEL = "parallel"
"""An option that says how several devices share a step, and nothing where there is one."""

VIRTUAL_RANKS = "virtual_ranks"
"""An option that says how many ranks one device simulates, each with its own part of a step's batch."""

FRAMEWORK = "framework"
"""An option that says which framework trains; its versions are the stack's."""

DATA = "data"
"""An option that says on which data, real or synthetic, where one workload has both."""

LOADER_ALONE = "loading/1"
"""A protocol that trains nothing: a step is a batch that the loader brought."""

MEASURED_FIELDS = ("data_sha256", "weights", "weights_sha256")
"""What a trial that failed does not know of its key, or knows only as it was asked."""

FREE_OPTIONS = ("epochs", PARALLEL)
"""Options that a partial key need not name: its length says as much, or the way of sharing is its own."""

GOES_ALONG: Mapping[str, tuple[str, ...]] = {
    "precision": ("options.loss_scale*",),
    "batch_size": ("steps_per_epoch", "valid_batches"),
    "data_mode": ("data_sha256",),
    "profile": ("options.compile",),
    "gpus": ("nodes", f"options.{PARALLEL}"),
    "model": ("options.command",),
}
"""What is left out together with a field: other fields, and options by a pattern of their names.

A loss scale says how a precision is done, `compile` how a profile is tuned, `parallel` how devices share a
step, which may need more nodes. Steps follow from the batch size, and a data mode may have data of its own.
The model of a user's own program is its command's short name.
"""

Value = bool | int | float | str | None
Pairs = tuple[tuple[str, Value], ...]

T = TypeVar("T")
P = TypeVar("P", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Key:
    """Equal keys: throughput, step time and peak memory may be compared."""

    workload: str
    protocol: str
    model: str
    precision: str
    batch_size: int
    data_source: str
    data_sha256: str | None
    data_mode: str
    weights: str | None = None
    weights_sha256: str | None = None
    image_size: int | None = None
    sequence_length: int | None = None
    layout: str = "contiguous"
    profile: str = "default"
    gpus: int = 1
    nodes: int = 1
    """Over which the devices are spread evenly."""
    options: Pairs = ()
    file_sha256: str | None = None
    """The hash of a user's own workload."""


@dataclass(frozen=True, slots=True)
class ProtocolLength:
    """Joins the key for durations: totals projected from runs of different limits are never averaged."""

    steps_per_epoch: int
    epochs: int
    valid_batches: int
    projected: bool
    limit: Pairs = ()
    """Where a projected run stopped; empty for a whole one."""


NAMES = {field.name: field.name.replace("_", " ") for field in (*fields(Key), *fields(ProtocolLength))} | {
    "data_sha256": "data hash",
    "weights": "starting weights",
    "weights_sha256": "hash of the starting weights",
    "layout": "memory layout",
    "gpus": "number of devices",
    "nodes": "number of nodes",
    "file_sha256": "hash of the user's file",
    "valid_batches": "validation batches",
    "projected": "projected or whole",
    "limit": "length of the trial",
    "window_seconds": "length of the window",
    "virtual_ranks": "batch",
}
"""What the page calls each field."""


@dataclass(frozen=True, slots=True)
class Term:
    """A field or option that is not the same on both sides; null where a side does not have it."""

    field: str
    of: Value
    over: Value
    size: float | None = None
    """The most that nine in ten such differences change a speed by, as a logarithm; null is unknown."""

    @property
    def name(self) -> str:
        """What the page calls the field."""
        return NAMES.get(self.field, self.field.replace("_", " "))


@dataclass(frozen=True, slots=True)
class PartialKey:
    """Some fields of a key and its length, and options, each with the value that is asked.

    What it does not name is free, as what a publication does not print.
    """

    fields: Pairs
    options: Pairs = ()

    @classmethod
    def of(cls, key: Key, length: ProtocolLength | None = None) -> PartialKey:
        """All of a key, and of its length the epochs; models are compared without regard to case."""
        named = {field.name: getattr(key, field.name) for field in fields(key) if field.name != "options"}
        named["model"] = key.model.casefold()
        if length is not None:
            named["epochs"] = length.epochs
        return cls(tuple(named.items()), key.options)

    def less(self, *names: str) -> PartialKey:
        """The same without some fields or options."""
        return PartialKey(
            tuple(field for field in self.fields if field[0] not in names),
            tuple(option for option in self.options if option[0] not in names),
        )

    def differences(self, other: PartialKey) -> tuple[Term, ...]:
        """Return what `other` has that is not asked here: fields that both name, and options of either.

        An option that is not asked for is a difference, except `FREE_OPTIONS`.
        """
        have, options, asked = dict(other.fields), dict(other.options), dict(self.options)
        named = [(name, have[name], value) for name, value in self.fields if name in have]
        named += [(name, options.get(name), value) for name, value in self.options]
        lacking = [Term(*each) for each in named if each[1] != each[2]]
        free = (*asked, *FREE_OPTIONS)
        return (
            *lacking,
            *(Term(name, value, None) for name, value in other.options if name not in free),
        )


@dataclass(frozen=True, slots=True)
class Stack:
    """The software and driver; where it differs between entries of one chart, the chart's title says so."""

    image: str
    device: str
    lock: str | None
    base: str | None
    driver: str | None
    versions: Pairs = ()
    variables: Pairs = ()


def key_of(record: Record) -> Key:
    """The key by what was measured; by what was asked where nothing was."""
    key, measured = key_of_asked(record.trial.asked, record.nodes), record.measurement
    if measured is None:
        return key
    return replace(
        key,
        precision=measured.precision.label,
        data_source=measured.data.source,
        data_sha256=measured.data.sha256,
        weights=measured.data.weights or key.weights,
        weights_sha256=measured.data.weights_sha256,
    )


def key_of_asked(asked: TrialRequest, nodes: int = 1) -> Key:
    """The key that a trial is planned to have."""
    variant = asked.variant
    return Key(
        workload=asked.workload,
        protocol=asked.protocol,
        model=variant.model,
        precision=variant.precision,
        batch_size=variant.batch_size,
        data_source=asked.data,
        data_sha256=None,
        data_mode=variant.data_mode,
        weights=asked.weights,
        image_size=variant.image_size,
        sequence_length=variant.sequence_length,
        layout=variant.layout,
        profile=variant.profile,
        gpus=variant.gpus,
        nodes=nodes,
        options=_options(variant.options, asked.own),
        file_sha256=asked.own.folder_sha256 if asked.own else asked.file.sha256 if asked.file else None,
    )


def _options(options: Mapping[str, Value], own: OwnProgram | None) -> Pairs:
    """Return a variant's options but `side`, and the command of a user's own program.

    What a step of a program holds is known where its user said so; else steps of one command are alike alone.
    """
    words = " ".join(own.command) if own else ""
    command = (("command", words),) if own else ()
    steps = (("steps_of", words),) if own and own.per_step is None else ()
    return (*sorted((name, value) for name, value in options.items() if name != SIDE), *command, *steps)


EMPTY_KEY = Key("", "", "", "", 0, "", None, "")
EMPTY_LENGTH = ProtocolLength(0, 0, 0, projected=False)
"""What a key and a length have in the place of a field that was left out."""

Whole = TypeVar("Whole", Key, ProtocolLength)


def without_fields(whole: Whole, *names: str) -> Whole:
    """A key or length less these fields and what goes along with them, each at its default or empty."""
    left = [*names, *(more for name in names for more in GOES_ALONG.get(name, ()))]
    empty = EMPTY_KEY if isinstance(whole, Key) else EMPTY_LENGTH
    changes = {
        name: getattr(empty, name)
        for name in left
        if hasattr(empty, name) and getattr(whole, name) != getattr(empty, name)
    }
    if isinstance(whole, Key):
        kept = tuple(
            option
            for option in whole.options
            if not any(fnmatchcase(f"options.{option[0]}", pattern) for pattern in left)
        )
        if kept != whole.options:
            changes.setdefault("options", kept)
    return replace(whole, **changes) if changes else whole


def grouped_by(items: Iterable[T], place: Callable[[T], P]) -> dict[P, list[T]]:
    """Items by their place: each in one group, groups by their first member, members in the order given."""
    groups: dict[P, list[T]] = {}
    for item in items:
        groups.setdefault(place(item), []).append(item)
    return groups


def limit_of(asked: TrialRequest) -> Pairs:
    """Where a trial was to stop; empty for a whole run."""
    return tuple((name, value) for name, value in asked.variant.limit if value is not None)


def stack_of(record: Record) -> Stack:
    """Image id, build time and the harness's revision are provenance and stay out."""
    environment: Environment = record.environment
    versions = record.measurement.versions if record.measurement else {}
    driver = next((gpu.driver for gpu in cards_of_kind(record) if gpu.driver), None)
    return Stack(
        image=environment.image,
        device=environment.device,
        lock=environment.lock_sha256,
        base=environment.base_digest,
        driver=driver,
        versions=tuple(sorted(versions.items())),
        variables=(*sorted(environment.passed_variables.items()), *_settings_of_cards(record)),
    )


def _settings_of_cards(record: Record) -> Pairs:
    """Return error correction and declared limits: a card with another setting is another card.

    A setting that all cards share is given once, so that one card and several do not differ here.
    """
    cards, declared = used_cards(record), record.machine.declared
    settings: dict[str, list[Value]] = {"ECC": [gpu.ecc for gpu in cards]}
    settings["slice"] = [gpu.slice for gpu in cards]
    if "power-limit" in declared:
        settings["power limit, W"] = [gpu.power_limit_watts for gpu in cards]
    if "locked-clocks" in declared:
        settings["locked clocks"] = [gpu.clocks_locked for gpu in cards]
    known = {name: values for name, values in settings.items() if set(values) - {None}}
    return tuple((name, _join_values(values)) for name, values in known.items())


def _join_values(values: Sequence[Value]) -> Value:
    """The value that all have, or all that there are."""
    distinct = set(values)
    return values[0] if len(distinct) == 1 else ", ".join(sorted(map(str, distinct)))


def stack_differences(stacks: tuple[Stack, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The parts of the stack that are not the same everywhere, each with its values in order."""
    flat = [_flat_stack(stack) for stack in stacks]
    names = dict.fromkeys(name for parts in flat for name in parts)
    values = {name: tuple(dict.fromkeys(parts.get(name, "none") for parts in flat)) for name in names}
    return tuple((name, seen) for name, seen in values.items() if len(seen) > 1)


def _flat_stack(stack: Stack) -> dict[str, str]:
    parts: dict[str, Value] = {"image": stack.image, "device": stack.device}
    parts |= {name: value for name, value in stack.versions}
    parts |= {"driver": stack.driver, "lock": _short_digest(stack.lock), "base": _short_digest(stack.base)}
    parts |= {name: value for name, value in stack.variables}
    return {name: str(value) for name, value in parts.items() if value is not None}


def _short_digest(digest: str | None) -> str | None:
    return digest.removeprefix("sha256:")[:12] if digest else None
