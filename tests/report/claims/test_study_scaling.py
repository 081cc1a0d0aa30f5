"""UniLu 2019's sentences, judged on constructed records of virtual ranks and of devices."""

from __future__ import annotations

import pytest

from harness.record import Record
from harness.record.published.cards import load_cards
from report.claims.judge import judge
from report.claims.judged import Judged
from report.compare.cells import cells_of
from report.compare.groups import comparison_groups
from report.compare.key import Difference
from tests.helpers import ROOT
from tests.helpers.here import claims_here
from tests.helpers.records_devices import LEAD
from tests.helpers.records_learning import emulated, learned, on_devices
from tests.helpers.trial_tables import trials_of

CLAIMS = {claim.id: claim for claim in claims_here().claims if claim.study.startswith("002")}
CARDS = load_cards(ROOT)


def judged(claim: str, records: list[Record]) -> Judged:
    groups = comparison_groups(cells_of(trials_of(records)), LEAD, baseline=None)
    (found,) = judge([CLAIMS[claim]], groups, CARDS)
    return found


def word(claim: str, records: list[Record]) -> str:
    return judged(claim, records).verdict.word


def test_epochs_to_75_percent_grow_with_the_number_of_virtual_ranks():
    found = judged("002-emulated-time-to-75-scales-worse", emulated())
    assert found.verdict.word == "holds here"
    assert found.measured is not None and found.measured > 1


def test_a_trend_of_epochs_needs_each_of_its_ranks_and_a_run_that_had_the_target():
    some = [*learned(1), *learned(4, virtual=True, order=20)]
    assert word("002-emulated-time-to-75-scales-worse", some) == "not comparable"
    never = judged(
        "002-emulated-time-to-75-scales-worse", [*some, *learned(12, virtual=True, best=0.6, order=40)]
    )
    assert never.differences[-1] == Difference("runs_with_target", 0, 3)


@pytest.mark.parametrize(("best", "told"), [(0.79, "holds here"), (0.88, "does not hold here")])
def test_twelve_ranks_do_not_have_80_percent_where_the_best_of_40_epochs_is_below_it(best, told):
    assert word("002-emulated-12-accuracy", learned(12, virtual=True, best=best)) == told


def test_accuracy_bounces_more_without_shared_statistics_by_the_falls_of_the_first_ten_epochs():
    apart = learned(12, virtual=True, bounce=0.1)
    rough, smooth = (
        learned(12, virtual=True, bounce=bounce, sync_batchnorm=True, order=20) for bounce in (0.2, 0.0)
    )
    assert word("002-emulated-accuracy-bounces", [*apart, *smooth]) == "holds here"
    assert word("002-emulated-accuracy-bounces", [*apart, *rough]) == "does not hold here"
    assert word("002-emulated-accuracy-bounces", apart) == "not comparable"


def test_devices_stand_for_the_study_s_own_sentence_and_virtual_ranks_do_not():
    assert word("002-post-time-to-75-scales-worse", on_devices()) == "holds here"
    assert word("002-post-time-to-75-scales-worse", emulated()) == "not comparable"
