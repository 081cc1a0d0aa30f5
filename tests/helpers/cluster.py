"""A clone whose trials are jobs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from commands import jobs
from commands import submit as submitting
from harness.engine.slurm.scheduler import Slurm
from harness.record import Record, store
from harness.run.jobs import submission as kept
from harness.settings import Settings
from tests.helpers import ROOT, clone

SITE = "{most}\n{more}\n"


@dataclass(frozen=True)
class Bench:
    """One clone with the plan 'mine', sent to one scheduler."""

    root: Path
    scheduler: Slurm

    def submit(self, python: str = sys.executable, data: str | None = None, **how: object) -> None:
        """`invoke submit --plan mine`"""
        settings = Settings(plan="mine", python=python, data=data)
        submitting.submit_plan(self.root, settings, submitting.SubmitOptions(**how), self.scheduler)

    def collect(self, *, wait: bool = False) -> None:
        """`invoke jobs --collect`"""
        jobs.LOOK_AGAIN_SECONDS = 1.0
        jobs.collect_all(self.root, wait=wait, scheduler=self.scheduler)

    def status(self) -> None:
        """`invoke jobs`"""
        jobs.print_status(self.root, self.scheduler)

    def cancel(self) -> None:
        """`invoke jobs --cancel`"""
        jobs.cancel_jobs(self.root, self.scheduler)

    def records(self) -> list[Record]:
        """In the order in which they began."""
        found = [stored.record for stored in store.read_results(self.root).records]
        return sorted(found, key=lambda record: record.started_at)

    def ends(self) -> list[str]:
        """Of each record, its failure's reason or "ok"; sorted."""
        return sorted(record.failure.reason if record.failure else "ok" for record in self.records())

    def jobs(self) -> list[int]:
        """The numbers of the jobs of the open submissions."""
        return [batch.job for each in kept.open_submissions(self.root) for batch in each.batches if batch.job]

    def begun(self) -> list[Path]:
        """The work folders of attempts whose trial has begun its steps."""
        return [
            path.parent.parent for path in self.root.glob("results/.state/jobs/*/work/*/out/events.jsonl")
        ]


def bench(folder: Path, scheduler: Slurm, *, site: str = "", at_once: bool = True, **plan: object) -> Bench:
    """A clone of stand-in trials; `site` is more of its profile. Without `at_once` jobs go one by one."""
    root = clone.make(folder, **plan)
    (root / "harness").symlink_to(ROOT / "harness")
    (root / "site.toml").write_text(SITE.format(more=site, most="array_at_once = 9" if at_once else ""))
    return Bench(root, scheduler)
