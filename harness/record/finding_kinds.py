"""The one table of findings: each name's usual severity, whose fault it is, and its words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from string import Formatter
from types import MappingProxyType
from typing import Literal

Severity = Literal["invalid", "unproven", "warn", "note"]
"""What it makes of its trial; a note makes nothing of it."""

Fault = Literal["trial", "machine", "nobody"]
"""What it speaks against: the run or its files; the machine itself; or neither, but where and when it ran."""


@cache
def data_of(sentence: str) -> frozenset[str]:
    """The data that a clause with named fields, which `str.format` fills, has words for."""
    return frozenset(name for _, name, _, _ in Formatter().parse(sentence) if name)


@dataclass(frozen=True)
class Kind:
    """One row. `label` is at most five words; `sentences` one clause for each set of data it comes with."""

    severity: Severity
    fault: Fault
    label: str
    sentences: tuple[str, ...]


def _row(severity: Severity, fault: Fault, label: str, *sentences: str) -> Kind:
    return Kind(severity, fault, label, sentences)


_SLOWED = "card {card} was slowed down"
_STEPS = "the steps add up to {steps_seconds:.4g} s in a window of {window_seconds:.4g} s"

_MEASUREMENT = {
    "not-finite": _row(
        "invalid",
        "machine",
        "loss not a number",
        "the training loss is {loss} at step {step}",
        "the {split} loss of epoch {epoch} is {loss}",
    ),
    "precision": _row(
        "invalid",
        "machine",
        "another precision than labelled",
        "a {operation} labelled {precision} reads as {reads_as}",
        "labelled {precision}, but the layers gave {outputs}",
        "labelled {precision}, but the parameters are {parameters}",
    ),
    "loss-scale": _row(
        "warn",
        "machine",
        "loss scale",
        "it fell to {last:g}",
        "it kept falling, from {settled:g} to {last:g}",
        "{skipped_steps} of {steps} steps were skipped",
    ),
    "collapsed": _row(
        "invalid",
        "machine",
        "learned nothing",
        "accuracy {accuracy:.4g} is that of guessing among {classes} classes",
        "accuracy fell from {best_accuracy:.4g} to {accuracy:.4g}",
        "perplexity {perplexity:.4g} is that of guessing among {words} words",
    ),
    "constant-batch": _row(
        "invalid",
        "trial",
        "too few different batches",
        "every step was fed the same batch",
        "only {distinct_batches} different batches were fed",
    ),
    "generated-data": _row(
        "warn", "trial", "generated data", "a stand-in for data that could not be had; never judged"
    ),
    "clock": _row("invalid", "nobody", "clocks contradict each other", _STEPS),
    "device-clock": _row("warn", "trial", "device and host clock differ", _STEPS),
    "short-window": _row(
        "unproven",
        "nobody",
        "ended before speed settled",
        "the last level held for {level_seconds:.4g} s and {level_steps} steps; {least_seconds:g} s and "
        "{least_steps} steps are needed",
        "levels came back too seldom in {level_seconds:.4g} s and {level_steps} steps: the standard error of "
        "their mean is {mean_error:.1%}",
        "{level_seconds:.4g} s and {level_steps} steps do not show whether there is a drift of {drift:+.1%} "
        "(standard error {drift_error:.1%})",
    ),
    "no-steady-state": _row(
        "invalid", "nobody", "steps changed until the end", "the step times still changed at the end"
    ),
    "slowdown": _row(
        "warn", "trial", "steps became slower", "the steps became slower; steady from step {first_step} on"
    ),
    "stalled": _row(
        "warn",
        "nobody",
        "stood still meanwhile",
        "steps that stood out took {stalled_seconds:.4g} s longer than those around, {share:.0%} of the time",
        "{outside_seconds:.4g} s of the window, {share:.0%} of it, lie in no step",
        "validation took {valid_seconds:.4g} s longer than usual: {share:.0%} of the measured time",
        "the first {first_steps} steps took {stalled_seconds:.4g} s longer than as many later ones, "
        "{share:.0%} of what durations are made of",
    ),
    "short-epoch": _row(
        "invalid",
        "trial",
        "an epoch's length is wrong",
        "epoch {epoch} ended after {steps} steps, where its loader's length promises {promised_steps}",
    ),
    "own-window": _row(
        "note",
        "nobody",
        "the program's own window",
        "it is one figure a run, over a window that is the program's own",
    ),
    "program-clock": _row(
        "warn",
        "trial",
        "program's clock differs from ours",
        "between its lines lay {ratio:.3f} times what it says that they took",
    ),
    "program-changed": _row(
        "warn", "trial", "program changed its source", "the program wrote to files of its own source"
    ),
    "program-left": _row(
        "warn", "trial", "program left processes", "{processes} processes lived on after it and were ended"
    ),
    "sockets": _row(
        "warn",
        "machine",
        "gradients over sockets",
        "devices share gradients over sockets, which is slow between nodes: NCCL tells {transport}",
    ),
    "input-bound": _row("warn", "trial", "waits for input", "{input_share:.0%} of the time waited for input"),
}

_DEVICE = {
    "chassis-limited": _row(
        "warn",
        "machine",
        "held back by heat",
        "card {card} was held back for its heat for {share:.0%} of the window",
    ),
    "thermal-throttling": _row(
        "invalid",
        "machine",
        "slowed down by heat",
        f"{_SLOWED} for {{share:.0%}} of the window",
        f"{_SLOWED} by {{part}} for {{share:.0%}} of the window",
    ),
    "power-brake": _row(
        "invalid", "machine", "power cut from outside", f"{_SLOWED} in {{samples_share:.0%}} of the samples"
    ),
    "hardware-slowdown": _row(
        "invalid", "machine", "card slowed itself down", f"{_SLOWED} in {{samples_share:.0%}} of the samples"
    ),
    "held-back": _row(
        "note",
        "machine",
        "card held back",
        "card {card} is held back in {samples_share:.0%} of the samples, says its driver without a reason",
        "card {card} was held back for {share:.0%} of the window ({policy})",
    ),
    "power-cap": _row(
        "note",
        "nobody",
        "at its power limit",
        "card {card} ran at its power limit for {share:.0%} of the window",
    ),
    "foreign-process": _row(
        "invalid",
        "nobody",
        "another process on the card",
        "another process on card {card} held up to {other_mib:.0f} MiB in {samples_share:.0%} of the samples",
        "another process on card {card} held up to {other_mib:.0f} MiB in {samples_share:.0%} of the samples "
        "and used {other_percent:.0f}% of the card's time",
        "another process held {other_mib:.0f} MiB of a card before the trial",
    ),
    "memory-error": _row(
        "invalid", "machine", "memory errors", "{errors} new uncorrected errors on card {card}"
    ),
    "device-fault": _row(
        "invalid", "machine", "driver reported a fault", "the driver reported Xid {xids} on card {card}"
    ),
    "mig-changed": _row(
        "invalid",
        "nobody",
        "card divided meanwhile",
        "card {card} was divided or joined while the trial ran",
    ),
    "driver-gone": _row(
        "warn",
        "machine",
        "driver stopped answering",
        "the driver lost the {device} while the trial ran",
        "the driver stopped answering, so nothing is known of the card from then on",
    ),
    "power-limit": _row(
        "invalid",
        "nobody",
        "unusual power limit",
        "that of card {card} was changed while the trial ran",
        "the driver itself moved that of card {card} between {lowest_watts:.0f} and {highest_watts:.0f} W",
        "card {card} is set to {limit_watts:.0f} W where its default is {default_watts:.0f} W",
    ),
    "locked-clocks": _row("invalid", "nobody", "clocks locked", "a setting holds those of card {card}"),
    "card-clock": _row(
        "note",
        "nobody",
        "clock of the card",
        "card {card} ran at {mean_mhz:.0f} MHz on average, {highest_share:.0%} of its highest clock",
    ),
    "pcie-link": _row(
        "warn",
        "machine",
        "slow PCIe link",
        "card {card} is linked at {quantity} {linked} of {highest} under load",
    ),
    "persistence-off": _row(
        "warn", "nobody", "persistence mode off", "the driver lets card {card} go between trials"
    ),
    "remote-numa": _row(
        "warn",
        "nobody",
        "on a remote NUMA node",
        "card {card} hangs on node {node}, the trial ran on another",
    ),
    "mig-slice": _row(
        "note",
        "nobody",
        "slice of a card",
        "card {card} is divided ({mode}); its power is not one slice's",
        "card {card} is the slice {profile}; its power is not one slice's",
    ),
    "energy": _row(
        "note",
        "nobody",
        "energy uncertain",
        "steps of {step_milliseconds:.0f} ms keep pace with a sensor that looks every 100 ms, as some cards' "
        "does: its energy may be off by a third",
    ),
    "busy-machine": _row(
        "warn",
        "nobody",
        "machine was busy before",
        "{busy_cores:.1f} of {cores} cores worked before the trial began",
        "a load of {load:g} on {cores} cores before the trial",
    ),
    "start-temperature": _row(
        "warn",
        "nobody",
        "another start temperature",
        "it began at {start_c:.0f} °C where the session's median is {median_c:.0f} °C",
    ),
    "unwatched": _row(
        "warn",
        "nobody",
        "card not watched",
        "no telemetry, so neither clocks nor throttling nor other processes are known",
        "other processes are not known, {why}",
        "the telemetry was cut short after {seconds:.0f} s",
        "card {card} told neither its clock nor its power nor its use",
    ),
}

_SESSION = {
    "changed": _row(
        "warn",
        "nobody",
        "changed within the session",
        "{what} changed within the session: {before} → {after}",
    ),
    "clock-behind": _row(
        "warn",
        "nobody",
        "began before it was asked",
        "it began {behind_seconds:.0f} s before it was asked for: a clock is wrong",
    ),
    "late-exit": _row(
        "note",
        "trial",
        "ended with an error",
        "it ended with code {exit_code} after its measurement was written",
    ),
    "telemetry": _row(
        "note",
        "nobody",
        "telemetry incomplete",
        "the first of {nodes} nodes alone was watched",
        "its cards were not watched ({unwatched_because}): state and energy are unknown",
        "{why}",
    ),
}

_MACHINE = {
    "virtual-machine": _row(
        "note", "nobody", "virtual machine", "it is a guest ({hypervisor}), whose neighbours are unseen"
    ),
    "governor": _row("note", "nobody", "clock governor", "the processor's clocks follow '{governor}'"),
    "smt": _row("note", "nobody", "simultaneous multithreading", "two threads share a core"),
    "turbo": _row(
        "note",
        "nobody",
        "turbo clocks",
        "the processor's clocks depend on its heat and on how many cores work",
    ),
    "cpu-limit": _row(
        "note", "nobody", "limited processors", "{usable:g} of {threads} processors may be used"
    ),
    "numa-balancing": _row("note", "nobody", "NUMA balancing", "the kernel moves memory between nodes"),
    "silent-card": _row("warn", "machine", "card does not answer", "{card}"),
    "display": _row("note", "nobody", "display attached", "a screen hangs on one of the cards"),
}

_AMONG_TRIALS = {
    "unnamed": _row("invalid", "machine", "no reason on record", "no reason is on record"),
    "impossible-figure": _row(
        "invalid", "trial", "impossible figure", "its {quantity} reads {value}, which no run can give"
    ),
    "contradicts-itself": _row("invalid", "trial", "record contradicts itself", "{what}"),
    "jump": _row(
        "invalid",
        "machine",
        "ten times off others",
        "{factor:.3g} times the median of {others} comparable figures",
        "1/{divisor:.3g} of the median of {others} comparable figures",
    ),
    "above-peak": _row(
        "invalid",
        "trial",
        "above the card's peak",
        "{share:.0%} of the card's dense peak in this precision: no device does more than its peak",
        "{share:.0%} of the card's dense peak in this precision at its highest clock, {highest_mhz} MHz: no "
        "device does more than its peak",
    ),
    "above-linear": _row(
        "invalid",
        "trial",
        "scales above linear",
        "{devices} devices give {gain:.2f} times the throughput of one",
    ),
    "above-ceiling": _row(
        "warn",
        "trial",
        "above a measured ceiling",
        "{share:.2f} times the fastest product in {runs} runs of this device's ceiling: that was disturbed, "
        "or less was computed than is counted",
        "a step takes {step_seconds:.4g} s, where its gradients alone take {least_seconds:.4g} s in the "
        "fastest of {runs} runs of all-reduce: those were disturbed, or less was shared than is counted",
    ),
    "other-form": _row(
        "warn", "trial", "label names another form", "'{machine}' names {forms}, and the card is {card}"
    ),
    "idle-device": _row(
        "invalid", "machine", "device hardly worked", "the device worked for {busy_share:.1%} of the time"
    ),
}

KINDS = MappingProxyType({**_MEASUREMENT, **_DEVICE, **_SESSION, **_MACHINE, **_AMONG_TRIALS})
"""By their names. A check that finds something new adds a row here, and nothing elsewhere."""
