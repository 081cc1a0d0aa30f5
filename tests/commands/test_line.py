from __future__ import annotations

import sys

import pytest
from invoke.context import Context
from invoke.exceptions import Exit

from commands.line import held, split, verb
from commands.terminal import Screen
from harness.errors import UserError

VERBS = ("build", "run", "report", "plan", "data")


def test_a_plan_on_the_first_verb_holds_for_the_whole_line():
    assert held(["build", "--plan", "mission", "run", "report"], VERBS, "--plan") == "mission"
    assert held(["build", "--plan=mission", "run", "report"], VERBS, "--plan") == "mission"


def test_a_plan_on_a_later_verb_alone_is_refused_with_the_right_line():
    with pytest.raises(UserError, match=r"write `invoke build --plan mission run --budget 8h report`"):
        held(["build", "run", "--budget", "8h", "--plan", "mission", "report"], VERBS, "--plan")


def test_two_verbs_that_ask_for_different_plans_are_refused():
    with pytest.raises(UserError, match="'--plan deep' stands after 'run'"):
        held(["build", "--plan", "mission", "run", "--plan", "deep"], VERBS, "--plan")


def test_saying_the_same_plan_twice_is_harmless():
    assert held(["build", "--plan", "deep", "run", "--plan", "deep"], VERBS, "--plan") == "deep"


def test_a_plan_may_be_called_like_a_verb():
    assert split(["run", "--plan", "report"], VERBS) == [("run", ["--plan", "report"])]
    assert held(["run", "--plan", "report"], VERBS, "--plan") == "report"


def test_a_line_without_the_option_holds_nothing():
    assert held(["build", "run", "report"], VERBS, "--plan") is None
    assert held([], VERBS, "--plan") is None


def test_nothing_that_a_verb_prints_commands_the_terminal(capsys):
    @verb()
    def shown(c: Context) -> None:
        print("a \x1b[31mred\x07 card\u202e\r\tand \x9bmore\n", end="")
        print("\x1b]0;title\x07", file=sys.stderr)
        with Screen() as screen:
            screen.say("\x1b[2J[bold]a label")

    shown(Context())
    out, err = capsys.readouterr()
    assert out == "a \\x1b[31mred\\x07 card\\u202e\\r\tand \\x9bmore\n\\x1b[2J[bold]a label\n"
    assert err == "\\x1b]0;title\\x07\n"


def test_memory_that_is_refused_is_a_sentence_and_no_traceback():
    @verb()
    def starved(c: Context) -> None:
        raise MemoryError

    with pytest.raises(Exit, match=r"^gpudyno: this machine refuses more memory") as ended:
        starved(Context())
    assert ended.value.code == 4
