"""Scripts in an interpreter that has imported what is slow to import once for all of them."""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SERVER = Path(__file__).with_name("warm_server.py")


@dataclass(frozen=True)
class Call:
    """A script, or `-c` and code, with its arguments."""

    arguments: list[str]
    environ: Mapping[str, str]
    folder: Path
    """In which it runs."""
    generated: tuple[Path, str] | None = None
    """The workloads, and the data set of theirs that is generated once for all scripts."""


def ran(python: tuple[str, ...], asked: Call, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Runs it as `python -B` would, where an interpreter has imported the modules that stand behind it.

    Raises TimeoutExpired.
    """
    server = _server(python)
    assert server.stdin and server.stdout
    with tempfile.TemporaryDirectory() as folder:
        stdout, stderr = Path(folder, "stdout"), Path(folder, "stderr")
        for file in (stdout, stderr):
            file.touch()
        paths = {"folder": asked.folder, "stdout": stdout, "stderr": stderr}
        line: dict[str, object] = {name: str(path) for name, path in paths.items()}
        line |= {"arguments": asked.arguments, "environ": dict(asked.environ)}
        line["generated"] = [str(each) for each in asked.generated or ()]
        server.stdin.write(json.dumps(line) + "\n")
        server.stdin.flush()
        if not select.select([server.stdout], [], [], timeout)[0]:
            server.kill()
            _server.cache_clear()
            raise subprocess.TimeoutExpired(asked.arguments, timeout)
        code = json.loads(server.stdout.readline())["exit_code"]
        told = stdout.read_text("utf-8"), stderr.read_text("utf-8")
    return subprocess.CompletedProcess(asked.arguments, code, *told)


@cache
def _server(python: tuple[str, ...]) -> subprocess.Popen[str]:
    server = subprocess.Popen(
        [python[0], "-B", SERVER, *python[1:]],
        env={**os.environ, "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(_end, server)
    return server


def _end(server: subprocess.Popen[str]) -> None:
    assert server.stdin and server.stdout
    server.stdin.close()
    server.wait()
    server.stdout.close()
