from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from commands import terminal
from commands.terminal import Screen, result_words, trial_words
from harness.plan import plan_file
from harness.plan.plan_file import PlanContext
from tests.helpers import ROOT
from tests.helpers.here import results_here


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_no_two_trials_of_a_shipped_plan_have_one_name_in_the_terminal(kind):
    for name in plan_file.plan_files(ROOT):
        asked = plan_file.load_plan(ROOT, name)
        if not any(measure.is_for(kind, kind) for measure in asked.measure):
            continue
        sources = dict.fromkeys(plan_file.plan_datasets(asked, kind), "real")
        weights = dict.fromkeys(plan_file.pretrained_models(asked, kind), True)
        planned = plan_file.plan_trials(asked, PlanContext(kind, kind, None, sources, weights), seed=0)
        assert len({trial_words(item.trial) for item in planned}) == len(planned), name


def screen(*, terminal: bool) -> tuple[Screen, io.StringIO]:
    out = io.StringIO()
    return Screen(Console(file=out, width=80, force_terminal=terminal, soft_wrap=True)), out


def test_without_a_terminal_a_long_wait_gives_a_line_a_minute_with_the_time_passed_and_left(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now)
    own, out = screen(terminal=False)
    with own:
        for second in range(150):
            now = 1000.0 + second
            own.move("a trial", second, 150, f"{second}/150 steps", left_seconds=150 - second)
    assert out.getvalue().splitlines() == [
        "  … a trial: 60/150 steps, 60 s passed, about 2 min left",
        "  … a trial: 120/150 steps, 2 min passed, about 30 s left",
    ]


def test_at_a_terminal_the_line_that_moves_is_one_row_of_80_columns_and_leaves_nothing():
    own, out = screen(terminal=True)
    with own:
        own.move(
            "a trial with a name that is longer than a row of this terminal, which is cut " * 2, 1, 9, "1/9"
        )
        own._progress.refresh()
        rows = own.console.render_lines(own._progress.get_renderable(), pad=False)
        assert len(rows) == 1
        own.clear()
    assert "1/9" in out.getvalue()


def test_the_line_of_a_trial_has_its_verdict_in_the_words_of_the_page():
    ran = [stored.record for stored in results_here().records if stored.record.summary]
    said = {(record.summary.verdict, result_words(record).split(", ")[1]) for record in ran if record.summary}
    assert {("unproven", "not settled"), ("valid", "valid")} <= said
    assert {word for _, word in said} <= {"valid", "not settled", "invalid"}


def test_what_was_found_is_a_line_a_key_or_one_of_json_and_a_key_without_a_value_is_in_neither(capsys):
    found = {"answer": "as [fast]", "ratio": 1.62345, "low": None, "page": Path("a b.html")}
    Screen().say_found(found, as_json=False)
    assert capsys.readouterr().out == "answer: as [fast]\nratio: 1.623\npage: a b.html\n"
    Screen().say_found(found, as_json=True)
    assert json.loads(capsys.readouterr().out) == {
        "answer": "as [fast]",
        "ratio": 1.62345,
        "page": "a b.html",
    }
