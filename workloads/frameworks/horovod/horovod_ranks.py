"""A trial as Horovod's ranks: started by the trial's own process, met over gloo at the loopback interface.

Horovod's own `horovodrun` does the same by a shell for each rank. Here its rendezvous server runs in the
launcher and each rank is the launcher's child with the variables that Horovod's runner makes for it, so
that a rank that dies is named, and none outlives its launcher. A container has no other network.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import horovod.tensorflow as hvd
import tensorflow as tf
from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
from horovod.runner.gloo_run import create_run_env_vars, create_slot_env_vars
from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer

from parts import launcher
from parts.launcher import HOME, LOOK_SECONDS, MARK, MEETING_SECONDS
from parts.trial import Failed, TrialProcess

HOST = "localhost"
END_SECONDS = 5.0


def launch_ranks(trial: TrialProcess, parallel: str, count: int) -> dict[str, Any]:
    """Run this workload as `count` ranks and join what they measured; see `launcher.join_ranks`.

    Raises Failed with the reason and the stage of the rank that died first.
    """
    if launcher.nodes_number() > 1:
        raise Failed("unsupported", "Horovod's ranks are started on one node alone here")
    out = Path(trial.out_folder).resolve() / "ranks"
    out.mkdir(exist_ok=True)
    with launcher.follow_rank(trial, out), meeting(count) as environments:
        codes = await_ranks([_start_rank(out, count, variables) for variables in environments])
    if any(codes):
        failed = {rank: code for rank, code in enumerate(codes) if code}
        raise launcher.first_failure(trial, out, failed, count)
    return launcher.collect_ranks(trial, out, count, parallel)


@contextmanager
def meeting(count: int) -> Iterator[list[dict[str, str]]]:
    """The variables by which each rank finds its place and the others, as long as Horovod's server runs."""
    plan = get_host_assignments(parse_hosts(f"{HOST}:{count}"), count)
    server = RendezvousHTTPServer((HOME, 0), RendezvousHandler, 0)
    server.init(plan)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    shared = create_run_env_vars(HOME, ["lo"], server.server_port)
    shared["HOROVOD_GLOO_TIMEOUT_SECONDS"] = int(MEETING_SECONDS)
    own = [(slot, {"RANK": slot.rank, "WORLD_SIZE": count, "LOCAL_RANK": slot.local_rank}) for slot in plan]
    try:
        yield [
            {name: str(value) for name, value in {**shared, **create_slot_env_vars(slot), **place}.items()}
            for slot, place in own
        ]
    finally:
        server.shutdown()
        server.server_close()


def await_ranks(ranks: list[subprocess.Popen[bytes]]) -> list[int]:
    """Return exit codes of all; as soon as one has failed, the others are made to end."""
    try:
        while None in (codes := [rank.poll() for rank in ranks]) and not any(codes):
            time.sleep(LOOK_SECONDS)
    finally:
        for rank in ranks:
            rank.terminate()
        last = time.monotonic() + END_SECONDS
        for rank in ranks:
            try:
                rank.wait(max(0.0, last - time.monotonic()))
            except subprocess.TimeoutExpired:
                rank.kill()
    return [rank.wait() for rank in ranks]


def _start_rank(out: Path, count: int, variables: dict[str, str]) -> subprocess.Popen[bytes]:
    common = {"GPUDYNO_OUT": str(out), MARK: str(count), "OMP_NUM_THREADS": launcher.threads_of(count)}
    script = str(Path(sys.argv[0]).resolve())
    return subprocess.Popen(
        [sys.executable, "-u", script], env={**os.environ, **common, **variables}, stdin=subprocess.DEVNULL
    )


@contextmanager
def horovod_ring() -> Iterator[None]:
    """Horovod as long as a process trains, be it one rank of several or all there is."""
    # The launcher's request to end must not wait for a collective that will never return.
    if launcher.own_place():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        tf.config.threading.set_intra_op_parallelism_threads(int(os.environ["OMP_NUM_THREADS"]))
    _resolve_own_name()
    hvd.init()
    try:
        yield
    finally:
        hvd.shutdown()


def _resolve_own_name() -> None:
    """Make the machine's name known: Horovod looks it up on any interface, and dies where there is none."""
    os.environ.setdefault("HOROVOD_GLOO_IFACE", "lo")
    try:
        socket.getaddrinfo(socket.gethostname(), None)
    except OSError:
        message = "Horovod looks up this machine's own name, which has no address: add it to /etc/hosts"
        raise Failed("unsupported", message) from None


class End(launcher.TrialEnd):
    """The end of the trial, which rank 0 decides and Horovod broadcasts."""

    def decision(self, over: bool, steps: int) -> tuple[bool, int]:
        """Return rank 0's decision."""
        answer = hvd.broadcast(tf.constant([int(over), steps]), root_rank=0, name="end").numpy()
        return bool(answer[0]), int(answer[1])
