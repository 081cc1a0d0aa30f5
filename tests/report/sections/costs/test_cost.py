from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from harness.record import Record
from report.charts.costs import PriceLine
from report.page.render import render
from report.sections.view import CostView, PageView
from report.trials.key import LOADER_ALONE
from tests.helpers import ROOT
from tests.helpers import records_builder as build
from tests.helpers.checks import golden
from tests.helpers.priced_pages import LEAD, A, B, beneath, column, looked, money, of, powered
from tests.helpers.purchase_builder import FILE
from tests.helpers.records_quick import quick_look
from tests.report.comparisons.test_groups import elsewhere, series


def test_the_markdown_of_the_money_is_exactly_this():
    text = render(looked(build.two_cards())).markdown
    section = re.search(r"^## What does it cost\?\n.*?(?=^## )", text, re.S | re.M)
    assert section
    golden("money.md", section[0])


def test_without_a_file_there_is_the_break_even_ratio_alone():
    costs = money(build.two_cards(), None)
    assert re.fullmatch(
        rf"If both are kept busy, the {B} is the cheaper below 1\.4\d times the price of the {A} "
        r"\(1\.2\d to 1\.[56]\d\)\.",
        costs.answer,
    )
    assert costs.ratios is not None and len(costs.ratios.rows) == 1
    assert not (costs.offers or costs.works or costs.quotes)


def test_a_loader_alone_is_no_work_that_a_card_is_bought_for():
    loads = {"kind": {**build.LM, "protocol": LOADER_ALONE}}
    assert looked([*series(**loads), *elsewhere(**loads)], None).costs is None
    assert looked([*series(), *elsewhere()], None).costs is not None


def test_the_first_sentence_weighs_the_works_by_the_buyer_s_own_hours_on_the_slower_card():
    shown = looked(build.two_cards())
    assert shown.expected and shown.mix
    best = float(shown.expected.rows[0][1])
    assert "your own hours of each work" in shown.expected.caption
    hours = {"LSTM": 20.0, "ResNet-50": 30.0}
    each = [(hours[row[0].partition(",")[0]], float(row[1])) for row in shown.mix.rows]
    assert len(each) == 2
    assert best == pytest.approx(50.0 / sum(given / faster for given, faster in each), abs=0.02)


def test_the_ratio_is_the_wider_range_that_the_first_sentence_names():
    shown = looked(build.two_cards(), None)
    assert shown.expected and shown.costs
    between = shown.expected.rows[0][3].partition("\n")[0]
    assert f"({between})" in shown.costs.answer


def test_where_the_faster_card_is_the_dearer_one_the_page_leads_with_the_cheaper_and_what_would_turn_it():
    dear = FILE.replace("price = { low = 3000, best = 3200, high = 3500 }", "price = 9000")
    shown = looked(build.two_cards(), dear)
    said = f"costs less for your work: the {B} finishes in 70 % of the time, but is dearer to buy."
    assert shown.answer.startswith(f"At your prices the {A} {said}")
    assert price_line(shown).offers[1].turns_at == "turns at 4,300 EUR (3,300 to 5,600)"


def test_each_offer_has_a_line_of_prices_and_two_lines_their_turning_prices():
    line = price_line(looked(build.two_cards()))
    assert line.sides == (f"the {B} costs less", f"the {A} costs less")
    told = {offer.label.partition(":")[0]: (offer.place, offer.turns_at) for offer in line.offers}
    assert told == {
        f"The {A}": (1, "turns at 1,210 EUR (482 to 1,950)"),
        f"The {B}": (0, "turns at 4,300 EUR (3,300 to 5,600)"),
    }


def price_line(shown: PageView) -> PriceLine:
    assert shown.costs is not None
    (chart,) = (panel.chart for panel in shown.costs.panels if isinstance(panel.chart, PriceLine))
    return chart


def test_where_one_is_rented_and_one_bought_page_one_says_the_price_that_no_line_shows():
    rented = FILE.replace("price = 2000", "price_per_hour = 0.9")
    shown = looked(build.two_cards(), rented)
    turned = next(asked.sentences for asked in shown.questions if "change" in asked.heading)
    assert f"If the {B} stays as offered, the {A} costs less below 0.28 EUR an hour (0.22 to 0.39)." in turned
    assert [offer.place for offer in price_line(shown).offers] == [0]


def test_the_price_that_turns_the_answer_is_by_the_hour_where_the_cheapest_is_rented():
    rented = re.sub(r"^price = \{.+\}", "price_per_hour = 0.2", FILE, flags=re.M)
    shown = looked(build.two_cards(), rented.replace("price = 2000", "price_per_hour = 0.4"))
    turns = next(fact for fact in shown.facts if "cost the same" in fact.label)
    assert turns.value.endswith(" EUR an hour")
    assert shown.answer.endswith(" EUR an hour (" + turns.label.partition("(")[2].partition(")")[0] + ").")


def test_page_one_says_whose_power_the_electricity_is_of():
    def said(records: Sequence[Record]) -> str:
        shown = looked(records)
        return next(asked.sentences for asked in shown.questions if "cost" in asked.heading)[-1]

    stated = f"0.25 EUR per kWh and the power that you stated: 350 W with the {B} and 300 W with the {A}."
    assert said(build.two_cards()).endswith(f"Electricity is added at {stated}")
    measured = powered(build.two_cards(), {"a": 250.0, "b": 300.0})
    assert said(measured).endswith("and the power that was measured.")
    assert said([*powered(of(A), {"a": 250.0}), *of(B)]).endswith("Electricity is added at 0.25 EUR per kWh.")


def test_a_machine_that_does_nothing_else_may_turn_the_answer_and_the_first_sentence_says_so():
    shown = looked(build.two_cards())
    assert shown.answer.startswith(f"Shared with other work, the {B} costs less: ")
    assert shown.answer.endswith(f" Used for your work alone, the {A} costs less.")
    turned = next(asked.sentences for asked in shown.questions if "change" in asked.heading)
    assert turned[0] == (
        "The assumption that matters most is that other work shares the machine: if none does, "
        f"the {A} costs less: 1,142 EUR a year against 1,336."
    )
    alike = looked(build.two_cards(), FILE.replace("price = 2000", "price = 3000"))
    turned = next(asked.sentences for asked in alike.questions if "change" in asked.heading)
    assert alike.answer.startswith("At your prices ") and "alone" not in alike.answer
    assert turned[0].startswith("If no other work shares the machine, no difference in cost is shown: 1,336")


def test_rented_cards_and_work_without_hours_say_nothing_of_a_machine_that_does_nothing_else():
    rented = re.sub(r"^price = \{.+\}", "price_per_hour = 0.9", FILE, flags=re.M)
    without_hours = FILE.partition("[[work]]")[0]
    for text in (rented, without_hours):
        shown = looked(build.two_cards(), text)
        assert shown.costs is not None and shown.answer.startswith("At your prices ")
        asked = [sentence for each in shown.questions for sentence in each.sentences]
        assert not any("shares the machine" in sentence for sentence in asked)


def test_a_life_that_is_not_given_is_assumed_and_said_to_be():
    without = re.sub(r"^life_years.*\n", "", FILE, flags=re.M)
    assert without != FILE
    made, whole = money(build.two_cards(), without), money(build.two_cards())
    said = "How long a card is used was not given: 4 years, 2 to 8, are assumed."
    assert said in made.caveats and said not in whole.caveats
    assert made.answer


def test_one_card_alone_has_no_ratio_and_with_a_file_the_page_says_what_is_missing():
    assert looked(of(A), None).costs is None
    costs = money(of(A))
    assert costs.answer == f"Of your offers only that of the {A} can be priced for your work."
    assert (
        f"Only the {A} has ranked runs: to compare, copy another card's records into results/."
        in costs.caveats
    )
    assert "No ranked record on this page is of 'Card B': its quote is not used." in costs.caveats


def test_where_nothing_may_be_ranked_a_file_gets_an_answer_that_says_so():
    costs = money(quick_look())
    assert costs.answer.startswith("Nothing on this page may be ranked yet")
    assert costs.turn == "What is missing: ranked runs of Card A, Card B, in results/."


def test_the_headline_says_why_the_dearer_card_costs_less():
    shown = looked(build.two_cards(), FILE.replace("price = 2000", "price = 3000"))
    assert re.match(
        rf"At your prices the {B} costs less for your work: it is dearer to buy than the {A}, "
        r"but finishes in \d+ % of the time\. Buy ",
        shown.answer,
    )


def test_a_card_with_too_little_memory_does_not_fit_and_cannot_win():
    short = build.two_cards()
    for place, record in enumerate(short):
        if record.measurement and record.machine.label.endswith("b"):
            device = record.measurement.device.model_copy(update={"memory_bytes": 8 * 2**30})
            measurement = record.measurement.model_copy(update={"device": device})
            short[place] = record.model_copy(update={"measurement": measurement})
    measurement = money(short, FILE.replace("slots = 8", "slots = 8\nmemory_gib = 20"))
    assert beneath(measurement.offers)[B] == "does not fit: too little memory"
    assert column(measurement.offers, "Cost a year")[B] == "–"
    assert column(measurement.offers, "How many")[B] == "0"
    assert measurement.answer == f"Of your offers only that of the {A} can be priced for your work."


def test_a_card_that_failed_on_a_line_with_hours_has_no_total_and_keeps_its_other_lines():
    records = [
        record
        for record in build.two_cards()
        if not (record.machine.label.endswith("b") and record.trial.asked.variant.precision == "fp16-master")
        or record.trial.asked.workload == "word_lm"
    ]
    asked = build.trial(build.CIFAR, "fp16-master", 1, batch_size=164)
    on = build.machine(B, label="card-b", digits="b")
    records.append(
        build.record(asked, None, on=on, session="20260130-bbbbbb", order=60, failure=build.out_of_memory())
    )
    costs = money(records)
    assert beneath(costs.offers)[B] == "ResNet-50, fp16-master, batch 164, cached: does not fit"
    assert column(costs.offers, "Cost a year")[B] == "–"
    assert costs.works is not None
    costs = [row[2] for row in costs.works.rows if row[1].startswith(B)]
    assert costs.count("–") == 1 and len(costs) == 2


def test_a_line_that_one_card_did_not_run_is_missing_and_not_slow():
    records = [
        record
        for record in build.two_cards()
        if not (record.machine.label.endswith("b") and record.trial.asked.workload == "word_lm")
    ]
    assert beneath(money(records).offers)[B] == "LSTM, fp32-ieee, batch 20, cached: not measured"


def test_hours_of_work_that_no_record_is_of_are_named_and_left_out():
    page = looked(build.two_cards(), FILE.replace('model = "lstm"', 'model = "transformer"'))
    costs, (asked,) = page.costs, [one for one in page.questions if one.heading == "What does it cost?"]
    assert costs is not None
    assert "1,040 of your 2,600 hours a year are left out: no record is of that work." in asked.sentences
    assert any(
        "1,040 hours a year of 'word_lm, transformer, fp32-ieee' are left out: on record are" in caveat
        for caveat in costs.caveats
    )
    assert costs.setting.startswith("Your work is 1,560 hours a year")


def test_work_of_which_nothing_is_on_record_is_named_and_leaves_the_prices_their_answer():
    text = FILE.replace('model = "lstm"', 'model = "gru"').replace('"resnet50"', '"resnet101"')
    costs = money(build.two_cards(), text)
    assert costs.setting.startswith("None of the work that you gave is on record: 4 lines of work have equal")
    left_out = [caveat for caveat in costs.caveats if "are left out: on record are" in caveat]
    assert [caveat.partition("'")[2].partition("'")[0] for caveat in left_out] == [
        "word_lm, gru, fp32-ieee",
        "cifar_fastai, resnet101, fp16-master",
    ]
    assert A in costs.answer and B in costs.answer


def test_the_example_of_the_page_on_the_file_prices_every_card_for_every_line_of_work():
    page = (ROOT / "docs" / "purchase.md").read_text(encoding="utf-8")
    example = re.search(r"```toml\n(.*?)```", page, re.S)
    assert example
    records = [
        record
        for card, digits, speed, session in (("A", "a", 1.0, LEAD), ("B", "b", 0.7, "20260130-bbbbbb"))
        for kind, model, batch_size, order in (
            (build.CIFAR, "resnet18", 98, 0),
            (build.LM, "LSTM", 20, 20),
        )
        for record in build.series_of(
            {**kind, "model": model},
            "fp32-ieee",
            0.1 * speed,
            batch_size=batch_size,
            first_order=order,
            on=build.machine(f"Example Card {card}", label=f"card-{digits}", digits=digits),
            card=f"Example Card {card}",
            session=session,
        )
    ]
    costs = money(records, example[1])
    works = "1,560 of ResNet-18 in fp32-ieee and 1,040 of LSTM in fp32-ieee"
    assert costs.setting == f"Your work is 2,600 hours a year on the Example Card A: {works}."
    assert set(column(costs.offers, "Cost a year")) == {
        "Example Card A",
        "Example Card B, bought",
        "Example Card B, rented",
    }
    assert "–" not in column(costs.offers, "Cost a year").values()
    assert not [caveat for caveat in costs.caveats if "left out" in caveat or "not used" in caveat]


def test_measured_power_goes_before_the_boards_and_allows_a_claim_of_efficiency():
    costs = money(powered(build.two_cards(), {"a": 250.0, "b": 200.0}))
    assert beneath(costs.offers) == {A: "", B: ""}
    assert costs.running is not None
    energy = {row[0]: row[-1] for row in costs.running.rows}
    assert energy[A].startswith("1.79\n")
    assert f"{B} is more efficient" in energy[A]


def drawing(watts: dict[str, float]) -> str:
    text = re.sub(r"^watts = .*\n", "", FILE, flags=re.M)
    for card, drawn in watts.items():
        text = text.replace(f'card = "{card[-6:]}"\n', f'card = "{card[-6:]}"\nwatts = {drawn}\n')
    return text


def dearer(costs: CostView) -> str:
    found = re.search(r"for your work the (.+?) costs ", costs.answer)
    assert found
    return found[1]


def test_without_watts_the_answer_comes_from_prices_with_the_power_that_would_turn_it():
    costs = money(build.two_cards(), drawing({A: 300.0}))
    match = re.search(
        r"Power is left out, since nobody told that of the Constructed Card B: the (.+) would have to draw "
        r"([\d,]+) W more than the (.+) to cost as much\.$",
        costs.turn,
    )
    assert match and {match[1], match[3]} == {A, B} and dearer(costs) == match[3]
    assert set(column(costs.running, "kWh").values()) == {"–"}
    more = float(match[2].replace(",", ""))
    for share, costs_more in ((0.9, match[3]), (1.1, match[1])):
        known = money(build.two_cards(), drawing({match[1]: 1 + share * more, match[3]: 1.0}))
        assert dearer(known) == costs_more and "Power is left out" not in known.turn


def test_an_old_quote_and_one_of_the_future_are_named():
    costs = money(build.two_cards(), FILE.replace("2026-01-05", "2027-01-05"))
    assert "The quote for 'Card A' is dated after this page was written." in costs.caveats
    assert "The quote for 'Card B' is 392 days old." in costs.caveats


def test_an_offer_over_a_year_old_is_a_label_beside_the_answer():
    shown = looked(build.two_cards())
    assert [badge.because for badge in shown.badges if badge.word == "offer over a year old"] == [
        f"it is that for the {B}"
    ]
    new = FILE.replace("2025-01-05", "2026-01-05")
    assert "offer over a year old" not in [badge.word for badge in looked(build.two_cards(), new).badges]


def test_a_hostile_source_does_nothing_but_show():
    hostile = '</script><script>alert(1)</script><b onload=\\"x\\">'
    text = FILE.replace("a constructed offer", hostile).replace('card = "Card A"', 'card = "Card A"', 1)
    made = render(looked(build.two_cards(), text)).html
    assert "<script>alert(1)" not in made
    assert "&lt;script&gt;alert(1)" in made


def in_words(costs: CostView) -> str:
    return " ".join(costs.caveats)


def test_stacks_are_held_against_each_other_within_a_line_and_not_across_works():
    def versions(record: Record, by: str) -> Record:
        assert record.measurement
        measurement = record.measurement.model_copy(update={"versions": {"made": by}})
        return record.model_copy(update={"measurement": measurement})

    measured = [record for record in build.two_cards() if record.measurement]
    by_work = [versions(record, record.trial.asked.workload) for record in measured]
    assert "different stacks" not in in_words(money(by_work))
    by_card = [versions(record, record.machine.label) for record in measured]
    assert "The cards ran on different stacks" in in_words(money(by_card))
