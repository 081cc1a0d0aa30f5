"""Runs a workload as the engines do: a process, a trial in, events and a measurement or a failure out."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.record import Limit, Measurement, Reported, TrialRequest, TrialSpec, Variant
from tests.helpers import ROOT, warm
from tests.helpers.checks import require

WORKLOADS = ROOT / "workloads"
PYTHON = os.environ.get("GPUDYNO_TEST_PYTHON", "")
PYTHON_ERA = os.environ.get("GPUDYNO_TEST_PYTHON_ERA", "")
PYTHON_TENSORFLOW = os.environ.get("GPUDYNO_TEST_PYTHON_TENSORFLOW", "")
DATA = os.environ.get("GPUDYNO_TEST_DATA", "")
FRAMEWORKS = {
    PYTHON: ("torch._dynamo", "torch.distributed.launcher.api", "torchvision", "timm"),
    PYTHON_TENSORFLOW: ("tensorflow", "keras"),
}
"""What the interpreters of images import once for all trials."""
GENERATED = {
    "word_lm": "wikitext_2",
    "cifar_fastai": "cifar_100",
    "mnist_cnn": "mnist",
    "cifar_resnet44": "cifar_10",
}
"""The data set that each workload generates."""


def need_torch() -> None:
    """Skips, or fails where torch is required, when no interpreter with torch is named."""
    require("torch", bool(PYTHON), "GPUDYNO_TEST_PYTHON names no interpreter of the cpu image's stack")


def need_torch_era() -> None:
    """Skips, or fails where it is required, when no interpreter with the torch of 2019 is named."""
    why = "GPUDYNO_TEST_PYTHON_ERA names no interpreter of the stack of image era-2019"
    require("torch_era", bool(PYTHON_ERA), why)


def need_stack(name: str) -> str:
    """The interpreter of a framework's image; skips, or fails where it is required, when none is named."""
    variable = f"GPUDYNO_TEST_PYTHON_{name.upper()}"
    interpreter = os.environ.get(variable, "")
    require(name, bool(interpreter), f"{variable} names no interpreter of the stack of image {name}")
    return interpreter


def need_data() -> None:
    """Skips, or fails where data is required, when no folder with the real data is named."""
    require("data", bool(DATA), "GPUDYNO_TEST_DATA names no folder with the real data sets")


def module(name: str) -> ModuleType:
    """One of the workloads' shared modules that need the standard library alone."""
    if str(WORKLOADS) not in sys.path:
        sys.path.append(str(WORKLOADS))
    return importlib.import_module(name)


@dataclass(frozen=True)
class Ended:
    """What a trial left behind."""

    exit_code: int
    events: list[dict[str, Any]]
    measurement: Measurement | None
    failure: Reported | None
    stderr: str

    @property
    def measured(self) -> Measurement:
        assert self.measurement is not None, self.stderr[-2000:]
        return self.measurement

    @property
    def failed(self) -> Reported:
        assert self.failure is not None, self.stderr[-2000:]
        return self.failure


def trial(workload: str, **told: Any) -> TrialSpec:
    """A trial; what is not told is a small default."""
    asked = {
        "workload": workload,
        "protocol": told.pop("protocol", "published/1"),
        "data": told.pop("data", "generated"),
        "device": told.pop("device", "cpu"),
        "weights": told.pop("weights", None),
        "environment": "cpu",
    }
    seed, timeout = told.pop("seed", 1), told.pop("timeout_seconds", 120.0)
    limit = Limit(**told.pop("limit", {"steps": 3, "valid_batches": 1}))
    variant = Variant(**{"precision": "fp32-ieee", "data_mode": "device", "limit": limit, **told})
    return TrialSpec.from_request(
        TrialRequest(variant=variant, **asked), 1, seed=seed, timeout_seconds=timeout
    )


def run(
    folder: Path,
    asked: TrialSpec,
    *,
    code: str = "",
    script: Path | None = None,
    python: str = "",
    data: str = "",
) -> Ended:
    """The trial in a process of its own; `code` or `script` instead of the workload that it names."""
    if code:
        script = folder / "own.py"
        script.write_text(code)
    workload = asked.asked.workload
    done = ran(
        script or WORKLOADS / f"{workload}.py",
        python=python,
        environ=lay_out(folder, asked, data),
        modules=("fastai.vision.all",) if workload == "cifar_fastai" else (),
        generated=GENERATED.get(workload) if asked.asked.data == "generated" else None,
    )
    return collect(folder / "out", done.returncode, done.stderr)


def lay_out(folder: Path, asked: TrialSpec, data: str = "") -> dict[str, str]:
    """What tells a process of a trial's folders, which it makes."""
    for name in ("in", "out", "cache"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "in" / "trial.json").write_text(asked.canonical(), encoding="utf-8")
    folders = {"IN": folder / "in", "OUT": folder / "out", "CACHE": folder / "cache", "DATA": data or folder}
    environ = {f"GPUDYNO_{name}": str(path) for name, path in folders.items()}
    # torch keeps a folder of each launch.
    return {**environ, "TMPDIR": str(folder)} if asked.asked.variant.gpus > 1 else environ


def ran(
    *arguments: str | Path,
    python: str = "",
    environ: Mapping[str, str] | None = None,
    modules: tuple[str, ...] = (),
    generated: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs a script, or `-c` and code, in a process of the cpu image's stack, or of another interpreter.

    It finds the workloads' modules; in the stacks of FRAMEWORKS it has the framework and `modules` imported
    already, and the data set `generated`.
    """
    python = python or PYTHON
    # A tiny model gains nothing from a second thread, and two trials at a time would wait for each other's.
    own = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(WORKLOADS)}
    environ = {**os.environ, **own, **(environ or {})}
    if python in FRAMEWORKS:
        given = (WORKLOADS, generated) if generated else None
        asked = warm.Call([str(argument) for argument in arguments], environ, Path.cwd(), given)
        return warm.ran((python, *FRAMEWORKS[python], *modules), asked)
    return subprocess.run(
        [python, "-B", *arguments], env=environ, capture_output=True, text=True, timeout=300, check=False
    )


def printed(code: str, *arguments: str, **how: Any) -> list[str]:
    """The lines that code prints, run to its end as by `ran`."""
    done = ran("-c", code, *arguments, **how)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def collect(out: Path, exit_code: int, stderr: str) -> Ended:
    """Reads what lies in a trial's `out` folder."""
    lines = (out / "events.jsonl").read_text(encoding="utf-8").splitlines()
    measurement, failure = out / "measurement.json", out / "failure.json"
    return Ended(
        exit_code,
        [json.loads(line) for line in lines],
        Measurement.parse(measurement.read_text(), measurement.name) if measurement.exists() else None,
        Reported.parse(failure.read_text(), failure.name) if failure.exists() else None,
        stderr,
    )


SYNTHETIC: dict[str, Any] = {"data": "synthetic", "data_mode": "cached"}


def tiny_language_model(**told: Any) -> TrialSpec:
    """A language model of eight units on two columns of four tokens."""
    options = {"emsize": 8, "nhid": 8, **told.pop("options", {})}
    return trial(
        "word_lm",
        **{"model": "LSTM", "batch_size": 2, "sequence_length": 4, "options": options, **told},
    )


def card(**told: Any) -> TrialSpec:
    """A check of a device in parts of a fifth of a second, on products of 256."""
    options = {"part_seconds": 0.2, "largest": 256, "copy_bytes": 2**20}
    given = {"model": "card", "batch_size": 1, "limit": {"steps": 8}, **SYNTHETIC}
    return trial("card", protocol="card/2", options=options, **{**given, **told})


def tiny_resnet(**told: Any) -> TrialSpec:
    """A ResNet-18 on eight images of 32 pixels."""
    return trial("cifar_fastai", **{"model": "resnet18", "batch_size": 8, "image_size": 32, **told})


def tiny_resnet44(**told: Any) -> TrialSpec:
    """Two steps of the network on CIFAR-10."""
    limit = {"steps": 2, "valid_batches": 1}
    return trial("cifar_resnet44", **{"model": "resnet44", "batch_size": 4, "limit": limit, **told})


def tiny_classifier(**told: Any) -> TrialSpec:
    """timm's smallest ConvNeXt, which has no batch norm: its loss is that of the global batch."""
    options = {"classes": 10, **told.pop("options", {})}
    asked = {"model": "timm/convnext_atto", "image_size": 32, "batch_size": 2, "limit": {"steps": 5}}
    asked |= {"protocol": "synthetic/1", "options": options, **SYNTHETIC}
    return trial("convnet", **{**asked, **told})


def tiny_decoder(**told: Any) -> TrialSpec:
    """Four steps of the smallest decoder."""
    asked = {"model": "tiny", "sequence_length": 32, "batch_size": 2, "limit": {"steps": 4}}
    return trial("llm_step", **{**asked, "protocol": "synthetic/1", **SYNTHETIC, **told})


def tiny_mlp(**told: Any) -> TrialSpec:
    """Three layers of 64 units, in the protocol's whole length."""
    asked = {"model": "mlp", "batch_size": 8, "limit": {}, "options": {"width": 64}, **SYNTHETIC}
    return trial("tensorcore_mlp", **{**asked, **told})


def tiny_mnist(**told: Any) -> TrialSpec:
    """Three steps of the small network."""
    return trial("mnist_cnn", **{"model": "cnn", "batch_size": 32, **told})


def tiny_ceiling(**told: Any) -> TrialSpec:
    """Twelve calls of an operation on sizes that take no time."""
    options = {"largest": 512, "copy_bytes": 2**20, "largest_message_bytes": 2**18}
    asked = {"model": "gemm", "batch_size": 1, "limit": {"steps": 12}, "options": options, **SYNTHETIC}
    return trial("ceilings", **{"protocol": "ceiling/1", **asked, **told})
