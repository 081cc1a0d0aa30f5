"""What one short job tells of a site: mounts, device, offline start, writing back. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.doctor.surroundings import Finding, ok, problem, warn
from harness.record import Record
from harness.units import duration

FIRST = "correct what is marked PROBLEM first"


@dataclass(frozen=True, slots=True)
class Tried:
    """One job that runs one trial, and what of it came back to this machine."""

    where: str
    """Such as "job 12", or "a process of this machine"."""
    folders: tuple[str, ...] = ()
    """Those that it was to read on its node."""
    absent: tuple[str, ...] = ()
    held_up: str = ""
    """The last that was told of it, where it had not ended in time."""
    waited_seconds: float = 0.0
    began: bool = False
    """Whether anything that it wrote is here."""
    record: Record | None = None
    """Null too where the job could not look at its node."""
    last_words: str = ""
    """Of its output."""


def judge(tried: Tried) -> tuple[Finding, ...]:
    """One finding for each of the four, in the order in which a trial needs them."""
    return tuple(part for parts in (_write_back, _mounts, _device, _start) for part in parts(tried))


def _write_back(tried: Tried) -> Iterator[Finding]:
    waited = duration(tried.waited_seconds)
    if tried.began:
        yield ok(f"write-back: what {tried.where} wrote is here")
    elif tried.held_up:
        yield problem(
            f"write-back: {tried.where} had not begun after {waited}: {tried.held_up}",
            "try it again when the partition is less full, or name another in the site's profile",
        )
    else:
        yield problem(
            f"write-back: {tried.where} ended and left nothing here{_words(tried)}",
            "put the clone on a file system that the nodes see under the same path and may write to",
        )


def _mounts(tried: Tried) -> Iterator[Finding]:
    if tried.record is None:
        yield warn("mounts: not reached", FIRST)
    elif tried.absent:
        yield problem(
            f"mounts: the node lacks {', '.join(map(repr, tried.absent))}",
            "correct `mounts` of the site's profile or the setting `data`, or have it mounted there",
        )
    elif tried.folders:
        yield ok(f"mounts: the node has {', '.join(map(repr, tried.folders))}")
    else:
        yield ok("mounts: none are asked for; the clone itself is on the node")


def _device(tried: Tried) -> Iterator[Finding]:
    record = tried.record
    if record is None:
        yield warn("device: not reached", FIRST)
        return
    if record.failure is not None and record.failure.reason == "no-device":
        yield problem(
            f"device: {record.failure.message}",
            "look at `device`, `gpus_per_node`, `gpu_option` and `gpu_type` of the site's profile",
        )
        return
    if record.trial.asked.device == "cpu":
        cpu = record.machine.cpu
        given = f"{cpu.model or 'a processor'}" + (f", {cpu.usable:g} CPUs" if cpu.usable else "")
    else:
        cards = [gpu.name for gpu in record.machine.gpus if gpu.index in record.cards_given]
        given = ", ".join(cards)
    seen = f"; the framework sees {record.measurement.device.name}" if record.measurement else ""
    yield ok(f"device: the job was given {given}{seen}")


def _start(tried: Tried) -> Iterator[Finding]:
    record, waited = tried.record, duration(tried.waited_seconds)
    reason = record.failure.reason if record is not None and record.failure is not None else ""
    if not tried.began or (record is not None and (tried.absent or reason == "no-device")):
        yield warn("offline start: not reached", FIRST)
    elif record is None and tried.held_up:
        yield problem(
            f"offline start: {tried.where} had not ended after {waited}{_words(tried)}",
            "look whether its environment, or gpudyno itself, lies on a slow file system",
        )
    elif record is None:
        yield problem(
            f"offline start: {tried.where} could not look at its node{_words(tried)}",
            "name in `python` of the site's profile an interpreter with gpudyno that the nodes have",
        )
    elif record.failure is not None:
        yield problem(
            f"offline start: {record.failure.reason} at {record.failure.stage}: {record.failure.message}",
            "`invoke build` where the nodes see it, or correct `runtime`, `image` and `modules`",
        )
    else:
        took = duration(record.wall_seconds)
        yield ok(f"offline start: its environment took a step in {took}, with nothing fetched")


def _words(tried: Tried) -> str:
    return f" ({tried.last_words})" if tried.last_words else ""
