"""Page one: what disturbed the runs, and the line that measures again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

from harness.record import Limit, Record
from report.sections.view import PageView
from tests.helpers import records_builder as build
from tests.report.comparisons.test_groups import LEAD, elsewhere, series, view


def answer(shown: PageView, heading: str) -> tuple[str, ...]:
    (asked,) = [asked for asked in shown.questions if asked.heading == heading]
    return asked.sentences


def test_a_busy_machine_stands_under_how_sure_and_a_quiet_one_is_not_named():
    quiet = series()
    causes = ("busy-machine: 2.0 of 2 cores worked before the trial began",)
    busy = [
        record.model_copy(
            update={
                "summary": record.summary.model_copy(
                    update={"verdict": "warn", "findings": build.named(causes)}
                )
            }
        )
        for record in quiet
    ]
    said = f"{len(busy)} of {len(busy)} measured trials: the machine did other work just before."
    assert said in answer(view(busy), "How sure is this?")
    assert not any("other work" in sentence for sentence in answer(view(quiet), "How sure is this?"))


def test_the_line_that_measures_again_names_the_environment():
    records = series()
    within = records[0].environment.model_copy(update={"image": "era-2019"})
    own = [record.model_copy(update={"environment": within}) for record in records]
    again, spread = answer(view(own), "How is the main figure measured again?")
    assert again.startswith(f"By `invoke run --plan {records[0].plan} --image era-2019 --new-session`")
    assert spread.startswith("Add `--blocks 3` to spread the runs over 3 sittings")


def test_page_one_says_how_many_trials_are_shown_only_where_some_are_missing():
    every = series()
    assert not any("Shown:" in sentence for sentence in answer(view(every), "How sure is this?"))


def test_page_one_tells_the_memory_of_each_work_on_each_of_two_cards():
    larger = []
    for record in elsewhere(seconds=0.08):
        assert record.measurement is not None
        memory = record.measurement.memory.model_copy(update={"allocated_peak_bytes": 3 * 2**30})
        measured = record.measurement.model_copy(update={"memory": memory})
        larger.append(record.model_copy(update={"measurement": measured}))
    said = answer(view([*series(), *larger]), "How much memory and energy does it take?")[0]
    assert re.fullmatch(
        r"LSTM takes up to .+ GiB of memory on the Constructed Card . and .+ GiB on the Constructed Card . "
        r"\(in fp32-ieee\)\.",
        said,
    )
    assert "3.00 GiB" in said


def test_runs_that_are_left_out_as_unproven_are_told_with_their_reason():
    apart = series(seconds=0.1003)[0]
    unproven = apart.model_copy(update={"summary": apart.summary.model_copy(update={"verdict": "unproven"})})
    told = "1 more run is left out: no settled speed was seen."
    assert told in answer(view([*series(), unproven]), "How sure is this?")
    assert told not in answer(view(series()), "How sure is this?")


def test_times_that_are_worked_out_from_a_part_are_said_to_be():
    said = "Times of the whole training are worked out from a part of it."
    short = series(complete=False, limit=Limit(steps=300))
    assert said in answer(view(short), "How sure is this?")
    assert said not in answer(view(series()), "How sure is this?")


def test_page_one_names_the_work_on_which_the_faster_system_is_the_slower():
    heading = "Which is faster, and by how much?"
    both = [*series(), *series(kind=build.CIFAR), *elsewhere(seconds=0.02)]
    faster = answer(view([*both, *elsewhere(seconds=0.05, kind=build.CIFAR)]), heading)
    slower = answer(view([*both, *elsewhere(seconds=0.115, kind=build.CIFAR)]), heading)
    assert faster[1] == "It is faster on both kinds of work, with no tie."
    assert slower[1] == "It is slower on ResNet-50 in fp32-ieee; they tie on none."


def test_what_differs_between_two_computers_is_told_of_this_one_first():
    earlier = [
        record.model_copy(update={"started_at": record.started_at - timedelta(days=90)})
        for record in elsewhere()
    ]
    other = [
        record.model_copy(update={"machine": record.machine.model_copy(update={"kernel": "9.9"})})
        for record in earlier
    ]
    told = answer(view([*other, *series()]), "What differs between the systems?")
    assert any(" against 9.9)" in sentence for sentence in told), told


def test_a_single_failure_is_named_with_its_reason_and_its_work():
    ran = series()
    failed = build.record(
        ran[0].trial, None, on=ran[0].machine, session=LEAD, order=90, failure=build.out_of_memory()
    )
    (said,) = answer(view([*ran, failed]), "What failed?")
    assert re.fullmatch(r"1 trial of \d+: out of memory, .+ at batch \d+ on the .+\.", said)


def test_failures_of_the_other_machine_are_told_beside_those_of_this_one():
    here, there = series(), elsewhere()
    of_both = [
        build.record(
            one.trial, None, on=one.machine, session=one.session, order=90, failure=build.out_of_memory()
        )
        for one in (here[0], there[0])
    ]
    count = len(there)
    assert answer(view([*here, *there]), "What failed?") == ("Nothing on either machine.",)
    others = f"Of {count + 1} trials on the other, 1 failed."
    assert answer(view([*here, *there, of_both[1]]), "What failed?") == ("Nothing on this machine.", others)
    assert answer(view([*here, *there, of_both[0]]), "What failed?")[1] == (
        f"Of {count} trials on the other, none failed."
    )


def test_where_batches_differ_between_precisions_page_one_says_that_they_were_published():
    gained = series("fp16-master", 0.06, first_order=10, batch_size=40)
    told = answer(view([*series(), *gained]), "Does mixed precision pay?")
    assert "Each precision ran at its published batch, so batch and precision change together." in told
    alike = series("fp16-master", 0.06, first_order=10)
    assert not any("batch" in one for one in answer(view([*series(), *alike]), "Does mixed precision pay?"))


def test_the_smallest_and_the_largest_model_are_told_by_their_weights():
    small = [
        *sized(series(), 10_000_000),
        *sized(series("amp-fp16", 0.1, first_order=10), 10_000_000),
    ]
    large = [
        *sized(series(kind=build.CIFAR), 24_000_000),
        *sized(series("amp-fp16", 0.05, kind=build.CIFAR, first_order=10), 24_000_000),
    ]
    told = answer(view([*large, *small]), "Does mixed precision pay?")
    assert any(one.startswith("On the smallest model, LSTM (10 million weights), amp-fp16 ") for one in told)
    assert any(
        one.startswith("On the largest, ResNet-50 (24 million weights), amp-fp16 is 2") for one in told
    )


def sized(records: Sequence[Record], parameters: int) -> list[Record]:
    """The records of a model that has so many weights."""
    measured = [(record, record.measurement) for record in records]
    found = {"structure": {"parameters": parameters}}
    return [
        record.model_copy(update={"measurement": measurement.model_copy(update=found)})
        for record, measurement in measured
        if measurement is not None
    ]
