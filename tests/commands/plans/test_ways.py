"""What plans can do for published figures: on the cards they are of, and on every card of the table."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

import pytest

from commands import claims
from commands.plans.ways import device_of, offers, quickest
from harness.device_kinds import BY_VENDOR
from harness.image.images import load_images
from harness.plan import estimate, plan_file
from harness.record import Claim, Cpu
from harness.record.published.cards import family
from harness.run import choice, on_paper
from harness.run.choice import choose
from harness.settings import Settings
from report.analysis import AnalysisRequest, analyse
from report.claims.answers import LADDER
from report.claims.judgeable import TargetDevice, judgeable
from tests.commands.test_claims import figures_in
from tests.helpers import ROOT
from tests.helpers.claims_builder import CARDS
from tests.helpers.here import claims_here, evidence_here

ABSOLUTE = [claim for claim in claims_here().claims if claim.kind == "absolute"]
WITHOUT_A_PLAN = {
    "framework": 32,
    "plan": 12,
}


def device_like(card: str | None, count: int) -> TargetDevice:
    names = {one.name for one in CARDS}
    known = next((one for one in CARDS if one.name == card or one.name in family(card or "", names)), None)
    if known is None:
        return TargetDevice("cuda", card or "", "8.6", None, count)
    kind = BY_VENDOR[known.vendor]
    return TargetDevice(kind, on_paper.device_name(known), known.capability, None, count)


def test_a_figure_of_a_processor_that_no_plan_has_needs_a_plan_and_no_gpu():
    claim = next(claim for claim in ABSOLUTE if claim.workload == "convnet" and claim.of.card)
    own = claim.model_copy(update={"of": claim.of.model_copy(update={"card": "AMD EPYC", "model": "mpl"})})
    device = TargetDevice("cpu", "AMD EPYC", None, None, 1)
    kinds = [quickest([one], (), device, CARDS).barred[one.id].kind for one in (own, claim)]
    assert kinds == ["plan", "gpu"]


def test_at_least_230_of_278_figures_have_a_plan_on_their_own_card_and_each_other_one_a_reason(monkeypatch):
    known = {}

    def once(asked, context, seed, make=plan_file.trials):
        place = asked.name, context.device, context.environment
        return known.get(place) or known.setdefault(place, make(asked, context, seed))

    monkeypatch.setattr(plan_file, "trials", once)
    monkeypatch.setattr(plan_file, "load", cache(plan_file.load))
    by_machine: dict[TargetDevice, list[Claim]] = defaultdict(list)
    for claim in ABSOLUTE:
        by_machine[device_like(claim.of.card, claim.of.gpus)].append(claim)
    found: set[str] = set()
    reasons: dict[str, int] = defaultdict(int)
    for device, of_it in by_machine.items():
        offered = offers(ROOT, of_it, device, Cpu(), CARDS, estimate.Speeds())
        ahead = quickest(of_it, offered, device, CARDS)
        found |= ahead.ways.keys()
        for obstacle in ahead.barred.values():
            reasons[obstacle.kind] += 1
    assert len(ABSOLUTE) == 278
    assert len(found) >= 230
    assert dict(reasons) == WITHOUT_A_PLAN


@pytest.mark.parametrize(
    ("session", "times"),
    [("20261126-cb0794", [3.53, 4.44, 7.45, 8.94]), ("20261127-63ddd7", [3.89, 4.89, 7.98, 9.57])],
)
def test_the_committed_gpus_answer_four_figures_of_resnet18_beside_two_cards(session, times):
    found = analyse(
        evidence_here(), AnalysisRequest(datetime(2026, 12, 1, tzinfo=UTC), session=session)
    ).answers
    assert all(one.state in LADDER for one in found if one.claim.kind == "absolute")
    beside = [one for one in found if one.state == "on another card"]
    assert sorted(round(one.times or 0, 2) for one in beside) == times
    assert {one.claim.of.card for one in beside} == {"RTX 2080 Ti", "GTX 1080 Ti"}
    assert all(one.differs == ("card", "software", "loader") and one.first_look for one in beside)


@pytest.mark.parametrize("card", ["GTX 1080 Ti", "8x H100 SXM5"])
def test_what_a_card_has_listed_is_of_each_of_the_five_studies_and_planned_there(card, capsys, monkeypatch):
    claims.here(ROOT, Settings(engine="venv"), card, rows=1000)
    listed = figures_in(capsys.readouterr().out.splitlines())
    setup = on_paper.prepare(ROOT, Settings(engine="venv"), card)
    asked = [claim for claim in claims_here().claims if claim.id in listed]
    device, offered = device_of(setup.machine, setup.selection), set[str]()
    monkeypatch.setattr(choice, "speeds_of", lambda setup: estimate.Speeds())
    for offer, _ in claims._offered(setup, asked):
        if not offer:
            continue
        way = next(iter(offer.values()))
        image = load_images(ROOT).image(way.image) if way.image else setup.image
        line = replace(setup, plan=plan_file.load(ROOT, way.plan), image=image)
        trials = [item.trial for item in choose(line).planned]
        assert judgeable(asked, trials, device, CARDS).keys() >= offer.keys()
        offered |= offer.keys()
    assert len(listed) > 20 and set(listed) == offered
    assert {name[:3] for name in listed} >= {"000", "001", "002", "003", "004"}
    assert device_of(setup.machine, setup.selection).count == (8 if card.startswith("8") else 1)
