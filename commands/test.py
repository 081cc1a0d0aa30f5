"""The project's own tests, those of two folders beside all others."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

from harness.engine.venv import VenvEngine
from harness.errors import GpudynoError
from harness.image.images import load_images

PYTEST = (sys.executable, "-m", "pytest", "-rs")
BESIDE = (str(Path("tests", "workloads")), str(Path("tests", "report")))
"""Folders whose tests take about half of the time of all."""
PREFIX = "GPUDYNO_TEST_PYTHON"
OWN_NAMES = {"cpu": PREFIX, "era-2019": f"{PREFIX}_ERA"}
"""The variables of an image's interpreter that are not as usual."""


def run_tests(root: Path, only: str, *, whole: bool = False) -> int:
    """Run the tests, or pytest with the words `only`, and return its exit code; each skip says why.

    `whole` are the long tests too.
    """
    environ = interpreter_variables(root) | os.environ
    if whole:
        environ["GPUDYNO_REQUIRE"] = ",".join(filter(None, [environ.get("GPUDYNO_REQUIRE"), "whole"]))
    if words := shlex.split(only):
        return subprocess.run([*PYTEST, *words], cwd=root, env=environ, check=False).returncode
    return run_side_by_side(root, environ)


def run_side_by_side(root: Path, environ: Mapping[str, str]) -> int:
    """Run the tests of some folders beside all others, print what they said last; give a code of either.

    Either half needs little more than one core.
    """
    with TemporaryFile() as said:
        beside = subprocess.Popen(
            [*PYTEST, *BESIDE], cwd=root, env=environ, stdout=said, stderr=subprocess.STDOUT
        )
        try:
            others = [*PYTEST, *(f"--ignore={folder}" for folder in BESIDE)]
            code = subprocess.run(others, cwd=root, env=environ, check=False).returncode
            code = beside.wait() or code
        finally:
            beside.kill()
            beside.wait()
            said.seek(0)
            print(f"{' and '.join(BESIDE)}, which ran beside:\n{said.read().decode(errors='replace')}")
    return code


def interpreter_variables(root: Path) -> dict[str, str]:
    """Return the variables that name the interpreters of those environments that are in `.venvs/`."""
    variables = {}
    for name, image in load_images(root).images.items():
        with suppress(GpudynoError):
            variable = OWN_NAMES.get(name, f"{PREFIX}_{name.upper().replace('-', '_')}")
            variables[variable] = str(VenvEngine(root).built_environment(image).interpreter)
    return variables
