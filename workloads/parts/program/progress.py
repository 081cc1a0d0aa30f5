"""Progress that a program prints by itself: which of its lines count steps, and how long the steps took.

Lines are grouped by their text without figures. A group whose lines have a rising count is a counter; the
one that counts steps for the longest time is training. Lines of other counters and of evaluations interrupt
it: the row across them is left out. A count that falls is a new epoch.

Standard library and Python 3.7 syntax only.
"""

from __future__ import annotations

import re
import statistics
from typing import NamedTuple

NUMBER = r"\d+(?:,\d{3})+(?:\.\d+)?|\d+\.?\d*(?:[eE][-+]?\d+)?"
_BAR = re.compile(r"\|[^|]*[█▏▎▍▌▋▊▉#>=-][^|]*\||[━╸╺─█]{3,}|\[[=>.]{3,}\]|\|\s+\|")
_TEMPLATE = re.compile(r"[-+]?(?:%s)(?:(?:[kKM]|[mµu]?s|[mhd])(?![A-Za-z]))?|\bnan\b|\binf\b|\?" % NUMBER)
_CLOCK = re.compile(r"\d+:\d\d(?::\d\d)?")
_PER = re.compile(r"it/s|[mµu]?s/(?:it|step)")
"""A rate below one turns into its inverse."""
_FRACTION = re.compile(r"(?<![\d.,/])(\d[\d,]*)\s*/\s*(\d[\d,]*)(?![\d/.])")
_UNENDING = re.compile(r"(?<![\d.])(\d+)it \[")
_STEP = re.compile(
    r"(?i)\b(?:global[_ ])?(?:step|iter|iteration|batch|update|it)s?\b['\"]?\s*[:=#\[(]?\s*(%s)" % NUMBER
)
_EPOCH = re.compile(r"(?i)\bepochs?\b['\"]?\s*[:=#\[(]?\s*(%s)" % NUMBER)
_EPOCH_OF_FASTAI = re.compile(r"^\[(\d+), (?:[-\w.]+, )*'\d+:\d\d(?::\d\d)?'\]$")
_RATE = re.compile(
    r"(?i)(?<![\w.])(%s)\s*([kM]?)\s*(it|iters?|steps?|batch(?:es)?|tok(?:en)?s?|ims?|ima?ge?s?|samples?|"
    r"seqs?|sequences?|examples?|ex|)\s?/\s?s(?:ec(?:ond)?)?\b" % NUMBER
)
_TIME = re.compile(
    r"(?i)(?<![\w.])(%s)\s*(ms|us|µs|s|secs?|seconds?)\b(?:\s*/\s*(it|iter|step|batch))?" % NUMBER
)
_ASIDE = re.compile(r"(?i)\b(val|valid|validat\w*|eval\w*|test|testing|sanity|dev)(?=\b|_)")
_BEFORE = re.compile(
    r"(?i)\b(download\w*|fetch\w*|map|filter|load\w*|token\w+ing|tokeniz\w*|prepar\w*|extract\w*|generating|cach\w*|"
    r"unpack\w*|import\w*|resolv\w*|shards?|files?)\b"
)
"""What a program counts before it trains."""

UNITS = {"tok": "token", "im": "image", "sa": "sample", "se": "sample", "ex": "sample"}
LEAST_ROWS = 3
ALIKE = 0.8
"""Two counters of which the shorter has this share of the other's time are alike."""


class Count(NamedTuple):
    """The count in a line, and the group of lines that it is of."""

    group: str
    value: float
    steps: bool
    """Whether steps are counted, and not epochs."""


class Row(NamedTuple):
    """What happened between two lines of training."""

    begin: float
    end: float
    steps: float
    line: str


class Counter:
    """The lines of one group: their counts, and the rows between them that nothing interrupted."""

    def __init__(self, steps: bool, aside: bool) -> None:
        self.steps = steps
        self.aside = aside
        self.rows = []
        self.values = []
        self.seconds = 0.0
        """How long it counted, interruptions among it."""
        self.rises = 0
        self.example = ""
        self._last = None
        self._interrupted = False

    def interrupt(self) -> None:
        """Leave out the row up to the next line."""
        self._interrupted = True

    def take(self, value: float, at: float, line: str) -> None:
        """Take the count of the next line."""
        last, interrupted = self._last, self._interrupted
        self._last, self._interrupted = (value, at), False
        self.example = line
        self.values.append(value)
        if last is None or value < last[0]:
            return
        if value == last[0]:
            self._last, self._interrupted = last, interrupted
            return
        self.rises += 1
        self.seconds += at - last[1]
        # Of lines read at once after an interruption the last one begins: their steps were made before it.
        begun = at > last[1] or (self.rows and self.rows[-1].end == at)
        if begun and not interrupted:
            self.rows.append(Row(last[1], at, value - last[0], line))


class ProgressReader:
    """Hears a program's lines and keeps what counts; `match` takes the count and figures by named groups."""

    def __init__(self, match: str | None = None, metric: str | None = None) -> None:
        self.counters = {}
        self.metric = None
        """The last value that `metric` found."""
        self.last_lines = []
        self._match = re.compile(match) if match else None
        self._metric = re.compile(metric) if metric else None

    def hear(self, line: str, at: float) -> None:
        """Take one line, which was read at a moment of our clock."""
        self.last_lines = [*self.last_lines[-4:], line]
        found = self._metric.search(line) if self._metric else None
        value = number(found.group(1)) if found else None
        self.metric = self.metric if value is None else value
        count = self._counted(line)
        if count is None:
            if _ASIDE.search(line):
                self.interrupt(None)
            return
        aside = self._match is None and bool(_ASIDE.search(_named(line)) or _BEFORE.search(_named(line)))
        counter = self.counters.setdefault(count.group, Counter(count.steps, aside))
        if counter.steps:
            self.interrupt(counter)
        counter.take(count.value, at, line)

    def interrupt(self, by: Counter | None = None) -> None:
        """Leave out the rows up to the next lines, those of `by` and its echoes aside."""
        for other in self.counters.values():
            echoes = by is not None and by.values[-1:] and other.values[-1:] == by.values[-1:]
            if other is not by and not echoes:
                other.interrupt()

    def _counted(self, line: str) -> Count | None:
        if self._match is not None:
            found = self._match.search(line)
            value = number(found.groupdict().get("step")) if found else None
            return None if value is None else Count("match", value, True)
        for pattern in (_FRACTION, _UNENDING, _STEP, _EPOCH, _EPOCH_OF_FASTAI):
            found = [each for each in pattern.finditer(line) if not _is_epoch_of(line, each)]
            value = number(found[-1].group(1)) if found else None
            if value is not None:
                return Count(template(line), value, pattern not in (_EPOCH, _EPOCH_OF_FASTAI))
        return None

    @property
    def candidates(self) -> list:
        """Return the counters that may be training, the one that counted longest first."""
        counters = (each for each in self.counters.values() if not each.aside)
        able = [each for each in counters if each.rises >= LEAST_ROWS - 1]
        steps = [each for each in able if each.steps] or able
        return sorted(steps, key=lambda each: -each.seconds)

    @property
    def training(self) -> Counter | None:
        """Return the counter of training; null where there is none, or two are alike."""
        found = self.candidates
        return found[0] if found and not self.alike else None

    @property
    def alike(self) -> tuple:
        """Return two counters of which either could be training; empty where one is ahead."""
        first, *others = self.candidates or [None]
        rivals = [
            other
            for other in others
            if other.seconds >= ALIKE * first.seconds and not set(first.values) & set(other.values)
        ]
        return (first, rivals[0]) if rivals else ()


def _is_epoch_of(line: str, found: re.Match) -> bool:
    """Return whether a fraction is of epochs, as in "Epoch 3/10 step 45"."""
    return bool(re.search(r"(?i)\bepochs?['\"]?\s*[:=\[(]?\s*$", line[: found.start()]))


def _named(line: str) -> str:
    """Return a line's words before its first figure or bar, which name what it counts."""
    return re.split(r"[\d|]", line, maxsplit=1)[0]


def template(line: str) -> str:
    """Return a line without its figures, times and bars: equal for lines of one group."""
    without = _CLOCK.sub("0", _PER.sub("a step", _BAR.sub("|", line)))
    return re.sub(r"[\s?]+", " ", _TEMPLATE.sub("0", without)).strip()[:200]


def number(text: str | None, scale: str = "") -> float | None:
    """Return the number that a text says, with k or M; null where it is none."""
    try:
        return float((text or "").replace(",", "")) * {"k": 1e3, "m": 1e6}.get(scale.lower(), 1)
    except ValueError:
        return None


class Printed(NamedTuple):
    """A rate that a line prints: steps or samples a second."""

    value: float
    unit: str
    """image, token, sample, or step."""


def printed_rate(line: str) -> Printed | None:
    """Return the rate that a line prints, samples before steps; null where it prints none."""
    rates = []
    for found in _RATE.finditer(line):
        value, word = number(found.group(1), found.group(2)), found.group(3).lower()
        unit = next((name for start, name in UNITS.items() if word.startswith(start)), "step")
        unit = "sample" if not word else unit
        if value:
            rates.append(Printed(value, unit))
    for found in _TIME.finditer(line):
        value, scale = number(found.group(1)), found.group(2).lower()
        if value and found.group(3):
            rates.append(Printed(1 / (value * _SECONDS.get(scale, 1.0)), "step"))
    rates.sort(key=lambda each: each.unit == "step")
    return rates[0] if rates else None


_SECONDS = {"ms": 1e-3, "us": 1e-6, "µs": 1e-6}


class Progress(NamedTuple):
    """The steps of training by our clock."""

    blocks: list
    """Seconds of equal numbers of steps, in order."""
    together: int
    """The steps of a block."""
    stretches: list
    """Moments between which no row is missing."""
    steps: int
    printed: Printed | None
    """The median of the rates of samples that it prints; null where it prints none."""


def progress_of(counter: Counter) -> Progress:
    """Return the times of a counter's steps. Rows of unequal steps count by their own numbers.

    Within a stretch the count is drawn over time as a line through its rows, and read at equal steps.
    """
    together = max(1, round(statistics.median(row.steps for row in counter.rows)))
    stretches = join_rows(counter.rows)
    blocks = [seconds for rows in stretches for seconds in _equal_blocks(rows, together)]
    rates = list(filter(None, (printed_rate(row.line) for row in counter.rows)))
    of_samples = [rate for rate in rates if rate.unit != "step"]
    return Progress(
        blocks=blocks,
        together=together,
        stretches=[[rows[0].begin, rows[-1].end] for rows in stretches],
        steps=round(sum(row.steps for row in counter.rows)),
        printed=None
        if not of_samples
        else Printed(statistics.median(each.value for each in of_samples), of_samples[0].unit),
    )


def held_samples(rows: list) -> Printed | None:
    """Return the samples of a step, as the rates that rows print say it; null where they print none."""
    rates = [(row, rate) for row in rows for rate in [printed_rate(row.line)] if rate and rate.unit != "step"]
    held = [rate.value * (row.end - row.begin) / row.steps for row, rate in rates]
    return Printed(statistics.median(held), rates[0][1].unit) if held else None


def join_rows(rows: list) -> list:
    """Return rows in lists, in each of which one begins where the one before it ended."""
    joined = []
    for row in rows:
        if joined and joined[-1][-1].end == row.begin:
            joined[-1].append(row)
        else:
            joined.append([row])
    return joined


def share_seconds(seconds: float, steps: int) -> list:
    """Return a time as so many whole microseconds that add up to it: a measurement has one for each step."""
    whole = round(seconds * 1e6)
    return [whole * (step + 1) // steps - whole * step // steps for step in range(steps)]


def _equal_blocks(rows: list, together: int) -> list:
    """Return the seconds of each block of equal steps; an unfinished block at the end is left out."""
    blocks, done, begun, edge = [], 0.0, rows[0].begin, float(together)
    for row in rows:
        while done + row.steps >= edge - 1e-9:
            end = row.begin + (edge - done) / row.steps * (row.end - row.begin)
            blocks.append(end - begun)
            begun, edge = end, edge + together
        done += row.steps
    return blocks
