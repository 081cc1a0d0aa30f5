import pytest

from benchmarks import programs

PAIRS = programs.PAIRS.values()


@pytest.mark.parametrize("pair", PAIRS, ids=list(programs.PAIRS))
def test_both_sides_are_asked_for_the_same_work_and_one_of_them_is_the_program_as_it_is(pair):
    ours, theirs = (programs.trial(pair, workload, 60.0).asked for workload in (pair.workload, "program"))
    shapes = [{name: getattr(asked.variant, name) for name in pair.shape} for asked in (ours, theirs)]
    assert shapes[0] | {"model": shapes[0]["model"].removeprefix("timm/")} == shapes[1] == dict(pair.shape)
    steps = pair.steps * (pair.rounds + programs.LEFT_OUT)
    assert ours.variant.limit.steps == steps + 1
    told = theirs.variant.options.get(pair.steps_option) if pair.steps_option else None
    assert (told, theirs.variant.limit.steps) in ((steps, None), (None, steps + 1))
    assert (ours.file, theirs.file.name) == (None, pair.file)


def test_a_process_that_fails_gives_no_replicate(monkeypatch):
    pair = programs.PAIRS["word_lm"]
    took = {"word_lm": [1.0, 1.0, 1.0], "program": [2.0, 2.0]}
    monkeypatch.setattr(programs, "side", lambda python, data, pair, seconds, workload: took[workload])
    measured = programs.replicate(None, None, pair, 0, 10.0)
    assert measured.ratio("first", "second") == 0.5
    assert measured.ratio("control", "second") == 1.0
    took["program"] = None
    assert programs.replicate(None, None, pair, 1, 10.0) is None
