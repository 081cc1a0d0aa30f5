"""Tables of a claim file: each figure becomes a claim of its own. Every figure here is constructed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UserError
from harness.record.published.claim import ClaimTable, expand_table
from tests.harness.record.test_claims import put
from tests.helpers.here import load_claims

FILE = """
[defaults]
study = "007"
workload = "toy"
protocol = "published/1"
source = "a book"

[[tables]]
id = "007-{of.options.framework}-{of.card}-{of.gpus}"
kind = "absolute"
metric = "throughput"
unit = "images/s"
of = { model = "net", options = { data = "real" } }
columns = ["of.options.framework", "of.card=T4, of.gpus=1", "of.card=T4, of.gpus=4"]
rows = [["Py Torch", "12", "3,456.70"], ["caffe", "", "40"]]
"""


def read(root, text):
    return load_claims(put(root, text)).claims


def test_each_figure_is_a_claim_with_the_fields_of_its_row_its_column_and_its_table(tmp_path):
    found = read(tmp_path, FILE)
    assert [(claim.id, claim.value) for claim in found] == [
        ("007-py-torch-t4-1", 12),
        ("007-py-torch-t4-4", 3456.7),
        ("007-caffe-t4-4", 40),
    ]
    assert [claim.of.gpus for claim in found] == [1, 4, 4]
    assert {claim.of.model for claim in found} == {"net"}
    assert found[2].of.options == {"framework": "caffe", "data": "real"}
    assert {(claim.source, claim.unit, claim.study) for claim in found} == {("a book", "images/s", "007")}


def test_half_of_the_last_printed_digit_is_read_off_the_figure_unless_the_table_says_another(tmp_path):
    assert [claim.half_digit for claim in read(tmp_path, FILE)] == [0.5, 0.005, 0.5]
    coarse = FILE.replace('unit = "images/s"', 'unit = "images/s"\nhalf_digit = 30')
    assert {claim.half_digit for claim in read(tmp_path, coarse)} == {30}


def test_a_number_without_quotes_says_nothing_of_its_rounding(tmp_path):
    assert read(tmp_path, FILE.replace('"12"', "12"))[0].half_digit == 0


def test_what_the_source_calls_the_row_joins_the_source_and_may_stand_in_the_id(tmp_path):
    text = FILE.replace('"of.options.framework", ', '"row", ').replace("{of.options.framework}", "{row}")
    found = read(tmp_path, text)
    assert found[0].id == "007-py-torch-t4-1"
    assert found[0].source == "a book, row 'Py Torch'"
    assert found[0].of.options == {"data": "real"}


def test_a_table_of_one_column_of_figures_calls_it_value(tmp_path):
    text = FILE.replace('"of.card=T4, of.gpus=1", "of.card=T4, of.gpus=4"', '"of.card", "value"')
    text = text.replace("-{of.gpus}", "")
    found = read(tmp_path, text.replace('"12", "3,456.70"', '"T4", "1.5"').replace('"", "40"', '"L4", "-"'))
    assert [(claim.of.card, claim.value) for claim in found] == [("T4", 1.5)]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('["caffe", "", "40"]', '["caffe", "40"]', "s007.toml: 'tables 1': row 2: 2 cells for 3 columns"),
        ('"12"', '"fast"', "row 1, 'of.card=T4, of.gpus=1': 'fast' is no figure"),
        (
            '"of.card=T4, of.gpus=1", "of.card=T4, of.gpus=4"',
            '"stack", "unit"',
            "'tables 1': columns: none is",
        ),
        (
            'unit = "images/s"',
            'unit = "images/s"\nspeed = 3',
            "claim '007-py-torch-t4-1': 'speed': unknown key",
        ),
        ("of.card=T4, of.gpus=1", "of.crad=T4", "'of.crad': unknown key"),
        ("-{of.gpus}", "-{of.pugs}", "claim '007-py-torch-t4-{of.pugs}': 'id': String should match pattern"),
        ("{of.options.framework}-", "", "two claims have the id '007-t4-4'"),
    ],
)
def test_a_table_that_cannot_be_meant_is_refused(tmp_path, old, new, problem):
    assert old in FILE
    with pytest.raises(UserError) as caught:
        read(tmp_path, FILE.replace(old, new))
    assert problem in caught.value.problem


@given(st.integers(min_value=0, max_value=10**12), st.integers(min_value=0, max_value=9))
def test_a_figure_of_any_length_lies_within_half_of_its_last_digit(digits, places):
    printed = f"{digits / 10**places:,.{places}f}"
    table = ClaimTable(id="x", columns=("value",), rows=((printed,),))
    (claim,) = expand_table(table, {})
    assert claim["half_digit"] == pytest.approx(0.5 * 10**-places)
    assert f"{claim['value']:,.{places}f}" == printed
