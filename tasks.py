"""The verbs: parse, call, print. `invoke` alone lists them, `invoke --help VERB` explains one.

An option may be anywhere in a line; a setting holds for all of it: `invoke build run report --plan desk`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":
    sys.exit("gpudyno: this file is read by `invoke`: type .venv/bin/invoke, which lists the verbs")

from invoke.exceptions import Exit

from commands.line import Line
from harness.engines import CHOICES

if TYPE_CHECKING:
    from harness.settings import Settings

ROOT = Path(__file__).resolve().parent

SETTINGS = {
    "plan": "the plan to take: a file in plans/, without .toml (default: quick)",
    "device": "an index, several as 0,1, a UUID, or cpu (default: all cards of the largest model)",
    "image": "an image of docker/images.toml; `build` needs no card for it (default: the device's)",
    "engine": f"{', '.join(CHOICES)} (default: the first that answers, else venv)",
    "python": "an interpreter to take as it is; its records say 'unpinned'",
    "base": "a base image in place of the pinned one; records say so, and no claim is judged on it",
    "wheelhouse": "a folder of wheels to install from first (for clusters without internet)",
    "budget": "a length of time such as 30m or 8h; what does not fit is left out in a stated order",
    "role": "only one part of the plan, as docs/running.md has them (default: all)",
    "precision": "only these, as amp-bf16 or fp32-ieee,amp-bf16; also one that a CPU only emulates",
    "against": "a second stack beside the first: torch==2.12.1, image:NAME, env:NAME=VALUE, or a lock's path",
    "blocks": "spread the repeats over this many blocks of time, an hour apart (default: the plan's)",
    "label": "the machine's name in results/ (default: its devices)",
    "question": "what is asked in place of the plan's question, as 'faster by gpus', reach or holds",
}
CARD = 'a card of results/cards.toml that need not be here, as "RTX 4090" or "4x RTX 4090"'
RETRY = "also repeat trials that failed by themselves, such as out of memory"
JSON = "write the last lines, as `session: ID`, as one line of JSON"
MACHINE = "device engine python"
CHOOSING = f"plan image {MACHINE}"
ASKED = {
    "at_least": "exit with 3 below this: not-recomputed, recomputed (default), signed, known-signer",
    "signers": "OpenSSH's file of allowed signers, one of whom has to have signed the bundle",
    "sha256": "what the bundle's file has to have; may be given several times",
    "order": "the order that the bundle has to state",
    "stamp_ca": "the root certificate of the service that its time stamp has to be from",
}
BUILDING = f"{CHOOSING} base wheelhouse against"

line = Line(ROOT, SETTINGS)


@line.verb(CHOOSING)
def doctor(settings: Settings) -> None:
    """Say what this machine can do and what a plan needs; change nothing."""
    from commands import doctor as diagnosing

    diagnosing.doctor(ROOT, settings)


@line.verb(
    f"{CHOOSING} budget role precision against",
    help={"card": CARD},
)
def plan(settings: Settings, card: str = "") -> None:
    """Print a plan's trials, how long they take and what they need, here or on a card by its name."""
    from commands.plan import show_plan

    show_plan(ROOT, settings, card)


@line.verb(
    BUILDING,
    help={
        "only": "fetch one data set or a program's source: cifar-100, weights-resnet18, nanogpt …",
        "from_": "with --only: a folder of the data set, or a program's repository, git bundle or data",
    },
)
def build(settings: Settings, only: str = "", from_: str = "") -> None:
    """Build the image or virtual environment that a plan needs here, and fetch its data, checked by hash."""
    from commands.build import build_data_set, build_plan

    if from_ or only:
        build_data_set(ROOT, only, from_)
    else:
        # A `run` in the same line fetches for itself.
        build_plan(ROOT, settings, with_data="run" not in sys.argv)


@line.verb(
    f"{BUILDING} budget role precision blocks label question",
    help={
        "claim": "run what this published figure needs, by its id; may be given several times",
        "claims": "'here': run what as many figures need as can be judged here and fit the budget",
        "bisect": "which version made it slower or quicker, as torch==2.9..2.13: the ends first, then halves",
        "new_session": "start over instead of going on with the open session",
        "retry": RETRY,
        "strict": "exit with 3 if a trial failed, with 5 if a card is slow or wrong",
        "json": JSON,
    },
    iterable=["claim"],
    flags="new_session retry strict json",
)
def run(
    settings: Settings, claim: list[str] | None = None, claims: str = "", bisect: str = "", **given: Any
) -> None:
    """Run what is missing of a plan, one fresh process a trial, and write a record for each."""
    from commands import claims as published
    from commands.run import RunOptions

    how = RunOptions(**given, answers="report" not in sys.argv)
    if bisect:
        from commands.bisect import bisect_versions

        bisect_versions(ROOT, settings, bisect, how)
        return
    published.run_claims(ROOT, settings, claim or [], claims, how)


@line.verb(
    f"{MACHINE} image base wheelhouse against label",
    help={
        "command": 'your program as you start it, in quotes: "python train.py --batch 16"',
        "against_command": "a second command to compare it with, in quotes",
        "folder": "the program's folder (default: that of its first file, up to its git root)",
        "keep": "a folder of data or caches that it may read; may be given several times",
        "env": "a variable that it gets, by its name; its value is in no record; may be given several times",
        "match": "how to read its lines, as '(?P<step>\\d+)/900'; default: by themselves",
        "metric": "a quality to keep, as 'val_loss (\\S+)'",
        "per_step": "how many samples a step has; two with a comma for two commands",
        "steps": "stop a process after so many counted steps (default: 20 s after its third line)",
        "until": "how narrow a range is enough (default: 5%)",
        "minutes": "how long to look for an answer, starts counted (default: 10)",
        "json": JSON,
    },
    iterable=["keep", "env"],
    name="try",
)
def try_(settings: Settings, command: str, json: bool = False, **given: Any) -> None:
    """Measure any training script as it lies there, until its speed or the faster of two is known."""
    from commands.try_program import parse_asked, try_program

    try_program(ROOT, settings, parse_asked(command, **given), as_json=json)


@line.verb(
    "question",
    help={
        "session": "the session that the page leads with (default: its newest); several are held together",
        "mine": "a session that is yours, though another machine's id is on it; may be given again",
        "bundle": "bundles to take in place of results/: a file, a folder or a pattern; may be given again",
        "expect": "a card, as 'RTX 5090': what it should do by published figures, with the range",
        "note": 'a word that stands on the page and in no record: "serial 0123"',
        "pdf": "also print report/out/report.pdf, by an installed Chromium; page one comes first",
        "json": JSON,
        "gallery": "a folder for a page of each device and question on record, with an index of their cards",
        "url": "where it will be published, for the picture that a link to it shows",
        **ASKED,
    },
    iterable=["bundle", "session", "mine", "sha256"],
    flags="pdf json",
)
def report(settings: Settings, **given: Any) -> None:
    """Make report/out/index.html and report.md from the records in results/, or in bundles."""
    from commands.recipient import demand
    from commands.report import ReportOptions, make_report

    asked = demand(**{name: given.pop(name) for name in ASKED if name in given})
    how = ReportOptions(**given, question=settings.question, asked=asked)
    make_report(ROOT, how)


@line.verb(
    help={
        "first": "a card, machine or stack: part of its name, a label, a session's id, or as 'torch 2.13.0'",
        "second": "what it is held against",
        "fail_below": "a gate: exit with 3 where an interval's upper end lies below this ratio, as 0.95",
    }
)
def compare(first: str, second: str, fail_below: str = "") -> None:
    """Say how many times as fast one card, machine, stack or precision is as another."""
    from commands.compare import compare_two

    compare_two(ROOT, first, second, fail_below or None)


@line.verb(
    MACHINE,
    word="claim",
    help={
        "claim": "one figure by its id: its answer, and every term there and here",
        "here": "which of them this machine can answer, and in how many minutes",
        "study": "only those of this study, by its name or id, as 'Bhutani 2019'",
        "card": CARD,
        "from_": "a CSV of published figures in any columns, to become claims and a plan that judges them",
        "source": "with --from: where they were published, as a URL",
        "set_": "with --from: what is not said, or a word of the table, as amp=amp-fp16; may be given again",
    },
    iterable=["set_"],
)
def claims(
    settings: Settings,
    claim: str = "",
    here: bool = False,
    study: str = "",
    card: str = "",
    from_: str = "",
    source: str = "",
    set_: list[str] | None = None,
) -> None:
    """List the published figures, answer one, say which can be answered here, or take a table of them."""
    from commands import claims as published

    if from_:
        from commands.own_study import write_study

        write_study(ROOT, Path(from_), source, set_ or [])
    elif claim:
        published.show_answer(ROOT, settings, claim, card)
    elif here or card:
        published.list_answers(ROOT, settings, card, study)
    else:
        published.list_claims(ROOT, study)


@line.verb()
def quote() -> None:
    """Write purchase.toml for your prices and your own work, which `report` reads once you have edited it."""
    from commands import quote as quoting

    quoting.quote(ROOT)


@line.verb(
    help={
        "out": "the file to write (default: report/out/gpudyno-<session>.tar.gz)",
        "session": "pack this alone (default: all of this machine that the page uses)",
        "margin": "how far below its figure a delivered machine may be (default: 0.05)",
        "sign": "a key of OpenSSH's to sign it with",
        "stamp": "a time stamp (RFC 3161) over what --statement-out wrote",
        "statement_out": "a file for the signed statement alone",
        "countersign": "add --sign or --stamp to this bundle instead, once it is judged",
        "verify": "judge this bundle instead, and make its page",
        **ASKED,
        "order": "the buyer's own word for the order, as 'PO 4711': to be stated, or to be found",
    },
    iterable=["sha256"],
)
def bundle(
    out: str = "",
    session: str = "",
    margin: float = 0.05,
    sign: str = "",
    stamp: str = "",
    statement_out: str = "",
    countersign: str = "",
    verify: str = "",
    **asked: Any,
) -> None:
    """Pack records, plans, locks and a statement, and print the clause for an order; or judge a bundle."""
    from commands import bundle, report
    from commands.recipient import demand

    paths = (Path(given) if given else None for given in (out, sign, stamp, statement_out))
    how, judging = bundle.Packing(session or None, margin, asked.get("order"), *paths), demand(**asked)
    if verify:
        report.make_report(ROOT, report.ReportOptions(bundle=(verify,), asked=judging, verifies=True))
    elif countersign:
        bundle.countersign(ROOT, Path(countersign), how, judging)
    else:
        bundle.pack(ROOT, how)


@line.verb(
    MACHINE,
    help={
        "bundle": "the bundle that the machine was ordered by; its plan is run",
        "records": "a session in results/ to judge (default: run the bundle's plan now)",
        **ASKED,
    },
    iterable=["sha256"],
)
def accept(
    settings: Settings,
    bundle: str,
    records: str = "",
    **asked: Any,
) -> None:
    """Say whether this machine is the one that was ordered, and as fast."""
    from commands import accept as accepting
    from commands.recipient import demand

    accepting.accept(ROOT, settings, Path(bundle), records or None, demand(**asked))


@line.verb(
    "plan image python label",
    help={
        "site": "the cluster's profile, a TOML file (default: site.toml in the clone, where it is there)",
        "new_session": "start over instead of going on with the open submission",
        "retry": RETRY,
        "dry_run": "print each batch script, and send none",
    },
    flags="new_session retry dry_run",
)
def submit(settings: Settings, **given: Any) -> None:
    """Send what is missing of a plan to SLURM, each trial as a job."""
    from commands.submit import SubmitOptions, submit_plan

    submit_plan(ROOT, settings, SubmitOptions(**given))


@line.verb(
    help={
        "collect": "write a record of each job's trial that has ended",
        "wait": "with --collect: go on until no job waits or runs",
        "cancel": "end the jobs that wait or run",
    }
)
def jobs(collect: bool = False, wait: bool = False, cancel: bool = False) -> None:
    """Say how far the jobs are, collect their records, or end them."""
    from commands.jobs import cancel_jobs, collect_all, print_status

    if cancel:
        cancel_jobs(ROOT)
    elif collect or wait:
        collect_all(ROOT, wait=wait)
    else:
        print_status(ROOT)


@line.verb(
    help={
        "image": "the image whose lock is written again (default: gpudyno's own, requirements.lock)",
        "package": "move this package alone, as its requirement says, as torch==2.14.1; may be given again",
    },
    iterable=["package"],
)
def lock(image: str = "", package: list[str] | None = None) -> None:
    """Resolve an image's versions again, or gpudyno's own: the only way that they change."""
    from harness.image.images import load_images
    from harness.image.lock import relock, relock_own

    only = package or ()
    changed = (
        relock(load_images(ROOT).image(image), ROOT, only=only) if image else relock_own(ROOT, only=only)
    )
    print("\n".join(changed) or "nothing changed")


@line.verb(
    help={
        "base": "the commit that the records come to (default: main)",
        "head": "the commit that brings them (default: HEAD)",
        "mine": "judge what is in results/ before any commit, and say how to send it",
    }
)
def gate(base: str = "main", head: str = "HEAD", mine: bool = False) -> None:
    """Say whether a commit adds good records and nothing else; they are read as data, and nothing is run."""
    from commands import gate as gating

    if mine:
        gating.judge_mine(ROOT)
    else:
        gating.judge_commit(ROOT, base, head)


@line.verb()
def check() -> None:
    """Validate your own files and every record, claim, plan and pin; then lint and type-check the product."""
    from commands.check import check_clone

    check_clone(ROOT)


@line.verb(
    help={
        "only": "a file or folder of tests, or words of pytest's own, as '-k name'",
        "whole": "run the long tests, too",
    }
)
def test(only: str = "", whole: bool = False) -> None:
    """Run the tests (they need the extra `test`)."""
    from commands.test import run_tests

    code = run_tests(ROOT, only, whole=whole)
    if code:
        raise Exit(code=code)


line.settle()
