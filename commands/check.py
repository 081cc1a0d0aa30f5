"""Every file that the product reads, validated; then its own code, linted and type-checked."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path

from harness import settings
from harness.bundle.validate import folder_problems
from harness.engine.slurm.site import FILE as SITE_FILE
from harness.engine.slurm.site import load_site
from harness.errors import GateError, GpudynoError, UserError
from harness.files import command_output
from harness.image.images import load_images
from harness.plan import names, own_file, plan_file
from harness.record import store
from harness.record.published.cards import load_cards
from harness.record.published.claim_set import read_claims
from harness.summary.contradictions import changes_over_pauses
from report.buying.purchase import FILE as PURCHASE_FILE
from report.buying.purchase import UNFILLED, load_purchase
from report.expected.figures import read_tables, table_problems
from report.expected.software_effect import read_pairs
from report.expected.specs import load_specs
from report.text import clean, count

PRODUCT = ("tasks.py", "commands", "harness", "report", "workloads", "benchmarks", "tests")
TOOLS = (("ruff", "format", "--check"), ("ruff", "check"))


def product_files(root: Path) -> tuple[str, ...]:
    """Return the product's Python files that git has; outside of git the product's folders."""
    listed = command_output("git", "-C", str(root), "ls-files", "-z", "--", *PRODUCT) or ""
    found = [name for name in listed.split("\0") if name.endswith(".py") and (root / name).is_file()]
    return tuple(found) or tuple(name for name in PRODUCT if (root / name).exists())


def tool_problems(root: Path) -> Iterator[str]:
    """Yield a sentence for each tool that is not content; none where the extra `test` is not installed."""
    files = product_files(root)
    for command in (*((*tool, *files) for tool in TOOLS), ("mypy",)):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=root, capture_output=True, text=True, check=False
        )
        if "No module named" in done.stderr:
            print(f"the code is not checked, since {command[0]} is not installed (pip install -e '.[test]')")
            return
        if done.returncode:
            yield f"{' '.join(command[:2])}:\n{done.stdout}{done.stderr}".rstrip()


def optional_problems(root: Path) -> Iterator[str]:
    """Yield a sentence for each of the user's files that a line can do without, and cannot read."""
    yield from map(str, read_claims(root).problems)
    try:
        load_purchase(root)
    except UserError as error:
        yield str(error)


def file_problems(root: Path) -> Iterator[str]:
    """Yield a sentence for each of the user's files, plan, pin, claim, card or record that cannot be used."""
    readers: list[Callable[[], object]] = [
        partial(settings.load_settings, root, {}, {}),
    ]
    readers += [partial(load_site, root, None)] if (root / SITE_FILE).is_file() else []
    readers += [partial(plan_file.load_plan, root, name) for name in plan_file.plan_files(root)]
    programs = sorted(root.glob(own_file.PROGRAMS))
    readers += [
        partial(own_file.read_program, path.read_bytes(), path.relative_to(root).as_posix())
        for path in programs
    ]
    readers += [partial(read, root) for read in (load_images, load_cards)]
    readers += [partial(read_pairs, root, ())]
    unreadable: dict[str, None] = dict.fromkeys(optional_problems(root))
    for read in readers:
        try:
            read()
        except GpudynoError as error:
            unreadable[str(error)] = None
    yield from unreadable
    try:
        yield from table_problems(root, load_specs(root, load_cards(root)))
    except GpudynoError as error:
        yield str(error)
    if not unreadable:
        yield from names.name_problems(root)
    yield from folder_problems(root, root)


def check_clone(root: Path) -> None:
    """Validate every file, then lints and type-checks the product; raises GateError where anything is wrong.

    Each problem is printed as it is found, so that one's own files come first.
    """
    problems = 0
    for problem in chain(file_problems(root), tool_problems(root)):
        problems += 1
        print(problem, file=sys.stderr, flush=True)
    if problems:
        raise GateError(count(problems, "problem"), remedy="correct what is listed above")
    if (root / PURCHASE_FILE).is_file() and load_purchase(root) is None:
        print(f"note: {UNFILLED}")
    for change in changes_over_pauses(store.read_results(root)):
        print(f"note: {clean(change, 500)}")
    plans = count(len(plan_file.plan_files(root)), "plan")
    claims = count(len(read_claims(root).claims), "claim")
    rows = count(sum(map(len, read_tables(root).values())), "row")
    print(f"all is well: {plans}, {claims}, {rows} of published tables")
