"""A plan is data: a file of plans/ becomes trials, in a randomised and interleaved order.

A file may hold other sizes of its study, each under a plan name of its own: `[size.<name>]`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, Field

from harness.data.datasets import check_name
from harness.device_kinds import DEVICE_KINDS
from harness.errors import PlanError, UserError
from harness.files import text_sha256, unix_line_ends
from harness.plan import own_file
from harness.plan.order import Planned, order_trials
from harness.record import (
    DataSource,
    DeviceKind,
    Factor,
    Limit,
    Model,
    Question,
    Role,
    TrialRequest,
    TrialSpec,
    Variant,
    parse_toml,
)
from harness.record.published.claim_set import suggest_name
from harness.record.published.program import Program
from harness.record.trial_spec import Name, OptionValue, OwnProgram, PathInClone, ProtocolName, Targets
from harness.record.vocabulary.precision import Precision

KEYS = "docs/running.md lists the keys"


class Measure(Model):
    """One workload over a matrix: a list is a dimension, a table is looked up by precision or by model."""

    workload: Name
    protocol: ProtocolName
    devices: tuple[DeviceKind, ...] = tuple(DEVICE_KINDS)
    images: tuple[Name, ...] = ()
    """The images that have what it needs; empty where that is all of them."""
    data: Annotated[str, AfterValidator(check_name)] | None = None
    """The data set it needs; null means that the protocol itself asks for synthetic data."""
    pretrained: bool = False
    role: Role = "timing"
    priority: Annotated[int, Field(ge=1, le=9)] = 1
    """Within each round, lower numbers come first: what a reader wants to see soonest."""
    repeats: Annotated[int, Field(ge=1, le=100)] | None = None
    timeout_seconds: Annotated[float, Field(gt=0)] | None = None
    seed: int | None = None
    model: Any
    precision: Any
    batch_size: Any
    sample_gb: Annotated[float, Field(gt=0)] | None = None
    """How much of a card's memory a sample takes: a batch that takes more than there is, is halved."""
    data_mode: Any
    image_size: Any = None
    sequence_length: Any = None
    layout: Any = "contiguous"
    profile: Any = "default"
    gpus: Any = 1
    options: dict[str, OptionValue] = {}
    limit: Limit = Limit()
    targets: Targets = ()
    file: PathInClone | None = None
    """The file of the workload `program`, by its path in the clone."""
    sha256: str | None = None
    """The hash of that file."""

    def is_for(self, device: DeviceKind, image: str) -> bool:
        """Return whether it is meant for a kind of device and an image."""
        return device in self.devices and (not self.images or image in self.images)


class Size(Model):
    """What a plan has besides its name: the whole study, or a smaller or larger size of it."""

    title: str
    repeats: Annotated[int, Field(ge=1, le=100)] = 5
    timeout_seconds: Annotated[float, Field(gt=0)] = 3600.0
    generated_data: bool = False
    """Whether generated data may be used where the real data cannot be had."""
    each_card: bool = False
    """Whether rows of one GPU are measured on each card that was handed in."""
    question: Question | None = None
    """What is asked of its records; null asks by what its rows vary."""
    blocks: Annotated[int, Field(ge=1, le=10)] = 1
    """Over how many blocks of time, an hour or more apart, the repeats are spread."""
    measure: Annotated[tuple[Measure, ...], Field(min_length=1)]


class PlanFile(Size):
    """plans/<name>.toml: a plan, and the plans that are other sizes of it."""

    name: Name
    size: dict[Name, Size] = {}


class Plan(Size):
    """One plan of a file; `sha256` is the file's."""

    name: Name
    sha256: str = ""
    programs: dict[str, Program] = {}
    """What its measures of the workload `program` run, by their files."""
    own: dict[str, OwnProgram] = {}
    """What a plan of `try` runs, by its models; no file has it."""


_MATRIX = tuple(name for name in Variant.model_fields if name not in ("options", "limit"))
"""The dimensions, model and precision first."""


def plan_files(root: Path) -> dict[str, Path]:
    """Return the plans there are, sizes among them, each with the file that holds it, in the names' order.

    A file that cannot be read holds its own plan alone: loading that says what is wrong.
    """
    paths = sorted((root / "plans").glob("*.toml"))
    found = {name: path for path in paths for name in _sizes(path.read_bytes())}
    found |= {path.stem: path for path in paths}
    return dict(sorted(found.items()))


_QUESTION = re.compile(rb"^question = .*\n", re.MULTILINE)


def file_sha256(text: bytes) -> str:
    """Return the SHA-256 of a plan's file less its lines `question = …`, by which nothing is measured."""
    return text_sha256(_QUESTION.sub(b"", unix_line_ends(text)))


def plan_questions(root: Path) -> dict[str, Question | None]:
    """Return what each plan asks, by its name, null for nothing; a file that cannot be read is left out."""
    asked: dict[str, Question | None] = {}
    for path in (root / "plans").glob("*.toml"):
        with suppress(UserError):
            file = _read(path.read_bytes(), path.name)
            sizes = {file.name: file, **file.size}
            asked |= {name: size.question for name, size in sizes.items()}
    return asked


@cache
def _sizes(text: bytes) -> tuple[str, ...]:
    with suppress(ValueError):
        sizes = parse_toml(text).get("size")
        return tuple(sizes) if isinstance(sizes, dict) else ()
    return ()


@cache
def _read(text: bytes, where: str) -> PlanFile:
    return PlanFile.parse_toml(text, where, KEYS)


def load_plan(root: Path, name: str) -> Plan:
    """Read a plan by its name; raises PlanError naming the file, the key and what is wrong with it."""
    paths = plan_files(root)
    if name not in paths:
        meant = suggest_name(name, paths)
        remedy = "" if meant else f"the plans are {', '.join(paths)}"
        raise UserError(f"there is no plan '{name}'{meant}", remedy=remedy)
    path = paths[name]
    where = f"plans/{path.name}"
    text = path.read_bytes()
    file = _read(text, where)
    if file.name != path.stem:
        raise PlanError(f"{where}: its name is '{file.name}'", remedy=f"write name = '{path.stem}'")
    size = file if name == path.stem else file.size[name]
    measures, programs = list[Measure](), dict[str, Program]()
    for measure in size.measure:
        asked, named = measure_variants(measure, where), measure.file or ""
        brought: dict[str, object] = {}
        if sha256 := own_file.own_file_sha256(measure.workload, measure.file, root, where):
            program = programs[named] = own_file.read_program((root / named).read_bytes(), named)
            own_file.check_program(program, measure.protocol, measure.repeats or size.repeats, asked, where)
            data = measure.data or (program.input.data if program.input else None)
            brought |= {"sha256": sha256, "images": measure.images or program.images, "data": data}
        measures.append(measure.model_copy(update=brought))
    if size.question is not None:
        _refuse_question(size.question, size.measure, where)
    fields = {key: getattr(size, key) for key in Size.model_fields} | {"measure": measures}
    return Plan.model_validate({**fields, "name": name, "sha256": file_sha256(text), "programs": programs})


VARIED: Mapping[Factor, Callable[[Measure, Variant], object]] = {
    "precision": lambda measure, variant: variant.precision,
    "framework": lambda measure, variant: (variant.options.get("framework"), measure.images),
    "gpus": lambda measure, variant: variant.gpus,
    "batch": lambda measure, variant: variant.batch_size,
    "loader": lambda measure, variant: (variant.data_mode, tuple(variant.options.items())),
    "model": lambda measure, variant: variant.model,
    "side": lambda measure, variant: variant.options.get("side"),
}
"""What two rows differ in where a plan varies a factor; the others differ between sessions."""

NEEDED_WORKLOAD = {"sound": "card", "limits": "ceilings"}


def _refuse_question(question: Question, measures: Sequence[Measure], where: str) -> None:
    """Raise PlanError for a question that the rows of a plan cannot answer on any one kind of device."""
    workload = NEEDED_WORKLOAD.get(question.kind)
    problem = None
    if question.kind == "cost":
        problem = "purchase.toml asks that, which has the prices"
    elif question.kind == "reach" and not any(measure.targets for measure in measures):
        problem = "no row has targets"
    elif workload and all(measure.workload != workload for measure in measures):
        problem = f"no row has the workload '{workload}'"
    elif question.kind == "faster" and not _is_varied(question.by, measures, where):
        problem = f"no two rows differ in {question.by}" if question.by else "it says not by what"
    if problem:
        raise PlanError(f"{where}: question: is = '{question.kind}': {problem}", remedy=KEYS)


def _is_varied(factor: Factor | None, measures: Sequence[Measure], where: str) -> bool:
    value_of = VARIED.get(factor) if factor else None
    if value_of is None:
        return factor is not None
    values: dict[DeviceKind, set[object]] = {}
    for measure in measures:
        for variant in measure_variants(measure, where):
            for kind in measure.devices:
                values.setdefault(kind, set()).add(value_of(measure, variant))
    return any(len(there) > 1 for there in values.values())


def _choices(value: Any, precision: Any, model: Any) -> list[Any]:
    """Return a list's members, or the entry of a table for this precision or model, or the value itself."""
    if isinstance(value, Mapping):
        for key in (f"{model} {precision}", precision, model, "otherwise"):
            if key in value:
                return _choices(value[key], precision, model)
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def measure_variants(measure: Measure, where: str) -> tuple[Variant, ...]:
    """Return every combination of a measure's values; a table without an entry for a precision omits it."""
    combinations: list[Variant] = []
    precisions = _choices(measure.precision, None, None)
    if unknown := sorted(set(map(str, precisions)) - set(get_args(Precision))):
        raise PlanError(
            f"{where}: {measure.workload}: '{unknown[0][:80]}' is no precision",
            remedy=f"take one of {', '.join(get_args(Precision))}",
        )
    for model, precision in itertools.product(_choices(measure.model, None, None), precisions):
        rest = [_choices(getattr(measure, field), precision, model) for field in _MATRIX[2:]]
        for values in itertools.product(*rest):
            fields = dict(zip(_MATRIX, (model, precision, *values), strict=True))
            fields |= {"options": measure.options, "limit": measure.limit}
            combinations.append(Variant.parse(fields, f"{where}: {measure.workload}", KEYS, PlanError))
    if not combinations:
        raise PlanError(f"{where}: {measure.workload} has no variant at all", remedy="complete its tables")
    return tuple(combinations)


@dataclass(frozen=True, slots=True)
class PlanContext:
    """What is known before trials can be named: device, environment, lock, and the data at hand."""

    device: DeviceKind
    environment: str
    lock_sha256: str | None
    sources: Mapping[str, DataSource]
    """The source of each data set that the plan needs."""
    weights: Mapping[str, bool]
    """Model name → whether its pretrained weights are at hand."""
    variables: Mapping[str, str] = field(default_factory=dict)
    cards: int = 1
    """How many cards are handed in."""
    memory_gb: float | None = None
    """What the smallest of them has."""


def plan_datasets(plan: Plan, device: DeviceKind) -> tuple[str, ...]:
    """Return the data sets that a plan needs on a kind of device, in the order of its file."""
    needed = [m.data for m in plan.measure if m.data and device in m.devices]
    return tuple(dict.fromkeys(needed))


def pretrained_models(plan: Plan, device: DeviceKind) -> tuple[str, ...]:
    """Return the models whose pretrained weights a plan needs on a kind of device."""
    models = [
        variant.model
        for measure in plan.measure
        if measure.pretrained and device in measure.devices
        for variant in measure_variants(measure, plan.name)
    ]
    return tuple(dict.fromkeys(models))


def plan_trials(
    plan: Plan, context: PlanContext, seed: int, against: PlanContext | None = None
) -> tuple[Planned, ...]:
    """Return all trials of a plan in this context, in their randomised and interleaved order.

    With `against` only trials that both contexts have are returned. Raises PlanError where the plan has
    nothing for this kind of device, or fewer repeats than blocks.
    """
    planned = _planned_trials(plan, context)
    if against is not None:
        others = _planned_trials(plan, against)
        both = {item.twins for item in planned} & {item.twins for item in others}
        planned = [item for item in (*planned, *others) if item.twins in both]
    if not planned:
        raise _nothing_planned_error(plan, context)
    unique = {item.trial.id: item for item in planned}
    return order_trials(unique.values(), seed, plan.blocks)


def _planned_trials(plan: Plan, context: PlanContext) -> list[Planned]:
    rows = (
        (measure, variant)
        for measure in plan.measure
        if measure.is_for(context.device, context.environment)
        for variant in measure_variants(measure, plan.name)
    )
    return [
        replace(item, place=place)
        for place, (measure, variant) in enumerate(rows)
        for item in _plan_repeats(plan, measure, variant, context)
    ]


def _nothing_planned_error(plan: Plan, context: PlanContext) -> PlanError:
    kinds = sorted({kind for measure in plan.measure for kind in measure.devices})
    if context.device not in kinds:
        return PlanError(
            f"plan '{plan.name}' has nothing for the device kind '{context.device}' "
            f"(it has {', '.join(kinds)})",
            remedy="choose another plan or --device, or look at it for a card by its name: "
            f'`invoke plan --plan {plan.name} --card "RTX 4090"`',
        )
    images = sorted({image for measure in plan.measure for image in measure.images})
    return PlanError(
        f"plan '{plan.name}' has nothing for '{context.device}' in the image '{context.environment}'",
        remedy=f"take --image with one of {', '.join(images)}",
    )


def _fit_batch(variant: Variant, sample_gb: float | None, memory_gb: float | None) -> Variant:
    """Return the variant, its batch halved until a card's memory holds it, where both are known."""
    size = variant.batch_size
    while sample_gb and memory_gb and size > 1 and size * sample_gb > memory_gb:
        size //= 2
    return variant.model_copy(update={"batch_size": size})


def _plan_repeats(plan: Plan, measure: Measure, variant: Variant, context: PlanContext) -> Iterator[Planned]:
    program = plan.programs.get(measure.file or "")
    source: DataSource = program.data if program else "synthetic"
    if measure.data:
        source = context.sources[measure.data]
    weights = None
    if measure.pretrained:
        weights = "pretrained" if context.weights.get(variant.model) else "random"
    asked = TrialRequest.model_validate(
        {
            "workload": measure.workload,
            "protocol": measure.protocol,
            "variant": _fit_batch(variant, measure.sample_gb, context.memory_gb),
            "data": source,
            "weights": weights,
            "device": context.device,
            "environment": context.environment,
            "lock_sha256": context.lock_sha256,
            "variables": dict(context.variables),
            "file": {"name": measure.file, "sha256": measure.sha256} if measure.file else None,
            "own": plan.own.get(variant.model),
        }
    )
    seed = measure.seed if measure.seed is not None else 1111
    timeout = measure.timeout_seconds or plan.timeout_seconds
    each = plan.each_card and variant.gpus == 1 and context.cards > 1
    for card in range(context.cards) if each else (None,):
        placed = asked.model_copy(update={"card": card})
        for at in range(measure.repeats or plan.repeats):
            trial = TrialSpec.from_request(
                placed, at + 1, seed=seed + at, timeout_seconds=timeout, targets=measure.targets
            )
            yield Planned(trial, measure.role, variant.model, measure.priority)
