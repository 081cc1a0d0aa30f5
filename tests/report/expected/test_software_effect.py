"""What software is worth: learned from published pairs, held against those of a source left out."""

from __future__ import annotations

import re
from statistics import fmean

import numpy as np
import pytest

from harness.record.published.cards import load_cards
from report.expected.figures import read_tables
from report.expected.published_speeds import load_products
from report.expected.software_effect import (
    FEWEST_PAIRS,
    PublishedPair,
    read_pairs,
    read_software_effect,
    software_effect,
)
from tests.helpers import ROOT
from tests.helpers.here import load_claims


@pytest.fixture(scope="module")
def pairs():
    return read_pairs(ROOT, [row for table in read_tables(ROOT).values() for row in table])


def a_pair(before, after, unit="images/s"):
    return PublishedPair(
        source="constructed", path="", work="w", card="c", before=before, after=after, unit=unit
    )


def test_too_few_pairs_say_nothing_and_a_range_holds_nine_in_ten_either_way():
    of = [a_pair(1.0, gain ** (-1) ** place) for place, gain in enumerate(np.linspace(1.1, 1.3, 101))]
    assert software_effect(of[: FEWEST_PAIRS - 1]) is None
    found = software_effect(of)
    assert (found.low, found.high) == pytest.approx((0.11, 0.29), abs=0.002)
    assert (found.pairs, found.years) == (101, None)


def test_software_left_out_source_by_source_lies_within_what_the_others_say(pairs):
    sources = {pair.source for pair in pairs}
    assert len(sources) >= 4 and software_effect(pairs).years == (2017, 2026)
    held = []
    for source in sources:
        high = software_effect([pair for pair in pairs if pair.source != source]).high
        held.append(fmean(np.expm1(pair.change) <= high for pair in pairs if pair.source == source))
    assert fmean(held) > 0.8


def test_a_clone_without_tables_tells_no_effect(tmp_path):
    assert read_software_effect(tmp_path) is None and read_pairs(tmp_path, []) == []


def test_each_pair_and_each_published_product_has_a_commit(pairs):
    assert all(re.fullmatch("[0-9a-f]{7,40}", pair.commit) for pair in pairs)
    sources = {product.source for product in load_products(ROOT, load_cards(ROOT))}
    assert all(re.search(r" [0-9a-f]{7,40}\b|, no commit recorded$", source) for source in sources)


def test_every_row_of_a_repositorys_file_has_a_commit():
    """Issues, pages, and files whose repository is not named have none."""
    rows = [row for table in read_tables(ROOT).values() for row in table if row.source.startswith("github:")]
    without = {row.path.split(" #")[0] for row in rows if row.commit == "not recorded"}
    assert without == {"issue", "pull request", "README.md (earlier version, title how-fast-5090)"}


def test_a_figure_of_eight_cards_that_no_eight_cards_reach_carries_a_caveat():
    claims = {claim.id: claim for claim in load_claims(ROOT).claims}
    of = "nvidia-v100-sxm2-{}gb-efficientnet-b4-fp32-ieee-{}"
    for memory, caveats in ((16, 2), (32, 3)):
        one, eight = (claims[of.format(memory, count)] for count in (1, 8))
        assert len(one.caveats) == len(eight.caveats) == caveats
        assert (eight.value > 8 * one.value) == (caveats == 3)
