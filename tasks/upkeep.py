"""Keeping the project: records that come and go, pins, checks, tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from invoke.context import Context
from invoke.exceptions import Exit

from commands.line import verb
from tasks.options import ROOT, settings


@verb(help={"session": "the session to publish (default: this machine's newest)"})
def contribute(c: Context, session: str = "") -> None:
    """Show a session as it would be published, judge it as the gate will, and write its pull request."""
    from commands import contribute as publishing

    publishing.publish(ROOT, session or None)


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


@verb(
    help={
        "image": "the image whose lock is written again, by its name in docker/images.toml",
        "package": "move this package alone, as torch==2.14.1, with its channel's hashes; may be given again",
    },
    iterable=["package"],
)
def lock(c: Context, image: str, package: list[str] | None = None) -> None:
    """Resolve an image's versions and its base's digest anew: the only way that either changes."""
    from harness.image.catalog import load_images
    from harness.image.lock import relock
    from harness.image.repin import repin

    report = repin(ROOT, image, package) if package else relock(load_images(ROOT).image(image), ROOT)
    print("\n".join(report.changed) or f"{image}: nothing changed")
    for line in report.unreachable:
        print(f"not reached: {line}", file=sys.stderr)


@verb(help={"yes": "remove without asking", "data": "also remove the data that was fetched"})
def clean(c: Context, yes: bool = False, data: bool = False) -> None:
    """List the images, environments and caches that can go, then remove them."""
    from commands.upkeep import clean as removing

    removing.clean(ROOT, yes=yes, data=data)


@verb()
def check(c: Context) -> None:
    """Lint, type-check, validate every record, claim, plan and pin, and read the words."""
    from commands.upkeep import check as checking

    checking.check(ROOT)


@verb(
    help={
        "only": "a test's name or a part of it, a file, or words of pytest's own",
        "campaign": "attack what is read and run for so long, as 20m, or repeat one attack, as record:7",
        "whole": "run the long tests, too",
        "all_images": "build the environment of every image that a CPU can run, and test its workloads too",
    }
)
def test(
    c: Context, only: str = "", campaign: str = "", whole: bool = False, all_images: bool = False
) -> None:
    """Run the tests (they need the extra `test`)."""
    from commands import testing

    if campaign:
        code = testing.campaign(ROOT, campaign)
    else:
        code = testing.run(ROOT, only, _in_venv if all_images else None, whole=whole)
    if code:
        raise Exit(code=code)


def _in_venv(image: str) -> Any:
    return settings(image=image, device="cpu", engine="venv")
