"""What `invoke check` finds wrong: by the tools, and in every file that the product reads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from harness import plan, store
from harness.cards import load_cards
from harness.claims import load_claims
from harness.clean import Names, leaks
from harness.errors import GpudynoError, UserError
from harness.image import load_images

TOOLS = (("ruff", "format", "--check", "."), ("ruff", "check", "."), ("mypy",))
RECORD_BYTES = 300_000


def tools(root: Path) -> Iterator[str]:
    """A sentence for each tool that is not content; raises UserError where the extra `test` is missing."""
    for command in TOOLS:
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=root, capture_output=True, text=True, check=False
        )
        if "No module named" in done.stderr:
            raise UserError(
                f"{command[0]} is not installed", remedy="install the extra: pip install -e '.[test]'"
            )
        if done.returncode:
            yield f"{' '.join(command)}:\n{done.stdout}{done.stderr}".rstrip()


def files(root: Path) -> Iterator[str]:
    """A sentence for each plan, pin, claim, card or record that cannot be used as it is."""
    readers: list[Callable[[], object]] = [partial(plan.load, root, name) for name in plan.names(root)]
    readers += [partial(read, root) for read in (load_images, load_claims, load_cards)]
    for read in readers:
        try:
            read()
        except GpudynoError as error:
            yield str(error)
    yield from records(root)


def records(root: Path) -> Iterator[str]:
    """A sentence for each record that is unreadable, too large, or says whose machine it is from."""
    shelf = store.read_all(root)
    yield from shelf.problems
    for stored in shelf.records:
        path = root / stored.path
        if path.stat().st_size > RECORD_BYTES:
            yield f"{stored.path}: {path.stat().st_size} bytes, where a record has at most {RECORD_BYTES}"
        for leak in leaks(path.read_text(encoding="utf-8"), Names()):
            yield f"{stored.path}: {leak}"
