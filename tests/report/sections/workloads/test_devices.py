"""Several devices, tuned profiles, ladders of batches, loaders and specifications, as the page shows them."""

from __future__ import annotations

import pytest

from harness.record import Claim, Flops, Link, Record
from harness.record.cards import load_cards
from report import text
from report.claims import matching
from report.comparisons import batch_sweeps, cells
from report.sections.limits import roofline
from report.sections.ran.environment import stacks
from report.sections.view import Table, WorkloadView
from report.trials.table import trials_of
from tests.helpers import ROOT
from tests.helpers.records_devices import GIB, LEAD, ladder, mnist, runs, shared, summed, with_parameters
from tests.helpers.trial_tables import table
from tests.report.comparisons.test_groups import view

CARDS = load_cards(ROOT)


def of(records: list[Record]) -> WorkloadView:
    (work,) = view(records).workloads
    return work


def one(work: WorkloadView, caption: str) -> Table:
    return next(table for table in work.tables if caption in table.caption)


@pytest.fixture(scope="module")
def study() -> WorkloadView:
    return of(shared())


def test_throughput_stands_beside_the_gain_of_mixed_precision_by_model_and_devices(study):
    table = one(study, "what each precision gains")
    assert table.columns == ("Model", "Devices", "fp32-ieee", "amp-fp16", "amp-fp16 over fp32-ieee")
    assert [row[1].partition("\n")[0] for row in table.rows] == ["1", "2", "2", "2", "4", "4", "4"]
    first = table.rows[0]
    assert first[0].startswith("ResNet-50")
    assert (first[2].split("\n")[0], first[3].split("\n")[0]) == ("320", "640")
    assert all(row[4].startswith("2.00 ×") for row in table.rows)


def test_what_lies_between_a_machine_s_cards_stands_in_one_table_with_equal_ways_together(study):
    links = [
        Link(vendor="NVIDIA", first=0, second=1, way="NVLink", lanes=4),
        *(Link(vendor="NVIDIA", first=at, second=2, way="PCIe", over="one host bridge") for at in (0, 1)),
    ]
    made = shared()[0]
    machine = made.machine.model_copy(update={"links": tuple(links)})
    drawn = stacks(trials_of(table([made.model_copy(update={"machine": machine})])))
    (ways,) = [drawing for drawing in drawn if drawing.caption == "Ways between the cards"]
    assert [row[1:] for row in ways.rows] == [
        ("NVIDIA, NVLink × 4", "0–1"),
        ("NVIDIA, PCIe over one host bridge", "0–2, 1–2"),
    ]
    assert "Ways between the cards" not in [drawing.caption for drawing in stacks(trials_of(table([made])))]


def test_scaling_has_its_efficiency_and_copies_are_held_against_the_same_device_alone(study):
    table = one(study, "Several devices against one")
    rows = {(row[1], row[2]): row for row in table.rows}
    assert len(table.rows) == 12
    assert rows["fp32-ieee", "4\nDistributedDataParallel"][4].startswith("95 %")
    assert rows["fp32-ieee", "4\nDataParallel"][4].startswith("80 %")
    copies = rows["amp-fp16", "2\nindependent copies"]
    assert copies[4].startswith("98 %")
    assert copies[3] == "1,254", "all copies together"


def test_each_device_s_memory_and_the_load_of_the_first_stand_beside_it(study):
    row = one(study, "Several devices against one").rows[0]
    assert row[6] == "device 0: 6.00 GiB\nothers up to 4.00 GiB"
    assert row[7] == "memory 1.50 ×\nforward pass 1.10 ×"


def test_the_least_that_gradients_take_stands_beside_what_a_step_lost_to_sharing_them():
    changes = with_parameters("fp32-ieee", 25_000_000)
    ddp = {"way": "ddp", "changes": changes}
    table = one(
        of(
            [
                *runs("fp32-ieee", 0.100, changes=changes),
                *runs("fp32-ieee", 0.106, gpus=2, order=10, **ddp),
                *runs("fp32-ieee", 0.097, gpus=4, order=20, **ddp),
                *runs("fp32-ieee", 0.130, gpus=2, order=30, way="dp", changes=changes),
                *runs("fp32-ieee", 0.110, gpus=8, order=40, **ddp),
                *summed(2, 40.0),
                *summed(4, 20.0, order=410),
            ]
        ),
        "Several devices against one",
    )
    least = {(row[1], row[2]): row[table.columns.index("Least for its gradients")] for row in table.rows}
    # 25 million gradients of 4 bytes are 2.5 ms at 40 GB/s.
    assert least == {
        ("fp32-ieee", "2\nDistributedDataParallel"): "2.50 ms of a step's 106 ms\n6.00 ms more than on one",
        ("fp32-ieee", "4\nDistributedDataParallel"): "5.00 ms of a step's 97.0 ms\n3.00 ms less than on one",
        ("fp32-ieee", "2\nDataParallel"): "–",
        ("fp32-ieee", "8\nDistributedDataParallel"): "not measured",
    }
    assert table.caption.endswith(
        "An all-reduce over 2 devices reaches 40.0 GB/s of bus bandwidth at its fastest, 10.0 GB/s in "
        "messages of 1 MiB and 40.0 GB/s in messages of 256 MiB (nccl 2.27.3, 3 runs). "
        "An all-reduce over 4 devices reaches 30.0 GB/s of bus bandwidth at its fastest, 7.50 GB/s in "
        "messages of 1 MiB and 30.0 GB/s in messages of 256 MiB (nccl 2.27.3, 3 runs). "
        "No all-reduce was measured over 8 devices of Constructed Card A (constructed-card-a): "
        "`invoke run --plan ceilings` does it."
    )


def test_as_many_devices_on_two_nodes_have_rows_and_an_all_reduce_of_their_own_and_no_line():
    changes = with_parameters("fp32-ieee", 25_000_000)
    ddp = {"way": "ddp", "changes": changes}
    work = of(
        [
            *runs("fp32-ieee", 0.100, changes=changes),
            *runs("fp32-ieee", 0.105, gpus=2, order=10, **ddp),
            *runs("fp32-ieee", 0.125, gpus=2, nodes=2, order=20, **ddp),
            *runs("fp32-ieee", 0.128, gpus=4, nodes=2, order=30, **ddp),
            *summed(2, 40.0),
            *summed(2, 4.0, nodes=2, order=410),
        ]
    )
    throughput = {row[1]: row[2].split("\n")[0] for row in one(work, "what each precision gains").rows}
    assert throughput == {
        "1": "320",
        "2\nDistributedDataParallel": "610",
        "2 on 2 nodes\nDistributedDataParallel": "512",
        "4 on 2 nodes\nDistributedDataParallel": "1,000",
    }
    assert one(work, "what each precision gains").caption.endswith("the charts have the fewest.")
    shares = one(work, "Several devices against one")
    least = {row[2].split("\n")[0]: row[5].split("\n")[0] for row in shares.rows}
    assert least == {
        "2": "2.50 ms of a step's 105 ms",
        "2 on 2 nodes": "25.0 ms of a step's 125 ms",
        "4 on 2 nodes": "not measured",
    }
    assert "An all-reduce over 2 devices on 2 nodes reaches 4.00 GB/s" in shares.caption
    assert "No all-reduce was measured over 4 devices on 2 nodes of" in shares.caption
    scaling = next(panel.alt for panel in work.overview if panel.title == "ResNet-50: scaling")
    assert "fp32-ieee ddp: 1.00 on 1, 1.90 on 2, 3.12 on 4" in scaling
    headings = {group.heading for group in work.groups}
    assert "ResNet-50, batch 32, cached data, 2 devices on 2 nodes (ddp)" in headings


def test_what_several_devices_reach_together_is_told_of_their_machine_and_is_no_ceiling_of_one():
    (work, *_) = runs("fp32-ieee", 0.1, repeats=1, changes={"flops": Flops(per_sample=1e9)})
    rows = trials_of(table([work, *summed(2, 40.0)]))
    (shown,) = roofline.limits(rows, CARDS, "limits")
    assert [note.partition(" of bus")[0] for note in shown.notes] == [
        "No ceiling was measured on this device: `invoke run --plan ceilings` does it.",
        "An all-reduce over 2 devices reaches 40.0 GB/s",
    ]


def test_both_ways_of_sharing_are_drawn_side_by_side_from_one_device_on_under_the_ideal_line(study):
    drawn = {panel.title: panel.alt for panel in study.overview}
    scaling = drawn["ResNet-50: scaling"]
    assert "ideal: 1.00 on 1, 4.00 on 4" in scaling
    assert "fp32-ieee ddp: 1.00 on 1, 1.90 on 2, 3.80 on 4" in scaling
    assert "fp32-ieee dp: 1.00 on 1, 1.60 on 2, 3.20 on 4" in scaling
    assert "each" not in scaling
    assert "amp-fp16 ddp: 2.00 on 1, 2.00 on 2, 2.00 on 4" in drawn["ResNet-50: speed against fp32-ieee"]
    assert "amp-fp16 dp: 640" in drawn["ResNet-50: images a second"]


def test_a_chart_of_several_devices_says_so_and_the_overview_keeps_them_apart(study):
    assert "ResNet-50, batch 32, cached data, 2 devices (ddp)" in {group.heading for group in study.groups}
    units = [panel.unit for panel in study.overview if panel.title == "Speed against 32-bit, by model"]
    assert len(units) == 7
    assert any(unit.endswith("cached data, 4 devices (dp)") for unit in units)


def test_the_sentence_at_the_top_is_of_one_device_though_several_come_first():
    several = runs("fp32-ieee", 0.1, way="ddp", gpus=2) + runs("amp-fp16", 0.02, way="ddp", gpus=2, order=10)
    shown = view([*several, *runs("fp32-ieee", 0.1, order=20), *runs("amp-fp16", 0.05, order=30)])
    assert shown.answer.startswith("On this Constructed Card A, amp-fp16 trained ResNet-50")
    assert "2.00 times as fast" in shown.answer
    assert "ResNet-50, cached, 2 devices (ddp)" in {row[0] for row in shown.decision.rows}


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("resnet101", "ResNet-101"),
        ("efficientnet_b7", "EfficientNet-B7"),
        ("inception_v3", "InceptionV3"),
        ("timm/resnet50", "timm/resnet50"),
    ],
)
def test_models_are_written_as_people_do_and_another_package_s_keep_its_name(name, written):
    assert text.model_name(name) == written


def test_more_than_linear_scaling_is_marked_though_one_device_needs_no_way_of_sharing():
    faster = runs("fp32-ieee", 0.05, way="ddp", gpus=2, order=10)
    table = view([*runs("fp32-ieee", 0.1), *faster])
    assert any("above-linear" in warning for warning in table.warnings)


def test_tuned_has_its_gain_as_a_figure_and_stands_in_no_chart_with_default():
    records = [
        *runs("fp32-ieee", 0.1),
        *runs("amp-fp16", 0.05, order=10),
        *runs("fp32-ieee", 0.08, profile="tuned", order=20),
    ]
    work = of(records)
    table = one(work, "What the profile 'tuned' gains")
    assert [row[1:4] for row in table.rows] == [("fp32-ieee\nbatch 32", "320", "400")]
    assert table.rows[0][4].startswith("1.25 ×")
    lines = {group.heading: len(group.table.rows) for group in work.groups}
    assert lines == {
        "ResNet-50, batch 32, cached data": 2,
        "ResNet-50, batch 32, cached data, tuned": 1,
    }


def test_the_best_batch_is_the_fastest_rung_and_the_wall_is_drawn():
    work = of([*runs("amp-fp16", 0.079, order=200), *ladder()])
    (panel,) = [panel for panel in work.overview if "throughput against batch" in panel.title]
    assert "128 does not fit" in panel.alt
    (row,) = one(work, "The best batch").rows
    assert (row[1], row[2], row[4], row[5]) == ("amp-fp16", "64", "64", "128")
    assert [group.heading for group in work.groups] == ["ResNet-50, batch 32, cached data"]
    assert work.groups[0].table.rows[0][1] == "3", "no rung is averaged with the fixed batch"


def test_the_best_batch_need_not_be_the_largest_and_a_slow_large_one_is_suspected_of_spilling():
    (row,) = one(of(ladder(slow=2.0)), "The best batch").rows
    assert row[2] == "32\nfar slower above: memory may spill"
    assert row[4].startswith("64")


def test_a_batch_that_fills_the_device_to_the_brim_is_not_taken_for_one_that_fits():
    (row,) = one(of(ladder(reserved=23 * GIB)), "The best batch").rows
    assert (row[2], row[4]) == ("32", "32\n48 % of the memory")


def test_where_a_session_has_nothing_but_a_ladder_its_rungs_are_charts_too():
    assert len(of(ladder()).groups) == 4
    assert batch_sweeps.without_sweeps((), LEAD) == ()


def test_why_mixed_precision_gained_nothing_is_said_in_a_sentence_of_waiting_against_computing():
    work = of(
        [
            *mnist("fp32-ieee", 0.100, "host", 0.80, 0),
            *mnist("amp-fp16", 0.098, "host", 0.85, 10),
            *mnist("fp32-ieee", 0.020, "device", 0.01, 20),
            *mnist("amp-fp16", 0.010, "device", 0.02, 30),
        ]
    )
    assert work.about.endswith(
        "CNN, batch 32: with the published loader amp-fp16 is 1.02 times as fast as fp32-ieee, with the same "
        "data on the device 2.00 times: the loader kept it waiting for 85 % of the time, the device's own "
        "data for 2 %. What waits for input is not shortened by faster arithmetic."
    )


def test_specifications_stand_beside_the_ceilings_measured_on_the_same_device():
    (record,) = runs("fp32-ieee", 0.1, repeats=1)
    device = record.measurement.device.model_copy(
        update={"name": "Tesla T4", "memory_bytes": 15 * GIB, "kind": "cuda"}
    )
    measured = {"gemm_fp16_tflops": 32.5, "copy_gb_per_second": 240.0}
    table = roofline.datasheet_table(device, CARDS, measured, ())
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["FP16 products"] == ("65.0 TFLOP/s", "32.5 TFLOP/s", "50 %")
    assert rows["Memory bandwidth"] == ("320 GB/s", "240 GB/s", "75 %")
    assert rows["Memory"] == ("16.0 GiB", "15.0 GiB", "94 %")
    assert rows["Power limit"] == ("70.0 W", "–", "–")
    assert "Source:" in table.caption
    assert roofline.datasheet_table(device.model_copy(update={"name": "Unheard Of"}), CARDS, {}, ()) is None


def test_what_is_smaller_than_its_protocol_is_labelled_and_no_claim_is_judged_on_it():
    label = "scaled down: width 512 (published 4096)"
    (record, *_) = records = runs("fp32-ieee", 0.1, changes={"notes": (label,)})
    (group,) = of(records).groups
    badge = next(badge for badge in group.badges if badge.word == "smaller than published")
    assert badge.because.endswith(f"so that it ends soon: {label}")
    side = {"model": "resnet50"}
    claim = Claim(
        id="x",
        study="001",
        kind="structure",
        workload="convnet",
        metric="parameters",
        protocol=record.trial.asked.protocol,
        of=side,
        value=1,
        unit="parameters",
        source="constructed",
    )
    cell = cells.cells_of(table([record]))[0]
    assert matching.side_differences(claim.of, claim, cell) == (label,)
    (record, *_) = runs(
        "fp32-ieee", 0.1, changes={"notes": ("smaller images than the model's own: 224 of 600",)}
    )
    cell = cells.cells_of(table([record]))[0]
    assert matching.smaller(cell) and not matching.side_differences(claim.of, claim, cell)
