from __future__ import annotations

import errno
import os
import shlex
import subprocess
import sys

import pytest
from invoke.context import Context
from invoke.exceptions import Exit

import tasks
from commands.line import Line, placed
from commands.terminal import Screen
from harness.errors import UserError
from tests.helpers import ROOT


def put(line: str) -> str:
    return shlex.join(placed(shlex.split(line), tasks.line.verbs))


@pytest.mark.parametrize(
    "line",
    [
        "build run report --plan digits",
        "build --plan digits run report",
        "build --plan=digits run report",
        "build run --plan digits report",
        "build --plan digits run --plan digits report",
    ],
)
def test_a_setting_holds_for_the_whole_line_wherever_it_stands(line):
    assert put(line) == "build --plan=digits run --plan=digits report"


def test_an_option_goes_to_the_verb_that_takes_it():
    assert put("build run report --budget 8h --png") == "build run --budget=8h report --png"
    assert put("--echo build --retry run") == "--echo build run --retry"


def test_an_option_stays_with_the_verb_that_takes_it_where_another_has_one_of_the_same_name():
    assert put("submit --new-session run --retry") == "submit --new-session run --retry"
    assert put("report --session a bundle --session b") == "report --session=a bundle --session=b"


def test_what_no_verb_takes_stays_where_it_is_and_is_refused_there():
    assert put("build run --no-such x report") == "build run --no-such x report"
    assert put("check --budget 8h") == "check --budget=8h"


def test_a_line_without_a_verb_is_refused_and_an_empty_one_lists_the_verbs():
    with pytest.raises(UserError, match="'reprot' is no verb"):
        put("reprot --plan quick")
    shown = subprocess.run(
        [sys.executable, "-m", "invoke"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert [verb for verb in tasks.line.verbs if f"\n  {verb} " not in shown] == []


def test_two_values_of_one_setting_are_refused():
    with pytest.raises(UserError, match="--plan is given as 'mission' and 'card' in one line"):
        put("build --plan mission run --plan card")


def test_a_plan_a_card_and_a_value_may_be_called_like_a_verb():
    assert put("run --plan report") == "run --plan=report"
    assert put("compare report data --fail-below -1") == "compare --fail-below=-1 report data"


def test_an_option_of_several_values_keeps_them_all():
    assert put("build run report --claim a --claim b") == "build run --claim=a --claim=b report"


def test_nothing_that_a_verb_prints_commands_the_terminal(capsys):
    @Line(ROOT, {}).verb()
    def shown() -> None:
        print("a \x1b[31mred\x07 card\u202e\r\tand \x9bmore\n", end="")
        print("\x1b]0;title\x07", file=sys.stderr)
        with Screen() as screen:
            screen.say("\x1b[2J[bold]a label")

    shown(Context())
    out, err = capsys.readouterr()
    assert out == "a \\x1b[31mred\\x07 card\\u202e\\r\tand \\x9bmore\n\\x1b[2J[bold]a label\n"
    assert err == "\\x1b]0;title\\x07\n"


def test_memory_that_is_refused_is_a_sentence_and_no_traceback():
    @Line(ROOT, {}).verb()
    def starved() -> None:
        raise MemoryError

    with pytest.raises(Exit, match=r"^gpudyno: this machine refuses more memory") as ended:
        starved(Context())
    assert ended.value.code == 4


@pytest.mark.parametrize("name", sorted(errno.errorcode.values()))
def test_whatever_a_file_system_answers_is_one_sentence_with_the_file_and_the_reason(name):
    number = getattr(errno, name)

    @Line(ROOT, {}).verb()
    def refused() -> None:
        raise OSError(number, os.strerror(number), "/data/records/one.json")

    with pytest.raises(Exit) as ended:
        refused(Context())
    said = str(ended.value.message or "")
    if name in ("EPIPE", "ESHUTDOWN"):
        assert (ended.value.code, said) == (0, "")
    else:
        assert ended.value.code == 4
        assert said.startswith("gpudyno: '/data/records/one.json' ") and os.strerror(number) in said
        assert "; " in said and "\n" not in said
