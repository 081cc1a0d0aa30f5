"""A whole line of verbs on a constructed machine, whose figures mean nothing.

All of it is gpudyno's own but for the drivers, the engine's service, the workload and the clock.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from commands import run
from commands.report import ReportOptions, write_report
from harness.engine import choose as engine_choice
from harness.engine import container
from harness.engine.container import DeviceRequest, RunSpec
from harness.engine.docker import DockerEngine
from harness.engine.facts import Connection, EngineFacts, device_refusal
from harness.engine.interface import Exit, Handle
from harness.files import Files, unit_hash
from harness.gpu import amd, nvml
from harness.image.images import load_images
from harness.image.lock import lock_packages
from harness.image.spec import BuildSettings
from harness.machine import fingerprint
from harness.machine.devices import VISIBILITY
from harness.machine.fingerprint import read_load_from
from harness.probe import describe
from harness.record import DeviceUsed, Memory, PrecisionFound, Record, Series, Window, store
from harness.record.events import FILE as EVENTS
from harness.record.events import read_segments
from harness.record.measurement import Flops
from harness.run import choice, obstacles, runner
from harness.run import setup as run_setup
from harness.settings import Settings
from harness.telemetry import recorder, sampler
from tests.helpers import ROOT, copied
from tests.helpers import records_builder as records
from tests.helpers.fake_boxes import MIB, STRANGER, Box, Scene, Work
from tests.helpers.fake_clock import Clock, watch
from tests.helpers.fake_engine import FACTS
from tests.helpers.records_devices import CONVNET
from tests.helpers.undrawn import leave_undrawn

ALONE = """
[[measure]]
workload = "convnet"
protocol = "synthetic/1"
model = "resnet50"
precision = "amp-fp16"
batch_size = 64
image_size = 224
data_mode = "cached"
limit = { seconds = 75 }
"""
PRECISIONS = ALONE.replace('"amp-fp16"', '["fp32-ieee", "fp32-tf32", "amp-fp16", "amp-bf16"]')
WHOLE = PRECISIONS + ALONE + 'gpus = [2, 8]\noptions = { parallel = "ddp" }\n'

RESNET = {**CONVNET, "steps_per_epoch": 1000}
STEP_SECONDS = 0.25
"""Which is within the peak of each of the cards."""
BEGAN = 1000.0
"""Where the telemetry's clock begins."""
TRAINS_FROM, STEPS = 10, 320
OWN = range(4242, 4250)
"""The trial's first process, and one rank for each card."""
OWN_BYTES = 6 * 2**30
TRIAL_SECONDS = 400
"""What one trial takes with its start and its end."""


def podman(box: Box) -> EngineFacts:
    """A rootless Podman whose CDI specification names each card by its UUID."""
    names = tuple(f"nvidia.com/gpu={chip.told.get('nvmlDeviceGetUUID')}" for chip in box.chips)
    return replace(
        FACTS, name="podman", version="5.4.0", runtimes=("crun",), rootless=True, cdi_devices=names
    )


@dataclass(frozen=True)
class Ran:
    """What a line left behind."""

    box: Box
    root: Path
    """The clone."""
    records: tuple[Record, ...]
    left_out: Mapping[str, str]
    page: str


class WallClock:
    """Stands in for the class datetime where a line asks for the time."""

    def __init__(self) -> None:
        self._now = datetime.now(UTC) - timedelta(hours=12)

    def now(self, zone: tzinfo) -> datetime:
        return self._now

    def passes(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


def train(box: Box, spec: RunSpec, cards: tuple[str, ...]) -> None:
    """Writes what a workload on these cards would."""
    variant, noise = spec.trial.asked.variant, random.Random(spec.trial.id)
    step_us = [round(1e6 * STEP_SECONDS * noise.gauss(1, 0.004)) for _ in range(STEPS)]
    seconds, samples = sum(step_us) / 1e6, variant.batch_size * len(cards)
    memory = Memory(allocated_peak_bytes=OWN_BYTES - 2**30, reserved_peak_bytes=OWN_BYTES)
    image = load_images(ROOT).image(box.image)
    dtype = {"amp-fp16": "float16", "amp-bf16": "bfloat16"}.get(variant.precision, "float32")
    measured = records.measurement(
        RESNET,
        spec.trial,
        seconds / STEPS,
        card=box.framework_name,
        complete=False,
        device=DeviceUsed(
            kind=box.kind,
            name=box.framework_name,
            count=len(cards),
            unit=unit_hash(cards[0]) if box.kind == "cuda" else None,
            capability=box.capability,
            memory_bytes=box.chips[0].memory_bytes,
        ),
        packages=lock_packages(ROOT / "docker" / image.lock) | image.from_base,
        precision=PrecisionFound(
            label=variant.precision,
            output_dtypes={f"torch.{dtype}": 54},
            parameter_dtypes={"torch.float32": 161},
            method="constructed",
        ),
        samples_per_step=samples,
        window=Window(seconds=seconds, steps=STEPS, samples=STEPS * samples),
        step_us=Series.from_microseconds(step_us),
        memory=memory,
        parallel="ddp" if len(cards) > 1 else None,
        flops=Flops(per_sample=3 * 2 * 4.09e9, method="constructed"),
    )
    begin = BEGAN + TRAINS_FROM
    trained = {"event": "segment", "begin": begin, "end": begin + seconds}
    (spec.folders.output / EVENTS).write_text(json.dumps(trained) + "\n")
    (spec.folders.output / "measurement.json").write_text(measured.model_dump_json())


class ConstructedEngine(DockerEngine):
    """An engine whose service is not asked: a trial has ended as soon as it was started."""

    def __init__(
        self, box: Box, facts: EngineFacts, files: Files, clock: WallClock, build: BuildSettings
    ) -> None:
        super().__init__(Connection(facts.name, "unix:///constructed", facts.version, "1.51"), build)
        self._box, self._told, self._files, self._clock = box, facts, files, clock

    @cached_property
    def facts(self) -> EngineFacts:
        return self._told

    def refusal(self, device: DeviceRequest) -> str | None:
        return device_refusal(self.facts, device, self._files)

    def _image_id(self, build_spec: object) -> str:
        return "sha256:" + "1" * 64

    def start(self, spec: RunSpec) -> Handle:
        body = container.container_config(self._fit_spec(spec))
        if spec.attempt:
            train(self._box, spec, shown(body))
        return Handle(engine=self.name, container=spec.name)

    def pid(self, handle: Handle) -> int:
        return OWN[0]

    def poll(self, handle: Handle, work: Path) -> Exit:
        self._clock.passes(TRIAL_SECONDS)
        return Exit(code=0, log="")

    def stop(self, handle: Handle, work: Path) -> None:
        pass

    forget = stop


def shown(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The cards that a process in this container sees: of those it is given, what its variable names."""
    inside = dict(word.split("=", 1) for word in body["Env"])
    if "Devices" in body["HostConfig"]:
        return tuple(inside["ROCR_VISIBLE_DEVICES"].split(","))
    (request,) = body["HostConfig"]["DeviceRequests"]
    given = {name.rpartition("=")[2] for name in request["DeviceIDs"]}
    return tuple(name for name in inside["CUDA_VISIBLE_DEVICES"].split(",") if name in given)


def watch_trial(box: Box, files: Files, work: Path, device: DeviceRequest, scene: Scene) -> None:
    """Samples as the process beside a trial does, over drivers that tell of this scene."""
    end = round(read_segments(work / "out" / EVENTS)[-1][1] - BEGAN) + 1
    own = {at: (Work(OWN[rank], OWN_BYTES, TRAINS_FROM // 2, end),) for rank, at in enumerate(device.indices)}
    everyone = {at: (*own.get(at, ()), *scene.get(at, ())) for at in own.keys() | scene.keys()}
    driver = box.nvml(everyone, end + 6)

    def moved(seconds: int) -> None:
        if driver is not None:
            driver.at = seconds
        box.tick(files, everyone, seconds)

    clock = Clock(moved)
    moved(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nvml, "load_library", lambda: driver)
        patch.setattr(amd, "Files", lambda root: files)
        cards = sampler.find_cards(device.kind, list(device.marks))
        watch(cards, work / recorder.FILE, clock, *OWN, seconds=end + 4)


def probed(box: Box, files: Files) -> dict[str, Any]:
    """What the probe reads of the machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nvml, "load_library", lambda: box.nvml({}))
        return {**describe.describe_machine(files), "architecture": "x86_64"}


def run_line(
    box: Box, folder: Path, *, plan: str = WHOLE, facts: EngineFacts = FACTS, intruder: bool = False
) -> Ran:
    """`invoke build run report` in a clone of its own. An intruder works on the trial's own first card."""
    root, clock = _clone(folder / "clone", plan), WallClock()
    files = box.files(folder / "machine")

    def on_cards(work: Path, device: DeviceRequest, pids: object) -> None:
        scene = dict(box.strangers(device.indices))
        if intruder:
            scene[device.indices[0]] = (Work(STRANGER, 1024 * MIB),)
        watch_trial(box, files, work, device, scene)

    def engine(choice: str, building: BuildSettings, environ: object) -> ConstructedEngine:
        return ConstructedEngine(box, facts, files, clock, building)

    def busy_little() -> Any:
        told = read_load_from(files, box.nvml(box.strangers((0,))), os.getpid())
        return told.model_copy(update={"busy_cpus": 0.3})

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUDYNO_STATE", str(folder / "state"))
        for name in VISIBILITY:
            patch.delenv(name, raising=False)
        patch.setattr(fingerprint, "describe_machine", lambda: probed(box, files))
        patch.setattr(obstacles, "Files", lambda: files)
        patch.setattr(engine_choice, "find_engine", engine)
        patch.setattr(run_setup, "image_identity", dict)
        patch.setattr(engine_choice, "image_identity", dict)
        patch.setattr(runner, "read_load", busy_little)
        patch.setattr(recorder, "start_sampling", on_cards)
        patch.setattr(runner, "datetime", clock)
        patch.setattr(choice, "datetime", clock)
        leave_undrawn(patch)
        outcome = run.run_plan(root, Settings(plan="constructed"), run.RunOptions())
        assert outcome is not None and outcome.complete
        _, page = write_report(root, folder / "page", ReportOptions())
    return Ran(
        box=box,
        root=root,
        records=tuple(stored.record for stored in store.read_results(root).records),
        left_out={left.what: left.reason for left in outcome.session.left_out},
        page=page.html.read_text(),
    )


def _clone(root: Path, plan: str) -> Path:
    """A clone that has the plan, the pins of the images and what cards can do on paper."""
    copied(root, "docker", "results/cards.toml", "workloads/convnet.py", "workloads/models.txt")
    (root / "plans").mkdir()
    head = 'name = "constructed"\ntitle = "constructed"\nrepeats = 1\n'
    (root / "plans/constructed.toml").write_text(head + plan)
    return root
