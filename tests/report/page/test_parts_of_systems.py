"""Pairs, limits, costs, acceptance, uncertainty and what ran: their numbers, states and orders."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from report.analysis import Analysis, AnalysisRequest, analyse
from report.buying.purchase import parse_purchase
from report.compare.card_units import missing_share
from report.page.one import limits
from report.page.one.cost import viewed as offers
from report.page.parts import ran
from report.page.render import render
from report.page.values import systems_of
from report.page.whole_page import page_of
from tests.helpers import cases
from tests.helpers import records_builder as build
from tests.helpers.cases import CASES, DESKS, analysis_of, evidence_of
from tests.helpers.records_fleet import fleet
from tests.helpers.records_quick import quick_look
from tests.helpers.trial_tables import analysed as of

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)


def analysed(name: str) -> Analysis:
    return analysis_of(CASES[name])


def test_a_device_is_held_against_paper_and_its_own_ceilings():
    found = analysed("ceilings")
    shown = limits.viewed(found, systems_of(found))
    assert shown is not None
    (device,) = shown.devices
    assert device.measured
    by_name = {row.name: row for row in device.sheet}
    assert by_name["bf16"].share == pytest.approx(by_name["bf16"].measured / by_name["bf16"].paper)
    assert all(point.flops_per_second > 0 for _, point in device.rows)


def test_an_offer_without_a_record_stands_last_and_changes_no_other_figure():
    offer = '[[offer]]\ncard = "Card X"\nprice = 9\ndate = 2026-01-05\nsource = "constructed"\n\n[[offer]]'
    case = CASES["two-cards-proven-priced"]
    found = analysis_of(replace(case, purchase=case.purchase.replace("[[offer]]", offer, 1)))
    before = analysed("two-cards-proven-priced")
    last = offers(found, systems_of(found)).rows[-1]
    assert (last.system.name, last.cost.value, last.price.value) == ("Card X", None, 9)
    assert (last.missing.state, last.missing.data["card"]) == ("unknown-card", "Card X")
    costs = [[one.costs.model.cost(place) for place in one.costs.model.offers] for one in (found, before)]
    assert costs[0] == costs[1] and len(costs[0]) == 2


def test_unsettled_windows_have_a_cost_where_nothing_settled_and_without_prices_there_are_no_costs():
    looked = quick_look()
    purchase = parse_purchase(DESKS.replace("cpu-2-cores", looked[0].machine.label))
    waiting = of(looked, purchase)
    rows = offers(waiting, systems_of(waiting)).rows
    assert [row.cost.value is None for row in rows] == [False, True]
    assert rows[1].missing.state == "unknown-card"
    unpriced = analysed("two-cards-proven")
    assert "costs" not in {part.name for part in page_of(unpriced).parts}


@pytest.mark.parametrize(("units", "measured"), [(2, False), (5, True)])
def test_the_units_on_record_say_how_many_sound_machines_miss_the_clause_from_three_on(units, measured):
    found = of(fleet(units, cards_per_machine=1)).clause
    assert found is not None
    assert (found.spread.measured, found.spread.units) == (measured, units)
    assert found.missing_share == missing_share(found.spread, found.margin)


def test_files_that_cannot_be_read_and_what_a_budget_left_out_are_there(undrawn):
    found = analysed("odd")
    page = render(page_of(found)).markdown
    assert "Files in doubt" in page and "host mode" in page
    assert [(row.what, row.trials) for row in found.leading_session.left_out] == [("host mode", 12)]


def test_every_trial_and_stack_is_shown_once():
    found = analysed("two-cards-proven")
    shown = ran.view(found, systems_of(found))
    assert shown is not None
    assert (sum(map(len, shown.trials)), sum(count for _, count in shown.folders)) == (15, 15)
    assert [(one.planned, one.shown, dict(one.fates).get("invalid")) for one in found.accounts] == [
        (9, 6, 3)
    ] * 2
    systems = systems_of(found)
    assert [systems.of(stack[0]) for stack in shown.stacks] == list(systems.all)


def test_trials_that_failed_alike_are_one_row_with_stage_and_reason():
    found = analyse(evidence_of(cases.of(build.two_cards)), AnalysisRequest(NOW))
    shown = ran.view(found, systems_of(found))
    failed = [trial for trial in found.shown if trial.failure is not None]
    assert sorted(trial.path for rows in shown.failures for trial in rows) == sorted(
        each.path for each in failed
    )
    for rows in shown.failures:
        ends = [trial.failure for trial in rows]
        assert len({(end.stage, end.reason, end.message) for end in ends}) == 1


def test_of_more_than_a_hundred_systems_a_page_shows_the_first_hundred_and_says_so():
    shown = render(page_of(of(fleet(103, cards_per_machine=1)))).markdown
    assert [int(count) for count in re.findall(r"(\d+) more system", shown)] == [3]
    figures = re.search(r"Figures: 100 of 103 lines.*?</details>", shown, re.DOTALL)
    assert figures is not None
    assert len(re.findall(r"^\| (?!Work)[^-]", figures[0], re.MULTILINE)) == 100
