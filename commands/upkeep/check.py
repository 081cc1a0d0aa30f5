"""What `invoke check` finds wrong: by the tools, and in every file that the product reads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path

from harness import settings
from harness.bundle.validate import record_problems
from harness.engine.slurm.site import FILE as SITE_FILE
from harness.engine.slurm.site import load_site
from harness.errors import GateError, GpudynoError, UserError
from harness.files import printed
from harness.image.catalog import load_images
from harness.plan import names, own_file, plan
from harness.record import store
from harness.record.published.cards import load_cards
from harness.record.published.claims import load_claims
from report.buying.purchase import load_purchase
from report.expected.figures import read_tables, table_problems
from report.expected.sizes import read_pairs
from report.expected.specs import load_specs
from report.text import count

PRODUCT = ("tasks.py", "commands", "harness", "report", "workloads", "benchmarks", "tests")
TOOLS = (("ruff", "format", "--check"), ("ruff", "check"))


def product(root: Path) -> tuple[str, ...]:
    """The product's own Python files: what git has of its folders; the folders themselves outside of git."""
    listed = printed("git", "-C", str(root), "ls-files", "-z", "--", *PRODUCT) or ""
    found = [name for name in listed.split("\0") if name.endswith(".py") and (root / name).is_file()]
    return tuple(found) or tuple(name for name in PRODUCT if (root / name).exists())


def tools(root: Path) -> Iterator[str]:
    """A sentence for each tool that is not content; raises UserError where the extra `test` is missing."""
    files = product(root)
    for command in (*((*tool, *files) for tool in TOOLS), ("mypy",)):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=root, capture_output=True, text=True, check=False
        )
        if "No module named" in done.stderr:
            raise UserError(
                f"{command[0]} is not installed", remedy="install the extra: pip install -e '.[test]'"
            )
        if done.returncode:
            yield f"{' '.join(command[:2])}:\n{done.stdout}{done.stderr}".rstrip()


def files(root: Path) -> Iterator[str]:
    """A sentence for each of the user's files, plan, pin, claim, card or record that cannot be used."""
    readers: list[Callable[[], object]] = [partial(settings.load, root, {}, {}), partial(load_purchase, root)]
    readers += [partial(load_site, root, None)] if (root / SITE_FILE).is_file() else []
    readers += [partial(plan.load, root, name) for name in plan.files(root)]
    programs = sorted(root.glob(own_file.PROGRAMS))
    readers += [partial(own_file.read_program, path.read_bytes(), path.name) for path in programs]
    readers += [partial(read, root) for read in (load_images, load_claims, load_cards)]
    readers += [partial(read_pairs, root, ())]
    unreadable = False
    for read in readers:
        try:
            read()
        except GpudynoError as error:
            unreadable = True
            yield str(error)
    try:
        yield from table_problems(root, load_specs(root, load_cards(root)))
    except GpudynoError as error:
        yield str(error)
    if not unreadable:
        yield from names.problems(root)
    yield from record_problems(root, store.read_all(root))


def check(root: Path) -> None:
    """Validates every file, then lints and type-checks the product; raises GateError where anything is wrong.

    Each problem is printed as it is found, so that one's own files come first.
    """
    found = 0
    for problem in chain(files(root), tools(root)):
        found += 1
        print(problem, file=sys.stderr, flush=True)
    if found:
        raise GateError(count(found, "problem"), remedy="correct what is listed above")
    claims = len(load_claims(root).claims)
    rows = sum(map(len, read_tables(root).values()))
    print(f"all is well: {len(plan.files(root))} plans, {claims:,} claims, {rows:,} rows of published tables")
