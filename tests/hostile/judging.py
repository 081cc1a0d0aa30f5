"""What gpudyno may do with hostile input: accept it, or refuse it in one sentence, and write nowhere else."""

from __future__ import annotations

import errno
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, settings

from harness.errors import GpudynoError

LONG = [pytest.mark.whole, pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")]
"""What all of these tests are marked as; an example that is large is printed all the same."""
DOCUMENTED = (2, 3, 4)
"""Exit codes of errors that are not our defect, as docs/running.md has them."""
MOST_SECONDS = 60
MOST_CHARACTERS = 8000


def drawn(examples: int, *, shrunk: bool = True):
    """So many examples; a slow one that fails is not made smaller."""
    phases = [phase for phase in Phase if shrunk or phase not in (Phase.shrink, Phase.explain)]
    return settings(
        max_examples=examples, phases=phases, suppress_health_check=list(HealthCheck), print_blob=True
    )


class Hangs(BaseException):
    """The alarm rang."""


def ring(number: int, frame: object) -> None:
    raise Hangs


@contextmanager
def attacked(*, seconds: int = MOST_SECONDS) -> Iterator[Path]:
    """An empty folder; fails where what is done in it ends in no sentence, not soon, or writes elsewhere."""
    with TemporaryDirectory(prefix="gpudyno-hostile-") as fence:
        inside = Path(fence, "inside")
        inside.mkdir()
        before = signal.signal(signal.SIGALRM, ring)
        signal.alarm(seconds)
        try:
            yield inside
        except GpudynoError as error:
            is_sentence(str(error), error.exit_code)
        except OSError as error:
            if error.errno in (None, errno.ENOENT):
                raise
        except Hangs:
            pytest.fail(f"it had not ended after {seconds} s")
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
        assert sorted(Path(fence).iterdir()) == [inside], "a file was written outside of its folder"


def is_sentence(said: str, code: int) -> None:
    assert code in DOCUMENTED, f"exit code {code}: {said[:400]}"
    assert "\n" not in said.replace("\n  ", "") and "\x1b" not in said, repr(said[:400])
    assert 0 < len(said) <= MOST_CHARACTERS, repr(said[:400])
