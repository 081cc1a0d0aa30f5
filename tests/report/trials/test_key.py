"""What is left out of a key together with a field, and what keeps two works apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from report.trials.key import MEASURED_FIELDS, Key, PartialKey, ProtocolLength, Term, without_fields

KEY = Key("w", "fair/1", "m", "fp32-ieee", 8, "real", "d", "cached")


@pytest.mark.parametrize(
    ("names", "other"),
    [
        (["precision"], {"precision": "amp-fp16", "options": (("loss_scale", "dynamic"),)}),
        (["data_mode"], {"data_mode": "host", "data_sha256": "e"}),
        (["profile"], {"profile": "tuned", "options": (("compile", False),)}),
        (["gpus"], {"gpus": 4, "nodes": 2, "options": (("parallel", "ddp"),)}),
        (MEASURED_FIELDS, {"data_sha256": None, "weights": "random"}),
    ],
)
def test_a_field_takes_what_goes_along_with_it_and_no_other_option(names, other):
    assert without_fields(replace(KEY, **other), *names) == without_fields(KEY, *names)
    apart = replace(KEY, **{**other, "options": (*other.get("options", ()), ("classes", 10))})
    assert without_fields(apart, *names) != without_fields(KEY, *names)


def test_steps_follow_from_the_batch_and_the_epochs_do_not():
    small, large, longer = (ProtocolLength(*each, 1, False) for each in ((10, 1), (5, 1), (5, 2)))
    assert without_fields(small, "batch_size") == without_fields(large, "batch_size")
    assert without_fields(small, "batch_size") != without_fields(longer, "batch_size")


def test_a_partial_key_names_what_another_has_otherwise_and_each_option_that_it_does_not_ask_for():
    asked = PartialKey((("model", "m"), ("gpus", 1)), (("classes", 10),))
    found = replace(KEY, gpus=2, options=(("epochs", 3), ("tied", True)))
    terms = (Term("gpus", 2, 1), Term("classes", None, 10), Term("tied", True, None))
    assert asked.differences(PartialKey.of(found)) == terms
    assert asked.less("gpus", "classes").differences(PartialKey.of(found)) == terms[2:]
