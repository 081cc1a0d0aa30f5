"""What is wrong in files of claims: one line a cause."""

from __future__ import annotations

import shutil

import pytest

from harness.errors import UserError
from harness.record.published.cards import FILE as CARDS
from harness.record.published.claims import load_claims
from tests.harness.record.test_claims import GOOD, put
from tests.helpers import ROOT


def test_of_many_causes_the_first_are_listed_and_the_rest_counted(tmp_path):
    cards = "".join(f'"U{n}" = "new"\n' for n in range(30))
    put(tmp_path, f"{GOOD}\n[cards]\n{cards}")
    with pytest.raises(UserError) as caught:
        load_claims(tmp_path)
    assert caught.value.problem.count("no claim names it") == 20
    assert caught.value.problem.endswith("\n  … and 10 more")


def test_one_card_that_no_table_has_is_one_line_with_a_count(tmp_path):
    (tmp_path / "results").mkdir()
    shutil.copy(ROOT / CARDS, tmp_path / CARDS)
    claim = GOOD[GOOD.index("[[claims]]") : GOOD.index("[[curves]]")].replace("T4", "T5")
    again = (claim.replace("007-seconds", f"007-s{n}").replace("net", f"net{n}") for n in range(13, 267))
    put(tmp_path, GOOD.replace("T4", "T5") + "".join(again))
    with pytest.raises(UserError) as caught:
        load_claims(tmp_path)
    first, *others = caught.value.problem.split("\n")
    assert (first, len(others)) == ("255 problems in the claims", 1)
    assert "s007.toml:11: " in others[0] and others[0].endswith("(and in 254 more places)")
