"""What `invoke check` finds wrong: by the tools, and in every file that the product reads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from commands.upkeep import names
from harness.bundle.validate import record_problems
from harness.errors import GateError, GpudynoError, UserError
from harness.image.catalog import load_images
from harness.plan import plan
from harness.record import store
from harness.record.cards import load_cards
from harness.record.claims import load_claims
from report.text import count

CHECKED = ("plans/*.toml", "workloads/*.py", "results/claims/*.toml", "results/*/*/*.json")
"""What is read below, each by a pattern of its own."""

TOOLS = (("ruff", "format", "--check", "."), ("ruff", "check", "."), ("mypy",))


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


def nothing_read(root: Path) -> Iterator[str]:
    """A sentence for each pattern that no file matches: a check of nothing finds nothing wrong."""
    for pattern in CHECKED:
        if next(root.glob(pattern), None) is None:
            yield f"{pattern}: no file is there, so nothing of it was checked"


def files(root: Path) -> Iterator[str]:
    """A sentence for each plan, pin, claim, card or record that cannot be used as it is."""
    yield from nothing_read(root)
    readers: list[Callable[[], object]] = [partial(plan.load, root, name) for name in plan.names(root)]
    readers += [partial(read, root) for read in (load_images, load_claims, load_cards)]
    unreadable = False
    for read in readers:
        try:
            read()
        except GpudynoError as error:
            unreadable = True
            yield str(error)
    if not unreadable:
        yield from names.problems(root)
    yield from record_problems(root, store.read_all(root))


def check(root: Path) -> None:
    """Lints, type-checks and reads what the product reads; raises GateError naming how many are wrong."""
    problems = [*tools(root), *files(root)]
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        raise GateError(count(len(problems), "problem"), remedy="correct what is listed above")
    print("all is well")
