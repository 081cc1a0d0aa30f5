"""The same work fed in two ways: why mixed precision gains with one loader what it does not with another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from report import names, words
from report.speedups import FULL_PRECISION, Speedup
from report.split import split

MOST_SAID = 4
INPUT_WAIT = 0.1
"""Of the time: from here on a trial is called input-bound."""


def sentences(gains: Sequence[Speedup]) -> tuple[str, ...]:
    """For each gain with the published loader that was measured on the device too: both, and who waited."""
    found = []
    for host in gains:
        if host.of.key.data_mode != "host" or host.of.key.precision in FULL_PRECISION:
            continue
        device = next((other for other in gains if _same_but_mode(host, other)), None)
        if device is not None:
            found.append(_said(host, device))
    return tuple(found[:MOST_SAID])


def _same_but_mode(host: Speedup, other: Speedup) -> bool:
    return all(
        (replace(one.key, data_mode="device"), one.session, one.machine, one.card)
        == (two.key, two.session, two.machine, two.card)
        for one, two in ((host.of, other.of), (host.over, other.over))
    )


def _said(host: Speedup, device: Speedup) -> str:
    key, over = host.of.key, host.over.key
    batch = f"batch {key.batch_size}"
    batch += f" against {over.batch_size}" if over.batch_size != key.batch_size else ""
    said = (
        f"{names.model(key.model)}, {batch}: with the published loader {key.precision} is "
        f"{words.times(host.ratio.estimate)} times as fast as {over.precision}, with the same data on the "
        f"device {words.times(device.ratio.estimate)} times"
    )
    waits = [(one, split(cell)) for one, cell in (("host", host.of), ("device", device.of))]
    known = {mode: part.input_wait for mode, part in waits if part is not None}
    if len(known) < len(waits):
        return f"{said}."
    said += (
        f": the loader kept it waiting for {words.percent(known['host'])} of the time, "
        f"the device's own data for {words.percent(known['device'])}"
    )
    if known["host"] > INPUT_WAIT and device.ratio.estimate > host.ratio.estimate:
        said += ". What waits for input is not shortened by faster arithmetic"
    return f"{said}."
