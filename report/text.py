"""Numbers and strings as the page writes them: units, digits, and text from records made harmless to read."""

from __future__ import annotations

import math
import re
import unicodedata
from datetime import date

THIS = "this machine"


def grouped_digits(value: float, form: str = "") -> str:
    """A number in a form of `format`, with commas between its thousands: '12,345', '1,234.5' in '.1f'."""
    return f"{value:,{form}}"


def count(value: int, noun: str, plural: str | None = None) -> str:
    """'1 run', '3 runs'"""
    return f"{grouped_digits(value)} {noun if value == 1 else plural or noun + 's'}"


def number(value: float, digits: int = 3) -> str:
    """A number with thousands separators and about `digits` significant digits."""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else ("infinite" if value > 0 else "minus infinite")
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    if abs(value) >= 10**digits:
        unit = 10 ** max(0, math.floor(math.log10(abs(value))) - 3)
        return grouped_digits(round(value / unit) * unit)
    return grouped_digits(value, f".{min(places, 6)}f")


def times(value: float) -> str:
    """A ratio, two decimals, from ten on three digits, below a tenth two: '1.62', '42.6', '0.0071'."""
    size = abs(value)
    if 0 < size < 0.1:
        return number(value, 2)
    return f"{value:.2f}" if size < 10 else f"{value:.1f}" if size < 100 else grouped_digits(value, ".0f")


def digits_of(best: float, low: float, high: float) -> int:
    """Return how many digits a figure's range allows; rounded to them the figure stays within its range."""
    width = (high - low) / 2 / abs(best) if best else 1.0
    digits = 4 if width <= 0 else 1 + max(1, min(3, round(-math.log10(width))))
    while digits < 4 and not low <= _to_digits(best, digits) <= high:
        digits += 1
    return digits


def _to_digits(value: float, digits: int) -> float:
    if not value or not math.isfinite(value):
        return value
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))


def rounded(value: float, digits: int) -> str:
    """A number with that many significant digits and no more: 4,322 with two is '4,300'."""
    return number(_to_digits(value, digits), digits)


def day(moment: date) -> str:
    """'31 January 2026'"""
    return f"{moment.day} {moment:%B %Y}"


def clean(text: object, limit: int = 80) -> str:
    """One line of a string from a record: no control or direction characters, cut in the middle."""
    line = str(text)[: 4 * limit + 4000]
    if not line.isprintable():
        line = "".join(map(_shown, line))
    line = " ".join(line.split())
    if len(line) <= limit:
        return line
    tail = limit // 4
    return f"{line[: limit - tail - 1]}…{line[-tail:]}"


def _shown(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Cc", "Zl", "Zp"):
        return " "
    if category in ("Cf", "Cs", "Co", "Cn"):
        return "\N{REPLACEMENT CHARACTER}"
    return character


_NO_NAME = re.compile(
    r"\b(?:NVIDIA|AMD|Intel|GeForce|Radeon|Tesla|Instinct)\b|\((?:R|TM)\)"
    r"|\b\d+th Gen\b|\bCPU\b(?= @)|@ [\d.]+GHz|\bwith .*Graphics\b|\bGraphics\b|\b\d+-Core Processor\b"
)
"""Parts of a name that all devices of a maker share: the maker, its marks, a base clock, a count of cores."""
_RESNET = re.compile(r"resnet(\d+)")
_EFFICIENT = re.compile(r"efficientnet_b(\d)")
_WRITTEN = {
    "densenet121": "DenseNet-121",
    "inception_v3": "InceptionV3",
    "mlp": "MLP",
    "cnn": "CNN",
    "gpt": "GPT",
    "lstm": "LSTM",
    "gru": "GRU",
    "rnn_tanh": "RNN (tanh)",
    "rnn_relu": "RNN (ReLU)",
}


_SEVERAL = re.compile(r"^\d+ × |, \d+ processes$")


def one_device(name: str) -> str:
    """Return the model alone of several cards, or of a processor with several processes."""
    return _SEVERAL.sub("", name)


def short_card(name: str) -> str:
    """A device's name without its maker: 'RTX 2080 Ti', 'Core i5-1135G7', 'Ryzen 5 5500U'."""
    short = " ".join(_NO_NAME.sub(" ", clean(name, 120)).split())
    return clean(short or name, 32)


def model_name(name: str) -> str:
    """A model as people write it: 'ResNet-50', 'LSTM'."""
    size = _RESNET.fullmatch(name.casefold())
    if size:
        return f"ResNet-{size[1]}"
    size = _EFFICIENT.fullmatch(name.casefold())
    return f"EfficientNet-B{size[1]}" if size else _WRITTEN.get(name.casefold(), clean(name, 40))


def failure_words(reason: str) -> str:
    """Why there is no figure, as short as a chart needs it."""
    return {"out-of-memory": "does not fit"}.get(reason, f"failed: {reason.replace('-', ' ')}")
