"""`invoke test`: pytest, and with --all-images the workloads of every image that a CPU can run."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from commands import measure
from harness.errors import GpudynoError
from harness.image.catalog import load_images
from harness.image.spec import venv_name
from harness.settings import Settings

PREFIX = "GPUDYNO_TEST_PYTHON"
OWN_NAMES = {"cpu": ("torch", PREFIX), "era-2019": ("torch_era", f"{PREFIX}_ERA")}
"""The mark of tests that need an image, and the variable that names its interpreter, where not as usual."""


def run(root: Path, only: str, settings_of: Callable[[str], Settings] | None = None) -> int:
    """pytest's exit code; `settings_of` an image's name asks for every image that a CPU can run."""
    environ = os.environ | (interpreters(root, settings_of) if settings_of else {})
    command = [sys.executable, "-m", "pytest", *shlex.split(only)]
    return subprocess.run(command, cwd=root, env=environ, check=False).returncode


def interpreters(root: Path, settings_of: Callable[[str], Settings]) -> dict[str, str]:
    """Builds the virtual environments, and gives the variables by which tests find and require them.

    What cannot be built here, as for want of its Python, is said and left out.
    """
    found, needs = {}, [word for word in os.environ.get("GPUDYNO_REQUIRE", "").split(",") if word]
    for name, image in load_images(root).images.items():
        if "cpu" not in image.devices:
            continue
        need, variable = OWN_NAMES.get(name, (name, f"{PREFIX}_{name.upper()}"))
        try:
            measure.build(root, settings_of(name), dry_run=False)
        except GpudynoError as error:
            print(f"image '{name}' is left out: {error}")
            continue
        found[variable] = str(root / ".venvs" / venv_name(image, root=root) / "bin" / "python")
        needs.append(need)
    return {**found, "GPUDYNO_REQUIRE": ",".join(dict.fromkeys(needs))}
