"""Plans for cards that are not here, by their rows in the table."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from harness.data.fetch import Resolved
from harness.errors import UserError
from harness.plan import estimate
from harness.record import store
from harness.record.published.cards import find_card, load_cards
from harness.record.published.claim_set import read_claims
from harness.run import choice
from harness.run.choice import choose_trials
from harness.run.setup import parse_cards, prepare_for_cards
from harness.settings import Settings
from tests.helpers import ROOT

CARDS = load_cards(ROOT)
READ, CLAIMS = cache(store.read_results), cache(read_claims)
"""What is known of durations is the same whichever card is asked for."""


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path))
    monkeypatch.setattr(choice.store, "read_results", READ)
    monkeypatch.setattr(estimate, "read_claims", CLAIMS)


def test_each_card_of_the_table_is_found_by_its_own_name():
    for card in CARDS:
        setup = prepare_for_cards(ROOT, Settings(plan="card", engine="venv"), card.name)
        assert find_card(setup.selection.gpus[0].name, CARDS) == card


@pytest.mark.parametrize("card", {card.capability: card.name for card in CARDS}.values())
def test_a_card_of_each_capability_has_a_plan_whose_trials_and_what_is_left_out_are_all(card):
    chosen = choose_trials(prepare_for_cards(ROOT, Settings(plan="mission", engine="venv"), card))
    assert len(chosen.planned) + sum(left.trials for left in chosen.left_out) == len(chosen.resumed)
    assert chosen.seconds > 3600


@pytest.mark.parametrize(
    ("named", "count", "name"),
    [
        ("RTX 4090", 1, "RTX 4090"),
        ("4x rtx 4090", 4, "RTX 4090"),
        ("2 × NVIDIA GeForce RTX 3090", 2, "RTX 3090"),
        ("b200", 1, "B200 SXM"),
    ],
)
def test_a_card_is_named_as_people_do(named, count, name):
    found = parse_cards(named, CARDS)
    assert (found[0], found[1].name) == (count, name)


@pytest.mark.parametrize(
    ("named", "near"),
    [
        ("RTX 4090 D", "is 'RTX 4090' meant?"),
        ("H100", "H100 PCIe 80GB, H100 SXM5 80GB"),
        ("RTX 4070 S", "is 'RTX 4070' meant?"),
        ("RTX PRO 6000", "such as RTX PRO 6000 Blackwell WS"),
        ("V100", "V100 SXM2 16GB, V100 SXM2 32GB"),
        ("0x T4", "no card"),
    ],
)
def test_what_names_no_card_is_answered_with_the_nearest(named, near):
    with pytest.raises(UserError) as error:
        parse_cards(named, CARDS)
    assert near in str(error.value)


def test_a_module_of_two_devices_counts_as_both():
    setup = prepare_for_cards(ROOT, Settings(engine="venv"), "2x MI250X")
    assert [gpu.index for gpu in setup.selection.gpus] == [0, 1, 2, 3]


def test_a_budget_keeps_the_same_plan_and_says_what_it_leaves_out():
    setup = prepare_for_cards(ROOT, Settings(plan="mission", engine="venv", budget="8h"), "RTX 4090")
    chosen = choose_trials(setup)
    full = choose_trials(replace(setup, settings=Settings(plan="mission", engine="venv")))
    assert chosen.seconds <= 8 * 3600 < full.seconds
    assert chosen.resumed == full.resumed


def test_claims_that_need_data_which_is_generated_here_say_how_it_is_brought():
    setup = prepare_for_cards(ROOT, Settings(plan="programs"), "RTX 4090")
    lost = Resolved("tiny-shakespeare", "generated", None, "no network")
    data = {name: replace(lost, source="real") for name in ("wikitext-2", "cifar-10", "mnist")}
    words = r"need the real tiny-shakespeare, .*\(no network\); bring it: invoke build --only tiny"
    with pytest.raises(UserError, match=words):
        choose_trials(setup, {**data, "tiny-shakespeare": lost}, keep=lambda trials: frozenset())
