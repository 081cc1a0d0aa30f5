"""The verbs: parse, call, print. `invoke --list` shows them, `invoke --help VERB` explains one.

An option of the first verb holds for the whole line: `invoke build --plan mission run report`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from invoke.context import Context
from invoke.exceptions import Exit

from commands.line import verb

ROOT = Path(__file__).resolve().parent

PLAN = "the plan to take: a file in plans/, without .toml (default: quick)"
DEVICE = "an index, several as 0,1, a UUID, or cpu (default: all cards of the model with the most memory)"
IMAGE = "an image of docker/images.toml by its name; `build` needs no card for it (default: the device's)"
ENGINE = "docker, podman, venv or here (default: the first that answers, else venv)"
PYTHON = "an interpreter to take as it is; its records say 'unpinned'"
BASE = "a base image in place of the pinned one; records say so, and no claim is judged on it"
WHEELHOUSE = "a folder of wheels to install from first (for clusters without internet)"
BLOCKS = "spread the repeats over this many blocks of time, an hour apart (default: the plan's, mostly 1)"
DRY_RUN = "print what would be done, and do nothing"

SHARED = {"plan": PLAN, "device": DEVICE, "engine": ENGINE, "python": PYTHON}
CHOOSING = {**SHARED, "image": IMAGE}
BUILDING = {**CHOOSING, "base": BASE, "wheelhouse": WHEELHOUSE}

_VERBS = (
    *("doctor", "plan", "data", "build", "run", "report"),
    *("quote", "compare", "bundle", "verify", "accept", "contribute"),
    *("claims", "lock", "clean", "check", "gate", "test"),
)


def _settings(**own: Any) -> Any:
    """The settings of this verb, with what the first verb's options hold for the whole line."""
    from commands import line
    from harness import settings

    for name in line.LINE_OPTIONS:
        value = line.held(sys.argv[1:], _VERBS, name)
        if value is not None:
            own[name.removeprefix("--")] = value
    return settings.load(ROOT, os.environ, own)


@verb(help={**CHOOSING, "deep": "also build, and take each path that a long plan will need once"})
def doctor(
    c: Context,
    plan: str = "",
    device: str = "",
    image: str = "",
    engine: str = "",
    python: str = "",
    deep: bool = False,
) -> None:
    """Say what this machine can do and what a plan needs; change nothing, but for --deep."""
    from commands import doctor as diagnosing

    chosen = _settings(plan=plan, device=device, image=image, engine=engine, python=python)
    (diagnosing.deep if deep else diagnosing.doctor)(ROOT, chosen)


@verb(help={**CHOOSING, "budget": "a length of time such as 30m or 8h that the plan must fit"})
def plan(
    c: Context,
    plan: str = "",
    device: str = "",
    image: str = "",
    engine: str = "",
    python: str = "",
    budget: str = "",
) -> None:
    """Print a plan's matrix and every command it would run."""
    from commands import measure

    chosen = _settings(plan=plan, device=device, image=image, engine=engine, python=python, budget=budget)
    measure.show_plan(ROOT, chosen)


@verb(
    help={
        **SHARED,
        "only": "one data set by name: cifar-100, cifar-10, mnist, wikitext-2, weights-resnet18 …",
    }
)
def data(
    c: Context, plan: str = "", device: str = "", engine: str = "", python: str = "", only: str = ""
) -> None:
    """Fetch the data and weights that a plan needs, each checked by its hash."""
    from commands import measure

    measure.data(ROOT, _settings(plan=plan, device=device, engine=engine, python=python), only or None)


@verb(help={**BUILDING, "dry_run": DRY_RUN})
def build(
    c: Context,
    plan: str = "",
    device: str = "",
    image: str = "",
    engine: str = "",
    python: str = "",
    base: str = "",
    wheelhouse: str = "",
    dry_run: bool = False,
) -> None:
    """Build the image, or make the virtual environment, that a plan needs on this machine."""
    from commands import measure

    chosen = _settings(
        plan=plan, device=device, image=image, engine=engine, python=python, base=base, wheelhouse=wheelhouse
    )
    measure.build(ROOT, chosen, dry_run=dry_run)


@verb(
    help={
        **BUILDING,
        "budget": "a length of time such as 30m or 8h; what does not fit is left out in a stated order",
        "blocks": BLOCKS,
        "claim": "run what this published figure needs, by its id; may be given several times",
        "claims": "'here': run what as many figures need as can be judged here and fit the budget",
        "label": "the machine's name in results/ (default: its devices)",
        "new_session": "begin anew instead of going on with the open session",
        "retry": "also repeat trials that failed by themselves, such as out of memory",
        "strict": "exit with 3 if a trial failed",
        "no_build": "refuse instead of building what is missing",
        "dry_run": DRY_RUN,
    },
    iterable=["claim"],
)
def run(
    c: Context,
    plan: str = "",
    device: str = "",
    image: str = "",
    engine: str = "",
    python: str = "",
    base: str = "",
    wheelhouse: str = "",
    budget: str = "",
    blocks: int = 0,
    claim: list[str] | None = None,
    claims: str = "",
    label: str = "",
    new_session: bool = False,
    retry: bool = False,
    strict: bool = False,
    no_build: bool = False,
    dry_run: bool = False,
) -> None:
    """Run what is missing of a plan, one fresh process a trial, and write a record for each."""
    from commands import measure

    chosen = _settings(
        plan=plan,
        device=device,
        image=image,
        engine=engine,
        python=python,
        base=base,
        wheelhouse=wheelhouse,
        budget=budget,
        blocks=blocks or None,
        label=label,
    )
    how = measure.How(
        new_session=new_session, retry=retry, strict=strict, build=not no_build, dry_run=dry_run
    )
    if claim or claims:
        from commands import claims as published

        published.run(ROOT, chosen, published.asked_for(claim or [], claims), how)
    else:
        measure.run(ROOT, chosen, how)


@verb(
    help={
        "baseline": "what 1.00 is in the time-scaled charts: part of a card's name, a label or a precision",
        "session": "the session that the page leads with (default: this machine's newest)",
        "bundle": "a bundle's file whose records to take in place of results/; may be given several times",
        "pdf": "also print report/out/report.pdf, by an installed Chromium; page one is a decision sheet",
        "csv": "also write report/out/trials.csv, a row for each trial; docs/trials.md has its columns",
        "png": "also write each chart as PNG, which report.md then shows: for mail, and comments on code",
    },
    iterable=["bundle"],
)
def report(
    c: Context,
    baseline: str = "",
    session: str = "",
    bundle: list[str] | None = None,
    pdf: bool = False,
    csv: bool = False,
    png: bool = False,
) -> None:
    """Make report/out/index.html and report.md from the records in results/, or in bundles."""
    from commands import report as reporting
    from report.page.pdf import write as write_pdf

    chosen, out = _settings(baseline=baseline), ROOT / "report" / "out"
    written = reporting.report_on(
        ROOT,
        out,
        [Path(name) for name in bundle or ()],
        baseline=chosen.baseline,
        session=session or None,
        csv=csv,
        png=png,
    )
    print(f"report: {_relative(written.html)}")
    print(f"        {_relative(written.markdown)}")
    if csv:
        print(f"        {_relative(out / 'trials.csv')}")
    if pdf:
        printed = write_pdf(out / "index.html", out / "report.pdf", root=os.geteuid() == 0)
        print(f"        {_relative(printed)}")


@verb(
    help={
        "first": "a card, machine or stack: part of its name, a label, a session's id, or as 'torch 2.13.0'",
        "second": "what it is held against",
        "fail_below": "a gate: exit with 3 where an interval's upper end lies below this ratio, as 0.95",
    }
)
def compare(c: Context, first: str, second: str, fail_below: str = "") -> None:
    """Say how many times as fast one card, machine or stack is as another, and what may not be compared."""
    from commands import report as reporting

    reporting.compare_two(ROOT, first, second, fail_below or None)


@verb(
    help={
        "out": "the file to write (default: report/out/gpudyno-<session>.tar.gz)",
        "session": "pack this session alone (default: every session that the page stands on)",
        "sign": "a private key of OpenSSH's to sign it with",
        "baseline": "what 1.00 is in the page's time-scaled charts",
        "margin": "how far below its figure a delivered machine may be (default: 0.05)",
        "with_prices": "also pack purchase.toml, with your prices and limits, and show them on its page",
    }
)
def bundle(
    c: Context,
    out: str = "",
    session: str = "",
    sign: str = "",
    baseline: str = "",
    margin: float = 0.05,
    with_prices: bool = False,
) -> None:
    """Pack records, locks, claims, plans and page into one archive, and print its acceptance clause."""
    from commands import offer

    how = offer.Packing(
        out=Path(out) if out else None,
        session=session or None,
        baseline=_settings(baseline=baseline).baseline,
        margin=margin,
        key=Path(sign) if sign else None,
        with_prices=with_prices,
    )
    offer.pack(ROOT, how)


@verb(help={"bundle": "the bundle's file", "signers": "OpenSSH's file of allowed signers"})
def verify(c: Context, bundle: str, signers: str = "") -> None:
    """Check a bundle: every byte, every record, and every figure of its page, from raw samples."""
    from commands import offer

    offer.verify(Path(bundle), Path(signers) if signers else None)


@verb(
    help={
        "bundle": "the bundle that the machine was ordered by; its plan is run",
        "device": DEVICE,
        "engine": ENGINE,
        "python": PYTHON,
        "records": "a session in results/ to judge (default: run the bundle's plan now)",
    }
)
def accept(
    c: Context, bundle: str, device: str = "", engine: str = "", python: str = "", records: str = ""
) -> None:
    """Say whether this machine is the one that was ordered, and as fast: pass, fail, or another machine."""
    from commands import accept as accepting

    chosen = _settings(device=device, engine=engine, python=python)
    accepting.accept(ROOT, chosen, Path(bundle), records or None)


@verb(help={"session": "the session to publish (default: this machine's newest)"})
def contribute(c: Context, session: str = "") -> None:
    """Show a session as it would be published, judge it as the gate will, and write its pull request."""
    from commands import contribute as publishing

    publishing.publish(ROOT, session or None)


@verb(
    help={
        "to": "the file to write (default: purchase.toml)",
        "yes": "overwrite it, and write without a review: for answers from a file",
    }
)
def quote(c: Context, to: str = "purchase.toml", yes: bool = False) -> None:
    """Ask for prices, limits and your own mix of work, and write the buyer's file for `report`."""
    from commands import quote as quoting
    from harness.record.store import read_all

    path = ROOT / to
    names = quoting.known([stored.record for stored in read_all(ROOT).records])
    written = quoting.run(path, ask=input, say=print, names=names, without_asking=yes)
    print(f"{'written' if written else 'kept'}: {_relative(path)}")


@verb(
    help={
        "here": "which of them this machine can judge, in which plan, and in how many hours",
        "count": "how many the shipped plans can judge, on a GPU that nobody has seen and on a CPU",
        "device": DEVICE,
        "engine": ENGINE,
        "python": PYTHON,
    }
)
def claims(
    c: Context, here: bool = False, count: bool = False, device: str = "", engine: str = "", python: str = ""
) -> None:
    """List the published figures that a report judges, or say which of them can be judged."""
    from commands import claims as published

    if count:
        published.count(ROOT)
    if here:
        published.here(ROOT, _settings(device=device, engine=engine, python=python))
    if not (here or count):
        published.listed(ROOT)


@verb(help={"image": "the image whose lock is written anew, by its name in docker/images.toml"})
def lock(c: Context, image: str) -> None:
    """Resolve an image's versions and its base's digest anew: the only way that either changes."""
    from commands import upkeep

    upkeep.lock(ROOT, image)


@verb(help={"yes": "remove without asking", "data": "also remove the data that was fetched"})
def clean(c: Context, yes: bool = False, data: bool = False) -> None:
    """List the images, environments and caches that can go, then remove them."""
    from commands import upkeep

    upkeep.clean(ROOT, yes=yes, data=data)


@verb()
def check(c: Context) -> None:
    """Lint, type-check, and validate every record, claim, plan and pin."""
    from commands import upkeep

    upkeep.check(ROOT)


@verb(
    help={
        "base": "the commit that the records come to (default: main)",
        "head": "the commit that brings them (default: HEAD)",
        "comment": "a file to write the answer and the comparison into, as a comment for a code host",
    }
)
def gate(c: Context, base: str = "main", head: str = "HEAD", comment: str = "") -> None:
    """Say whether a commit adds good records and nothing else; they are read as data, and nothing is run."""
    from commands import gate as gating

    gating.judge(ROOT, base, head, Path(comment) if comment else None)


@verb(help={"only": "pass on to pytest: a file, or -k and a word"})
def test(c: Context, only: str = "") -> None:
    """Run the tests (they need the extra `test`)."""
    import shlex
    import subprocess

    done = subprocess.run([sys.executable, "-m", "pytest", *shlex.split(only)], cwd=ROOT, check=False)
    if done.returncode:
        raise Exit(code=done.returncode)


def _relative(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
