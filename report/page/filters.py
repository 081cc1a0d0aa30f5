"""How the page calls works, and how it writes numbers: with as many digits as their range allows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from markupsafe import Markup, escape

from harness.record.finding import finding_label
from harness.summary.statistics import speedup_limit
from report import text
from report.compare.cells import Cell, time_breakdown
from report.compare.comparison import MissingFigure
from report.expected.expected import ExpectedValue
from report.page.values import Quantity, quantity, rate, rate_unit
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
MOST_TERMS = 3
"""More terms are counted behind the first."""
NBSP = "\N{NO-BREAK SPACE}"
UNKNOWN = "–"
GIB = 2**30


def work_name(cell: Cell, among: Iterable[Cell]) -> str:
    """Return 'ResNet-18, fp32-ieee, tuned', with what distinguishes it from cells `among` of that name."""
    key = cell.key
    others = (other.key for other in among if other.key.precision == key.precision)
    words = f"{setting_words(key, cell.stack.device)}{distinction(key, others)}"
    return f"{text.model_name(key.model)}, {key.precision}{words}"


def of_each_key(cells: Iterable[Cell]) -> list[Cell]:
    """Return one cell of each key: enough to distinguish works, and few where machines did the same work."""
    return list({cell.key: cell for cell in cells}.values())


def distinction(key: Key, among: Iterable[Key]) -> str:
    """Return ', protocol warmed/1, workers 24': a key's difference from equal models in `among`.

    It is empty where they do not differ.
    """
    named = (key.workload, key.model, setting_words(key))
    alike = {other for other in among if (other.workload, other.model, setting_words(other)) == named}
    options = {name for other in (key, *alike) for name, _ in other.options} - {*TOLD_BY_SETTING}
    parts = []
    for name in ("protocol", "data_mode", *sorted(options), *SIZES):
        value = _key_value(key, name)
        same = {other for other in alike if _key_value(other, name) == value}
        if len(same) < len(alike) and value is not None:
            parts.append(VALUE_WORDS.get(name, f"{name.replace('_', ' ')} {{}}").format(value))
        alike = same
    return "".join(f", {text.clean(part, 40)}" for part in parts)


def _key_value(key: Key, name: str) -> Value:
    options = dict(key.options)
    found: Value = options.get(name) if name in options else getattr(key, name, None)
    return found


def setting_words(key: Key, device: str = "") -> str:
    """What besides batch and data marks a work: ', chainer, 2 devices on 2 nodes (ddp)'; else empty.

    On the `device` "cpu" these are processes.
    """
    options = dict(key.options)
    way, virtual = options.get(PARALLEL), options.get(VIRTUAL_RANKS, 1)
    devices = f"{key.gpus} {'processes' if device == 'cpu' else 'devices'}"
    devices += f" on {key.nodes} nodes" if key.nodes > 1 else ""
    parts = [str(options[FRAMEWORK])] if FRAMEWORK in options else []
    parts += [devices + (f" ({way})" if way else "")] if key.gpus > 1 else []
    parts += [] if virtual == 1 else [f"batch as of {virtual} devices"]
    parts += [] if key.profile == "default" else [key.profile]
    parts += [] if key.layout == "contiguous" else [key.layout]
    return "".join(f", {text.clean(part, 40)}" for part in parts)


def missing_words(missing: MissingFigure) -> str:
    """'not measured', 'only with other batch size'"""
    if missing.reason == "failed":
        return text.failure_words(missing.failure)
    if missing.reason == "other-work":
        names = [term.name for term in missing.terms]
        if len(names) > MOST_TERMS:
            names = [*names[: MOST_TERMS - 1], f"{len(names) - MOST_TERMS + 1} more"]
        return f"only with other {join_listed(names)}"
    return missing.reason.replace("-", " ")


def work_details(key: Key, epochs: int) -> str:
    """What a group of bars is of, besides its model: 'CIFAR-100, 30 epochs'."""
    parts = [DATA_SETS.get(key.workload, "")]
    parts += [text.count(epochs, "epoch")] if epochs else []
    return ", ".join(part for part in parts if part)


def value_text(quantity: Quantity | None) -> str:
    """A quantity without its range: '1.43 ×', '28 min', '5.6 GiB', '1,010 images/s'."""
    if quantity is None or quantity.value is None or not math.isfinite(quantity.value):
        return UNKNOWN
    written = _number_and_unit(quantity.value, quantity.unit, _digits_allowed(quantity), quantity.value)
    return NBSP.join(filter(None, written))


def range_text(quantity: Quantity | None) -> str:
    """The range of a quantity without its unit: '1.35 to 1.47'; empty where there is none."""
    if quantity is None or quantity.value is None or quantity.low is None or quantity.high is None:
        return ""
    digits = _digits_allowed(quantity)
    ends = (
        _number_and_unit(end, quantity.unit, digits, quantity.value) for end in (quantity.low, quantity.high)
    )
    return f"{NBSP}to{NBSP}".join(number for number, _ in ends)


def times_text(quantity: Quantity | None) -> str:
    """A ratio for a sentence: '1.43 times'."""
    if quantity is None or quantity.value is None:
        return UNKNOWN
    return f"{text.times(quantity.value)}{NBSP}times"


def stated_times_text(quantity: Quantity) -> str:
    """The same, or 'about 2.0 times' without a range: few runs bear no more."""
    if quantity.low is None and quantity.value is not None and quantity.value >= 2:
        return f"about{NBSP}{quantity.value:.2g}{NBSP}times"
    return times_text(quantity)


def value_or_range(quantity: Quantity) -> str:
    """A quantity without its range, or the range alone where it is wider than the value."""
    low, high, value_ = quantity.low, quantity.high, quantity.value
    wide = low is not None and high is not None and value_ is not None and high - low > abs(value_)
    return f"{range_text(quantity)} {quantity.unit}" if wide else value_text(quantity)


def over_expected(cell: Cell, should: Mapping[str, ExpectedValue]) -> Quantity | None:
    """A speed over what other cards' records lead one to expect, with a range for nine in ten."""
    said, speed = should.get(cell.trials[0].path), cell.throughput.mean
    return (
        Quantity(speed / said.value, "ratio", speed / said.high, speed / said.low) if said and speed else None
    )


def spread_text(quantity: Quantity | None) -> str:
    """Half the width of a range in percent of its value: '± 3 %'; empty where there is none."""
    if quantity is None or not quantity.value or quantity.low is None or quantity.high is None:
        return ""
    half = (quantity.high - quantity.low) / 2 / abs(quantity.value)
    return f"±{NBSP}{text.number(half * 100, 2 if half < 0.1 else 1)}{NBSP}%"


def _digits_allowed(quantity: Quantity) -> int:
    """Return as many digits as the range allows: at least two, and three of a speed, to bear its ratio."""
    if quantity.low is None or quantity.high is None or not quantity.value:
        return quantity.digits
    least = 3 if quantity.unit.endswith("/s") else 2
    return max(least, text.digits_of(quantity.value, quantity.low, quantity.high))


def _number_and_unit(number: float, unit: str, digits: int, beside: float) -> tuple[str, str]:
    """A number and its unit, which is the one that `beside` is written in."""
    if unit == "ratio":
        return text.times(number), "×"
    if unit == "bytes":
        size, name = (GIB, "GiB") if beside >= 0.1 * GIB else (2**20, "MiB")
        return text.number(number / size), name
    if unit == "share":
        return "under 1" if 0 < number < 0.01 else f"{number * 100:.0f}", "%"
    if unit == "percent":
        return f"{number * 100:.2g}", "%"
    if unit == "accuracy":
        return f"{number * 100:.1f}", "%"
    if unit == "seconds":
        return _duration_text(number, beside, digits)
    if unit == "count":
        return text.grouped_digits(number, ".0f"), ""
    return text.rounded(number, digits), unit


def _duration_text(seconds: float, beside: float, digits: int) -> tuple[str, str]:
    """A time in the unit that people use for one as long as `beside`."""
    for least, size, name in ((172800, 86400, "days"), (5400, 3600, "h"), (90, 60, "min")):
        if beside >= least:
            return text.rounded(seconds / size, max(digits, 2)), name
    if beside < 0.1:
        return text.rounded(seconds * 1000, digits), "ms"
    return text.rounded(seconds, digits), "s"


def figure_text(number: float | None, unit: str = "") -> str:
    """A number without a range in a unit, three digits: '12.3 GB/s'."""
    return value_text(Quantity(number, unit))


def join_listed(parts: Iterable[Any], word: str = "and") -> Any:
    """'a, b and c', of texts or of marked-up names."""
    items = list(parts)
    write = escape if any(isinstance(item, Markup) for item in items) else str
    *first, last = map(write, items or [""])
    return write(", ").join(first) + f" {word} " + last if first else last


def ordinal(number: int) -> str:
    """'1st', '2nd', '7th'"""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def capitalise(words: str) -> str:
    """Words at the beginning of a sentence; marks around them stay."""
    marked = re.sub(r"^((?:<[^>]*>)*)(\w)", lambda match: match[1] + match[2].upper(), str(words))
    return Markup(marked) if isinstance(words, Markup) else marked


FILTERS: Mapping[str, Callable[..., Any]] = {
    "value": value_text,
    "span": range_text,
    "spread": spread_text,
    "times": times_text,
    "times_alone": lambda quantity: text.times(quantity.value),
    "stated": value_or_range,
    "stated_times": stated_times_text,
    "expected": over_expected,
    "breakdown": time_breakdown,
    "figure": figure_text,
    "count": text.count,
    "grouped_digits": text.grouped_digits,
    "listed": join_listed,
    "day": text.day,
    "ordinal": ordinal,
    "quantity": quantity,
    "rate": rate,
    "rate_unit": rate_unit,
    "label": finding_label,
    "speedup_limit": speedup_limit,
    "capital": capitalise,
    "card": text.short_card,
    "model": text.model_name,
    "setting": lambda cell: setting_words(cell.key, cell.stack.device),
    "work": work_name,
    "missing": missing_words,
}
