"""What documents point at is there: each other's headings, and the product's files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docker").glob("*.md")])


def anchors(page: Path) -> set[str]:
    """What GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in plain}


def links() -> Iterator[tuple[Path, str]]:
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if not target.startswith(("https://", "http://", "mailto:")):
                yield page, target


@pytest.mark.parametrize(("page", "target"), list(links()), ids=lambda part: getattr(part, "name", part))
def test_a_link_between_the_pages_leads_somewhere(page, target):
    path, _, anchor = target.partition("#")
    there = (page.parent / path).resolve() if path else page
    assert there.exists()
    assert not anchor or anchor in anchors(there)


def named_paths() -> Iterator[tuple[Path, str]]:
    """The product's files and folders that a document names, each between backticks."""
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
        for path in re.findall(r"`((?:benchmarks|commands|harness|report|tests|workloads)/[\w./-]+)`", text):
            if not path.startswith("report/out/"):
                yield page, path


@pytest.mark.parametrize(
    ("page", "path"), sorted(set(named_paths())), ids=lambda part: getattr(part, "name", part)
)
def test_a_file_of_the_product_that_a_document_names_is_there(page, path):
    assert (ROOT / path).exists()
