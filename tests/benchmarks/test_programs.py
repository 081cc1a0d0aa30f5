from benchmarks import programs


def test_both_sides_are_asked_for_the_same_work_and_one_of_them_is_the_program_as_it_is():
    ours, theirs = (programs.trial(workload, 20, 60.0).asked for workload in ("word_lm", "program"))
    sizes = ("model", "batch_size", "sequence_length", "data_mode")
    assert [getattr(ours.variant, name) for name in sizes] == [
        getattr(theirs.variant, name) for name in sizes
    ]
    assert ours.variant.limit.steps == theirs.variant.limit.steps == 221
    assert (ours.file, theirs.file.name) == (None, programs.FILE)


def test_a_process_that_fails_gives_no_replicate(monkeypatch):
    took = {"word_lm": [1.0, 1.0, 1.0], "program": [2.0, 2.0]}
    monkeypatch.setattr(programs, "side", lambda python, data, rounds, seconds, workload: took[workload])
    measured = programs.replicate(None, None, 3, 0, 10.0)
    assert measured.ratio("first", "second") == 0.5
    assert measured.ratio("control", "second") == 1.0
    took["program"] = None
    assert programs.replicate(None, None, 3, 1, 10.0) is None
