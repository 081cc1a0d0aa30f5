"""What cards can do on paper, and which names are theirs."""

from __future__ import annotations

import math

import pytest

from harness.errors import UserError
from harness.record.published.cards import (
    find_card,
    find_card_by_chip,
    is_in_class,
    is_shared_name,
    load_cards,
    peak_tflops,
)
from tests.helpers import ROOT


@pytest.fixture(scope="module")
def cards():
    return load_cards(ROOT)


@pytest.mark.parametrize(
    ("name", "card"),
    [
        ("NVIDIA A10", "A10"),
        ("NVIDIA A10G", None),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM4 80GB"),
        ("NVIDIA A100 80GB PCIe", "A100 PCIe 80GB"),
        ("NVIDIA A100-SXM4-80GB MIG 3g.40gb", None),
        ("NVIDIA A100X", None),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA GeForce RTX 4090 D", None),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("NVIDIA GeForce RTX 3090 Ti", None),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40", "L40"),
        ("NVIDIA GeForce RTX 5090 Laptop GPU", "RTX 5090 Laptop"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000 Blackwell WS"),
        ("NVIDIA RTX A6000", "RTX A6000"),
        ("AMD Radeon 8060S Graphics", "Radeon 8060S"),
        ("NVIDIA L40S", "L40S"),
        ("nvidia l40s", "L40S"),
        ("NVIDIA H200", "H200 SXM 141GB"),
        ("NVIDIA H200 NVL", None),
        ("NVIDIA H100 80GB HBM3", "H100 SXM5 80GB"),
        ("NVIDIA H100 PCIe", "H100 PCIe 80GB"),
        ("NVIDIA H100 NVL", None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", None),
        ("Tesla T4", "T4"),
        ("NVIDIA T400", None),
        ("Tesla V100-SXM2-16GB", "V100 SXM2 16GB"),
        ("AMD Instinct MI300X", "MI300X"),
        ("AMD Instinct MI300A", None),
        ("AMD Instinct MI250X / MI250", "MI250X"),
        ("AMD Instinct MI250X/MI250", "MI250X"),
        ("AMD Instinct MI250", "MI250"),
        ("AMD Instinct MI50", "MI50 16GB"),
        ("AMD Radeon RX 7900 XTX", "RX 7900 XTX"),
        ("AMD Radeon RX 7900 XT", None),
        ("AMD Radeon Graphics", None),
        ("", None),
    ],
)
def test_a_name_finds_its_own_card_and_no_other(cards, name, card):
    found = find_card(name, cards)
    assert (found.name if found else None) == card


@pytest.mark.parametrize(
    ("chip", "card"),
    [
        (("gfx942", 304, "74a1:00"), "MI300X"),
        (("gfx942", 304, "74a5:00"), "MI325X"),
        (("gfx942", 38, "74b5:00"), None),
        (("gfx90a", 110, "740c:01"), "MI250X"),
        (("gfx90a", 104, "740c:01"), "MI250"),
        (("gfx90a", None, "740c:01"), None),
        ((None, None, "7408:00"), "MI250X"),
        (("gfx1100", 96, "744c:c8"), "RX 7900 XTX"),
        (("gfx1100", 84, "744c:cc"), None),
        (("gfx942", 304, None), None),
    ],
)
def test_a_chip_names_its_card_by_gfx_number_compute_units_and_pci_id(cards, chip, card):
    found = find_card_by_chip(*chip, cards)
    assert (found.name if found else None) == card


@pytest.mark.parametrize(
    ("name", "shared"),
    [
        ("AMD Radeon Graphics", True),
        ("AMD Radeon(TM) Graphics", True),
        ("AMD Instinct MI250X / MI250", True),
        ("Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M", True),
        ("AMD device 0x744c", True),
        ("AMD Radeon RX 7900 XTX", False),
        ("AMD Instinct MI300X", False),
        ("NVIDIA GeForce RTX 4090", False),
    ],
)
def test_a_name_of_several_models_tells_none_of_them(name, shared):
    assert is_shared_name(name) is shared


def test_no_two_cards_share_a_name(cards):
    for card in cards:
        assert find_card(card.name, cards) in (card, None)
    assert len({card.name for card in cards}) == len(cards)


def test_16_bit_peaks_are_units_times_rate_times_clock(cards):
    checked = 0
    for card in cards:
        factors = (card.units, card.fma16_per_unit_clock, card.boost_mhz)
        if card.peaks.fp16 is None or None in factors:
            continue
        reached = 2 * math.prod(factors) / 1e6
        assert card.peaks.fp16 == pytest.approx(reached, rel=0.015), card.name
        checked += 1
    assert checked >= 30


@pytest.mark.parametrize(
    ("name", "label", "tflops"),
    [
        ("NVIDIA H100 80GB HBM3", "amp-bf16", 989.4),
        ("NVIDIA L4", "amp-fp16", 121),
        ("NVIDIA GeForce RTX 3090", "amp-fp16", 71.2),
        ("NVIDIA H200", "fp32-ieee", 66.9),
        ("NVIDIA H200", "fp32-tf32", 494.7),
        ("NVIDIA H200", "fp32-default", None),
        ("AMD Instinct MI100", "amp-fp16", 184.6),
        ("AMD Instinct MI100", "amp-bf16", 92.3),
        ("AMD Instinct MI100", "fp32-ieee", 46.1),
        ("Tesla T4", "amp-bf16", None),
        ("Tesla T4", "fp32-tf32", None),
        ("NVIDIA GeForce GTX 1080 Ti", "fp16-master", None),
        # One device of it is half of it.
        ("AMD Instinct MI250X", "amp-fp16", 191.5),
    ],
)
def test_a_peak_is_dense_and_of_the_label_s_own_arithmetic_and_unknown_without_a_source(
    cards, name, label, tflops
):
    assert peak_tflops(find_card(name, cards), label) == tflops


@pytest.mark.parametrize(
    ("name", "capability", "has"),
    [
        ("NVIDIA GeForce RTX 2060", "7.5", True),
        ("NVIDIA GeForce GTX 1660 Ti", "7.5", False),
        ("NVIDIA GeForce GTX 1060", "6.1", False),
        ("Tesla T4", None, True),
        ("AMD Radeon Pro VII", "gfx906", False),
        ("AMD Radeon PRO W7900", "gfx1100", True),
        ("AMD Instinct MI355X", "gfx950", True),
        ("a card", None, None),
        ("a card", "unknown", None),
    ],
)
def test_a_card_has_matrix_units_by_the_table_or_by_its_capability(cards, name, capability, has):
    assert is_in_class("matrix-units", "cuda", name, capability, cards) is has
    assert is_in_class("no-matrix-units", "cuda", name, capability, cards) is (
        None if has is None else not has
    )
    assert is_in_class("matrix-units", "cpu", name, capability, cards) is False


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("power_watts = 250", "power_watts = 0", "power_watts"),
        ('name_regex = "GTX 1080 Ti"', 'name_regex = "GTX ("', "is no regular expression"),
        ("matrix_units = false", "matrix_units = false\nspeed = 3", "unknown key"),
        ("[[cards]]", "[[cards]", "is not TOML"),
    ],
)
def test_a_table_that_cannot_be_meant_is_refused_with_its_field(tmp_path, old, new, problem):
    (tmp_path / "results").mkdir()
    text = (ROOT / "results/cards.toml").read_text(encoding="utf-8").replace(old, new, 1)
    (tmp_path / "results/cards.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=problem):
        load_cards(tmp_path)


def test_a_missing_table_is_told_by_its_name(tmp_path):
    with pytest.raises(UserError, match=r"results/cards\.toml cannot be read"):
        load_cards(tmp_path)


def test_what_a_row_lacks_is_unknown_and_what_is_wrong_names_its_card(tmp_path):
    least = '[[cards]]\nname = "Made-up 1"\nvendor = "NVIDIA"\narchitecture = "Made-up"\ncapability = "9.9"\n'
    least += (
        'form = "PCIe"\nname_regex = "Made-up 1"\nmatrix_units = true\nsource = "none"\nconfidence = "B"\n'
    )
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "cards.toml").write_text(least)
    (card,) = load_cards(tmp_path)
    assert peak_tflops(card, "fp32-ieee") is card.boost_mhz is card.memory_gb is None
    (tmp_path / "results" / "cards.toml").write_text(least + "power_watts = -3\n")
    with pytest.raises(UserError, match=r"card 'Made-up 1': 'power_watts'"):
        load_cards(tmp_path)
