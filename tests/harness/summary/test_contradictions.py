"""What a record says against itself is named. The records were measured, then changed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from harness.record import Gpu, Record
from harness.summary import contradictions
from tests.helpers import records_builder as build
from tests.helpers.here import results_here

RESULTS = results_here()
SESSION = next(session for session in RESULTS.sessions if len(session.trials) == 12)
OWN = tuple(
    sorted(
        (stored for stored in RESULTS.records if stored.record.session == SESSION.id),
        key=lambda stored: stored.record.started_at,
    )
)


def said_of(record: Record) -> str:
    return "\n".join(
        (*contradictions.record_contradictions(record), *contradictions.place_contradictions(record))
    )


def test_nothing_that_was_measured_here_contradicts_itself():
    assert [said_of(stored.record) for stored in RESULTS.records if said_of(stored.record)] == []
    assert RESULTS.problems == ()


RECORD = OWN[0].record
TAKEN = RECORD.measurement
H100 = "NVIDIA H100 80GB HBM3"

FORGED = [
    ({"measurement__window__samples": 2 * TAKEN.window.samples}, "samples are more than"),
    ({"measurement__samples_per_step": 840}, "samples are fewer than"),
    ({"measurement__window__steps": 2 * TAKEN.window.steps}, "steps, and its series has"),
    ({"measurement__window__seconds": TAKEN.window.seconds / 1.1}, "its epochs trained for"),
    ({"wall_seconds": 1.0}, "stands in 1 s"),
    ({"environment__lock_sha256": "f" * 64}, "its lock is 'ffffffffffff'"),
    ({"environment__device": "cuda"}, "its environment is for 'cuda'"),
    ({"measurement__device__count": 8}, "it ran on 8 devices"),
    ({"measurement__precision__label": "amp-fp16"}, "its precision is 'amp-fp16'"),
    ({"measurement__device__name": H100}, f"it ran on '{H100}', which its machine does not have"),
]


@pytest.mark.parametrize(("places", "says"), FORGED)
def test_what_was_changed_in_one_place_is_named(places, says):
    assert said_of(RECORD) == ""
    assert says in said_of(build.changed(RECORD, **places))


NVIDIA = Gpu(index=0, vendor="NVIDIA", name=H100, unit="a" * 16)
AMD = Gpu(index=0, vendor="AMD", name="AMD Instinct MI210", unit="b" * 16, architecture="gfx90a")


@pytest.mark.parametrize(
    ("kind", "card", "device", "fits"),
    [
        ("cuda", NVIDIA, {"name": H100, "unit": "a" * 16}, True),
        ("cuda", NVIDIA, {"name": H100, "unit": "c" * 16}, False),
        ("cuda", NVIDIA, {"name": "NVIDIA A100-SXM4-40GB"}, False),
        ("cuda", None, {"name": H100}, False),
        ("cuda", AMD, {"name": "AMD Instinct MI210"}, False),
        ("rocm", AMD, {"name": "AMD Radeon Graphics", "capability": "gfx90a:sramecc+:xnack-"}, True),
        ("rocm", AMD, {"name": "AMD Instinct MI210", "capability": "gfx942"}, False),
        ("rocm", AMD, {"name": "AMD Instinct MI210", "unit": "c" * 16}, False),
        ("rocm", NVIDIA, {"name": H100}, False),
    ],
)
def test_the_card_that_was_measured_is_one_of_its_machines(kind, card, device, fits):
    places = {f"measurement__device__{name}": value for name, value in {**device, "kind": kind}.items()}
    places |= {"trial__asked__device": kind, "environment__device": kind}
    said = said_of(build.changed(RECORD, machine__gpus=(card,) if card else (), **places))
    assert ("which its machine does not have" in said) is not fits


def test_a_copy_of_a_record_as_a_further_repeat_is_named():
    first, *others = OWN
    later = first.record.started_at + timedelta(hours=5)
    spec = first.record.trial.model_copy(
        update={"repeat": 9, "id": first.record.trial.id.replace("-r1-", "-r9-")}
    )
    copied = first.record.model_copy(update={"trial": spec, "started_at": later})
    assert list(contradictions.find_copies([first.record, *(other.record for other in others)])) == []
    assert list(contradictions.find_copies([copied, first.record])) == [(0, 1)]


def test_a_device_that_its_image_is_not_for_is_named():
    forged = build.changed(RECORD, environment__image="cuda126")
    assert "its device is of 'cpu', and its image 'cuda126' is for 'cuda'" in said_of(forged)
