"""What an attack is, how long and how large it may grow, and what it broke."""

from __future__ import annotations

import errno
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from random import Random
from typing import Literal

from harness.errors import GpudynoError

Count = Literal["tracebacks", "hangs", "lost records", "silent wrong figures"]
"""A traceback is also an exit code that no page has, or more than a sentence. A hang is more than 60 s or
2 GiB. Lost is a record that is gone, doubled or half, or a file outside of its folder. A silent wrong figure
is one that changed and nobody says so, or markup that a record brought."""

MOST_SECONDS = 60
MOST_BYTES = 2 * 2**30
MOST_CHARACTERS = 8000
"""A sentence may quote what it refuses, and has an end."""

DOCUMENTED = (2, 3, 4)
"""Exit codes of errors that are not our defect, as the README has them."""

Attack = Callable[[Random, Path], None]
"""Given what its seed draws and an empty folder; raises Broken, or what the product raised."""


class Broken(Exception):
    """What the product should not have done."""

    def __init__(self, count: Count, said: str) -> None:
        self.count = count
        self.said = said
        super().__init__(said)


class _Hung(BaseException):
    """The alarm rang."""


@dataclass(frozen=True, slots=True)
class Breach:
    """One thing that an attack broke, by the attack's name."""

    name: str
    count: Count
    said: str


def make(name: str, attacks: Mapping[str, Attack]) -> Breach | None:
    """Makes the attack of a name, such as record:7, in a folder of its own."""
    kind, _, seed = name.partition(":")
    fence = Path(tempfile.mkdtemp(prefix="gpudyno-campaign-"))
    inside = fence / "inside"
    inside.mkdir()
    try:
        with _bounded(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            attacks[kind](Random(f"{kind}:{seed}"), inside)
        if sorted(fence.iterdir()) != [inside]:
            raise Broken("lost records", "a file was written outside of its folder")
    except GpudynoError as error:
        return _unless_a_sentence(name, error)
    except Broken as broken:
        return Breach(name, broken.count, broken.said)
    except (_Hung, MemoryError, RecursionError) as error:
        counted: Count = "tracebacks" if isinstance(error, RecursionError) else "hangs"
        return Breach(name, counted, f"{type(error).__name__} {_last_frame(error)}")
    except OSError as error:
        if error.errno in (None, errno.ENOENT):
            return Breach(name, "tracebacks", f"{type(error).__name__}: {error} {_last_frame(error)}"[:600])
    except Exception as error:
        return Breach(name, "tracebacks", f"{type(error).__name__}: {error} {_last_frame(error)}"[:600])
    finally:
        shutil.rmtree(fence, ignore_errors=True)
    return None


def _unless_a_sentence(name: str, error: GpudynoError) -> Breach | None:
    said = str(error)
    if error.exit_code not in DOCUMENTED:
        return Breach(name, "tracebacks", f"exit code {error.exit_code}: {said[:400]}")
    if "\n" in said.replace("\n  ", "") or "\x1b" in said or not 0 < len(said) <= MOST_CHARACTERS:
        return Breach(name, "tracebacks", f"{len(said)} characters that are no sentence: {said[:400]!r}")
    return None


def _last_frame(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/tests/campaign/" not in frame.filename] or list(frames)
    return f"in {Path(own[-1].filename).name}, line {own[-1].lineno}"


@contextmanager
def _bounded() -> Iterator[None]:
    """At most 60 s; memory is bounded for the whole process by `bound_memory`."""

    def ring(number: int, frame: object) -> None:
        raise _Hung

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(MOST_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def bound_memory() -> None:
    """Of this process and all that it starts."""
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
