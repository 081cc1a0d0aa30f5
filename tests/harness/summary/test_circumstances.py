"""What happened to trials, in the words that the terminal, a contribution and the gate have."""

from __future__ import annotations

import ast
from pathlib import Path

from harness.summary import circumstances
from harness.summary.circumstances import of_causes, sentences
from tests.helpers import records_builder as build

BUSY = "busy-machine: 2.0 of 2 cores worked before the trial began"


def test_each_thing_that_happened_is_counted_once_a_trial_and_the_commonest_comes_first():
    trials = [
        (BUSY, "short-window: the last level held for 9 s"),
        (BUSY, BUSY),
        (),
    ]
    assert of_causes(trials) == (
        "2 of 3 measured trials: the machine did other work just before",
        "1 of 3 measured trials: ended before the speed had settled",
    )


def test_a_cause_without_words_of_its_own_keeps_its_name_and_clean_trials_have_no_sentence():
    assert of_causes([("odd-thing: nobody knows",)]) == ("1 of 1 measured trials: odd-thing",)
    assert of_causes([(), ()]) == ()


def test_a_failed_trial_has_no_figure_that_anything_could_have_disturbed():
    measured = build.two_cards()[0]
    failed = measured.model_copy(update={"summary": None, "measurement": None})
    assert sentences([failed]) == ()


def test_each_word_is_of_a_cause_that_the_checks_give():
    own = Path(circumstances.__file__)
    given = "".join(path.read_text() for path in own.parent.glob("*.py") if path != own)
    texts = [node.value for node in ast.walk(ast.parse(given)) if isinstance(node, ast.Constant)]
    names = {text.partition(":")[0] for text in texts if isinstance(text, str)}
    assert circumstances.WORDS.keys() - names == set()
