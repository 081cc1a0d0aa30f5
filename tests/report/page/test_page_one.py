"""Page one of each purpose: what leads it, and how much of it there is."""

from __future__ import annotations

import dataclasses
import re
from types import SimpleNamespace

import pytest

from report.charts.rows import ScaleRows
from report.page.values import systems_of
from tests.helpers.cases import analysis_of
from tests.helpers.page_reader import read
from tests.helpers.purposes import PURPOSES, page, written

MOST_WORDS = 220
MOST_HEADLINE = 30
MOST_NOTE = 40
MOST_CHIPS = 4
MOST_BARS = 14

each_purpose = pytest.mark.parametrize("name", PURPOSES)


def texts(name: str, *tags: str) -> list[str]:
    """The texts of the elements of page one that are called so."""
    html = written(name).html.read_text(encoding="utf-8")
    first = html.partition("<nav")[0]
    pattern = "|".join(rf"<{tag}\b[^>]*>(.*?)</{tag}>" for tag in tags)
    found = (next(filter(None, groups.groups()), "") for groups in re.finditer(pattern, first, re.S))
    return [re.sub(r"<[^>]+>", "", text) for text in found]


@each_purpose
def test_page_one_is_about_what_the_records_bear(name: str):
    assert page(name).one.about.state == PURPOSES[name].asked


@each_purpose
def test_running_text_of_page_one_is_short(name: str):
    headline, notes, captions = texts(name, "h1"), texts(name, "p"), texts(name, "figcaption")
    assert len(headline) == 1
    assert len(headline[0].split()) <= MOST_HEADLINE
    assert max(len(note.split()) for note in notes) <= MOST_NOTE
    assert sum(len(text.split()) for text in (*headline, *notes, *captions)) <= MOST_WORDS


@each_purpose
def test_chips_are_few_and_the_worst_stands_first(name: str):
    chips = page(name).one.chips
    order = ["stop", "care", "good"]
    kinds = [order.index(chip.kind) for chip in chips]
    assert 1 <= len(chips) <= MOST_CHIPS
    assert kinds == sorted(kinds)
    assert len({chip.name for chip in chips if chip.name != "old-offer"}) >= len(chips) - 1


@each_purpose
def test_notes_and_the_next_step_stand_below_the_table(name: str):
    one = page(name).one
    assert 2 <= len(one.answer.notes) <= 3 and one.answer.following.data["commands"]


def test_a_network_stands_beside_the_card_s_published_figures_with_their_number_and_what_differs():
    rows = page("card-published").one.answer.table.rows
    (network,) = (of for of in rows if of.name.startswith("resnet50"))
    assert (network.known.basis, network.known.beside, network.known.years) == ("published", 1, (2022, 2024))
    said = re.sub(r"<[^>]+>|\s+", " ", written("card-published").html.read_text("utf-8"))
    assert "63 published figures of this card, 2022 to 2024, 4,950 images/s by what 1 other card on" in said
    assert (
        "record reached of its own; others train with images that are read, in batches of their own" in said
    )


@pytest.mark.parametrize("name", ["pair", "one-machine", "committed"])
def test_the_picture_starts_at_the_fastest_and_has_room(name: str):
    picture = page(name).one.answer.picture
    assert picture is not None and isinstance(picture.chart, ScaleRows)
    chart = picture.chart
    assert 1 <= sum(len(group.rows) for group in chart.groups) <= MOST_BARS
    for group in chart.groups:
        values = [mark.value for row in group.rows for mark in row.marks]
        assert values == sorted(values)
        assert values[0] == 1.0


def test_a_buyer_reads_what_a_cost_is_made_of_beside_the_offers():
    (note,) = [
        line for line in written("buyer").markdown.read_text("utf-8").split("\n") if "in the sum?" in line
    ]
    said = note.replace("\xa0", " ")
    assert all(each in said for each in ("1,500 EUR", "0 to 20 %", "3.0 to 5.0 years", "80 % of a year"))


def test_after_too_little_memory_the_plan_changes_before_it_runs_again():
    step = page("failed").one.answer.following.data
    assert (step["changes"], step["commands"]) == (True, ("invoke build --plan constructed run report",))
    assert "`batch_size`" in written("failed").markdown.read_text("utf-8")


def test_a_class_counts_the_trials_of_all_its_machines():
    made = page("twenty-machines").one
    assert made.source.trials == 60
    assert {chip.name: chip.data for chip in made.chips}["all-finished"] == {"of": 60}


@each_purpose
def test_every_id_stands_once_and_every_link_leads_to_one(name: str):
    shown = read(written(name).html.read_text(encoding="utf-8"))
    ids = [element.attributes["id"] for element in shown.elements if "id" in element.attributes]
    links = [e.attributes["href"] for e in shown.all("a") if e.attributes["href"].startswith("#")]
    assert len(ids) == len(set(ids))
    assert {link.removeprefix("#") for link in links} <= set(ids)


def test_a_load_without_a_network_leads_the_page_and_counts_what_ran():
    source = page("card-long").one.source
    assert (source.plans, source.trials) == (("card",), 2)


def test_no_name_of_a_system_ends_with_a_space():
    """An offer without records beside a card of its name is told apart by a word."""
    place = ("", "Constructed Card A")
    offered = (SimpleNamespace(machine=place[0], card=place[1]),)
    offers = SimpleNamespace(offers=offered, model=SimpleNamespace(offers={}))
    beside = dataclasses.replace(analysis_of(PURPOSES["one-machine"].case), costs=offers)
    names = [system.name for system in systems_of(beside).all]
    assert len(set(names)) == len(names) and names == [name.strip() for name in names]
