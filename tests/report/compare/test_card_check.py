"""A card's check: what each state needs, and how often it is right, with scatter from published products."""

from __future__ import annotations

import csv
import math
import random
import re
from itertools import groupby
from pathlib import Path
from statistics import fmean, median

import numpy
import pytest

from harness.plan.plan_file import PlanContext, load_plan, plan_trials
from harness.record import finding
from harness.record.published.cards import load_cards
from harness.record.store import Stored
from report.compare.card_check import (
    blocks,
    checked_cards,
    gpu_of,
    levels,
    speed_of,
    speeds_of,
    two_speeds,
)
from report.compare.card_units import cards_behind, cards_of_box
from report.expected.published_speeds import (
    LARGE_BATCH,
    METHOD_SD,
    NETWORK_SD,
    SHORT_SD,
    UNIT_SD,
    KnownSpeed,
    PublishedSpeeds,
    by_paper,
    known_network,
    known_of,
    load_published,
    network_name,
)
from report.expected.specs import load_specs
from report.trials.reading import read_trials
from tests.helpers.here import results_here
from tests.helpers.records_builder import changed
from tests.helpers.records_card import CHECKED, SPEEDS, checked_box, checked_card, three_others

ROOT = Path(__file__).parents[3]
CARDS = load_cards(ROOT)
PUBLISHED = load_published(ROOT, CARDS)
PRODUCTS, NETWORKS = PUBLISHED.products, PUBLISHED.networks
H200 = next(card for card in CARDS if card.name.startswith("H200"))
MEASURED = 9
"""Things that a check measures."""
CARDS_SIMULATED, BOXES_SIMULATED, LOADS_SIMULATED = 1000, 300, 100
SIMULATION_SD = math.sqrt(0.05 * 0.95 / CARDS_SIMULATED)


def check_of(*records, session: str | None = None):
    trials = read_trials([Stored(f"results/{n}.json", record) for n, record in enumerate(records)], CARDS)
    return checked_cards(trials, session or records[0].session, CARDS, PublishedSpeeds())


def test_a_card_like_three_others_is_as_it_should_be_and_alone_too_little_is_known():
    alone = check_of(*checked_card())
    assert [(one.state, len(one.known)) for one in alone] == [("unknown", 0)]
    (found,) = check_of(*checked_card(), *three_others())
    assert (found.state, len(found.known), len(found.speeds)) == ("sound", 9, 9)
    assert {(one.known.basis, one.known.cards) for one in found.known} == {("records", 3)}
    assert all(0.99 < one.ratio < 1.01 and 0.1 < one.smallest_loss < 0.18 for one in found.known)
    assert found.replays == 400
    assert two_speeds([speed for _, speed in found.load]) is None


def test_a_slow_card_is_found_by_what_it_is_slow_in():
    (found,) = check_of(*checked_card(speeds={"copy_gb_per_second": 0.7}), *three_others())
    assert found.state == "slow"
    assert [(one.name, round(one.ratio, 2)) for one in found.slow] == [("copy_gb_per_second", 0.7)]
    assert len(check_of(*checked_card(speed=0.8), *three_others())[0].slow) == MEASURED


def test_a_process_that_leaves_the_trial_valid_hides_no_slow_card():
    small, large = ({"card": 0, "samples_share": 1.0, "other_mib": mib} for mib in (30.0, 3000.0))
    beside = checked_card(speed=0.6, causes=(finding("foreign-process", "warn", **small),))
    assert check_of(*beside, *three_others())[0].state == "slow"
    assert check_of(*checked_card(causes=(finding("foreign-process", "invalid", **large),))) == ()


def test_a_card_is_not_held_against_those_of_its_name_that_are_sold_with_another_power_limit():
    def of(watts: float, records):
        gpu = records[0].machine.gpus[0].model_copy(update={"power_limit_default_watts": watts})
        return [
            changed(one, machine__gpus=(gpu.model_copy(update={"unit": one.machine.gpus[0].unit}),))
            for one in records
        ]

    laptop = checked_card(speed=0.7)
    assert check_of(*of(80, laptop), *of(83, three_others()))[0].state == "slow"
    assert check_of(*of(80, laptop), *of(140, three_others()))[0].state == "unknown"


def test_equal_cards_of_one_host_are_held_against_each_other_after_that_of_the_session():
    here = [record for digit in "cde" for record in checked_card(digit, speed=0.8 if digit == "d" else 1.0)]
    found = check_of(*here)
    assert [(one.unit[0], one.state) for one in found] == [("c", "sound"), ("d", "slow"), ("e", "sound")]
    assert {one.known.basis for one in found[0].known} == {"host"}


def test_of_eight_cards_the_bad_one_is_named_the_missing_one_counted_and_a_limit_of_all_is_found():
    def box(records):
        trials = read_trials([Stored(f"results/{n}.json", record) for n, record in enumerate(records)], CARDS)
        return trials, checked_cards(trials, CHECKED, CARDS, PublishedSpeeds())

    trials, found = box(checked_box({3: 0.12}, missing=6))
    assert [(gpu_of(one.longest).index, one.state) for one in found if one.state != "sound"] == [(3, "slow")]
    assert gpu_of(found[0].longest).bus == "0000:1e:00.0"
    cards = cards_of_box(trials)
    assert ([gpu.index for gpu in cards.missing], cards.present) == ([6], 8)
    _, limited = box([*checked_box(dict.fromkeys(range(8), 0.2)), *three_others()])
    assert {len(one.slow) for one in limited} == {0} and len(limited[0].slow_box) == MEASURED
    assert {one.state for one in limited} == {"slow"}
    (behind,) = cards_behind(box(checked_box({3: 0.12}, works=2))[0])
    assert (behind.gpu.index, round(behind.ratio, 2), round(behind.least, 2)) == (3, 0.88, 0.92)


def test_two_speeds_that_come_back_are_found_and_one_change_that_lasts_is_none():
    (found,) = check_of(*checked_card(at=lambda second: 0.8 if second // 15 % 2 else 1.0))
    assert found.state == "flips"
    assert found.flips.slow / found.flips.fast == pytest.approx(0.8, abs=0.02)
    assert found.flips.held_seconds == pytest.approx(16, abs=3)
    assert check_of(*checked_card(at=lambda second: 0.8 if second > 30 else 1.0))[0].flips is None


@pytest.mark.parametrize(
    ("wrong", "by"),
    [
        ({"differing": 3}, "replay"),
        ({"wrong_words": 1}, "memory"),
        ({"sha256": "b" * 64}, "card"),
        ({"causes": (finding("memory-error", errors=1, card=0),)}, "driver"),
    ],
)
def test_other_bits_are_found_in_a_replay_in_memory_beside_other_cards_and_by_the_driver(wrong, by):
    (found,) = check_of(*checked_card(**wrong), *three_others())
    assert (found.state, {one.by for one in found.differences}) == ("differs", {by})


def test_another_process_with_other_bits_computes_differently():
    records = checked_card()
    records[1] = checked_card(sha256="b" * 64)[1]
    assert {one.by for one in check_of(*records)[0].differences} == {"process"}


def test_a_narrow_link_is_slow_whatever_is_known_of_its_speed():
    narrow = finding("pcie-link", card=0, quantity="width", linked=8, highest=16)
    (found,) = check_of(*checked_card(causes=(narrow,)))
    assert (found.state, found.link.data["linked"]) == ("slow", 8)


def test_a_product_is_known_by_sustained_figures_of_the_card_else_by_short_ones_else_by_its_architecture():
    lasting = known_of("gemm_bf16_tflops", (), "a", H200, PRODUCTS)
    assert (lasting.basis, lasting.sustained, lasting.middle, lasting.figures) == (
        "published",
        True,
        696.0,
        1,
    )
    assert lasting.sd == pytest.approx(math.hypot(METHOD_SD, UNIT_SD * math.sqrt(1 + 1 / 3)))
    short = known_of("gemm_fp32-ieee_tflops", (), "a", H200, PRODUCTS)
    assert (short.basis, short.sustained) == ("published", False)
    assert 2 * METHOD_SD < short.sd < SHORT_SD and 0.9 < short.middle / 51.34 < 1.0
    share = known_of("gemm_fp16_tflops", (), "a", _card("L40S"), PRODUCTS)
    assert (share.basis, share.cards > 2, share.sd > SHORT_SD) == ("architecture", True, True)
    lost = speed_of("gemm_bf16_tflops", [0.8 * lasting.middle], lasting, MEASURED, H200.peaks.bf16)
    assert (lost.state, 0.15 < lost.smallest_loss < 0.18) == ("slow", True)
    assert lost.high <= lost.paper


def test_copies_and_links_are_known_by_a_share_of_the_papers_that_other_cards_and_hosts_reach():
    copied = by_paper("copy_gb_per_second", H200.bandwidth_gbs, H200, ())
    assert (copied.basis, copied.cards, round(copied.middle / H200.bandwidth_gbs, 2)) == ("paper", 3, 0.9)
    one = by_paper("copy_gb_per_second", 1000.0, _card("RTX 4090"), ())
    assert (one.cards, one.middle) == (1, pytest.approx(815.0))
    assert by_paper("host_to_device_pinned_gb_per_second", 63.0, H200, ()) is None
    assert by_paper("host_to_device_pinned_gb_per_second", 63.0, H200, (0.87, 0.88)).cards == 2


def known_by_tables(card) -> dict[str, KnownSpeed]:
    """What is known of each thing of a card that is on no record."""
    links, found = (0.87, 0.88), {}
    for name in SPEEDS:
        paper = card.bandwidth_gbs if name.startswith("copy") else 63.0
        of = known_of(name, (), "a", card, PRODUCTS)
        if of is None and not name.startswith("gemm_"):
            of = by_paper(name, paper, card, links)
        found |= {name: of} if of else {}
    return found


def called_slow_by_tables(card, loss: float, *, together: bool) -> float:
    """The share called slow of cards whose products have a loss; things deviate `together` or each."""
    dice, known, slow = random.Random(61), known_by_tables(card), 0
    for _ in range(CARDS_SIMULATED):
        level, figures = dice.gauss(0, 1), {}
        for name, of in known.items():
            deviation = (level if together else dice.gauss(0, 1)) * of.sd
            left = 1 - loss * name.startswith("gemm_")
            figures[name] = [("m", of.middle * math.exp(deviation) * left)]
        slow += any(one.state == "slow" for one in speeds_of(figures, known, dict.fromkeys(known)))
    return slow / CARDS_SIMULATED


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(("card", "loss"), [("H200 SXM 141GB", 0.15), ("RTX 4090", 0.30)])
def test_products_15_percent_slow_are_found_by_a_sustained_table_and_30_percent_slow_by_short_ones(
    card, loss, together
):
    assert called_slow_by_tables(_card(card), 0.0, together=together) <= 0.05 + 2 * SIMULATION_SD
    assert called_slow_by_tables(_card(card), loss, together=together) >= 0.90


@pytest.mark.parametrize(
    ("name", "h100", "h200", "figures"),
    [
        ("resnet50:amp-fp16:256:image", 5562, 5750.0, 63),
        ("gpt2-124m:amp-bf16:12:token", 194637, 209379.0, 2),
    ],
)
def test_a_network_is_known_by_the_card_s_own_figures_and_what_another_reached_of_its_own(
    name, h100, h200, figures
):
    card = _card("H100 SXM5 80GB")
    on_record = {H200.name: {name: [("a", h200)]}}
    known = known_network(name, card, NETWORKS, on_record)
    assert (known.basis, known.figures, known.beside) == ("published", figures, 1)
    assert known.middle == pytest.approx(h100, rel=0.001)
    assert known.sd == pytest.approx(NETWORK_SD * math.sqrt(2))
    judged = speed_of(name, [0.3 * known.middle], known, MEASURED + 2)
    assert (judged.state, judged.smallest_loss < 0.75) == ("slow", True)
    alone = known_network(name, H200, NETWORKS, on_record)
    assert (alone.sd, alone.beside) == (None, 0), "a card never enters its own expectation"
    assert speed_of(name, [h200], alone, MEASURED).state == "unknown"


def test_a_compiled_network_is_compared_in_any_large_batch_and_judged_once_another_card_is_on_record():
    names = {network_name("gpt2-124m", "amp-bf16", batch, "token", compiled=True) for batch in (8, 64, 128)}
    name = "gpt2-124m:amp-bf16:compiled:token"
    assert names == {name}
    assert network_name("gpt2-124m", "amp-bf16", 12, "token", compiled=False) == "gpt2-124m:amp-bf16:12:token"
    alone = known_network(name, H200, NETWORKS, {H200.name: {name: [("a", 4e5)]}})
    assert (alone.sd, alone.middle) == (None, pytest.approx(496644, abs=1))
    beside = known_network(name, H200, NETWORKS, {"H100 SXM5 80GB": {name: [("a", 4e5)]}})
    assert beside.sd and beside.middle == pytest.approx(430296, abs=1)


def test_a_doubled_batch_of_the_published_gpt2_adds_5_percent_at_most_and_plan_card_has_one_of_its_two():
    plan = load_plan(ROOT, "card")
    (row,) = (one for one in plan.measure if one.model == "gpt2-124m" and "cuda" in one.devices)
    table, specs = (
        [one for one in NETWORKS if one.program == "GPT-2 on rented cards"],
        load_specs(ROOT, CARDS),
    )
    for card, rows in groupby(sorted(table, key=lambda one: (one.card, one.batch)), lambda one: one.card):
        small, large = rows
        assert small.batch >= LARGE_BATCH and large.value / small.value <= 1.05
        context = PlanContext("cuda", "cuda", None, {}, {}, memory_gb=specs[card].memory_gb)
        planned = [item.trial.asked.variant for item in plan_trials(plan, context, seed=1)]
        (batch,) = {one.batch_size for one in planned if one.model == row.model}
        assert batch in (small.batch, large.batch), card


def test_only_the_same_network_in_the_same_precision_and_a_batch_that_is_no_smaller_part_counts():
    batches = [one.batch for one in NETWORKS if one.card.startswith("H100 SXM") and one.batch]
    assert min(batches) == 1, "the tables have batches of one"
    h100 = _card("H100 SXM5 80GB")
    of_large, of_small = (
        known_network(f"resnet50:amp-fp16:{batch}:image", h100, NETWORKS, {}) for batch in (256, 4)
    )
    assert (of_large.figures, of_small.figures) == (63, 65)
    assert known_network("resnet50:amp-bf16:256:image", h100, NETWORKS, {}) is None
    assert known_network("gemm_bf16_tflops", h100, NETWORKS, {}) is None


def _card(name: str):
    return next(one for one in CARDS if one.name == name)


def test_the_committed_h200_has_one_speed_and_equal_bits():
    stored = [one for one in results_here().records if one.record.plan == "card"]
    found = checked_cards(read_trials(stored, CARDS), stored[0].record.session, CARDS, PUBLISHED)[0]
    assert (found.flips, found.differences, found.state) == (None, (), "sound")


def units() -> list[list[float]]:
    """How each published unit of a card deviates from others with its version of torch, by arithmetic.

    Left out are laptops, whose makers set the power, software that changed daily, and a unit that lies 12 %
    and more below the median of its card, for such are what the check looks for.
    """
    groups: dict[tuple[str, str], dict[str, list[float]]] = {}
    of_card: dict[tuple[str, str], list[float]] = {}
    with (ROOT / "results" / "tables" / "products.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["taken"] != "sustained"]
    for row in rows:
        of_card.setdefault((row["card"], row["arithmetic"]), []).append(float(row["tflops"]))
    for row in rows:
        version, speed = row["software"], float(row["tflops"])
        low = speed < 0.88 * median(of_card[row["card"], row["arithmetic"]])
        if re.match(r"torch \d+\.\d+\.\d+( |$|\+)", version) and "Laptop" not in row["card"] and not low:
            of = groups.setdefault((row["card"], version.rpartition(".")[0][:9]), {})
            of.setdefault(row["arithmetic"], []).append(math.log(speed))
    found = []
    for of in groups.values():
        several = [sorted(logs) for logs in of.values() if len(logs) > 1]
        for n in range(min(map(len, several), default=0)):
            found.append(
                [(logs[n] - fmean(logs)) * math.sqrt(len(logs) / (len(logs) - 1)) for logs in several]
            )
    return found


def drawn(dice: random.Random, loss: float = 0.0) -> dict[str, float]:
    """A card's speeds, which deviate as those of one published unit."""
    unit = dice.choice(units_published)
    return {name: math.exp(dice.choice(unit)) * (1 - loss) for name in [*SPEEDS, "network"]}


units_published = units()


def is_slow(card: dict[str, float], others: list[dict[str, float]], machine: str, judged: int = 1) -> bool:
    """Whether a card is called slow in anything beside others, which are of the machine 'm'."""
    known = {name: known_of(name, [[("m", one[name])] for one in others], machine, None, ()) for name in card}
    figures = {name: [("m", value)] for name, value in card.items()}
    return any(one.state == "slow" for one in speeds_of(figures, known, dict.fromkeys(card), judged))


def called_slow(loss: float) -> float:
    """The share of cards that are called slow beside three others of their model."""
    dice = random.Random(48)
    cards = (drawn(dice, loss) for _ in range(CARDS_SIMULATED))
    return fmean(is_slow(card, [drawn(dice) for _ in range(3)], "a") for card in cards)


def test_the_scatter_that_is_assumed_is_no_less_than_that_of_published_units():
    deviations = [each for unit in units_published for each in unit]
    assert len(deviations) >= 20
    assert 0.5 * UNIT_SD < math.sqrt(fmean(each**2 for each in deviations)) <= UNIT_SD


def test_of_1000_sound_cards_at_most_5_percent_are_called_slow_and_of_those_15_percent_slow_90_are():
    assert called_slow(0.0) <= 0.05
    assert called_slow(0.15) >= 0.90


def of_one_level(dice: random.Random, loss: float = 0.0) -> dict[str, float]:
    """A card whose things are all faster or slower together, by the deviation that is assumed."""
    level = math.exp(dice.gauss(0.0, UNIT_SD)) * (1 - loss)
    return dict.fromkeys([*SPEEDS, "network"], level)


def named_of_eight(draw, loss: float) -> list[set[int]]:
    """The places of the cards that are called slow in each box of eight, of which the first has a loss."""
    dice, found = random.Random(61), []
    for _ in range(BOXES_SIMULATED):
        box = [draw(dice, 0.0 if at else loss) for at in range(8)]
        found.append({at for at in range(8) if is_slow(box[at], box[:at] + box[at + 1 :], "m", 9)})
    return found


@pytest.mark.parametrize("draw", [drawn, of_one_level])
def test_a_card_of_eight_that_is_12_percent_slow_is_named_in_90_percent_and_a_sound_box_in_5_at_most(draw):
    assert fmean(bool(slow) for slow in named_of_eight(draw, 0.0)) <= 0.05
    assert fmean(slow == {0} for slow in named_of_eight(draw, 0.12)) >= 0.90


def h200_load() -> numpy.ndarray:
    """Seconds of each step of the committed H200's load, over their median."""
    stored = [one for one in results_here().records if one.record.plan == "card"]
    trial = max(read_trials(stored, CARDS), key=lambda one: one.record.measurement.window.seconds)
    assert len(levels(trial)) > 60
    seconds = numpy.asarray(trial.record.measurement.step_us.values(), dtype=float) / 1e6
    return seconds / numpy.median(seconds)


def share_flipping(state, seconds: int) -> float:
    """The share of loads that are called flipping, in stretches of 5 s drawn from the H200's.

    `state` says how much slower each step is, at its second.
    """
    dice, steps, found = numpy.random.default_rng(48), h200_load(), 0
    for _ in range(LOADS_SIMULATED):
        stretches = dice.integers(0, len(steps) - 540, seconds // 5)
        drawn = 0.00926 * numpy.concatenate([steps[begin : begin + 540] for begin in stretches])
        load = blocks(drawn * state(dice, numpy.cumsum(drawn)))
        found += two_speeds([speed for _, speed in load]) is not None
    return found / LOADS_SIMULATED


def each_ten(dice, at):
    return numpy.where((at + dice.uniform(0, 20)) // 10 % 2, 1.0, 1.25)


def each_5_to_40(dice, at):
    ends = numpy.cumsum(dice.uniform(5, 40, 40)) - dice.uniform(0, 20)
    return numpy.where((numpy.searchsorted(ends, at) + dice.integers(2)) % 2 == 0, 1.0, 1.25)


def one_dip(dice, at):
    return numpy.where((at > 30) & (at < 35), 1.25, 1.0)


@pytest.mark.parametrize(
    ("state", "seconds", "least", "most"),
    [
        (each_ten, 75, 0.90, 1.0),
        (each_5_to_40, 180, 0.90, 1.0),
        (one_dip, 75, 0.0, 0.05),
        (lambda dice, at: 1.0, 75, 0.0, 0.05),
    ],
)
def test_two_states_20_percent_apart_are_found_and_one_dip_is_none(state, seconds, least, most):
    assert least <= share_flipping(state, seconds) <= most


def test_a_load_under_a_minute_is_too_short_to_see_flips():
    long = checked_card()
    assert not check_of(*long)[0].too_short
    assert check_of(*[one for one in long if one.order != 1])[0].too_short
