"""The options that verbs share, and the settings that a line of them makes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

PLAN = "the plan to take: a file in plans/, without .toml, or a size in one (default: quick)"
DEVICE = "an index, several as 0,1, a UUID, or cpu (default: all cards of the model with the most memory)"
IMAGE = "an image of docker/images.toml by its name; `build` needs no card for it (default: the device's)"
ENGINE = "docker, podman, apptainer, venv or here (default: the first that answers, else venv)"
PYTHON = "an interpreter to take as it is; its records say 'unpinned'"
BASE = "a base image in place of the pinned one; records say so, and no claim is judged on it"
WHEELHOUSE = "a folder of wheels to install from first (for clusters without internet)"
ROLE = "one part of the plan: timing, full or batch-sweep; docs/plans.md says what each is (default: all)"
PRECISION = "only these precisions, as amp-bf16 or fp32-ieee,amp-bf16; also one that a CPU only emulates"
BLOCKS = "spread the repeats over this many blocks of time, an hour apart (default: the plan's, mostly 1)"
DRY_RUN = "print what would be done, and do nothing"

SHARED = {"plan": PLAN, "device": DEVICE, "engine": ENGINE, "python": PYTHON}
CHOOSING = {**SHARED, "image": IMAGE}
BUILDING = {**CHOOSING, "base": BASE, "wheelhouse": WHEELHOUSE}

VERBS = (
    *("doctor", "plan", "data", "build", "pack", "run", "report"),
    *("submit", "status", "collect", "cancel"),
    *("quote", "compare", "bundle", "verify", "accept", "contribute"),
    *("claims", "lock", "clean", "check", "gate", "test"),
)


def settings(**own: Any) -> Any:
    """The settings of this verb, with what the first verb's options hold for the whole line."""
    from commands import line
    from harness import settings

    for name in line.LINE_OPTIONS:
        value = line.held(sys.argv[1:], VERBS, name)
        if value is not None:
            own[name.removeprefix("--")] = value
    return settings.load(ROOT, os.environ, own)


def relative(path: Path) -> Path:
    """A path as a person in this folder would type it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
