"""What a cluster's commands answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from harness.engine.slurm.scheduler import JobId, Slurm
from tests.campaign.attack import Attack
from tests.campaign.mutation import any_text, changed_bytes

ANSWERS: Mapping[str, bytes] = {
    "squeue": (
        b"12              3               RUNNING             1           gpudyno-20261122-0a1b2c-1        "
        b"                               n[1-2]                                  None\n"
    ),
    "sbatch": b"12;cluster\n",
    "sacct": b"12_3|CANCELLED by 1000\n13|COMPLETED\n",
    "sinfo": b"node1 idle\nnode2 down*\n",
    "scancel": b"",
}


def _scheduler(rng: Random, root: Path) -> None:
    """Programs in place of SLURM's, whose answers are changed or those of nothing that is known."""
    for name, answer in ANSWERS.items():
        text = changed_bytes(answer, rng) if rng.random() < 0.7 else any_text(rng).encode()
        (root / f"{name}.txt").write_bytes(text)
        error = rng.choice(STDERR)
        (root / name).write_text(
            f"#!/bin/sh\ncat '{root}/{name}.txt'\necho '{error}' >&2\n{rng.choice(ENDS)}\n"
        )
        (root / name).chmod(0o755)
    slurm = Slurm({"PATH": f"{root}:/bin:/usr/bin"})
    asked: tuple[Callable[[], object], ...] = (
        slurm.version,
        lambda: slurm.states((None, "other")),
        lambda: slurm.send(root / "squeue.txt", ("other",)),
        lambda: slurm.accounted((JobId(12), JobId(13, "other"))),
        lambda: slurm.nodes("gpu", ("other",)),
        lambda: slurm.cancel((JobId(12),)),
        lambda: slurm.told((root / "squeue.txt").read_text(errors="replace")),
    )
    rng.choice(asked)()


ENDS = (*("exit 0",) * 3, "exit 1", "kill -KILL $$", "kill -TERM $$", "kill -SEGV $$")
"""The programs may be killed in the middle of an answer, too."""
STDERR = ("", "error: invalid partition", "slurm_load_jobs error: Unable to contact slurm controller")


ATTACKS: Mapping[str, Attack] = {"scheduler": _scheduler}
