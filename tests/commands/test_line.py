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
from commands.line import Line, place_options
from commands.terminal import Screen
from harness.errors import UserError
from tests.helpers import ROOT

PROGRAM = "from invoke.main import program; program.run()"


def put(line: str) -> str:
    return shlex.join(place_options(shlex.split(line), tasks.line.verbs))


DIGITS = "build --plan=digits run --plan=digits report"


@pytest.mark.parametrize(
    ("line", "placed"),
    [
        ("build run report --plan digits", DIGITS),
        ("build --plan digits run report", DIGITS),
        ("build --plan=digits run report", DIGITS),
        ("build run --plan digits report", DIGITS),
        ("build --plan digits run --plan digits report", DIGITS),
        ("build run report --budget 8h --pdf", "build run --budget=8h report --pdf"),
        ("--echo build --retry run", "--echo build run --retry"),
        # It stays with a verb that takes it, where another has one of the same name.
        ("submit --new-session run --retry", "submit --new-session run --retry"),
        ("report --session a bundle --session b", "report --session=a bundle --session=b"),
        # What no verb takes stays where it is, and is refused there.
        ("build run --no-such x report", "build run --no-such x report"),
        ("check --budget 8h", "check --budget=8h"),
        # A plan, a card and a value may be called like a verb.
        ("run --plan report", "run --plan=report"),
        ("compare report data --fail-below -1", "compare --fail-below=-1 report data"),
        ("build run report --claim a --claim b", "build run --claim=a --claim=b report"),
    ],
)
def test_an_option_goes_to_each_verb_that_takes_it_wherever_it_stands(line, placed):
    assert put(line) == placed


def test_a_line_without_a_verb_is_refused_and_an_empty_one_lists_the_verbs():
    with pytest.raises(UserError, match="'reprot' is no verb"):
        put("reprot --plan quick")
    shown = subprocess.run(
        [sys.executable, "-m", "invoke"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert [verb for verb in tasks.line.verbs if f"\n  {verb} " not in shown] == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["tasks.py"], 1, "type .venv/bin/invoke"),
        (["-m", "invoke", "compare", "--help"], 0, "--fail-below"),
        (["-m", "invoke", "run", "--plan", "quick", "-h"], 0, "--retry"),
        (["-c", f"import sys; sys.modules['pydantic'] = None; {PROGRAM}", "plan"], 4, "package 'pydantic'"),
    ],
)
def test_a_line_that_cannot_be_run_says_what_to_type(words, code, said):
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    assert said in done.stdout + done.stderr


def test_two_values_of_one_setting_are_refused():
    with pytest.raises(UserError, match="--plan is given as 'mission' and 'card' in one line"):
        put("build --plan mission run --plan card")


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
