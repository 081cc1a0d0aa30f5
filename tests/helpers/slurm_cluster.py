"""A real SLURM of its own: munged, slurmctld and two slurmd, two nodes on one machine, all in one folder.

python -m tests.helpers.slurm_cluster COMMAND…     runs a command that finds it by SLURM_CONF
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.helpers import wait_for

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol", "scancel")
NODES = ("n1", "n2")

CONF = """
ClusterName=constructed
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
SlurmctldPort={controller}
SlurmdParameters=config_overrides
SlurmdTimeout=5
KillWait=2
MinJobAge=60
MpiDefault=none
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,requeue_delay=0
SchedulerType=sched/backfill
{nodes}
PartitionName=main Nodes=ALL Default=YES State=UP PriorityTier=1
PartitionName=urgent Nodes=ALL State=UP PriorityTier=10
"""
NODE = (
    "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 RealMemory=1000 State=UNKNOWN"
)


def missing() -> str | None:
    """Why no SLURM can be started here, in one clause; null where one can."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    if absent:
        return f"{', '.join(absent)} are not installed (packages slurm-wlm and munge)"
    return None if os.geteuid() == 0 else "slurmctld and slurmd are started as root"


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


@dataclass(slots=True)
class Cluster:
    """What runs, by its pid; `environ` is what its commands need."""

    folder: Path
    environ: dict[str, str]
    pids: dict[str, int] = field(default_factory=dict)

    def ask(self, *words: str) -> str:
        """What one of SLURM's commands prints."""
        done = subprocess.run(words, env={**os.environ, **self.environ}, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def states(self) -> dict[str, str]:
        """Each node's state, by its name."""
        told = self.ask("sinfo", "--Node", "--noheader", "--partition=main", "--format=%N %T")
        return dict(line.split() for line in told.splitlines())

    def start_node(self, name: str) -> None:
        """Starts a node's slurmd, and waits for its pid; one that was killed has left its own."""
        (self.folder / f"{name}.pid").unlink(missing_ok=True)
        subprocess.run(
            ["slurmd", "-N", name, "-f", str(self.folder / "slurm.conf")],
            env={**os.environ, **self.environ, "PATH": _path()},
            check=True,
        )
        self.pids[name] = int(_written(self.folder / f"{name}.pid"))

    def kill_node(self, name: str) -> None:
        """Ends a node as a power cut does: its slurmd, and every process of every job on it."""
        psutil.Process(self.pids.pop(name)).kill()
        steps = [
            process
            for process in psutil.process_iter(["name"])
            if process.info["name"] == "slurmstepd" and _runs_on(process, name)
        ]
        for process in [child for step in steps for child in (step, *step.children(recursive=True))]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def stop(self) -> None:
        """Ends what runs, each by its pid."""
        with contextlib.suppress(RuntimeError):
            self.ask("scancel", "--user=root")
        processes = []
        for pid in reversed(self.pids.values()):
            with contextlib.suppress(psutil.NoSuchProcess):
                processes.append(psutil.Process(pid))
                processes[-1].send_signal(signal.SIGTERM)
        _, alive = psutil.wait_procs(processes, timeout=5)
        for process in alive:
            process.kill()


def _runs_on(step: psutil.Process, name: str) -> bool:
    for process in step.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if process.environ().get("SLURMD_NODENAME") == name:
                return True
    return False


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """A cluster whose nodes are idle; stopped at the end."""
    host = socket.gethostname().partition(".")[0]
    ports = _free_ports(1 + len(NODES))
    nodes = "\n".join(
        NODE.format(name=name, host=host, port=port) for name, port in zip(NODES, ports[1:], strict=True)
    )
    for name in ("state", *(f"spool.{node}" for node in NODES)):
        (folder / name).mkdir(parents=True)
    folder.chmod(0o755)
    (folder / "slurm.conf").write_text(
        CONF.format(host=host, folder=folder, controller=ports[0], nodes=nodes)
    )
    cluster = Cluster(folder, {"SLURM_CONF": str(folder / "slurm.conf")})
    try:
        _start_munge(cluster)
        _start(cluster, "slurmctld", ["slurmctld", "-f", str(folder / "slurm.conf")])
        for name in NODES:
            cluster.start_node(name)
        wait_for(lambda: cluster.states() == dict.fromkeys(NODES, "idle"), 20)
        yield cluster
    finally:
        cluster.stop()


def _start_munge(cluster: Cluster) -> None:
    key = cluster.folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o600)
    options = [f"--{name}={cluster.folder}/munge.{name}" for name in ("socket", "pid-file", "log-file")]
    options += [f"--seed-file={cluster.folder}/munge.seed", f"--key-file={key}", "--force"]
    _start(cluster, "munge.pid-file", ["munged", *options], "munge.pid-file")


def _start(cluster: Cluster, name: str, argv: list[str], pid_file: str | None = None) -> None:
    subprocess.run(
        argv,
        env={**os.environ, **cluster.environ, "PATH": _path()},
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    cluster.pids[name] = int(_written(cluster.folder / (pid_file or f"{name}.pid")))


def _written(path: Path) -> str:
    wait_for(lambda: path.is_file() and path.read_text().strip(), 20)
    return path.read_text().strip()


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def main(words: list[str]) -> int:
    """Gives the command's exit code."""
    why = missing()
    if why is not None:
        sys.exit(f"no SLURM can be started here: {why}")
    with tempfile.TemporaryDirectory() as folder, running(Path(folder) / "cluster") as cluster:
        return subprocess.run(words, env={**os.environ, **cluster.environ}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
