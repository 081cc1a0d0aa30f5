"""Which published and measured figures are in one row, which on other terms, and what is 1.00."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.record import Claim
from report.compare.cells import Cell, cells_of, time_breakdown
from report.page.parts.studies import StudyEntry, StudyFigure, study_figures
from report.trials.key import LOADER_ALONE
from tests.helpers import records_builder as build
from tests.helpers.here import claims_here
from tests.helpers.record_sets import elsewhere, series
from tests.helpers.trial_tables import trials_of

RESNET = {"kind": build.CIFAR, "mode": "host"}
WHOLE = 1.1 * 489 * 30
"""Steps of a whole run, its validation among them."""


def claim(
    card: str, value: float, precision: str = "fp32-ieee", batch: int | None = 98, **changes: Any
) -> Claim:
    side = {"card": card, "model": "resnet50", "precision": precision, "batch_size": batch}
    named = {
        name: changes.pop(name)
        for name in ("model", "gpus", "data_mode", "layout", "options")
        if name in changes
    }
    values = {
        "id": "constructed",
        "study": "x",
        "kind": "absolute",
        "workload": "cifar_fastai",
        "protocol": "published/1",
        "metric": "protocol_seconds",
        "of": {"data_mode": "host", **side, **named},
        "value": value,
        "unit": "s",
        "epochs": 30,
        "source": "constructed for a test",
    }
    return Claim.model_validate({**values, **changes})


OF_A_STUDY = (
    claim("RTX 2080 Ti", 2000.0),
    claim("RTX 2080 Ti", 1500.0, "fp16-master", 164),
    claim("GTX 1080 Ti", 3000.0),
)


def measured(seconds: float, precision: str = "fp32-ieee", batch: int = 98, **changes: Any) -> list[Cell]:
    """One cell whose whole protocol takes about so many seconds."""
    given: dict[str, Any] = {**RESNET, "batch_size": batch, **changes}
    return list(cells_of(trials_of(series(precision, seconds / WHOLE, **given))))


def figure(claims: Sequence[Claim], cells: Sequence[Cell] = ()) -> StudyFigure:
    (only,) = study_figures(claims, cells)
    return only


def cards(entries: Sequence[StudyEntry]) -> list[str]:
    return [
        entry.source.card if isinstance(entry.source, Cell) else entry.source.of.card or ""
        for entry in entries
    ]


def test_a_loader_alone_stands_beside_no_training():
    loaders = [replace(cell, key=replace(cell.key, protocol=LOADER_ALONE)) for cell in measured(1750.0)]
    rate = claim("RTX 2080 Ti", 900.0, metric="throughput", unit="images/s")
    assert figure((rate,), loaders).measured == 0
    assert [time_breakdown(cell) for cell in loaders] == [None] * len(loaders)


def test_published_and_measured_figures_stand_in_one_row_by_how_fast_they_are():
    (row,) = figure(OF_A_STUDY, measured(1750.0)).rows
    assert cards(row.entries) == ["RTX 2080 Ti", "Constructed Card A", "RTX 2080 Ti", "GTX 1080 Ti"]
    assert [entry.scaled for entry in row.entries] == pytest.approx([1.0, 1.167, 1.333, 2.0], abs=0.01)


@pytest.mark.parametrize(("seconds", "card"), [(1000.0, "Constructed Card A"), (9000.0, "RTX 2080 Ti")])
def test_one_is_the_fastest_of_the_row_whether_published_or_measured(seconds: float, card: str):
    (row,) = figure(OF_A_STUDY, measured(seconds)).rows
    assert (cards(row.entries)[0], row.entries[0].scaled) == (card, 1.0)


@pytest.mark.parametrize(
    "changes",
    [
        {"batch": 32},
        {"kind": {**build.CIFAR, "image_size": 64}},
        {"kind": {**build.CIFAR, "protocol": "fair/1"}},
        {"profile": "tuned"},
        {"data": "generated"},
        {"options": {"tied": True}},
        {"options": {"train_images": 4096}},
        {"precision": "amp-bf16"},
        {"precision": "fp16-master"},
    ],
)
def test_what_the_key_keeps_apart_stands_in_no_row(changes: dict[str, Any]):
    found = figure(OF_A_STUDY, measured(1750.0, **changes))
    assert found.measured == 0
    assert cards(found.rows[0].entries) == ["RTX 2080 Ti", "RTX 2080 Ti", "GTX 1080 Ti"]


def test_another_layout_is_another_term_of_a_publication_that_names_its_own():
    contiguous = [claim("RTX 3090", 2000.0, layout="contiguous")]
    assert figure(contiguous, measured(1750.0, layout="channels_last")).measured == 0


def test_a_batch_that_was_published_for_each_precision_keeps_nothing_apart():
    own = [*measured(1750.0), *measured(1400.0, "fp16-master", 164)]
    assert [row.measured for row in figure(OF_A_STUDY, own).rows] == [2]


def test_each_terms_of_one_study_have_a_row_and_what_was_measured_on_them_is_in_it():
    small = [claim("RTX 2060", 2600.0, batch=48), claim("RTX 2060", 2200.0, "fp16-master", 48)]
    small = [each.model_copy(update={"protocol": "published/2"}) for each in small]
    kind = {"kind": {**build.CIFAR, "protocol": "published/2"}}
    own = [*measured(1750.0, batch=48, **kind), *measured(1400.0, "fp16-master", 48, **kind)]
    found = [study for study in study_figures([*OF_A_STUDY, *small], own)]
    assert [[(len(row.entries), row.measured) for row in each.rows] for each in found] == [
        [(len(OF_A_STUDY), 0)],
        [(4, 2)],
    ]
    assert [dict(each.apart) for each in found] == [{"protocol": "published/1"}, {"protocol": "published/2"}]


def test_what_another_loader_fed_stands_in_its_row_and_is_told_unless_the_published_one_did():
    found = figure(OF_A_STUDY, measured(1750.0, mode="device"))
    assert found.measured == 1 and found.loaders == ("device",)
    both = figure(OF_A_STUDY, [*measured(1750.0, mode="device"), *measured(1800.0)])
    assert both.measured == 1 and both.loaders == ()


def test_terms_that_a_publication_does_not_name_keep_nothing_apart():
    silent = [claim("RTX 2080 Ti", 2000.0, batch=None, data_mode=None)]
    (row,) = figure(silent, measured(1750.0, batch=32, mode="cached")).rows
    assert row.measured == 1


def test_a_row_is_a_model_on_a_number_of_devices():
    claims = [
        claim("RTX 2080 Ti", 200.0, metric="throughput", unit="images/s", epochs=None),
        claim("RTX 2080 Ti", 350.0, metric="throughput", unit="images/s", epochs=None, gpus=2),
    ]
    rows = figure(claims, measured(1750.0)).rows
    assert [(row.claim.of.gpus, row.measured) for row in rows] == [(1, 1), (2, 0)]


def test_of_throughput_the_most_is_one_and_comes_first():
    claims = [
        claim(card, rate, metric="throughput", unit="images/s", epochs=None)
        for card, rate in (("slow", 100.0), ("fast", 400.0), ("middle", 200.0))
    ]
    (row,) = figure(claims).rows
    assert list(zip(cards(row.entries), [entry.scaled for entry in row.entries], strict=True)) == [
        ("fast", 1.0),
        ("middle", 2.0),
        ("slow", 4.0),
    ]


def test_a_framework_is_a_part_of_the_stack_and_other_options_keep_figures_apart():
    claims = [
        claim("V100", 1000.0, options={"framework": "pytorch", "workers": 6}),
        claim("V100", 1500.0, options={"framework": "keras", "workers": 6}),
        claim("V100", 900.0, options={"framework": "pytorch", "workers": 24}),
    ]
    rows = [[entry.value for entry in row.entries] for row in figure(claims).rows]
    assert rows == [[1000.0, 1500.0], [900.0]]


def test_real_and_synthetic_data_have_a_row_each():
    claims = [
        claim("V100", 1000.0 + 100 * place, options={"framework": "pytorch", "data": data}, gpus=gpus)
        for place, (data, gpus) in enumerate(
            (("real", 1), ("synthetic", 1), ("real", 4), ("synthetic", 4), ("synthetic", 4))
        )
    ]
    rows = figure(claims).rows
    assert [(row.claim.of.options.get("data"), row.claim.of.gpus, len(row.entries)) for row in rows] == [
        ("real", 1, 1),
        ("synthetic", 1, 1),
        ("real", 4, 1),
        ("synthetic", 4, 2),
    ]


def test_cells_of_several_machines_are_in_one_row():
    others = cells_of(trials_of(elsewhere(seconds=1000.0 / WHOLE, **RESNET, batch_size=98)))
    (row,) = figure(OF_A_STUDY, [*measured(1750.0), *others]).rows
    drawn = [entry.source.card for entry in row.entries if isinstance(entry.source, Cell)]
    assert drawn == ["Constructed Card B", "Constructed Card A"]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.floats(1.0, 1e6),
            st.sampled_from(["fp32-ieee", "fp16-master"]),
            st.sampled_from([32, 64, None]),
            st.sampled_from(["host", "device", None]),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_every_published_figure_is_drawn_or_counted_and_the_best_of_each_row_is_one(figures: list[Any]):
    claims = [
        claim(card, value, precision, batch, data_mode=mode, id=f"claim-{n}")
        for n, (card, value, precision, batch, mode) in enumerate(figures)
    ]
    rows = figure(claims).rows
    assert sum(len(row.entries) for row in rows) == len(claims)
    for row in rows:
        scaled = [entry.scaled for entry in row.entries]
        assert scaled[0] == 1.0 and scaled == sorted(scaled)


def test_the_register_s_study_of_five_resnets_is_drawn_with_every_published_card():
    drawn = study_figures(claims_here().claims, ())
    (resnets,) = [each for each in drawn if (each.study, each.metric) == ("004", "protocol_seconds")]
    rows = [row for row in resnets.rows if row.claim.workload == "cifar_fastai"]
    assert [row.claim.of.model for row in rows] == [
        "resnet18",
        "resnet34",
        "resnet50",
        "resnet101",
        "resnet152",
    ]
    for row in rows:
        assert "RTX 2080 Ti" in cards(row.entries)
