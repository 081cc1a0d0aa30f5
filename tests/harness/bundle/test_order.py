"""The two sheets of an order, made of a packed bundle of constructed sessions."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from commands import offer
from harness.data.check import sha256_of
from harness.errors import GateError, UserError
from tests.helpers import bundled
from tests.helpers.checks import require
from tests.helpers.forged_bundles import forged, replaced

TEXT = "7f3a-order-1"


@pytest.fixture
def sheets(tmp_path, monkeypatch) -> Path:
    """Where an order goes, as the page that a browser would print."""
    monkeypatch.setattr(offer, "write_pdf", lambda page, target, root: shutil.copy(page, target))
    return tmp_path / "folder" / "order.pdf"


def words_of(sheets: Path) -> str:
    return re.sub(r"<style.*?</style>|<script.*?</script>|<[^>]+>", " ", sheets.read_text(), flags=re.DOTALL)


def test_an_order_quotes_the_packed_file_by_its_hash_with_its_clause_and_a_challenge(good, sheets, capsys):
    offer.check(bundled.REPOSITORY, str(good), None, TEXT, sheets)
    assert f"with the challenge '{TEXT}'" in capsys.readouterr().out
    words = words_of(sheets)
    for each in (sha256_of(good), TEXT, "invoke accept offer.tar.gz", "95 % of the mean ordered"):
        assert each in words
    assert re.findall(r'<h2 id="(\w+)" class="part">', sheets.read_text()) == ["order"]


@pytest.mark.parametrize("nonce", ["", True])
def test_an_order_is_printed_after_packing_and_without_a_text_gets_a_new_one(clone, sheets, tmp_path, nonce):
    packing = offer.Packing(out=tmp_path / "b.tar.gz", sheets=sheets, challenge=nonce)
    found = []
    for _ in range(2):
        path = offer.pack(clone, packing)
        assert sha256_of(path) in words_of(sheets)
        found += re.findall(r"--plan constructed\s+--challenge ([0-9a-f]{16})", words_of(sheets))
    assert len(set(found)) == 2


def test_a_bundle_that_was_changed_and_one_without_a_clause_give_no_order(good, sheets, tmp_path):
    changed = forged(good, tmp_path, replaced("bundle.json", '"margin": 0.05', '"margin": 0.2'), sums=False)
    with pytest.raises(GateError):
        offer.print_order(changed, sheets, TEXT)
    single = bundled.write(tmp_path / "single", bundled.one_card(repeats=1))
    with pytest.raises(UserError, match="holds no work with two valid runs"):
        offer.pack(single, offer.Packing(out=tmp_path / "single.tar.gz", sheets=sheets))
    assert not sheets.exists()


def test_an_order_overwrites_nothing_but_a_pdf_and_refuses_a_text_that_is_no_challenge(good, sheets):
    before = good.read_bytes()
    with pytest.raises(UserError, match="is no name of a PDF"):
        offer.print_order(good, good, TEXT)
    with pytest.raises(UserError, match="is no challenge"):
        offer.print_order(good, sheets, "a b")
    assert good.read_bytes() == before


@pytest.mark.browser
def test_page_one_is_the_first_sheet_and_clause_hash_and_challenge_are_the_second(good, tmp_path):
    require(
        "browser", bool(shutil.which("chromium") and shutil.which("pdftotext")), "no Chromium is installed"
    )
    target = tmp_path / "order.pdf"
    offer.print_order(good, target, TEXT)
    line = ["pdftotext", "-layout", str(target), "-"]
    said = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    first, second, *more = said.strip("\f").split("\f")
    assert not more
    assert "Constructed Card A" in first
    assert TEXT not in first
    for each in (sha256_of(good), TEXT, "Accepted from", "so after the order"):
        assert each in " ".join(second.split())
