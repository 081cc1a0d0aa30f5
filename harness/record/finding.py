"""A finding: what a check found, as data; and the one table of each name's severity, fault and words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from string import Formatter
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field

from harness.record.strict_model import Model

Severity = Literal["invalid", "unproven", "warn", "note"]
"""What it makes of its trial; a note makes nothing of it."""

Fault = Literal["trial", "machine", "nobody"]
"""What it speaks against: the run or its files; the machine itself; or neither, but where and when it ran."""


@cache
def sentence_fields(sentence: str) -> frozenset[str]:
    """Return the data that a clause with named fields, which `str.format` fills, has words for."""
    return frozenset(name for _, name, _, _ in Formatter().parse(sentence) if name)


@dataclass(frozen=True)
class FindingKind:
    """One row. `label` is at most five words; `sentences` one clause for each set of data it comes with."""

    severity: Severity
    fault: Fault
    label: str
    sentences: tuple[str, ...]


_SLOWED = "card {card} was slowed down"
_HELD = "another process on card {card} held up to {other_mib:.0f} MiB in {samples_share:.0%} of the samples"
_STEPS = "the steps add up to {steps_seconds:.4g} s in a window of {window_seconds:.4g} s"

_WORDS: Mapping[tuple[Severity, Fault], Mapping[str, tuple[str, ...]]] = {
    ("invalid", "machine"): {
        "not-finite": (
            "loss not a number",
            "the training loss is {loss} at step {step}",
            "the {split} loss of epoch {epoch} is {loss}",
        ),
        "precision": (
            "another precision than labelled",
            "a {operation} labelled {precision} reads as {reads_as}",
            "labelled {precision}, but the layers gave {outputs}",
            "labelled {precision}, but the parameters are {parameters}",
        ),
        "collapsed": (
            "learned nothing",
            "accuracy {accuracy:.4g} is that of guessing among {classes} classes",
            "accuracy fell from {best_accuracy:.4g} to {accuracy:.4g}",
            "perplexity {perplexity:.4g} is that of guessing among {words} words",
        ),
        "thermal-throttling": (
            "slowed down by heat",
            f"{_SLOWED} for {{share:.0%}} of the window",
        ),
        "power-brake": ("power cut from outside", f"{_SLOWED} in {{samples_share:.0%}} of the samples"),
        "hardware-slowdown": (
            "card slowed itself down",
            f"{_SLOWED} in {{samples_share:.0%}} of the samples",
        ),
        "memory-error": ("memory errors", "{errors} new uncorrected errors on card {card}"),
        "device-fault": ("driver reported a fault", "the driver reported Xid {xids} on card {card}"),
        "unnamed": ("no reason on record", "no reason is on record"),
    },
    ("invalid", "trial"): {
        "constant-batch": (
            "too few different batches",
            "every step was fed the same batch",
            "only {distinct_batches} different batches were fed",
        ),
        "short-epoch": (
            "an epoch's length is wrong",
            "epoch {epoch} ended after {steps} steps, where its loader's length promises {promised_steps}",
        ),
        "impossible-figure": ("impossible figure", "its {quantity} reads {value}, which no run can give"),
        "contradicts-itself": ("record contradicts itself", "{what}"),
        "above-peak": (
            "above the card's peak",
            "{share:.0%} of the card's dense peak in this precision: no device does more than its peak",
            "{share:.0%} of the card's dense peak in this precision at its highest clock, {highest_mhz} MHz: "
            "no device does more than its peak",
        ),
        "above-linear": (
            "scales above linear",
            "{devices} devices give {gain:.2f} times the throughput of one",
        ),
    },
    ("invalid", "nobody"): {
        "clock": ("clocks contradict each other", _STEPS),
        "no-steady-state": ("steps changed until the end", "the step times still changed at the end"),
        "foreign-process": (
            "another process on the card",
            _HELD,
            f"{_HELD} and used {{other_percent:.0f}}% of the card's time",
            "another process was on card {card} in {samples_share:.0%} of the samples, its memory unknown",
            "another process held {other_mib:.0f} MiB of a card before the trial",
        ),
        "mig-changed": ("card divided meanwhile", "card {card} was divided or joined while the trial ran"),
        "power-limit": (
            "unusual power limit",
            "that of card {card} was changed while the trial ran",
            "card {card} is set to {limit_watts:.0f} W where its default is {default_watts:.0f} W",
        ),
        "locked-clocks": ("clocks locked", "a setting holds those of card {card}"),
    },
    ("unproven", "nobody"): {
        "short-window": (
            "ended before speed settled",
            "the last level held for {level_seconds:.4g} s and {level_steps} steps; {least_seconds:g} s and "
            "{least_steps} steps are needed",
            "the last {level_seconds:.4g} s and {level_steps} steps, {level_share:.0%} of the window, differ "
            "by {change:+.0%} a step; a level that fills less than half of a window does not take its place",
            "levels came back too seldom in {level_seconds:.4g} s and {level_steps} steps: the standard "
            "error of their mean is {mean_error:.1%}",
            "{level_seconds:.4g} s and {level_steps} steps do not show whether there is a drift of "
            "{drift:+.1%} (standard error {drift_error:.1%})",
        )
    },
    ("warn", "machine"): {
        "loss-scale": (
            "loss scale",
            "it fell to {last:g}",
            "{skipped_steps} of {steps} steps were skipped",
        ),
        "chassis-limited": (
            "held back by heat",
            "card {card} was held back for its heat for {share:.0%} of the window",
        ),
        "driver-gone": (
            "driver stopped answering",
            "the driver lost the {device} while the trial ran",
            "the driver stopped answering, so nothing is known of the card from then on",
        ),
        "pcie-link": (
            "slow PCIe link",
            "card {card} is linked at {quantity} {linked} of {highest} under load",
        ),
        "silent-card": ("card does not answer", "{card}"),
    },
    ("warn", "trial"): {
        "generated-data": ("generated data", "a stand-in for data that could not be had; never judged"),
        "device-clock": ("device and host clock differ", _STEPS),
        "slowdown": ("steps became slower", "the steps became slower; steady from step {first_step} on"),
        "program-clock": (
            "program's clock differs from ours",
            "between its lines lay {ratio:.3f} times what it says that they took",
        ),
        "program-changed": ("program changed its source", "the program wrote to files of its own source"),
        "program-left": ("program left processes", "{processes} processes lived on after it and were ended"),
        "input-bound": ("waits for input", "{input_share:.0%} of the time waited for input"),
    },
    ("warn", "nobody"): {
        "stalled": (
            "stood still meanwhile",
            "steps that stood out took {stalled_seconds:.4g} s longer than those around, {share:.0%} of "
            "the time",
            "{outside_seconds:.4g} s of the window, {share:.0%} of it, lie in no step",
            "validation took {valid_seconds:.4g} s longer than usual: {share:.0%} of the measured time",
            "the first {first_steps} steps took {stalled_seconds:.4g} s longer than as many later ones, "
            "{share:.0%} of what durations are made of",
        ),
        "persistence-off": ("persistence mode off", "the driver lets card {card} go between trials"),
        "remote-numa": (
            "on a remote NUMA node",
            "card {card} hangs on node {node}, the trial ran on another",
        ),
        "busy-machine": (
            "machine was busy before",
            "{busy_cores:.1f} of {cores} cores worked before the trial began",
        ),
        "start-temperature": (
            "another start temperature",
            "it began at {start_c:.0f} °C where the session's median is {median_c:.0f} °C",
        ),
        "unwatched": (
            "card not watched",
            "no telemetry, so neither clocks nor throttling nor other processes are known",
            "other processes are not known, {why}",
            "the telemetry was cut short after {seconds:.0f} s",
            "card {card} reported neither its clock nor its power nor its use",
        ),
    },
    ("note", "nobody"): {
        "own-window": (
            "the program's own window",
            "it is one figure a run, over a window that is the program's own",
        ),
        "power-cap": (
            "at its power limit",
            "card {card} ran at its power limit for {share:.0%} of the window",
        ),
        "card-clock": (
            "clock of the card",
            "card {card} ran at {mean_mhz:.0f} MHz on average, {highest_share:.0%} of its highest clock",
        ),
        "mig-slice": (
            "slice of a card",
            "card {card} is divided ({mode}); its power is not one slice's",
            "card {card} is the slice {profile}; its power is not one slice's",
        ),
        "telemetry": (
            "telemetry incomplete",
            "the first of {nodes} nodes alone was watched",
            "its cards were not watched ({unwatched_because}): state and energy are unknown",
            "{why}",
        ),
        "virtual-machine": ("virtual machine", "it is a guest ({hypervisor}), whose neighbours are unseen"),
        "governor": ("clock governor", "the processor's clocks follow '{governor}'"),
        "cpu-limit": ("limited processors", "{usable:g} of {threads} processors may be used"),
    },
}
"""The label and the sentences of each name, by severity and fault."""

KINDS = MappingProxyType(
    {
        name: FindingKind(severity, fault, label, tuple(sentences))
        for (severity, fault), rows in _WORDS.items()
        for name, (label, *sentences) in rows.items()
    }
)
"""The kinds by their names. A check that finds something new adds a row above, and nothing elsewhere."""

REMEDIES = MappingProxyType(
    {
        "power-limit": "nvidia-smi -i {card} -pl {default_watts:.0f}, or restore the cap of an AMD card; "
        "its trials would be invalid",
        "locked-clocks": "nvidia-smi -rgc and -rac, or rocm-smi --setperflevel auto, releases them",
        "persistence-off": "nvidia-smi -pm 1, or nvidia-persistenced",
        "mig-slice": "a slice is a card of its own in the report, without energy",
        "foreign-process": "end it: a trial on the same card is invalid",
        "busy-machine": "let the other work end first",
        "governor": "sudo cpupower frequency-set -g performance, while measuring",
        "virtual-machine": "start the system itself for figures to compare",
    }
)
"""What the doctor advises about a machine that is found so before any trial, by the finding's name."""

FindingWord = Annotated[str, Field(max_length=400)]
FindingValue = bool | int | float | FindingWord | tuple[int | FindingWord, ...]
DataKey = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]

VERDICTS: tuple[Literal["invalid", "unproven", "warn"], ...] = ("invalid", "unproven", "warn")
"""The gravest first; a note makes nothing of a trial."""


class Finding(Model):
    """One thing that a check found. `data` are its figures, units in their keys, and closed vocabularies."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
    severity: Severity
    data: Annotated[dict[DataKey, FindingValue], Field(max_length=12)] = {}

    def __hash__(self) -> int:
        return hash((self.name, self.severity, frozenset(self.data.items())))


def finding(name: str, severity: Severity | None = None, /, **data: FindingValue) -> Finding:
    """Return a finding of a name of the table; its severity is the table's unless another is given.

    Floats that are not finite become words, since JSON has none. Raises KeyError for an unknown name.
    """
    kind = KINDS[name]
    finite = {
        key: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in data.items()
    }
    return Finding(name=name, severity=severity or kind.severity, data=finite)


def finding_fault(found: Finding) -> Fault:
    """Return whose fault it is; the machine's for an unknown name, so that it is looked at."""
    kind = KINDS.get(found.name)
    return kind.fault if kind else "machine"


def finding_label(found: Finding) -> str:
    """Return at most five words, for chips and cells."""
    kind = KINDS.get(found.name)
    return kind.label if kind else found.name.replace("-", " ")


def count_labels(of_trials: Iterable[Iterable[Finding]]) -> tuple[tuple[str, int], ...]:
    """Return how many trials have each label, the most frequent first; a trial counts once for each."""
    met = (name for found in of_trials for name in dict.fromkeys(map(finding_label, found)))
    return tuple(Counter(met).most_common())


def finding_sentence(found: Finding) -> str:
    """Return a clause without a full stop: the name's first with exactly the finding's data, filled in.

    Data that fit none of them, as a record of another release may have them, give the label.
    """
    kind = KINDS.get(found.name)
    values = {
        key: ", ".join(map(str, value)) if isinstance(value, tuple) else value
        for key, value in found.data.items()
    }
    for clause in kind.sentences if kind else ():
        if sentence_fields(clause) == values.keys():
            try:
                return clause.format_map(values)
            except (ValueError, TypeError):
                break
    return finding_label(found)


def finding_remedy(found: Finding) -> str:
    """Return what to do about it before any measurement; empty where nothing is needed or possible."""
    return REMEDIES.get(found.name, "").format_map(found.data)


def gravest_verdict(
    findings: tuple[Finding, ...], *others: str
) -> Literal["valid", "warn", "invalid", "unproven"]:
    """Return the verdict that findings, and other verdicts, make together."""
    severities = {found.severity for found in findings} | set(others)
    return next((verdict for verdict in VERDICTS if verdict in severities), "valid")
