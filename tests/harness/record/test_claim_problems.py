"""What is wrong in files of claims: one line a cause, and no figure that no card reaches."""

from __future__ import annotations

import re
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


@pytest.mark.parametrize(
    ("metric", "unit", "value", "gpus", "told"),
    [
        ("throughput", "images/s", 9_400_000, 1, "9.4e+06 is above 3e+06, the most of its unit"),
        ("throughput", "images/s", 9_400_000, 4, ""),
        ("peak_bytes", "B", 17e9, 1, ""),
        ("peak_bytes", "B", 18e9, 1, "1.8e+10 bytes are more than the memory of T4"),
        ("protocol_seconds", "s", 1e12, 1, "1e+12 is above 1e+09, the most of its unit"),
    ],
)
def test_a_figure_that_no_card_reaches_is_refused(tmp_path, metric, unit, value, gpus, told):
    (tmp_path / "results").mkdir()
    shutil.copy(ROOT / CARDS, tmp_path / CARDS)
    text = GOOD.replace("protocol_seconds", metric).replace('unit = "s"', f'unit = "{unit}"')
    text = text.replace("value = 12", f"value = {value}").replace(
        'model = "net" }\nvalue', f'model = "net", gpus = {gpus} }}\nvalue'
    )
    put(tmp_path, text)
    if not told:
        assert load_claims(tmp_path).claims[0].value == value
        return
    with pytest.raises(UserError, match=re.escape(told)):
        load_claims(tmp_path)
