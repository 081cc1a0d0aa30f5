"""How the templates write numbers: with as many digits as their range bears, and the range beside it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from harness.record.finding import label
from harness.summary.bound import speedup_limit
from report import text
from report.charts.roofline import rate as flop_rate
from report.page.values import Quantity, between, quantity, rate, rate_unit

NBSP = "\N{NO-BREAK SPACE}"
UNKNOWN = "–"
GIB = 2**30


def value(quantity: Quantity | None) -> str:
    """A quantity without its range: '1.43 ×', '28 min', '5.6 GiB', '1,010 images/s'."""
    if quantity is None or quantity.value is None or not math.isfinite(quantity.value):
        return UNKNOWN
    digits = _digits(quantity)
    return _with_unit(quantity.value, quantity.unit, digits)


def span(quantity: Quantity | None) -> str:
    """The range of a quantity without its unit: '1.35 to 1.47'; empty where there is none."""
    if quantity is None or quantity.value is None or quantity.low is None or quantity.high is None:
        return ""
    digits = _digits(quantity)
    ends = (_plain(end, quantity.unit, digits, quantity.value) for end in (quantity.low, quantity.high))
    return f"{NBSP}to{NBSP}".join(ends)


def times(quantity: Quantity | None) -> str:
    """A ratio in a sentence, with the digits that its range bears: '1.43 times'."""
    if quantity is None or quantity.value is None:
        return UNKNOWN
    if quantity.low is None or quantity.high is None:
        return f"{text.times(quantity.value)}{NBSP}times"
    about = text.about(quantity.value, quantity.low, quantity.high)
    return f"{min(text.times(quantity.value), about, key=len)}{NBSP}times"


def spread(quantity: Quantity | None) -> str:
    """Half the width of a range in percent of its value: '± 3 %'; empty where there is none."""
    if quantity is None or not quantity.value or quantity.low is None or quantity.high is None:
        return ""
    half = (quantity.high - quantity.low) / 2 / abs(quantity.value)
    return f"±{NBSP}{text.number(half * 100, 2 if half < 0.1 else 1)}{NBSP}%"


def _digits(quantity: Quantity) -> int:
    """As many as the range bears; three where there is none."""
    if quantity.low is None or quantity.high is None or not quantity.value:
        return 3
    return max(2, text.digits_of(quantity.value, quantity.low, quantity.high))


def _plain(number: float, unit: str, digits: int, beside: float) -> str:
    """A number in the unit that `beside` is written in, without the unit's name."""
    if unit == "ratio":
        return text.times(number)
    if unit == "bytes":
        return text.number(number / (GIB if beside >= 0.1 * GIB else 2**20), 3)
    if unit in ("share", "accuracy"):
        return f"{number * 100:.3g}"
    if unit == "seconds":
        return _duration(number, beside, digits)[0]
    return text.rounded(number, digits)


def _with_unit(number: float, unit: str, digits: int) -> str:
    if unit == "ratio":
        return f"{text.times(number)}{NBSP}×"
    if unit == "bytes":
        return text.gibibytes(number).replace(" ", NBSP)
    if unit == "share":
        return f"{'under 1' if 0 < number < 0.01 else f'{number * 100:.0f}'}{NBSP}%"
    if unit == "accuracy":
        return f"{number * 100:.1f}{NBSP}%"
    if unit == "seconds":
        return NBSP.join(_duration(number, number, digits))
    if unit == "count":
        return f"{number:,.0f}"
    return f"{text.rounded(number, digits)}{NBSP}{unit}" if unit else text.rounded(number, digits)


def _duration(seconds: float, beside: float, digits: int) -> tuple[str, str]:
    """A time in the unit that people use for one as long as `beside`."""
    for least, size, name in ((172800, 86400, "days"), (5400, 3600, "h"), (90, 60, "min")):
        if beside >= least:
            return text.rounded(seconds / size, max(digits, 2)), name
    if beside < 0.1:
        return text.rounded(seconds * 1000, digits), "ms"
    return text.rounded(seconds, digits), "s"


def seconds(number: float | None) -> str:
    """A time as people say it: '28 min', '9.1 h'."""
    return value(Quantity(number, "seconds"))


def flops(per_second: float) -> str:
    """'100 GFLOP/s'"""
    return flop_rate(per_second, "FLOP/s").replace(" ", NBSP)


def figure(number: float | None, unit: str = "") -> str:
    """A number without a range in a unit, three digits: '12.3 GB/s'."""
    return value(Quantity(number, unit))


def listed(parts: Sequence[Any], word: str = "and") -> Any:
    """'a, b and c', of texts or of marked-up names."""
    items = list(parts)
    if len(items) < 2:
        return str(items[0]) if items and not isinstance(items[0], Markup) else Markup("".join(items))
    marked = any(isinstance(item, Markup) for item in items)
    last = f" {word} "
    if marked:
        return Markup(", ").join(items[:-1]) + last + items[-1]
    return f"{', '.join(map(str, items[:-1]))}{last}{items[-1]}"


def ordinal(number: int) -> str:
    """'1st', '2nd', '7th'"""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def capital(words: str) -> str:
    """Words at the beginning of a sentence; marks around them stay."""
    marked = re.sub(r"^((?:<[^>]*>)*)(\w)", lambda match: match[1] + match[2].upper(), str(words))
    return Markup(marked) if isinstance(words, Markup) else marked


FILTERS: Mapping[str, Callable[..., Any]] = {
    "value": value,
    "span": span,
    "spread": spread,
    "times": times,
    "seconds": seconds,
    "flops": flops,
    "figure": figure,
    "count": text.count,
    "listed": listed,
    "day": text.day,
    "ordinal": ordinal,
    "clean": text.clean,
    "quantity": quantity,
    "rate": rate,
    "rate_unit": rate_unit,
    "between": between,
    "label": label,
    "speedup_limit": speedup_limit,
    "capital": capital,
    "card": text.short_card,
    "model": text.model_name,
}
