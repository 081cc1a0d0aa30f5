"""Constructed sessions of two kinds of card through the whole line: no device made a figure here."""

from __future__ import annotations

import pytest

from harness.record.finding import finding_label
from report.trials import load
from tests.helpers.fake_boxes import BOXES, H100S, Box
from tests.helpers.fake_line import ALONE, OWN_BYTES, Ran, podman, run_line


def name_of(box: Box) -> str:
    return box.name


@pytest.fixture(scope="module", params=BOXES, ids=name_of)
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return run_line(request.param, tmp_path_factory.mktemp("line"))


def test_every_trial_of_a_session_ends_valid_and_neither_record_table_nor_page_says_a_word_against_it(ran):
    for record in ran.records:
        assert record.summary is not None, record.failure
        assert (record.summary.verdict, record.summary.causes, record.warnings) == ("valid", (), ())
        assert record.environment.pinned
    table = load(ran.root)
    assert set(table["verdict"]) == {"valid"} and len(table) == len(ran.records)
    assert ran.box.framework_name in ran.page
    assert f"all {len(ran.records)} trials finished" in ran.page
    assert "✕ invalid" not in ran.page and "another process" not in ran.page


def test_a_session_has_the_image_the_precisions_and_the_numbers_of_cards_that_its_machine_can_do(ran):
    alone = [record for record in ran.records if record.trial.asked.variant.gpus == 1]
    assert {record.environment.image for record in ran.records} == {ran.box.image}
    assert {record.trial.asked.variant.precision for record in alone} == ran.box.precisions
    assert {"fp32-tf32", "amp-bf16"} - ran.box.precisions <= ran.left_out.keys()
    counts = {record.trial.asked.variant.gpus for record in ran.records}
    assert counts == ({1, 2, 8} if ran.box is H100S else {1})
    assert ("8 GPUs" in ran.left_out) is (ran.box is not H100S)


def test_a_record_has_its_cards_by_name_by_unit_and_by_number(ran):
    for record in ran.records:
        measured, telemetry = record.measurement, record.telemetry
        assert measured is not None and telemetry is not None
        assert measured.device.name == ran.box.framework_name
        assert measured.device.count == record.trial.asked.variant.gpus == len(record.cards_given)
        units = [record.machine.gpus[at].unit for at in record.cards_given]
        assert len({unit for unit in units if unit}) == len(units)
        assert [card.unit for card in telemetry.cards] == units
        assert measured.device.unit == (units[0] if ran.box.kind == "cuda" else None)
        assert len(record.machine.gpus) == len(ran.box.chips)


def test_memory_processes_and_energy_are_those_of_the_trial_s_own_cards_and_not_a_stranger_s_beside_them(ran):
    assert any(ran.box.strangers(record.cards_given) for record in ran.records)
    for record in ran.records:
        telemetry, chips = record.telemetry, [ran.box.chips[at] for at in record.cards_given]
        assert telemetry is not None and telemetry.energy.window_seconds is not None
        seconds = telemetry.energy.window_seconds
        assert telemetry.energy.joules == pytest.approx(sum(chip.watts for chip in chips) * seconds, rel=0.01)
        for card in telemetry.cards:
            assert card.others is not None and card.others.processes == 0
            assert card.memory_used_bytes is not None
            held = max(value or 0 for value in card.memory_used_bytes.mean.values())
            assert OWN_BYTES <= held < OWN_BYTES + 2**30


@pytest.mark.parametrize("box", BOXES, ids=name_of)
def test_another_process_on_a_trial_s_own_card_makes_it_invalid_in_its_record_and_on_the_page(box, tmp_path):
    ran = run_line(box, tmp_path, plan=ALONE, facts=podman(box), intruder=True)
    (record,) = ran.records
    assert record.summary is not None and record.summary.verdict == "invalid"
    assert [cause.name for cause in record.summary.causes] == ["foreign-process"]
    assert "✕ invalid" in ran.page and finding_label(record.summary.causes[0]) in ran.page
