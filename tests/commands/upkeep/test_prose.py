"""What `invoke check` says of long sentences and of words that have a plainer one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.upkeep import prose
from commands.upkeep.prose import MOST_WORDS, Passage
from tests.helpers import ROOT

GOLDEN = ROOT / "tests" / "golden"


def lengths(text: str) -> list[str]:
    return list(prose.long_sentences(Passage("here", text)))


@given(st.integers(min_value=1, max_value=60))
def test_a_sentence_is_too_long_from_one_word_more_than_the_most_on(count: int):
    assert bool(lengths(" ".join(["word"] * count) + ".")) == (count > MOST_WORDS)


@pytest.mark.parametrize("end", [".", "?", ":", ";", ".)", ".*"])
def test_a_stop_a_colon_and_a_semicolon_end_what_is_counted(end):
    half = " ".join(["word"] * MOST_WORDS)
    assert not lengths(f"{half}{end} {half}.")
    assert lengths(f"{half}, {half}.")


def test_a_listed_word_is_named_with_its_place_and_the_plainer_one():
    passage = Passage("docs/a.md:3", "It is written Anew, by the renewed machine.")
    (said,) = prose.listed_words(passage, {"anew": "again", "new": "fresh"})
    assert said.startswith("docs/a.md:3: 'anew' where docs/style.md has 'again'")


def test_in_a_page_code_is_one_word_and_what_a_program_wrote_is_not_read():
    page = (
        "# A title\n\nRun `invoke build run report` **now**,\nor later.\n\n"
        "```sh\nno prose\n```\n\n| a | b |\n| --- | --- |\n| one cell | another |\n\n"
        "<!-- peers: begin -->\nwritten by a program\n<!-- peers: end -->\n"
    )
    read = list(prose.in_page(page))
    assert read[:2] == [(1, "A title"), (3, "Run Code now, or later.")]
    assert [text for _, text in read[2:]] == ["a", "b", "one cell", "another"]
    assert [text for _, text in prose.in_page(page, tables=False)] == ["A title", "Run Code now, or later."]


def test_in_code_texts_are_read_and_docstrings_are_not():
    module = '"""A docstring of many words."""\n\nname = "key"\nsaid = f"{name} is what it {name} says"\n'
    assert list(prose.in_code(module)) == [(4, "… is what it … says")]


def test_the_word_list_is_the_table_of_the_style_page():
    words = prose.word_list(ROOT)
    assert words["in order to"] == "to"
    assert not {"not", "---"} & set(words)


def test_the_pages_and_the_product_keep_to_the_style_page():
    assert list(prose.problems(ROOT)) == []


@pytest.mark.parametrize("name", ["page.md", "money.md"])
def test_a_report_keeps_to_the_style_page(name):
    words = prose.word_list(ROOT)
    read = prose.in_page((GOLDEN / name).read_text(encoding="utf-8"))
    passages = [Passage(f"{name}:{line}", text) for line, text in read]
    assert [said for passage in passages for said in prose.long_sentences(passage)] == []
    assert [said for passage in passages for said in prose.listed_words(passage, words)] == []
