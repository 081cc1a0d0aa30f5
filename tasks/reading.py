"""What records say: the page, a comparison, published figures."""

from __future__ import annotations

import os
from pathlib import Path

from invoke.context import Context

from commands.line import verb
from tasks.options import DEVICE, ENGINE, PYTHON, ROOT, relative, settings


@verb(
    help={
        "baseline": "what 1.00 is in the time-scaled charts: part of a card's name, a label or a precision",
        "session": "the session that the page leads with (default: this machine's newest)",
        "bundle": "a bundle's file whose records to take in place of results/; may be given several times",
        "pdf": "also print report/out/report.pdf, by an installed Chromium; page one is one sheet",
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

    chosen, out = settings(baseline=baseline), ROOT / "report" / "out"
    written = reporting.report_on(
        ROOT,
        out,
        [Path(name) for name in bundle or ()],
        baseline=chosen.baseline,
        session=session or None,
        csv=csv,
        png=png,
    )
    print(f"report: {relative(written.html)}")
    print(f"        {relative(written.markdown)}")
    if csv:
        print(f"        {relative(out / 'trials.csv')}")
    if pdf:
        printed = write_pdf(out / "index.html", out / "report.pdf", root=os.geteuid() == 0)
        print(f"        {relative(printed)}")


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
        "here": "which of them this machine can judge, in which plan, and in how many hours",
        "study": "those of one study alone, by its name or id, such as 'Bhutani 2019'",
        "count": "how many the shipped plans can judge, on a GPU that nobody has seen and on a CPU",
        "device": DEVICE,
        "engine": ENGINE,
        "python": PYTHON,
    }
)
def claims(
    c: Context,
    here: bool = False,
    study: str = "",
    count: bool = False,
    device: str = "",
    engine: str = "",
    python: str = "",
) -> None:
    """List the published figures that a report judges, or say which of them can be judged."""
    from commands import claims as published

    if count:
        published.count(ROOT)
    if here:
        published.here(ROOT, settings(device=device, engine=engine, python=python))
    if not (here or count):
        published.listed(ROOT, study)
