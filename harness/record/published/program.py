"""workloads/programs/<name>.toml: a published program at one commit, how it is started and read."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from harness.device_kinds import DeviceKind
from harness.record.strict_model import Model
from harness.record.trial_spec import Name, OptionValue, Sha1
from harness.record.vocabulary.precision import Precision

ReadingField = Literal[
    "step", "steps", "epoch", "seconds", "milliseconds", "samples_per_second", "samples", "loss", "quality"
]
"""What a group of a pattern, or a key of a file, may be: `steps` are an epoch's, the rest the row's own."""

TIMES = ("seconds", "milliseconds", "samples_per_second")
PLACES = ("model", "batch_size", "sequence_length", "image_size", "gpus", "layout", "profile")
"""Fields of a variant that a command may have in braces; it may have `seed`, `data` and the options too."""

_FIGURES = frozenset(ReadingField.__args__)  # type: ignore[attr-defined]
_BRACES = re.compile(r"\{(\w+)\}")


def _check_pattern(pattern: str) -> str:
    try:
        groups = re.compile(pattern).groupindex
    except re.error as error:
        raise ValueError(f"it is no pattern: {error}") from None
    if unknown := sorted(set(groups) - _FIGURES):
        raise ValueError(f"its group '{unknown[0]}' is none of {', '.join(sorted(_FIGURES))}")
    return pattern


Pattern = Annotated[str, Field(min_length=1, max_length=600), AfterValidator(_check_pattern)]
"""A regular expression of Python's with named groups."""

PathInProgram = Annotated[str, Field(pattern=r"^\w[\w.-]*(/\w[\w.-]*)*$", max_length=200)]
"""A path below the program's folder."""

CommandWords = Annotated[tuple[Annotated[str, Field(max_length=2000)], ...], Field(max_length=60)]


class OutputReading(Model):
    """How a program's own output is read."""

    lines: Pattern | None = None
    """What a line of a step, or of several, looks like."""
    file: PathInProgram | None = None
    """A JSON or CSV file that it leaves, read in place of lines."""
    fields: dict[ReadingField, str] = {}
    """Which key of that file is which figure."""
    seconds_are: Literal["step", "mean", "mean-so-far", "so-far", "run"] = "mean"
    """The last step's, the mean of the steps since the row before or since the first, or all since then; or
    those of a whole training, which is then the step: what else happens between two rows is not in it."""
    first_step: Annotated[int, Field(ge=0, le=1)] = 1
    """The number that it gives to its first step."""
    skip: Annotated[int, Field(ge=0, le=1000)] = 0
    """Rows before the window."""
    evaluations: Pattern | None = None
    """A line after an evaluation: the row after it, which has that in its time, is left out."""
    done: Pattern | None = None
    """The line by which it says that it is through; `quality` there is the test's."""
    quality: Literal["accuracy", "perplexity", "loss"] | None = None

    @model_validator(mode="after")
    def _says_enough(self) -> Self:
        if (self.lines is None) == (self.file is None):
            raise ValueError("it needs either 'lines' or 'file'")
        groups = set(re.compile(self.lines).groupindex if self.lines else self.fields)
        needed = TIMES if self.file else (*TIMES, "step")
        if not groups & set(needed):
            raise ValueError(f"'{'fields' if self.file else 'lines'}' has none of {', '.join(needed)}")
        if not self.quality and "quality" in f"{self.evaluations} {self.done}":
            raise ValueError("a pattern has the group 'quality', and 'quality' does not say of what")
        return self


class ProgramInput(Model):
    """A file of a data set's, put into the program's copy."""

    data: Name
    file: PathInProgram
    """Below the data folder."""
    at: PathInProgram
    generated_letters: Annotated[int, Field(ge=1, le=10**8)] | None = None
    """How many letters a generated text has that replaces it, where a plan lets one."""


class PublishedTask(Model):
    """The task in results/tables/published/ that its runs are of, where its options have these values."""

    program: Annotated[str, Field(min_length=1, max_length=60)]
    work: Annotated[str, Field(min_length=1, max_length=60)]
    """With the names of a command in braces."""
    options: dict[str, OptionValue]
    precision: Precision
    batch_rule: Literal["fixed", "tuned"]
    unit: Literal["ms/step", "images/s", "points"]
    per_sample: Annotated[float, Field(gt=0)] = 1
    """How many of a rate's unit are one sample a second."""


class DeviceOverride(Model):
    """What differs on a kind of device, such as its small form on a CPU."""

    arguments: CommandWords = ()
    options: dict[str, OptionValue] = {}


class Program(Model):
    """A program as its makers published it."""

    name: Name
    title: Annotated[str, Field(max_length=80)]
    about: Annotated[str, Field(max_length=300)]
    forge: Annotated[str, Field(pattern=r"^(https|file)://[\w./~-]+$", max_length=300)]
    commit: Sha1
    path: Annotated[str, Field(pattern=r"^$|^\w[\w.-]*(/\w[\w.-]*)*$")] = ""
    """The folder of the repository that is taken; empty for all of it."""
    tree: Sha1
    """Git's id of that folder."""
    licence: Annotated[str, Field(min_length=1, max_length=60)]
    images: tuple[Name, ...]
    """The images that have what it needs."""
    data: Literal["real", "synthetic"]
    """What it trains on where it has no `input`: real data of its own tree, or none."""
    input: ProgramInput | None = None
    prepare: tuple[CommandWords, ...] = ()
    """Commands before the training, whose time is not measured."""
    command: Annotated[CommandWords, Field(min_length=1)]
    """Its first word `python` is the image's interpreter."""
    options: dict[str, OptionValue] = {}
    """What a plan's `options` may change, by their names in the command."""
    on: dict[DeviceKind, DeviceOverride] = {}
    steps: str | None = None
    """The option that says how many steps a whole run has, where its lines do not say it."""
    samples_per_step: Annotated[tuple[str, ...], Field(min_length=1)]
    """Names whose product it is."""
    sample_unit: Literal["image", "token", "byte", "sample"]
    figure: Literal["step", "run"]
    """Whether it prints the time of steps, or one figure a run, whose window is its own."""
    read: OutputReading
    table: PublishedTask | None = None

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        known = {*PLACES, "seed", "data", *self.options}
        given = [("on", device.options) for device in self.on.values()]
        given += [("table", self.table.options)] if self.table else []
        for where, options in given:
            if unknown := sorted(set(options) - set(self.options)):
                raise ValueError(f"'{where}' has the option '{unknown[0]}', which 'options' lacks")
        named = [name for word in self._words() for name in _BRACES.findall(word)]
        unknown = sorted({*named, *self.samples_per_step, *([self.steps] if self.steps else ())} - known)
        if unknown:
            raise ValueError(f"'{unknown[0]}' is none of {', '.join(sorted(known))}")
        return self

    def _words(self) -> tuple[str, ...]:
        added = [word for device in self.on.values() for word in device.arguments]
        added += [self.table.work] if self.table else []
        return (*self.command, *added, *(word for words in self.prepare for word in words))

    @property
    def folder(self) -> str:
        """Return its source's folder among the data."""
        return f"program-{self.name}-{self.tree[:12]}"
