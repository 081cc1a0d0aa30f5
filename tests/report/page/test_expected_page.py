"""What is expected of a card stands beside what was measured: as a ratio, and as a part of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from report.expected.expected import CardExpectation, ExpectedValue, Refusal
from report.expected.figures import TrainingTask
from report.page.filters import over_expected
from report.page.whole_page import write
from tests.helpers.purposes import analysis_of

TASK = TrainingTask("constructed", "work", "amp-fp16", 64, "samples/s")


def an_expected(value, factor=1.2):
    return ExpectedValue(TASK, value, value / factor, value * factor, factor, published=0)


@pytest.mark.parametrize("share", [0.97, 0.71, 1.3])
def test_a_work_stands_as_a_share_of_what_the_card_should_do_with_the_range(share, tmp_path, undrawn):
    analysis = analysis_of("one-machine")
    cell = analysis.own_cells[0]
    should = {cell.trials[0].path: an_expected(cell.throughput.mean / share)}
    found = over_expected(cell, should)
    assert found.value == pytest.approx(share)
    assert (found.low, found.high) == pytest.approx((share / 1.2, share * 1.2))
    asked = replace(analysis, request=replace(analysis.request, should=should))
    assert f"{share:.2f}" in write(asked, tmp_path).markdown.read_text(encoding="utf-8")


def test_without_other_cards_nothing_is_expected():
    assert not any(over_expected(cell, {}) for cell in analysis_of("one-machine").own_cells)


def test_a_named_card_has_a_part_with_its_ranges_and_neighbours(tmp_path, undrawn):
    analysis = analysis_of("one-machine")
    asked = CardExpectation(
        "Constructed card",
        (replace(an_expected(100.0), neighbours=(("Other", 90.0),)),),
        ((Refusal("memory", "8 GB", "16 GB"), 2),),
    )
    written = write(replace(analysis, request=replace(analysis.request, asked=(asked,))), tmp_path)
    text = written.markdown.read_text(encoding="utf-8")
    for figure in ("83.3 to 120", "Other 90.0", "16 GB", "invoke build --plan programs"):
        assert figure in text.replace("\N{NO-BREAK SPACE}", " ")
