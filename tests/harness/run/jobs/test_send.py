"""What waits for what, where the order of jobs matters."""

from __future__ import annotations

from pathlib import Path

from harness.engine.slurm.site import Site
from harness.plan import plan
from harness.record import Session
from harness.run import session
from harness.run.jobs import send
from harness.run.jobs.submission import Submission
from tests.helpers import clone


def submission(root: Path) -> Submission:
    loaded = plan.load(root, "mine")
    planned = plan.trials(loaded, plan.PlanContext("cpu", "cpu", None, {}, {}), seed=1)
    opened = clone.open_session(root)
    whole: Session = opened.model_copy(
        update={
            "trials": tuple(item.trial for item in planned),
            "blocks": tuple(item.block for item in planned),
        }
    )
    return Submission(whole=whole, site=Site())


def dependencies(root: Path) -> dict[str, str | None]:
    """By title what each batch waits for, each job numbered as it is sent."""
    asked = submission(root)
    found: dict[str, str | None] = {}
    sent: list[tuple[send.Batch, str]] = []
    parts = send.batches(clone.ready(root), asked, session.missing(asked.whole, ()))
    for number, batch in enumerate(send.in_order(parts, asked), 1):
        found[f"{number}: {batch.title}"] = send.dependency(batch, asked, sent)
        sent.append((batch, str(number)))
    return found


def test_repeats_of_a_variant_are_one_array_and_wait_for_nothing(tmp_path):
    root = clone.make(tmp_path, repeats=3)
    found = dependencies(root)
    assert len(found) == 2 and set(found.values()) == {None}
    assert all("3 trials of plan 'mine'" in title for title in found)


def test_a_larger_batch_of_a_sweep_waits_until_the_smaller_one_fitted(tmp_path):
    root = clone.make(tmp_path, repeats=1)
    path = root / "plans" / "mine.toml"
    text = path.read_text().replace("batch_size = 8", "batch_size = [16, 32, 64]")
    path.write_text(text.replace('["fp32-ieee", "amp-bf16"]', '"fp32-ieee"'))
    assert list(dependencies(root).values()) == [None, "afterok:1", "afterok:2"]


def test_a_later_block_of_time_begins_an_hour_after_the_earlier_one_can_have_ended(tmp_path):
    root = clone.make(tmp_path, repeats=2, blocks=2, timeout=600.0)
    assert list(dependencies(root).values()) == [None, None, "after:1+70:2+70", "after:1+70:2+70"]
