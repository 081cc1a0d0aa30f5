"""One trial as a container: pure. How a card of NVIDIA or AMD gets into one is here alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from harness.device_kinds import DEVICE_KINDS
from harness.errors import UserError
from harness.record import DeviceKind, TrialSpec
from harness.units import GIB

UNPRIVILEGED = 10001
"""The user inside where the caller is root: no process of a trial ever is."""

LABEL = "dev.gpudyno"


@dataclass(frozen=True, slots=True)
class User:
    """Who a trial runs as inside."""

    uid: int = UNPRIVILEGED
    gid: int = UNPRIVILEGED
    keep_id: bool = False
    """The user outside is the same inside, in a rootless Podman."""


@dataclass(frozen=True, slots=True)
class TrialFolders:
    """A trial's folders on the host. `data` holds (name under /data, folder) pairs."""

    input: Path
    output: Path
    data: tuple[tuple[str, Path], ...]
    cache: Path
    workloads: Path


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """The devices of one trial. `ids` are UUIDs; `groups` own /dev/kfd and /dev/dri, by number."""

    kind: DeviceKind
    ids: tuple[str, ...] = ()
    indices: tuple[int, ...] = ()
    """The numbers of the cards where a driver gives no UUIDs."""
    every: bool = False
    """Whether these are all the maker's cards of the machine."""
    groups: tuple[int, ...] = ()
    cdi: tuple[str, ...] = ()
    """The cards as CDI's specifications name them, where they are asked for by CDI."""

    @property
    def marks(self) -> tuple[str, ...]:
        """Return what identifies the cards: their UUIDs, else their indices."""
        return self.ids or tuple(map(str, self.indices))

    def part(self, count: int, begin: int = 0) -> DeviceRequest:
        """Return the same for `count` of the cards."""
        every, taken = self.every and count >= len(self.marks), slice(begin, begin + count)
        return replace(self, ids=self.ids[taken], indices=self.indices[taken], every=every)


@dataclass(frozen=True, slots=True)
class RunSpec:
    """Everything an engine needs to start one attempt of one trial."""

    trial: TrialSpec
    session: str
    attempt: int
    folders: TrialFolders
    device: DeviceRequest
    own_workloads: str | None = None
    """The folder below the workloads with the stack's own versions of them."""
    program: str = "python"
    """What starts the trial in its image."""
    image_id: str | None = None
    interpreter: Path | None = None
    user: User = field(default_factory=User)
    userns_host: bool = False
    """The engine remaps users, and the trial's own folders belong to no user that it would map to."""
    writable_root: bool = False
    """crun before December 2025 closes the root before CDI's hooks write into it (crun#1924)."""
    selinux: bool = False
    """The engine labels for SELinux, which would close the mounted folders to the trial."""
    memory_bytes: int | None = None
    passed: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the container's name: session, trial and attempt."""
        return run_name(self.session, self.trial.id, self.attempt)


def run_name(session: str, trial_id: str, attempt: int) -> str:
    """Return the name of one attempt, as an engine knows it."""
    return f"gpudyno-{session}-{trial_id}.a{attempt}"


PROGRAMS = ("own_program", "program")
"""Workloads that need an interpreter alone, and run on every stack as they are."""


def workload_file(workload: str, own_folder: str | None) -> str:
    """Return a workload's file below the workloads' folder: the stack's own version, where it has some.

    A framework's has the framework in its name, so that no two files have one.
    """
    if own_folder is None or workload in PROGRAMS:
        return f"{workload}.py"
    within, _, framework = own_folder.rpartition("/")
    return (
        f"{own_folder}/{workload}_{framework}.py" if within == "frameworks" else f"{own_folder}/{workload}.py"
    )


def file_of(spec: RunSpec) -> str:
    """Return a trial's file below the workloads' folder."""
    return workload_file(spec.trial.asked.workload, spec.own_workloads)


SHARED_MEMORY_BYTES = 64 * GIB
"""The most that a trial's processes may share, batches of its loaders above all; a bound, and not taken."""


_INSIDE = TrialFolders(Path("/in"), Path("/out"), (), Path("/cache"), Path("/workloads"))
"""A trial's folders as a container sees them."""


def _variables(spec: RunSpec, folders: TrialFolders, *, data: str, home: str) -> dict[str, str]:
    """Return the environment of a trial: its folders, its caches, and the user's variables that pass."""
    cache = folders.cache
    return {
        **spec.passed,
        # A version in a folder of its own imports what it shares with the others from the folder above.
        **({"PYTHONPATH": str(folders.workloads)} if spec.own_workloads else {}),
        "GPUDYNO_IN": str(folders.input),
        "GPUDYNO_OUT": str(folders.output),
        "GPUDYNO_DATA": data,
        "GPUDYNO_CACHE": str(cache),
        "HOME": home,
        "TMPDIR": home,
        "XDG_CACHE_HOME": f"{cache}/xdg",
        "TORCH_HOME": f"{cache}/torch",
        "TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor",
        "TRITON_CACHE_DIR": f"{cache}/triton",
        "CUDA_CACHE_PATH": f"{cache}/cuda",
        "MIOPEN_USER_DB_PATH": f"{cache}/miopen",
        "MIOPEN_CUSTOM_CACHE_DIR": f"{cache}/miopen",
        "FASTAI_HOME": f"{home}/fastai",
        "MPLCONFIGDIR": f"{home}/matplotlib",
        "GLOO_SOCKET_IFNAME": "lo",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONUNBUFFERED": "1",
        "LC_ALL": "C.UTF-8",
    }


OWN_VARIABLES = frozenset(
    _variables(
        RunSpec(cast(TrialSpec, None), "", 0, _INSIDE, DeviceRequest("cpu")), _INSIDE, data="", home=""
    )
) | {"PYTHONPATH"}
"""The variables that each trial gets from here, whatever the user's own are."""


def _visibility_variables(device: DeviceRequest, *, inside: bool = False) -> dict[str, str]:
    """Show a trial its own cards and no others.

    A container (`inside`) holds the trial's CUDA devices alone, counted from 0; AMD's it holds all.
    """
    if device.kind == "cpu":
        return {"CUDA_VISIBLE_DEVICES": ""}
    row = DEVICE_KINDS[device.kind]
    prefix = row.id_prefix if device.ids else ""
    by_place = inside and device.kind == "cuda" and not device.ids
    names = map(str, range(len(device.indices))) if by_place else device.marks
    marks = ",".join(prefix + name for name in names)
    visible = {row.visible: marks} if marks else {}
    if device.kind == "cuda" and not device.ids:
        # Our indices are the driver's, by bus; CUDA's own order begins with the fastest card.
        visible["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    return visible


def _device_options(device: DeviceRequest, *, keep_id: bool) -> dict[str, Any]:
    if device.kind == "cuda" and device.cdi:
        names = list(device.cdi)
        return {"DeviceRequests": [{"Driver": "cdi", "Count": 0, "DeviceIDs": names, "Capabilities": []}]}
    if device.kind == "cuda":
        request = {"Driver": "", "Count": 0, "DeviceIDs": list(device.marks), "Capabilities": [["gpu"]]}
        return {"DeviceRequests": [request]}
    if device.kind == "rocm":
        paths = ("/dev/kfd", "/dev/dri")
        devices = [
            {"PathOnHost": path, "PathInContainer": path, "CgroupPermissions": "rwm"} for path in paths
        ]
        if keep_id:
            # keep-groups is a word of Podman's command line alone; it means this annotation (podman#14881).
            return {"Devices": devices, "Annotations": {"run.oci.keep_original_groups": "1"}}
        return {"Devices": devices, "GroupAdd": [str(group) for group in device.groups]}
    if device.kind != "cpu":
        raise UserError(f"no container is given a device of '{device.kind}'", remedy="take --engine venv")
    return {}


def _mounts(folders: TrialFolders) -> list[dict[str, Any]]:
    """Return a trial's folders as its container sees them."""
    rows = (
        (folders.input, "/in", True),
        (folders.output, "/out", False),
        *((folder, f"/data/{name}", True) for name, folder in folders.data),
        (folders.cache, "/cache", False),
        (folders.workloads, "/workloads", True),
    )
    return [
        {"Type": "bind", "Source": str(source), "Target": target, "ReadOnly": read_only}
        for source, target, read_only in rows
    ]


def _container_variables(spec: RunSpec) -> dict[str, str]:
    """Return a trial's variables in a container, which holds its CUDA devices alone."""
    variables = _variables(spec, _INSIDE, data="/data", home="/tmp")
    if spec.device.kind != "cpu":
        # Inside, the user's own indices would mean other cards: only those of the trial are shown.
        variables |= _visibility_variables(spec.device, inside=True)
    if spec.device.cdi:
        # NVIDIA's runtime, where it is the default, would add all cards, as our images ask of it.
        variables["NVIDIA_VISIBLE_DEVICES"] = "void"
    return variables


def container_config(spec: RunSpec) -> dict[str, Any]:
    """Return the whole body of the Docker Engine API's container creation for one trial."""
    environment = _container_variables(spec)
    host = {
        "NetworkMode": "none",
        "ReadonlyRootfs": not spec.writable_root,
        "Mounts": _mounts(spec.folders),
        "Tmpfs": {"/tmp": "rw,exec,nosuid,nodev,mode=1777,size=4g"},
        "ShmSize": SHARED_MEMORY_BYTES,
        "CapDrop": ["ALL"],
        "SecurityOpt": [
            "no-new-privileges",
            *(["label=disable"] if spec.selinux else []),
        ],
        "AutoRemove": False,
        "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
        **_device_options(spec.device, keep_id=spec.user.keep_id),
    }
    if spec.user.keep_id or spec.userns_host:
        host["UsernsMode"] = "keep-id" if spec.user.keep_id else "host"
    if spec.memory_bytes is not None:
        host |= {"Memory": spec.memory_bytes, "MemorySwap": spec.memory_bytes}
    return {
        "Image": spec.image_id,
        "Cmd": [spec.program, f"/workloads/{file_of(spec)}"],
        "User": f"{spec.user.uid}:{spec.user.gid}",
        "WorkingDir": "/tmp",
        "Env": [f"{name}={value}" for name, value in sorted(environment.items())],
        # How a new process finds what runs of a session; the name says which trial it is.
        "Labels": {f"{LABEL}.session": spec.session},
        "NetworkDisabled": True,
        "StopSignal": "SIGTERM",
        "HostConfig": host,
    }


def script_config(image_id: str, device: DeviceRequest, words: Sequence[str]) -> dict[str, Any]:
    """Return the body of the creation of a container for a few words beside a device, without a trial."""
    return {
        "Image": image_id,
        "Cmd": [*words],
        "Env": ["NVIDIA_VISIBLE_DEVICES=void"] if device.cdi else [],
        "NetworkDisabled": True,
        "HostConfig": {"NetworkMode": "none", "CapDrop": ["ALL"], **_device_options(device, keep_id=False)},
    }


def process_command(spec: RunSpec) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the trial as a plain process: its argument list and its environment, with real folders."""
    work = spec.folders.output.parent
    environment = _variables(spec, spec.folders, data=str(work / "data"), home=str(work / "home"))
    environment |= _visibility_variables(spec.device)
    script = spec.folders.workloads / file_of(spec)
    return (str(spec.interpreter), str(script)), environment
