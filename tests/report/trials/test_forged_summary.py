"""A stored summary that its own samples do not give is believed by no one. The records are constructed."""

from __future__ import annotations

import pytest

from harness.record import store
from report.trials.reading import results_of
from tests.helpers import bundled


@pytest.mark.parametrize(
    "forged",
    [
        {"verdict": "valid", "findings": ()},
        {"step_seconds_p95": 0.001},
        {"throughput": 3907.0},
        {"protocol_seconds": 1.0},
    ],
)
def test_any_part_of_a_stored_summary_that_the_samples_do_not_give_is_named_and_made_anew(
    judged_anew, tmp_path, forged
):
    root = bundled.write(tmp_path, bundled.one_card())
    whole = results_of(root)
    assert whole.problems == ()
    session, one = whole.sessions[0], whole.records[0]
    path = root / one.path
    path.unlink()
    summary = one.record.summary.model_copy(update=forged)
    assert summary != one.record.summary
    store.write_record(root, session, one.record.model_copy(update={"summary": summary}))
    found = results_of(root)
    assert found.records == whole.records
    (problem,) = found.problems
    assert problem.startswith(f"{one.path}: its raw samples do not give its summary's '")
