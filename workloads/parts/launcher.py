"""A launcher and its ranks, as every framework has them: places, folders, one measurement of all.

A rank is the same workload with a folder of its own: it writes events and a measurement or a failure as any
trial does. Its launcher passes on rank 0's events, and joins the measurements. Which process starts the
ranks, and how they meet, is the framework's own: `parts.ranks` for torch.

The standard library, and no framework.
"""

from __future__ import annotations

import json
import math
import os
import signal
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parts.timing.step_clock import StepClock
from parts.trial import Failed, TrialProcess

HOME = "127.0.0.1"
MARK = "GPUDYNO_RANKS"
"""Set by the launcher for its ranks."""
NODES, NODE = "GPUDYNO_NODES", "GPUDYNO_NODE"
"""Set for a trial over several nodes: how many, and which one this is from 0."""
LOOK_SECONDS = 0.2
ASK_EVERY_SECONDS = 1.0
MEETING_SECONDS = 120.0


@dataclass(frozen=True)
class Place:
    """The number of this process, from 0, and how many there are."""

    rank: int = 0
    count: int = 1
    local: int = 0
    """Its number among the ranks of its own node."""


ALONE = Place()


def own_place() -> Place | None:
    """Return this process's place among its launcher's ranks; None in any other process."""
    if MARK not in os.environ:
        return None
    rank, count, local = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    return Place(rank, count, local)


def settle() -> None:
    """Give a rank its own folder, and end it when its launcher is gone; call before the trial is read."""
    place = own_place()
    if place is None:
        if node_number():
            # The first node's launcher alone speaks for the trial.
            aside = Path(os.environ["GPUDYNO_OUT"]) / f"node-{node_number()}"
            aside.mkdir(parents=True, exist_ok=True)
            os.environ["GPUDYNO_OUT"] = str(aside)
        return
    folder = folder_of(Path(os.environ["GPUDYNO_OUT"]), place.rank)
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["GPUDYNO_OUT"] = str(folder)
    threading.Thread(target=_end_with_launcher, args=(os.getppid(),), daemon=True).start()


class TrialEnd:
    """When ranks that share gradients stop: all at the same step.

    Each counts steps by itself; a limit of seconds is rank 0's clock, and it is asked about once a second
    over the host, so that no device waits for it.
    """

    def __init__(self, clock: StepClock) -> None:
        self.clock = clock
        self.asks = clock.second_limit is not None
        self.ask_at = 1

    def decision(self, over: bool, steps: int) -> tuple[bool, int]:
        """Return what rank 0 decides: whether this step is the last, and after how many to ask again."""
        raise NotImplementedError

    def limit_reached(self) -> bool:
        """Return whether this step is the last."""
        done = len(self.clock.step_us)
        if self.clock.step_limit is not None and done >= self.clock.step_limit:
            return True
        if not self.asks or done < self.ask_at:
            return False
        mean_seconds = sum(self.clock.step_us) / max(1, done) * 1e-6
        steps = max(1, math.floor(ASK_EVERY_SECONDS / max(mean_seconds, 1e-6)))
        over, steps = self.decision(self.clock.limit_reached() is not None, min(steps, done))
        self.ask_at = done + steps
        return over


def node_number() -> int:
    """Return the number of this node, from 0."""
    return int(os.environ.get(NODE, "0")) if nodes_number() > 1 else 0


def nodes_number() -> int:
    """Return how many nodes the trial has."""
    return int(os.environ.get(NODES, "1"))


def threads_of(ranks: int) -> str:
    """Return OMP_NUM_THREADS of each rank on this node: its even part, unless it is set."""
    return os.environ.get("OMP_NUM_THREADS", str(max(1, len(os.sched_getaffinity(0)) // ranks)))


@contextmanager
def follow_rank(trial: TrialProcess, out: Path) -> Iterator[None]:
    """Pass on rank 0's events as the trial's own while the ranks run."""
    ended = threading.Event()
    follower = threading.Thread(target=_pass_on_all, args=(trial, folder_of(out, 0), ended), daemon=True)
    follower.start()
    try:
        yield
    finally:
        ended.set()
        follower.join()


def collect_ranks(trial: TrialProcess, out: Path, count: int, parallel: str | None) -> dict[str, Any]:
    """Return what the ranks measured, joined, and rank 0's phases after the launcher's own."""
    parts = [_read(folder_of(out, rank) / "measurement.json") for rank in range(count)]
    trial.phases[:] = [dict(trial.phases[0], name="launcher"), *parts[0]["phases"]]
    return join_ranks(parts, parallel)


def join_ranks(parts: list[dict[str, Any]], parallel: str | None) -> dict[str, Any]:
    """Return one measurement of all ranks: rank 0's clock, everybody's samples, losses, probes and memory.

    Copies that run each for itself keep rank 0's samples: the figure is that of the first device. Without a
    way of sharing a step the ranks do one thing together, which rank 0 counts for all of them.
    """
    first, count = parts[0], len(parts)
    whole = dict(first, parallel=parallel)
    whole["device"] = dict(first["device"], count=count)
    probes = [probe for part in parts for probe in part["precision"]["probes"]]
    whole["precision"] = dict(first["precision"], probes=probes)
    whole["notes"] = list(first["notes"])
    if parallel == "each":
        rates = [part["window"]["samples"] / part["window"]["seconds"] for part in parts]
        unit = first["sample_unit"]
        whole["notes"].append(
            f"{count} copies at once, {sum(rates):.4g} {unit}s/s in all; the steps are rank 0's"
        )
        return whole
    peaks = [part["memory"] for part in parts]
    whole["memory"] = {
        name: None if value is None else max(peak[name] for peak in peaks) for name, value in peaks[0].items()
    }
    if parallel is None:
        return whole
    window = first["window"]
    whole["samples_per_step"] = sum(part["samples_per_step"] for part in parts)
    whole["window"] = dict(window, samples=sum(part["window"]["samples"] for part in parts))
    losses = zip(*(part["losses"] for part in parts), strict=True)
    whole["losses"] = [(same[0][0], statistics.fmean(loss for _, loss in same)) for same in losses]
    epochs = zip(*(part["epochs"] for part in parts), strict=True)
    whole["epochs"] = [
        dict(same[0], train_loss=statistics.fmean(epoch["train_loss"] for epoch in same)) for same in epochs
    ]
    return whole


def folder_of(out: Path, rank: int) -> Path:
    """Return the folder that a rank writes to."""
    return out / f"rank-{rank}"


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def _end_with_launcher(launcher: int) -> None:
    while os.getppid() == launcher:
        time.sleep(LOOK_SECONDS)
    os._exit(1)


def _pass_on_all(trial: TrialProcess, folder: Path, ended: threading.Event) -> None:
    """Pass on rank 0's events as they come, and the last of them after its end."""
    path, place = folder / "events.jsonl", 0
    while True:
        last = ended.wait(LOOK_SECONDS)
        if path.exists():
            with path.open("rb") as file:
                file.seek(place)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    place += len(line)
                    _pass_on(trial, json.loads(line))
        if last:
            return


def _pass_on(trial: TrialProcess, event: dict[str, Any]) -> None:
    kind = event.pop("event")
    if kind == "stage":
        trial.stage_now = event["stage"]
    if kind != "end":
        trial.event(kind, **event)


def first_failure(trial: TrialProcess, out: Path, codes: dict[int, int], count: int) -> Failed:
    """Return the failure of the rank that failed first; the others fail because it is gone."""
    failures: list[tuple[int, float, int, str, str, str]] = []
    for rank, code in codes.items():
        path = folder_of(out, rank) / "failure.json"
        if path.exists():
            failure = _read(path)
            order = 2 if failure["reason"] == "error" else 1
            failures.append(
                (order, path.stat().st_mtime, rank, failure["reason"], failure["stage"], failure["message"])
            )
        elif code < 0 and code != -signal.SIGTERM:
            words = f"ended by {signal.Signals(-code).name} without a word"
            failures.append((0, 0.0, rank, "killed", trial.stage_now, words))
        else:
            failures.append(
                (3, 0.0, rank, "error", trial.stage_now, f"ended with code {code} and without a word")
            )
    _, _, rank, reason, stage, message = min(failures)
    trial.stage_now = stage
    return Failed(reason, f"rank {rank} of {count}: {message}")
