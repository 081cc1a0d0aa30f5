"""Whether a line would work here: `doctor`, `plan`, `build` and `run` refuse the same in the same words."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from harness.data.fetch import default_folder, need_room_to_fetch
from harness.doctor.diagnosis import find_obstacles
from harness.doctor.surroundings import Disk, Surroundings, device_files
from harness.engine.docker import DockerEngine
from harness.errors import MachineError, NoEngine
from harness.files import Files, command_output, free_bytes, is_writable
from harness.gpu.cuda_start import NOT_TRIED, start_cuda
from harness.machine.fingerprint import machine_id, user_state_folder
from harness.plan.plan_file import Plan
from harness.record import Load
from harness.run import own_program
from harness.run.choice import require_trials
from harness.run.setup import RunSetup, data_folders, data_names, device_request, prepare_run
from harness.settings import Settings


def prepare_line(root: Path, settings: Settings, plan: Plan | None = None) -> RunSetup:
    """Return what a line works with, before anything is built; `plan` is in place of the settings'.

    Raises MachineError with the first of what `doctor` calls a problem, UserError where the plan has no trial
    for this device, and what prepare_run() raises.
    """
    setup = prepare_run(root, settings, plan=plan)
    for obstacle in find_obstacles(look_around(setup)):
        raise MachineError(obstacle.what, remedy=obstacle.remedy)
    require_trials(setup)
    return setup


def look_around(setup: RunSetup) -> Surroundings:
    """Return what may stand in a line's way; nothing of other work and of other hosts."""
    selection, engine = setup.selection, setup.engine
    container = engine if isinstance(engine, DockerEngine) else None
    met: tuple[MachineError, ...] = ()
    try:
        engine.check(setup.image)
        _require_framework(setup)
        machine_id(user_state_folder())
        names = chain.from_iterable(data_names(setup.plan, selection.kind))
        need_room_to_fetch(names, data_folders(setup.settings, setup.root))
    except MachineError as error:
        met = (error,)
    return Surroundings(
        machine=setup.machine,
        selection=selection,
        load=Load(),
        engine=container.facts if container else None,
        lost=setup.lost,
        refusal=container.refusal(device_request(selection)) if container else None,
        nodes=device_files(Files()),
        in_the_way=met,
        older_rocm=setup.older_rocm,
        cuda=start_cuda() if selection.kind == "cuda" else NOT_TRIED,
        cuda_inside=container.start_cuda(setup.image, device_request(selection))
        if container and selection.kind == "cuda" and not met
        else NOT_TRIED,
        disks=written_disks(setup.root),
    )


def written_disks(root: Path) -> tuple[Disk, ...]:
    """Return where a line writes: the clone, data and state."""
    data, state = default_folder(), user_state_folder()
    return (
        Disk("this clone", root, free_bytes(root), read_only=not is_writable(root)),
        Disk("data", data, free_bytes(data)),
        Disk("this user's state", state, free_bytes(state), read_only=not is_writable(state)),
    )


def _require_framework(setup: RunSetup) -> None:
    """Raise NoEngine for an interpreter of the user's that lacks what the plan's trials import."""
    ours = any(measure.workload != own_program.WORKLOAD for measure in setup.plan.measure)
    if setup.settings.python is None or setup.image.workloads is not None or not ours:
        return
    interpreter = str(setup.engine.built_environment(setup.image).interpreter)
    asked = "from importlib.util import find_spec; print(find_spec('torch'))"
    found = command_output(interpreter, "-c", asked)
    if not found or found.strip() == "None":
        raise NoEngine(
            f"the interpreter '{setup.settings.python}' has no PyTorch",
            remedy="install it there, name another with --python, or leave --python out",
        )
