"""What is expected of a card stands beside what was measured: as a ratio, a pale bar, a part of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from report.expected.expected import CardExpectation, ExpectedValue, TaskExpectation
from report.expected.figures import TrainingTask
from report.expected.refusal import Refusal
from report.page.build import page_of, write
from report.page.one.measured import leading
from tests.helpers.purposes import analysis_of

TASK = TrainingTask("constructed", "work", "amp-fp16", 64, "samples/s")


def an_expected(value, factor=1.2):
    return ExpectedValue(
        card="Constructed card",
        task=TASK,
        value=value,
        low=value / factor,
        high=value * factor,
        factor=factor,
        published=0,
    )


def page_with(share):
    """The page of one machine that reached a share of what its card should do."""
    analysis = analysis_of("one-machine")
    cell = leading(analysis)[0]
    should = {cell.trials[0].path: an_expected(cell.throughput.mean / share)}
    return page_of(replace(analysis, request=replace(analysis.request, should=should)))


@pytest.mark.parametrize(("share", "within"), [(0.97, True), (0.71, False), (1.3, False)])
def test_a_work_stands_as_a_share_of_what_the_card_should_do_with_the_range(share, within):
    row = page_with(share).one.view.rows[0].expected
    assert row.value == pytest.approx(share)
    assert (row.low, row.high) == pytest.approx((share / 1.2, share * 1.2))
    assert row.tied is within


def test_without_other_cards_nothing_is_said():
    assert not any(row.expected for row in page_of(analysis_of("one-machine")).one.view.rows)


def test_a_named_card_has_a_part_with_its_ranges_and_neighbours(tmp_path):
    analysis = analysis_of("one-machine")
    asked = CardExpectation(
        "Constructed card",
        (TaskExpectation(an_expected(100.0), (("Other", 90.0),)),),
        ((Refusal("memory", "8 GB", "16 GB"), 2),),
    )
    written = write(
        replace(analysis, request=replace(analysis.request, asked=(asked,))), tmp_path, drawn=False
    )
    text = written.markdown.read_text(encoding="utf-8")
    for figure in ("83 to 120", "Other 90.0", "16 GB", "invoke build --plan programs"):
        assert figure in text.replace("\N{NO-BREAK SPACE}", " ")
