"""This machine as a record shows it, without a name, and what else it does before a trial."""

from __future__ import annotations

import hashlib
import math
import os
import platform
import pwd
import re
import secrets
import socket
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import platformdirs
import psutil

from harness.errors import MachineError, UserError
from harness.files import Files, user_folder
from harness.gpu import amd, nvidia
from harness.gpu.nvml import driver_session, load_library
from harness.probe.describe import describe_machine
from harness.probe.system import available_bytes, sees_processes
from harness.record import Load, Machine, store
from harness.record.published.cards import Card, find_card_by_chip, is_shared_name, load_cards
from harness.redact import redact_value

LABEL_CHARACTERS = 40
_CLOSED = ("name", "model", "vendor", "architecture", "system")
"""Facts of vocabularies that makers made: no host or user is looked for in them."""
_MAKERS = re.compile(
    r"\b(?:nvidia|geforce|amd|advanced micro devices|radeon|corporation|inc|graphics)\b", re.I
)


def look_at_machine(label: str | None = None) -> tuple[Machine, dict[str, str]]:
    """Return this machine, and the driver's UUID of each unit (its hash in records), which stays in memory.

    `label` is the user's choice, by default its devices. Where no id can be kept, as on a full disk, it is
    NOT_KEPT, and nothing is measured.
    """
    fields = describe_machine()
    try:
        identity = machine_id(user_state_folder())
    except MachineError:
        identity = NOT_KEPT
    machine = make_machine(fields, identity, label, local_names(), _known_cards())
    return machine, {card["unit"]: card["uuid"] for card in fields["gpus"] if card["unit"]}


def _known_cards() -> tuple[Card, ...]:
    """Return the clone's table of cards; a broken one is refused where its figures are used."""
    try:
        return load_cards(Path(__file__).resolve().parents[2])
    except UserError:
        return ()


def make_machine(
    fields: Mapping[str, Any],
    identity: str,
    label: str | None,
    names: Collection[str],
    cards: Sequence[Card] = (),
) -> Machine:
    """Return a Machine from what the probe read; a string that names this machine or a person is withheld.

    A card whose driver gives it a name of several models is named by its chip, where `cards` have that.
    """
    bare = _withhold_names(fields, "", names)
    bare["gpus"] = [_name_by_chip(gpu, cards) for gpu in bare["gpus"]]
    return Machine.model_validate({**bare, "id": identity, "label": label or default_label(bare)})


def _name_by_chip(gpu: dict[str, Any], cards: Sequence[Card]) -> dict[str, Any]:
    if not is_shared_name(gpu["name"]):
        return gpu
    card = find_card_by_chip(gpu.get("architecture"), gpu.get("compute_units"), gpu.get("pci_id"), cards)
    return {**gpu, "name": f"{card.vendor} {card.name}"} if card else gpu


def _withhold_names(value: Any, field: str, names: Collection[str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _withhold_names(inner, key, names) for key, inner in value.items() if key != "uuid"}
    if isinstance(value, list | tuple):
        return [_withhold_names(inner, field, names) for inner in value]
    return redact_value(value, () if field in _CLOSED else names) if isinstance(value, str) else value


def default_label(fields: Mapping[str, Any]) -> str:
    """Return the devices: "2x-rtx-4090", "1x-rtx-4090-1x-gtx-1080-ti", or "cpu-2-cores"."""
    counts = Counter(_slug(card["name"]) for card in fields["gpus"])
    if counts:
        label = "-".join(f"{count}x-{name}" for name, count in counts.items())
        return label[:LABEL_CHARACTERS].rstrip("-.")
    if kinds := fields["cpu"].get("usable_kinds"):
        named = "-".join(f"{count}-{_slug(kind)}" for kind, count in kinds.items())
        return f"cpu-{named}"[:LABEL_CHARACTERS].rstrip("-.")
    usable = max(1, math.floor(fields["cpu"]["usable"] or 1))
    count = min(usable, fields["cpu"]["cores"] or usable)
    return f"cpu-{count}-core{'s' if count > 1 else ''}"


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", _MAKERS.sub(" ", name).lower()).strip("-.") or "unknown-card"


ID_FILE = "id"
NOT_KEPT = "0" * 12
_ID = re.compile(r"[0-9a-f]{12}")


def user_state_folder() -> Path:
    """Return the folder of this user's state: GPUDYNO_STATE, else the platform's. It may not exist yet."""
    return user_folder("GPUDYNO_STATE", lambda: platformdirs.user_state_path("gpudyno"))


def machine_folder(state: Path) -> Path:
    """Return this machine's own folder below the user's state, which nodes with one home share."""
    installed = Files().text("/etc/machine-id") or ""
    place = hashlib.sha256(f"{installed}\n{platform.node()}".encode()).hexdigest()
    return state / "machines" / place[:16]


def machine_id(state: Path) -> str:
    """Return this machine's id, random and kept below the user's state from the first call on.

    Raises MachineError where it cannot be kept.
    """
    path = machine_folder(state) / ID_FILE
    try:
        if not path.exists():
            # Several first calls at once agree.
            with suppress(UserError):
                store.write_whole(path, secrets.token_hex(6) + "\n", replace=False)
        identity = path.read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        raise MachineError(
            f"the machine's id cannot be kept in '{state}' ({error.strerror})",
            remedy="set GPUDYNO_STATE to a folder that can be written",
        ) from None
    if not _ID.fullmatch(identity):
        raise MachineError(f"'{path}' holds no machine id", remedy="remove it, and a new one is made")
    return identity


_USER_VARIABLES = ("USER", "LOGNAME", "USERNAME", "SUDO_USER")
_HOST_VARIABLES = ("HOSTNAME", "HOST", "COMPUTERNAME", "SLURMD_NODENAME", "SLURM_SUBMIT_HOST")


def local_names() -> frozenset[str]:
    """Return the names of this machine and its user, which go into no record."""
    return frozenset(filter(None, (*_users(), *_hosts(Files()))))


def _users() -> Iterator[str]:
    yield from (os.environ.get(name, "") for name in _USER_VARIABLES)
    with suppress(RuntimeError):
        yield Path.home().name
    with suppress(KeyError):
        entry = pwd.getpwuid(os.getuid())
        yield from (entry.pw_name, entry.pw_gecos.split(",")[0].strip())


def _hosts(files: Files) -> Iterator[str]:
    hosts = [socket.gethostname(), platform.node(), files.text("/etc/hostname") or ""]
    hosts += [os.environ.get(name, "") for name in _HOST_VARIABLES]
    for host in hosts:
        short, _, domain = host.partition(".")
        yield from (host, short, domain if "." in domain else "")
    for line in (files.text("/etc/resolv.conf") or "").splitlines():
        words = line.split()
        if words[:1] in (["search"], ["domain"]):
            yield from (word for word in words[1:] if "." in word.strip("."))


BUSY_SECONDS = 0.5


def read_load() -> Load:
    """Load average, busy CPUs, free memory, other processes on the cards; null with a reason if unknown."""
    current = read_load_from(Files(), load_library(), os.getpid())
    # CPUs' worth of work that the whole machine does.
    busy = round(psutil.cpu_percent(BUSY_SECONDS) / 100 * (psutil.cpu_count() or 1), 2)
    return current.model_copy(update={"busy_cpus": busy})


def read_load_from(files: Files, nvml: Any | None, pid: int) -> Load:
    """Return the same from the machine's files, NVML and this process."""
    with driver_session(nvml) as refused:
        has_nvidia = refused is None
    has_amd = bool(amd.kernel_folders(files))
    load = Load(load_average_1min=round(os.getloadavg()[0], 2), memory_available_bytes=available_bytes(files))
    if not (has_nvidia or has_amd):
        return load
    others = _other_processes(files, nvml if has_nvidia else None, has_amd, frozenset((pid,)))
    return load.model_copy(update=others)


def _other_processes(
    files: Files, nvml: Any | None, has_amd: bool, ours: frozenset[int]
) -> dict[str, int | str | None]:
    """Return the fields of a load that are of other processes on the cards."""
    if not sees_processes(files):
        return {"unknown_because": "other processes cannot be seen from inside a container"}
    counts = [nvidia.foreign_processes(nvml, ours)] if nvml is not None else []
    if has_amd:
        held = amd.held_bytes(files)
        foreign = [sum(of.values()) for pid, of in (held or {}).items() if pid not in ours]
        counts.append(None if held is None else (len(foreign), sum(foreign)))
    listed = [count for count in counts if count is not None]
    if len(listed) < len(counts):
        return {"unknown_because": "the driver does not list the processes on its cards"}
    used = nvidia.total_bytes(used for _, used in listed)
    why = "the driver does not say what other processes hold" if used is None else None
    processes = sum(processes for processes, _ in listed)
    return {"other_gpu_processes": processes, "other_gpu_memory_bytes": used, "unknown_because": why}
