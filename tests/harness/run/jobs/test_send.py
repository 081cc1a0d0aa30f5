"""What waits for what, where the order of jobs matters."""

from __future__ import annotations

from harness.engine.slurm.site import Site
from harness.run import missing
from harness.run.jobs import send
from harness.run.jobs.submission import Submission
from tests.helpers import clone


def test_repeats_of_a_variant_are_one_array_and_wait_for_nothing(tmp_path):
    root = clone.make(tmp_path, repeats=3)
    asked = Submission(whole=clone.open_session(root), site=Site())
    parts = send.make_batches(clone.ready(root), asked, missing.missing_trials(asked.whole, ()))
    first, second = send.sort_batches(parts, asked)
    assert all("3 trials of plan 'mine'" in part.title for part in (first, second))
    assert send.dependency(first, asked, []) is None
    assert send.dependency(second, asked, [(first, "1")]) is None
