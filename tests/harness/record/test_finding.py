"""The one table of findings: each name has words for just the data that it comes with."""

from __future__ import annotations

import ast
from functools import cache
from string import Formatter

import pytest

from harness.record import Finding, finding
from harness.record.finding import (
    KINDS,
    finding_fault,
    finding_label,
    finding_sentence,
    gravest_verdict,
    sentence_fields,
)
from tests.helpers import ROOT


@cache
def calls() -> list[tuple[str, str, frozenset[str] | None]]:
    """Each call of `finding` in the product: its place, name, and data unless `**` gives some."""
    found = []
    paths = [path for folder in ("harness", "report", "commands") for path in (ROOT / folder).rglob("*.py")]
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "finding"
            )
            if named and node.args and isinstance(node.args[0], ast.Constant):
                keys = [word.arg for word in node.keywords]
                data = None if None in keys else frozenset(key for key in keys if key)
                found.append((f"{path.name}:{node.lineno}", str(node.args[0].value), data))
    return found


def test_every_finding_that_the_code_makes_has_words_for_its_data():
    made = calls()
    assert len(made) > 60
    for place, name, data in made:
        assert name in KINDS, f"{place}: '{name}' is not in the table"
        if data is not None:
            assert data in [sentence_fields(clause) for clause in KINDS[name].sentences] or not data, (
                f"{place}: {data}"
            )


def test_every_name_of_the_table_is_made_somewhere():
    assert KINDS.keys() == {name for _, name, _ in calls()}


@pytest.mark.parametrize("name", KINDS)
def test_a_row_has_a_short_label_and_sentences_that_differ_in_their_data(name: str):
    kind = KINDS[name]
    assert 1 <= len(kind.label.split()) <= 5 and len(kind.label) <= 40
    keys = [sentence_fields(clause) for clause in kind.sentences]
    assert keys and len(set(keys)) == len(keys)
    for clause in kind.sentences:
        numbers = {field: spec for _, field, spec, _ in Formatter().parse(clause) if field}
        data = {field: 3 if spec else "a" for field, spec in numbers.items()}
        assert finding_sentence(finding(name, **data)) not in ("", kind.label)


def test_data_without_words_give_the_label_and_an_unknown_name_is_looked_at():
    assert finding_sentence(finding("slowdown", first_step="early", more=1)) == "steps became slower"
    assert finding_sentence(finding("input-bound", input_share="much")) == "waits for input"
    unknown = Finding(name="of-tomorrow", severity="warn", data={"figure": 1})
    assert (finding_sentence(unknown), finding_label(unknown), finding_fault(unknown)) == (
        "of tomorrow",
        "of tomorrow",
        "machine",
    )


def test_what_is_not_finite_is_a_word_and_the_finding_reads_back():
    made = finding("not-finite", loss=float("nan"), step=3)
    assert Finding.model_validate_json(made.model_dump_json()) == made
    assert finding_sentence(made) == "the training loss is nan at step 3"


def test_the_gravest_severity_is_the_verdict():
    warn, note = finding("slowdown", first_step=4), finding("own-window")
    assert [gravest_verdict(found) for found in ((), (note,), (note, warn))] == ["valid", "valid", "warn"]
    assert gravest_verdict((warn,), "unproven") == "unproven"
