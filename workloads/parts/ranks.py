"""One trial as several processes: a launcher, its ranks, and one measurement of all of them.

The trial's own process starts a rank per device with torchrun's agent. A rank is the same workload with a
folder of its own: it writes events and a measurement or a failure as any trial does. The launcher passes on
rank 0's events, and joins the measurements; where a rank dies, the agent ends the others, and the trial
fails in that rank's name. All of it meets at 127.0.0.1, since a container has no other network.

Over several nodes each has a launcher of its own, and all see the same folder. They meet where the first
one is; it alone joins what the ranks of all nodes measured. Where a scheduler starts a task for each rank,
each has a launcher of its own, too, as if on a node by itself.
"""

import datetime
import os
import signal
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from parts import launcher
from parts.launcher import HOME, LOOK_SECONDS, MARK, MEETING_SECONDS, Place, node_number, nodes_number
from parts.timing.clock import Clock
from parts.trial import Failed, TrialProcess

MEET = "GPUDYNO_MEET"
"""Set for a trial over several nodes: host:port of the first."""


@contextmanager
def process_group(place: Place, device: torch.device, *, gradients: bool) -> Iterator[None]:
    """The meeting of several ranks, over the devices' own links where gradients are to be shared."""
    if place.count == 1:
        yield
        return
    # The agent's request to end must not wait for a collective that will never return.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    backend = "nccl" if device.type == "cuda" and gradients else "gloo"
    distributed.init_process_group(
        backend,
        rank=place.rank,
        world_size=place.count,
        timeout=datetime.timedelta(seconds=MEETING_SECONDS),
        device_id=device if backend == "nccl" else None,
    )
    try:
        yield
    finally:
        distributed.destroy_process_group()


class SharedEnd(launcher.TrialEnd):
    """The end of the trial, which rank 0 decides and gloo broadcasts."""

    def __init__(self, clock: Clock, place: Place) -> None:
        super().__init__(clock)
        self.group = distributed.new_group(backend="gloo") if self.asks else None

    def decision(self, over: bool, steps: int) -> tuple[bool, int]:
        """Return rank 0's decision."""
        answer = torch.tensor([int(over), steps])
        distributed.broadcast(answer, src=0, group=self.group)
        return bool(answer[0]), int(answer[1])


def launch_ranks(trial: TrialProcess, parallel: str | None, count: int) -> dict[str, Any]:
    """Run this workload as `count` ranks and join what they measured; see `launcher.join_ranks`.

    Raises Failed with the reason and the stage of the rank that died first.
    """
    node, nodes = node_number(), nodes_number()
    if count % nodes:
        raise Failed("unsupported", f"{count} devices have no even place on {nodes} nodes")
    own = Path(trial.out_folder).resolve()
    out = (own.parent if node else own) / "ranks"
    out.mkdir(exist_ok=True)
    threads = launcher.threads_of(count // nodes)
    os.environ.update({"GPUDYNO_OUT": str(out), MARK: str(count), "OMP_NUM_THREADS": threads})
    if nodes == 1:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
    config = _config(node, nodes, count)
    try:
        with nullcontext() if node else launcher.follow_rank(trial, out):
            elastic_launch(config, sys.executable)("-u", str(Path(sys.argv[0]).resolve()))
    except ChildFailedError as error:
        codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
        trial.out_folder = str(out.parent)
        raise launcher.first_failure(trial, out, codes, count) from error
    except SignalException as error:
        sys.exit(128 + error.sigval)
    if node:
        sys.exit(0)
    return launcher.collect_ranks(trial, out, count, parallel)


def _config(node: int, nodes: int, count: int) -> LaunchConfig:
    """Return how this node's agent meets the others, or itself where it is the only one."""
    meeting: dict[str, Any] = {
        "rdzv_backend": "c10d",
        "rdzv_endpoint": f"{HOME}:0",
        "local_addr": HOME,
        "run_id": uuid.uuid4().hex,
    }
    if nodes > 1:
        point = os.environ[MEET]
        meeting = {
            "rdzv_backend": "static",
            "rdzv_endpoint": point,
            "rdzv_configs": {"rank": node, "timeout": MEETING_SECONDS},
            "run_id": point,
        }
    return LaunchConfig(
        min_nodes=nodes,
        max_nodes=nodes,
        nproc_per_node=count // nodes,
        max_restarts=0,
        monitor_interval=LOOK_SECONDS,
        **meeting,
    )
