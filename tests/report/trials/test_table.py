"""The table of trials: what its columns hold, that no row is lost on the way, and how it leaves the house."""

from __future__ import annotations

import csv
import math
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone

import pandas as pd
import pytest
from pandas import DataFrame

from harness.errors import UserError
from harness.record import Record, store
from harness.record.store import read_results
from report.compare.cells import cells_of
from report.trials import load
from report.trials.key import Key, ProtocolLength, Stack
from report.trials.table import COLUMNS, write_csv
from tests.helpers import ROOT, TESTS
from tests.helpers import records_builder as build
from tests.helpers.here import results_here
from tests.helpers.records_hostile import hostile, odd_numbers
from tests.helpers.trial_tables import table, trials_of


@pytest.fixture(scope="module")
def trials() -> DataFrame:
    """Measured and failed trials of two cards, and of strings that try to be more."""
    return table([*build.two_cards(), *hostile()])


def test_every_column_has_its_type_whatever_the_records_hold(trials):
    for made in (trials, table(odd_numbers()), table([])):
        check(made)


@pytest.mark.parametrize(("part", "model"), [("key", Key), ("length", ProtocolLength), ("stack", Stack)])
def test_every_field_that_keeps_figures_apart_is_a_column(part, model):
    sources = [column.source for column in COLUMNS if column.part == part]
    assert sources == [f"{part}.{field.name}" for field in fields(model)]


def test_a_record_from_before_nodes_were_kept_is_of_one():
    path = TESTS / "records" / "real-word_lm-5ae72a.json"
    text = path.read_text(encoding="utf-8")
    assert '"nodes"' not in text
    assert list(table([store.read_record(path, path.name)])["nodes"]) == [1]


def test_energy_is_withheld_where_the_windows_of_an_older_record_are_of_few_samples():
    read = trials_of([stored.record for stored in results_here().records])
    kept = {
        trial.session: trial
        for trial in read
        if trial.record.telemetry and trial.record.telemetry.energy.joules
    }
    assert {session: trial.joules_per_sample is not None for session, trial in kept.items()} == {
        "20261127-63ddd7": False,
        "20261127-aee4d4": True,
    }


def test_the_page_of_the_columns_has_each_with_a_meaning():
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    with (ROOT / "docs" / "columns.csv").open(encoding="utf-8", newline="") as file:
        meanings = {row["column"]: row["meaning"] for row in csv.DictReader(file)}
    names = [column.name for column in COLUMNS]
    assert [*meanings] == names and all(meanings.values())
    apart = {column.name for column in COLUMNS if column.part}
    between = names[names.index("workload") : names.index("variables") + 1]
    assert apart == {"session", "machine", "card", *between}
    said = "agree in `session`, `machine`, `card` and every column from `workload` to `variables`"
    assert said in page.replace("\n", " ")


def check(made: DataFrame) -> None:
    assert {column.name: column.dtype for column in COLUMNS} == {
        name: str(kind) for name, kind in made.dtypes.items()
    }


def test_cells_hold_the_trials_whose_key_length_stack_and_place_are_equal(trials):
    found = cells_of(trials["trial"])
    for cell in found:
        same = (cell.key, cell.length, cell.stack, cell.session, cell.machine, cell.card)
        for trial in cell.trials:
            assert same == (
                *(trial.key, trial.length, trial.stack),
                *(trial.session, trial.machine, trial.card),
            )
    assert len({(cell.key, cell.length, cell.stack, cell.session, cell.card) for cell in found}) == len(found)


def test_rows_are_in_the_order_of_their_start(trials):
    started = [trial.record.started_at for trial in trials["trial"]]
    assert started == sorted(started)
    assert list(trials["started_at"]) == started


def test_a_figure_that_is_none_is_null_and_says_so_in_the_causes_where_no_run_can_give_it():
    made = table(odd_numbers()).sort_values("order")
    assert list(made["valid_loss"].isna()) == [True, False, False]
    assert list(made["step_seconds"].isna()) == [False, True, False]
    assert "its step seconds reads inf, which no run can give" in made["causes"].iloc[1]
    assert all(math.isfinite(value) for value in made["step_seconds"].dropna())


@pytest.mark.parametrize(
    "started",
    [
        datetime(9999, 12, 31, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
    ],
)
def test_no_date_of_a_record_stops_the_table(started, tmp_path):
    (first, *others) = build.two_cards()
    made = table([first.model_copy(update={"started_at": started}), *others])
    check(made)
    write_csv(list(made["trial"]), tmp_path / "trials.csv")
    assert len((tmp_path / "trials.csv").read_text().splitlines()) == 1 + len(made)


def with_label(record: Record, label: str) -> Record:
    return record.model_copy(update={"machine": record.machine.model_copy(update={"label": label})})


@pytest.mark.parametrize("label", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1+1", "plain", "a=b", '=","'])
def test_a_text_that_a_spreadsheet_would_compute_is_led_by_an_apostrophe(label, tmp_path):
    (first, *_) = build.two_cards()
    write_csv(trials_of([with_label(first, label)]), tmp_path / "trials.csv")
    with (tmp_path / "trials.csv").open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert row["machine_label"] == (label if label in ("plain", "a=b") else f"'{label}")


def test_the_file_has_every_column_but_the_trial_and_the_same_figures(trials, tmp_path):
    write_csv(list(trials["trial"]), tmp_path / "trials.csv")
    again = pd.read_csv(tmp_path / "trials.csv")
    assert list(again) == [column.name for column in COLUMNS if column.name != "trial"]
    rates = trials["samples_per_second"].to_numpy("float64", na_value=math.nan)
    assert again["samples_per_second"].to_numpy() == pytest.approx(rates, rel=1e-15, nan_ok=True)


def test_the_records_of_a_clone_or_of_its_results_are_one_table(tmp_path):
    build.write(tmp_path, build.two_cards())
    made = load(tmp_path)
    assert len(made) == len(read_results(tmp_path).records)
    assert list(load(tmp_path / "results")["path"]) == list(made["path"])
    assert made["path"].str.startswith("results/").all()
    (tmp_path / "results" / "2026-01-31" / "x").mkdir(parents=True)
    (tmp_path / "results" / "2026-01-31" / "x" / "cut.json").write_text("{")
    with pytest.warns(UserWarning, match="cut short"):
        load(tmp_path / "results")
    with pytest.raises(UserError, match="is no results folder"):
        load(tmp_path / "nothing")
