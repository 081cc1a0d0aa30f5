"""What a job does on its node before the trial begins: it looks at the machine, as a run on a laptop does.

    python -m harness.run.jobs.node JOBS TRIAL ATTEMPT

It ends with 1 where the node lacks the trial's devices or a folder; the trial's folder then says which.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from harness.errors import NoDevice
from harness.files import hold_lock
from harness.machine.devices import Selection, inherited_variables, other_libraries, select_devices
from harness.machine.fingerprint import (
    local_names,
    look_at_machine,
    machine_folder,
    read_load,
    user_state_folder,
)
from harness.record import Environment, Machine, Reported, Session, session_id, store
from harness.record.result import Reason
from harness.run.assemble import FAILURE, STARTED, lay_out_input
from harness.run.jobs.submission import JobSpec, attempt_folder, read_submission
from harness.run.session import next_session_number


def begin_attempt(jobs: Path, name: str, attempt: int) -> int:
    """Write what an attempt's record needs of its beginning."""
    job = read_job_spec(jobs, name)
    job = job.model_copy(update={"environment": _shell_environment(job.environment)})
    work = attempt_folder(jobs, name, attempt)
    machine, uuids = look_at_machine(job.label)
    machine = machine.model_copy(update={"declared": job.declared})
    # The user's file as it was when it was sent.
    sent = jobs / "orders" / f"{name}.py"
    beside = sent.read_text(encoding="utf-8") if sent.is_file() else ""
    lay_out_input(work, job.trial, beside)
    if job.warm is not None:
        lay_out_input(jobs / "work" / f"{name}.warm", job.warm, beside)
    selection, lacking = _trial_devices(job, machine, uuids)
    absent = next((folder for folder in job.folders if not Path(folder).exists()), None)
    own = machine_session(jobs, machine)
    indices = tuple(gpu.index for gpu in selection.gpus)
    started = job.started(attempt, own.id, machine, read_load(), indices)
    write_line(work / STARTED, started.model_dump_json())
    write_line(work / "cards", ",".join(selection.uuids or tuple(map(str, indices))))
    write_line(work / "meet", _meeting_point())
    if lacking:
        _write_refusal(work, "no-device", lacking)
    elif absent:
        _write_refusal(work, "error", f"'{absent}' is not on this node")
    return 1 if lacking or absent else 0


def _shell_environment(environment: Environment) -> Environment:
    """Return the same with the job's own variables, which a site's modules change."""
    reasons = tuple(dict.fromkeys((*environment.unpinned_because, *other_libraries(os.environ))))
    inherited = inherited_variables(os.environ, local_names())
    return environment.model_copy(
        update={"inherited_variables": inherited, "unpinned_because": reasons, "pinned": not reasons}
    )


def _write_refusal(work: Path, reason: Reason, message: str) -> None:
    reported = Reported(stage="start", reason=reason, message=message[:2000])
    write_line(work / "out" / FAILURE, reported.model_dump_json())


def read_job_spec(jobs: Path, name: str) -> JobSpec:
    """Return what a job needs to know of its trial."""
    path = jobs / "orders" / f"{name}.json"
    return JobSpec.parse(path.read_bytes(), path.name)


def write_line(path: Path, text: str) -> None:
    """Write a line in place of what was there, whole or not at all."""
    store.write_whole(path, text + "\n" if text else text, replace=True)


def _trial_devices(job: JobSpec, machine: Machine, uuids: Mapping[str, str]) -> tuple[Selection, str]:
    """Return the trial's devices, of those given to this job, and what is wrong with them."""
    kind = job.trial.asked.device
    if kind == "cpu":
        return Selection("cpu"), ""
    try:
        selection = select_devices(machine, None, uuids=uuids, environ=os.environ)
    except NoDevice as error:
        return Selection(kind), str(error)
    taken = Selection(kind, gpus=selection.gpus[: job.devices], uuids=selection.uuids[: job.devices])
    if selection.kind != kind or len(taken.gpus) < job.devices:
        seen = f"{len(selection.gpus)} '{selection.kind}' devices" if selection.gpus else "no card"
        return taken, f"{job.devices} '{kind}' devices are asked on this node; the job sees {seen}"
    return taken, ""


def machine_session(jobs: Path, machine: Machine) -> Session:
    """Return this machine's session of the submission; the first job that begins on it makes it."""
    path = jobs / "machines" / f"{machine.id}.json"
    clone = jobs.parents[3]
    kept = machine_folder(user_state_folder())
    with hold_lock(kept / "jobs.lock"):
        if not path.is_file():
            now = datetime.now(UTC)
            changes = {
                "id": session_id(now, secrets.token_hex(3)),
                "number": next_session_number(kept, clone, machine.id),
                "machine": machine.id,
                "label": machine.label,
                "started_at": now,
                "trials": (),
                "blocks": (),
            }
            write_line(
                path, read_submission(clone, jobs.name).whole.model_copy(update=changes).model_dump_json()
            )
        return Session.parse(path.read_bytes(), path.name)


def _meeting_point() -> str:
    """Return the address and a free port at which the processes of several nodes find this first one."""
    with socket.socket() as free:
        free.bind(("", 0))
        return f"{socket.gethostname()}:{free.getsockname()[1]}"


if __name__ == "__main__":
    sys.exit(begin_attempt(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
