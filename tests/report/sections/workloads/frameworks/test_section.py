"""Frameworks beside each other: what is alike enough to be ranked, and what is said of it."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from harness.record import DataFound, Record
from report.page.render import render
from report.sections.view import FrameworksView, FrameworkWorkView
from tests.helpers import records_builder as build
from tests.helpers.records_devices import shared
from tests.helpers.records_frameworks import CARD, LEAD, USED, runs
from tests.report.comparisons.test_groups import view


def of(records: list[Record]) -> FrameworksView:
    shown = view(records).frameworks
    assert shown is not None
    return shown


def one(records: list[Record]) -> FrameworkWorkView:
    (work,) = of(records).works
    return work


def column(work: FrameworkWorkView, name: str) -> dict[str, str]:
    place = work.figures.columns.index(name)
    return {row[0]: row[place] for row in work.figures.rows}


def three() -> list[Record]:
    return [
        *runs("pytorch", 0.200),
        *runs("tensorflow", 0.250),
        *runs("chainer", 0.400),
        *runs("keras-tensorflow", 0.100, protocol="published/1"),
    ]


def test_frameworks_stand_in_one_table_though_image_session_and_versions_differ():
    work = one(three())
    assert [row[:2] for row in work.figures.rows] == [
        ("PyTorch", "fair/1"),
        ("TensorFlow", "fair/1"),
        ("Chainer", "fair/1"),
        ("Keras", "published/1"),
    ]
    scaled = column(work, "Time-scaled")
    assert {name: words[:4] for name, words in scaled.items()} == {
        "PyTorch": "1.00",
        "TensorFlow": "1.25",
        "Chainer": "2.00",
        "Keras": "not ",
    }
    assert "(" in scaled["TensorFlow"], "a ratio has its interval"
    assert column(work, "Seconds / step")["TensorFlow"] == "0.250"
    assert column(work, "Images / s")["TensorFlow"] == "256"
    # 5 epochs of 1,364 steps at 0.25 s, and a tenth for what the builder validates.
    assert column(work, "Whole protocol")["TensorFlow"].startswith("31.3 min")


def test_the_fastest_is_named_under_the_fair_protocol_though_a_published_one_is_faster():
    work = one(three())
    assert work.sentences[0].startswith(
        "PyTorch is the fastest under fair/1: 320 images a second. TensorFlow"
    )
    assert " takes 1.25 (" in work.sentences[0]
    assert work.panel is not None and "Keras" not in work.panel.alt


def test_what_cannot_be_told_apart_is_tied():
    work = one([*runs("pytorch", 0.2000), *runs("tensorflow", 0.2001)])
    assert work.sentences[0].endswith("TensorFlow is tied with it.")
    assert column(work, "Time-scaled")["TensorFlow"].endswith("\ntied")


def test_windows_that_prove_nothing_rank_nothing():
    work = one([*runs("pytorch", 0.2, verdict="unproven"), *runs("chainer", 0.4, verdict="unproven")])
    assert "rank nothing" in work.sentences[0]
    assert all(words.endswith("not ranked") for words in column(work, "Time-scaled").values())


def test_an_unproven_line_is_no_reference_though_it_is_the_fastest():
    slow = [*runs("pytorch", 0.2), *runs("tensorflow", 0.3)]
    scaled = column(one([*slow, *runs("chainer", 0.1, verdict="unproven")]), "Time-scaled")
    assert scaled["PyTorch"].startswith("1.00 (")
    assert scaled["Chainer"].startswith("0.50 (") and scaled["Chainer"].endswith("\nnot ranked")


@pytest.mark.parametrize(
    "change",
    [
        {"batch_size": 32},
        {"mode": "cached"},
        {"data": "generated"},
        {"gpus": 2},
        {"on": build.machine(CARD, label="card-b", digits="b")},
        {"changes": {"data": DataFound(name="constructed", source="synthetic", sha256="9" * 64)}},
    ],
    ids=["batch", "data mode", "data source", "devices", "machine", "data hash"],
)
def test_frameworks_that_differ_in_more_than_their_stack_are_not_set_against_each_other(
    change: dict[str, Any],
):
    assert view([*runs("pytorch", 0.2), *runs("tensorflow", 0.25, **change)]).frameworks is None


def test_frameworks_on_two_nodes_of_one_session_are_not_set_against_each_other():
    other = build.machine(CARD, label="card-b", digits="b")
    elsewhere = [
        one.model_copy(update={"machine": other, "session": LEAD}) for one in runs("tensorflow", 0.25)
    ]
    assert view([*runs("pytorch", 0.2), *elsewhere]).frameworks is None


def test_what_each_framework_is_stands_first_with_what_it_does_differently():
    shown = of([*three(), *runs("keras-tensorflow", 0.3)])
    assert shown.characteristics.rows == (
        (
            "PyTorch",
            "2.13.0",
            "alive",
            "nothing: eager",
            "DataParallel, DistributedDataParallel",
            "channels first",
            "none: pinned tensors in host memory",
            "170\n560 shared in it, 1,920 shared by all",
        ),
        ("TensorFlow", "2.21.0", "alive", "tf.function", "MirroredStrategy", "channels last", "–", "–"),
        (
            "Keras",
            "3.15.1",
            "alive",
            "XLA",
            "MirroredStrategy",
            "channels last",
            "keras.utils.PyDataset",
            "270\n1,920 shared by all",
        ),
        ("Chainer", "7.8.1", "retired", "nothing: eager", "one device alone", "–", "–", "–"),
    )
    assert "docstring" in shown.characteristics.caption
    assert shown.differences == (
        "PyTorch: torchvision's network.",
        "Keras: Keras' own loop; a callback is the clock.",
    )


def test_a_framework_without_a_release_for_years_is_dormant_since_the_last():
    used = USED["tensorflow"].model_copy(update={"dormant_since": date(2023, 6, 12)})
    shown = of([*runs("pytorch", 0.2), *runs("tensorflow", 0.3, changes={"framework": used})])
    assert [row[2] for row in shown.characteristics.rows] == ["alive", "dormant: last release 2023-06-12"]


def test_a_record_from_before_workloads_told_their_framework_has_its_name_and_versions_and_nothing_guessed():
    silent = {"changes": {"framework": None}}
    shown = of([*runs("pytorch", 0.2, **silent), *runs("chainer", 0.4, **silent)])
    assert shown.characteristics.rows == (
        ("pytorch", "pytorch 1.2.3"),
        ("chainer", "chainer 1.2.3"),
    )
    assert "docstring" not in shown.characteristics.caption and not shown.differences


def test_ways_of_sharing_a_step_are_lines_by_the_framework_s_own_words_with_the_load_of_the_first_device():
    work = one(
        [
            *runs("pytorch", 0.2, gpus=4, way="dp"),
            *runs("pytorch", 0.1, gpus=4, way="ddp"),
            *runs("tensorflow", 0.15, gpus=4),
        ]
    )
    assert [row[0] for row in work.figures.rows] == [
        "PyTorch (DistributedDataParallel)",
        "TensorFlow (MirroredStrategy)",
        "PyTorch (DataParallel)",
    ]
    assert work.load is not None
    assert work.load.rows[0][2:] == ("device 0: 6.00 GiB\nothers up to 4.00 GiB", "memory 1.50 ×")
    assert one(three()).load is None, "one device has no other to carry for"


def test_one_framework_alone_makes_no_section_and_two_make_one_in_both_forms_of_the_page():
    alone = render(view([*runs("pytorch", 0.2), *runs("pytorch-loss-per-gpu", 0.2, protocol="published/1")]))
    several = render(view(three()))
    question = "Which framework is the fastest?"
    for before, after in ((alone.html, several.html), (alone.markdown, several.markdown)):
        assert question not in before and question in after
    assert 'href="#frameworks"' in several.html and "frameworks-1.svg" in dict(several.charts)
    assert view(shared()).frameworks is None


def test_a_chart_of_one_framework_says_which():
    headings = [group.heading for work in view(three()).workloads for group in work.groups]
    assert "DenseNet-121, batch 64, host data, chainer" in headings
