"""What this machine can do, before anything is spent: pure functions of what was read of its surroundings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.data import chest_xray
from harness.doctor import devices
from harness.doctor.surroundings import TRUST, Disk, Estimate, Finding, Surroundings, ok, problem, warn
from harness.engines import ENGINES
from harness.units import GIB, counted, duration, size

SPARE_BYTES = 2 * GIB
"""What a disk should have free beside what a plan needs."""
SMALL_MEMORY_BYTES = 4 * GIB


def examine(around: Surroundings, estimate: Estimate | None = None) -> tuple[Finding, ...]:
    """What this machine can do, and what stands in the way of the estimated plan."""
    parts = (
        _engine(around),
        devices.cards(around),
        devices.access(around),
        devices.precisions(around),
        devices.settings(around.machine, around.load),
        _memory(around, estimate),
        _disks(around, estimate),
        _data(around, estimate),
        _plan(around, estimate),
    )
    return tuple(finding for part in parts for finding in part)


def lines(findings: Iterable[Finding]) -> list[str]:
    """One line a finding, its remedy below it."""
    marks = {"ok": "ok      ", "warn": "warning ", "problem": "PROBLEM "}
    shown = []
    for finding in findings:
        shown.append(marks[finding.level] + finding.what)
        if finding.remedy:
            shown.append(" " * 8 + "→ " + finding.remedy)
    return shown


def _engine(around: Surroundings) -> Iterator[Finding]:
    engine = around.engine
    if engine is None:
        why = f" ({'; '.join(around.refused)})" if around.refused else ""
        yield warn(
            f"no container engine answers{why}: trials run in a virtual environment of the same lock",
            "install Docker Engine or Podman to pin the system's libraries too",
        )
        return
    kind = ", rootless" if engine.rootless else ""
    yield ok(f"{ENGINES[engine.name].title} {engine.version or 'of unknown version'} answers{kind}")
    if not engine.buildkit:
        yield problem(
            "no client here builds with BuildKit, which the images need",
            "install docker-buildx (Debian and Ubuntu: docker-buildx or docker.io's own client)",
        )


def _memory(around: Surroundings, estimate: Estimate | None) -> Iterator[Finding]:
    machine = around.machine
    memory = machine.memory_limit_bytes or machine.memory_bytes
    if memory is not None:
        small = memory < SMALL_MEMORY_BYTES
        remedy = "the quick plan needs about 4 GiB" if small else ""
        free = around.load.memory_available_bytes
        shown = f", {size(free)} of it available" if free is not None else ""
        yield Finding("warn" if small else "ok", f"memory: {size(memory)}{shown}", remedy)
    shared, needed = machine.shared_memory_bytes, estimate.shared_memory_bytes if estimate else 0
    if around.engine is None and shared is not None and shared < needed:
        yield warn(
            f"/dev/shm holds {size(shared)}, and the loader may need {size(needed)}",
            f"sudo mount -o remount,size={needed // 2**20 + 1}M /dev/shm",
        )


def _disks(around: Surroundings, estimate: Estimate | None) -> Iterator[Finding]:
    needed = sum(need.download_bytes for need in around.data if not need.at_hand)
    needed += 0 if estimate is None or estimate.built else estimate.build_bytes
    engine = around.engine
    own = (Disk(f"{ENGINES[engine.name].title}'s storage", engine.data_root_free_bytes),) if engine else ()
    for disk in (*around.disks, *own):
        if disk.free_bytes is None:
            continue
        shown = f"disk for {disk.what}: {size(disk.free_bytes)} free"
        if disk.free_bytes < needed:
            yield problem(f"{shown}, and the plan needs up to {size(needed)}", "make room first")
        elif disk.free_bytes < needed + SPARE_BYTES:
            yield warn(shown, f"the plan needs up to {size(needed)} and should leave some")
        else:
            yield ok(shown)


def _data(around: Surroundings, estimate: Estimate | None) -> Iterator[Finding]:
    build = f"invoke build --plan {estimate.plan}" if estimate else "invoke build"
    missing = [need for need in around.data if not need.at_hand]
    for need in around.data:
        if need.problem:
            yield problem(need.problem, "remove or correct the file; GPUDYNO_DATA names the folder")
        elif need.at_hand:
            yield ok(f"data: {need.name} is at hand")
        else:
            fetched = f" ({size(need.download_bytes)})" if need.download_bytes else ""
            how = chest_xray.HOW if need.name == chest_xray.NAME else f"`{build}` fetches it"
            yield warn(f"data: {need.name}{fetched} is not at hand", how)
    reached = sum(around.answered.values())
    if reached:
        yield ok(f"network: {reached} of {len(around.answered)} data hosts answer")
    elif around.answered and missing:
        fake = all(need.may_be_generated for need in missing)
        kinds = {
            "random weights" if need.name.startswith("weights-") else "generated data" for need in missing
        }
        instead = " and ".join(sorted(kinds))
        yield Finding(
            "warn" if fake else "problem",
            "network: no data host answers, and "
            + (f"{instead} will stand in" if fake else "data is missing"),
            "put the data into a folder and name it with GPUDYNO_DATA",
        )


def _plan(around: Surroundings, estimate: Estimate | None) -> Iterator[Finding]:
    if around.untrusted:
        yield warn(around.untrusted, TRUST)
    if around.plan_problem is not None:
        yield around.plan_problem
    if estimate is None:
        return
    image = f"image '{estimate.image}' " + ("is built" if estimate.built else "is to be built")
    if not estimate.built and estimate.build_bytes:
        image += f" (about {size(estimate.build_bytes)})"
    fetch = sum(need.download_bytes for need in around.data if not need.at_hand)
    fetched = f", {size(fetch)} to fetch" if fetch else ""
    yield ok(
        f"plan '{estimate.plan}': {image}{fetched}, {counted(estimate.trials, 'trial')}, {_time(estimate)}",
    )
    if estimate.left_out:
        yield warn(
            f"left out: {counted(estimate.left_out, 'trial')}",
            f"`invoke plan --plan {estimate.plan}` lists them with the reasons",
        )


def _time(estimate: Estimate) -> str:
    if estimate.trial_seconds is None:
        return "nobody can tell how long"
    building = 0.0 if estimate.built else estimate.build_seconds or 0.0
    about = "at most" if estimate.at_most else "about"
    return f"{about} {duration(estimate.trial_seconds + building)} without downloads"
