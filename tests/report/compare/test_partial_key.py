from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.compare.partial_key import (
    DATA_MODES,
    MEASURED_FIELDS,
    GroupPlace,
    items_nearest_card,
    match_places,
    nearest_batch,
    same_but,
)
from report.trials.key import Key, ProtocolLength, grouped_by, without_fields

FIELDS = [field.name for field in (*fields(Key), *fields(ProtocolLength))]
WITHIN = ("length", "session", "machine")


@dataclass(frozen=True)
class Item:
    """Anything that is compared; equal ones are told apart by their number."""

    key: Key
    length: ProtocolLength
    session: str = "s"
    machine: str = "m"
    number: int = 0


def options(**values: Any) -> st.SearchStrategy[tuple[tuple[str, Any], ...]]:
    named = {name: st.sampled_from([None, *found]) for name, found in values.items()}
    return st.fixed_dictionaries(named).map(
        lambda one: tuple((name, value) for name, value in sorted(one.items()) if value is not None)
    )


KEYS = st.builds(
    Key,
    workload=st.just("w"),
    protocol=st.sampled_from(["published/1", "fair/1"]),
    model=st.just("m"),
    precision=st.sampled_from(["fp32-ieee", "amp-fp16"]),
    batch_size=st.sampled_from([8, 16]),
    data_source=st.just("real"),
    data_sha256=st.sampled_from([None, "d", "e"]),
    data_mode=st.sampled_from(DATA_MODES),
    weights=st.sampled_from([None, "random"]),
    image_size=st.sampled_from([None, 224]),
    profile=st.sampled_from(["default", "tuned"]),
    gpus=st.sampled_from([1, 2]),
    nodes=st.sampled_from([1, 2]),
    options=options(loss_scale=["dynamic"], parallel=["dp", "ddp"], compile=[False], classes=[10]),
)
LENGTHS = st.builds(
    ProtocolLength,
    steps_per_epoch=st.sampled_from([10, 20]),
    epochs=st.sampled_from([1, 2]),
    valid_batches=st.just(1),
    projected=st.booleans(),
    limit=st.sampled_from([(), (("steps", 50),)]),
)
ITEMS = st.lists(
    st.builds(Item, KEYS, LENGTHS, st.sampled_from(["s", "t"]), st.sampled_from(["m", "n"])), max_size=6
).map(lambda found: [replace(one, number=number) for number, one in enumerate(found)])
LEFT_OUT = st.lists(st.sampled_from(FIELDS), unique=True, max_size=4)


def key(**changes: Any) -> Key:
    return replace(Key("w", "fair/1", "m", "fp32-ieee", 8, "real", "d", "cached"), **changes)


def item(**changes: Any) -> Item:
    return Item(key(**changes), ProtocolLength(10, 1, 1, False))


@given(ITEMS, LEFT_OUT)
def test_every_item_stands_in_exactly_one_group_and_all_keep_their_order(items, names):
    found = list(grouped_by(items, same_but(*names, within=WITHIN)).values())
    assert Counter(one.number for group in found for one in group) == Counter(range(len(items)))
    numbers = [[one.number for one in group] for group in found]
    assert all(group == sorted(group) for group in numbers)
    assert numbers == sorted(numbers), "groups follow their first members"


@given(ITEMS, LEFT_OUT, st.sampled_from(FIELDS))
def test_leaving_out_one_more_field_never_splits_a_group(items, names, more):
    coarse = same_but(*names, more, within=WITHIN)
    for group in grouped_by(items, same_but(*names, within=WITHIN)).values():
        assert len(grouped_by(group, coarse)) == 1


@given(ITEMS)
def test_with_nothing_left_out_a_group_is_of_equal_items_alone(items):
    for group in grouped_by(items, same_but(within=WITHIN)).values():
        assert len({(one.key, one.length, one.session, one.machine) for one in group}) == 1


@given(ITEMS, ITEMS, LEFT_OUT)
def test_an_item_is_matched_with_the_references_in_its_place_and_no_other(items, references, names):
    place = same_but(*names, within=("session",))
    found = list(match_places(items, references, place))
    assert [one for one, _ in found] == items
    for one, beside in found:
        assert list(beside) == [other for other in references if place(other) == place(one)]


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("precision", {}, {"precision": "amp-fp16", "options": (("loss_scale", "dynamic"),)}),
        ("data_mode", {}, {"data_mode": "host", "data_sha256": "e"}),
        ("profile", {}, {"profile": "tuned", "options": (("compile", False),)}),
        ("gpus", {}, {"gpus": 4, "nodes": 2, "options": (("parallel", "ddp"),)}),
        ("weights", {}, {"weights": "random"}),
    ],
)
def test_a_field_takes_what_goes_along_with_it(name, one, other):
    assert same_but(name)(item(**one)) == same_but(name)(item(**other))
    assert without_fields(key(**other), name) == without_fields(key(), name)


@pytest.mark.parametrize("name", ["precision", "profile", "gpus", "batch_size"])
def test_an_option_that_belongs_to_no_field_left_out_keeps_items_apart(name):
    assert same_but(name)(item()) != same_but(name)(item(options=(("classes", 10),)))


def test_steps_follow_from_the_batch_and_the_epochs_do_not():
    small = item()
    large = replace(item(batch_size=16), length=ProtocolLength(5, 1, 1, False))
    longer = replace(item(batch_size=16), length=ProtocolLength(5, 2, 1, False))
    place = same_but("batch_size", within=("length",))
    assert place(small) == place(large) != place(longer)


def test_a_part_may_be_worked_out_from_the_item():
    def home(one: Item) -> str:
        return one.machine if one.key.gpus > 1 else ""

    place = same_but(within=(home,))
    assert place(item()) == place(replace(item(), machine="n"))
    shared = item(gpus=2)
    assert place(shared) != place(replace(shared, machine="n"))


def test_the_key_of_a_place_is_the_key_less_what_was_left_out():
    ((place, _),) = grouped_by([item(gpus=2)], same_but("gpus", "precision")).items()
    assert place == GroupPlace(key(precision=""))


def test_a_trial_that_failed_is_matched_though_it_does_not_know_all_of_its_key():
    failed = item(data_sha256=None)
    assert same_but(*MEASURED_FIELDS)(failed) == same_but(*MEASURED_FIELDS)(item(weights="random"))


def test_of_several_references_the_one_of_the_same_batch_goes_first():
    references = [item(batch_size=16), item(), item()]
    assert nearest_batch(item(), references) is references[1]
    assert nearest_batch(item(batch_size=32), references) is references[0]
    assert nearest_batch(item(), ()) is None


def test_the_mode_nearest_the_card_is_the_best_there_is():
    modes = ["host", "device", "host", "device"]
    found = items_nearest_card([item(data_mode=mode) for mode in modes], lambda one: one.key)
    assert [one.key.data_mode for one in found] == ["device", "device"]
    assert items_nearest_card([], lambda one: key()) == []
