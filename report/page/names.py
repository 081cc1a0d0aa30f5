"""What a work is called: model, precision, and whatever else tells it from the others on the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from report import text
from report.compare.cells import Cell
from report.trials.key import FRAMEWORK, PARALLEL, VIRTUAL_RANKS, Key, Value

TOLD_BY_SETTING = (FRAMEWORK, PARALLEL, VIRTUAL_RANKS)
SIZES = ("image_size", "sequence_length", "batch_size", "data_source", "weights")
VALUE_WORDS = {
    "protocol": "protocol {}",
    "data_mode": "{} data",
    "image_size": "{} px",
    "sequence_length": "sequences of {}",
    "batch_size": "batch {}",
    "data_source": "{} data",
    "weights": "{} weights",
}
"""How the value of a field is said; of an option, behind its name."""

DATA_SETS = {
    "cifar_fastai": "CIFAR-100",
    "word_lm": "WikiText-2",
    "mnist_cnn": "MNIST",
    "cifar_resnet44": "CIFAR-10",
}
"""What a workload that has one data set trains on."""


def work(cell: Cell, among: Iterable[Cell]) -> str:
    """'ResNet-18, fp32-ieee, tuned'; with what else tells it from those `among` that bear the same name."""
    key = cell.key
    others = (other.key for other in among if other.key.precision == key.precision)
    return f"{text.model_name(key.model)}, {key.precision}{setting(key)}{apart(key, others)}"


def of_each_key(cells: Iterable[Cell]) -> list[Cell]:
    """A cell of each key: enough to tell works apart, and few where many machines did the same work."""
    return list({cell.key: cell for cell in cells}.values())


def apart(key: Key, among: Iterable[Key], *, said: Sequence[str] = ()) -> str:
    """', protocol warmed/1, workers 24': what tells a key from those `among` of its model and setting.

    Empty where nothing does, or where only `said` fields do.
    """
    named = (key.workload, key.model, setting(key))
    alike = {other for other in among if (other.workload, other.model, setting(other)) == named}
    options = {name for other in (key, *alike) for name, _ in other.options} - {*TOLD_BY_SETTING}
    parts = []
    for name in ("protocol", "data_mode", *sorted(options), *SIZES):
        value = _value(key, name)
        same = {other for other in alike if _value(other, name) == value}
        if len(same) < len(alike) and name not in said and value is not None:
            parts.append(VALUE_WORDS.get(name, f"{name.replace('_', ' ')} {{}}").format(value))
        alike = same
    return "".join(f", {text.clean(part, 40)}" for part in parts)


def _value(key: Key, name: str) -> Value:
    options = dict(key.options)
    found: Value = options.get(name) if name in options else getattr(key, name, None)
    return found


def setting(key: Key) -> str:
    """What besides batch and data marks a work: ', chainer, 2 devices on 2 nodes (ddp)'; else empty."""
    options = dict(key.options)
    way, virtual = options.get(PARALLEL), options.get(VIRTUAL_RANKS, 1)
    devices = f"{key.gpus} devices{text.on_nodes(key.nodes)}"
    parts = [str(options[FRAMEWORK])] if FRAMEWORK in options else []
    parts += [devices + (f" ({way})" if way else "")] if key.gpus > 1 else []
    parts += [] if virtual == 1 else [f"{virtual} virtual ranks"]
    parts += [] if key.profile == "default" else [key.profile]
    parts += [] if key.layout == "contiguous" else [key.layout]
    return "".join(f", {text.clean(part, 40)}" for part in parts)


def details(key: Key, epochs: int) -> str:
    """What a group of bars is of, besides its model: 'CIFAR-100, 30 epochs'."""
    parts = [DATA_SETS.get(key.workload, "")]
    parts += [text.count(epochs, "epoch")] if epochs else []
    return ", ".join(part for part in parts if part)
