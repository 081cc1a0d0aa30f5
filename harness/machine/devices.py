"""Which devices a trial takes: pure, over what the fingerprint lists."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness.device_kinds import BY_VENDOR
from harness.errors import NoDevice
from harness.files import unit_hash
from harness.record import DeviceKind, Gpu, Machine
from harness.redact import WITHHELD, redact_value

SMALLEST_DEFAULT_BYTES = 3 * 2**30
"""A card below this, such as one inside the processor, is never taken unasked."""

_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


@dataclass(frozen=True, slots=True)
class Selection:
    """The devices of a session. `uuids` go to the engine and never into a record."""

    kind: DeviceKind
    gpus: tuple[Gpu, ...] = ()
    others: tuple[str, ...] = ()
    """The cards that are there and not taken, each by index and name."""
    uuids: tuple[str, ...] = ()
    note: str = ""
    """Why these, in one clause, where nobody asked for them by name."""
    asked: bool = False
    """Whether the user chose, by an option or a variable."""


def select_devices(
    machine: Machine,
    devices: str | None,
    *,
    uuids: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Selection:
    """Return the cards that `devices` names: "cpu", indices as "0,1", or the driver's UUIDs.

    Where it is null, CUDA_VISIBLE_DEVICES or its like in `environ` decide, else all cards of the model with
    the most memory are taken. `uuids` as look() gives them: with it a UUID's beginning is enough. Raises
    NoDevice, which lists the cards.
    """
    uuids = dict(uuids or {})
    if devices is not None:
        on_cpu = devices.strip().lower() == "cpu"
        cards = () if on_cpu else _named_cards(machine, devices, uuids)
        return replace(_make_selection(machine, cards, uuids, ""), asked=True)
    name, visible = next(
        ((name, environ[name]) for name in _VISIBLE if environ is not None and name in environ), ("", None)
    )
    if visible is not None:
        hidden = visible.strip() in ("", "-1", "NoDevFiles", "none")
        cards = () if hidden else _named_cards(machine, visible, uuids)
        note = f"{name}={'' if hidden else 'set'}: the user's own choice"
        return replace(_make_selection(machine, cards, uuids, note), asked=True)
    return _select_default(machine, uuids)


def _select_default(machine: Machine, uuids: Mapping[str, str]) -> Selection:
    able = [card for card in machine.gpus if _memory(card) >= SMALLEST_DEFAULT_BYTES and card.mig != "on"]
    if not able:
        small = "no card here has 3 GiB of memory" if machine.gpus else ""
        return _make_selection(machine, (), uuids, small)
    models: dict[tuple[str, str], list[Gpu]] = {}
    for card in able:
        models.setdefault((card.vendor, card.name), []).append(card)
    cards = max(models.values(), key=lambda group: (max(map(_memory, group)), len(group)))
    note = "the model with the most memory" if len(cards) < len(machine.gpus) else ""
    return _make_selection(machine, tuple(cards), uuids, note)


def _memory(card: Gpu) -> int:
    return card.memory_bytes if card.memory_bytes is not None else SMALLEST_DEFAULT_BYTES


def _make_selection(
    machine: Machine, cards: tuple[Gpu, ...], uuids: Mapping[str, str], note: str
) -> Selection:
    if len(cards) > 1 and any(card.slice and card.vendor == "NVIDIA" for card in cards):
        cards, note = cards[:1], "CUDA shows a process one slice alone"
    return Selection(
        kind=BY_VENDOR[cards[0].vendor] if cards else "cpu",
        gpus=cards,
        others=tuple(_card_words(card) for card in machine.gpus if card not in cards),
        uuids=tuple(uuids[card.unit] for card in cards if card.unit is not None and card.unit in uuids),
        note=note,
    )


def _named_cards(machine: Machine, devices: str, uuids: Mapping[str, str]) -> tuple[Gpu, ...]:
    stripped = (device.strip() for device in devices.split(","))
    cards = tuple(dict.fromkeys(_find_card(machine, device, uuids) for device in stripped if device))
    if not cards:
        raise NoDevice(f"the device '{devices}' names no card", remedy=_card_list(machine))
    if len({card.vendor for card in cards}) > 1:
        raise NoDevice(f"the devices '{devices}' are of two makers", remedy="ask for cards of one of them")
    return cards


def _find_card(machine: Machine, device: str, uuids: Mapping[str, str]) -> Gpu:
    if device.isdigit():
        cards = [card for card in machine.gpus if card.index == int(device)][:1]
    else:
        units = {unit_hash(device)} | {unit for unit, uuid in uuids.items() if uuid.startswith(device)}
        cards = [card for card in machine.gpus if card.unit in units]
    if len(cards) != 1:
        problem = "names several cards" if cards else "is not on this machine"
        raise NoDevice(f"the device '{device}' {problem}", remedy=_card_list(machine))
    return cards[0]


def _card_list(machine: Machine) -> str:
    cards = ", ".join((*map(_card_words, machine.gpus), *machine.silent_cards))
    return f"there is: {cards}; or ask for cpu" if cards else "there is no card here; ask for cpu"


def _card_words(card: Gpu) -> str:
    size = f" ({round(card.memory_bytes / 2**30)} GiB)" if card.memory_bytes else ""
    return f"{card.index}: {card.name}{size}"


VISIBILITY = (
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
)
"""Variables that choose devices. Their indices are the host's: in a container with fewer they mean others."""

# fmt: off
_NAMES = frozenset((
    *VISIBILITY,
    # which device code runs
    "HSA_OVERRIDE_GFX_VERSION", "CUDA_DEVICE_ORDER", "CUDA_MODULE_LOADING", "CUDA_LAUNCH_BLOCKING",
    "CUDA_DEVICE_MAX_CONNECTIONS", "HSA_ENABLE_SDMA", "HSA_XNACK", "HSA_NO_SCRATCH_RECLAIM",
    "AMD_SERIALIZE_KERNEL", "GPU_MAX_HW_QUEUES", "MIOPEN_FIND_MODE", "MIOPEN_FIND_ENFORCE",
    "TORCH_BLAS_PREFER_HIPBLASLT", "ROCBLAS_LAYER", "CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE",
    # the arithmetic
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "NVIDIA_TF32_OVERRIDE", "ONEDNN_DEFAULT_FPMATH_MODE",
    "DNNL_DEFAULT_FPMATH_MODE", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY",
    "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR", "TORCH_CUDNN_V8_API_DISABLED",
    # threads
    "OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "OMP_WAIT_POLICY", "GOMP_CPU_AFFINITY", "KMP_AFFINITY",
    "KMP_BLOCKTIME", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS",
    # memory
    "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_NO_HIP_MEMORY_CACHING", "MALLOC_ARENA_MAX",
))
# fmt: on
_PREFIXES = (
    "HSA_OVERRIDE_GFX_VERSION_",
    "PYTORCH_TUNABLEOP_",
    "NCCL_P2P_",
    "NCCL_SHM_",
    "NCCL_ALGO",
    "NCCL_PROTO",
)
_UUID = re.compile(r"(?:GPU|MIG)-[0-9A-Fa-f]{4,}(?:-[0-9A-Fa-f]+)*")


def passed_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of `environ` that go into a trial, as they are."""
    return {
        name: value for name, value in sorted(environ.items()) if name in _NAMES or name.startswith(_PREFIXES)
    }


def recorded_variables(passed: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    """Return the same for a record: a card's UUID as its hash, and no value that names somebody."""
    return {
        name: redact_value(_UUID.sub(lambda match: f"unit:{unit_hash(match.group())}", value), names)
        for name, value in passed.items()
    }


INHERITED = ("LD_LIBRARY_PATH", "PATH", "TZ")
"""Variables of its user that a trial as a process has, besides the passed ones."""
_USUAL = frozenset(f"{root}{name}" for root in ("", "/usr", "/usr/local") for name in ("/bin", "/sbin"))


def inherited_variables(environ: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    """Return these for a record, without the folders of programs that every system has."""
    parts_by_name = {name: [part for part in environ.get(name, "").split(":") if part] for name in INHERITED}
    parts_by_name["PATH"] = [part for part in parts_by_name["PATH"] if part.rstrip("/") not in _USUAL]
    return {
        name: " ".join(WITHHELD if redact_value(f"{part}/", names) == WITHHELD else part for part in parts)
        for name, parts in parts_by_name.items()
        if parts
    }


def other_libraries(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return why a trial may load other libraries than its lock's, as reasons of a record."""
    folders = [Path(part) for part in environ.get("LD_LIBRARY_PATH", "").split(":") if part]
    leads = any(next(folder.glob("*.so*"), None) for folder in folders)
    return ("LD_LIBRARY_PATH leads to libraries that no lock names",) if leads else ()


def card_notes(selection: Selection, machine: Machine) -> tuple[str, ...]:
    """Return which devices are taken, which are not, and which do not answer, for a person."""
    silent = tuple(f"does not answer: {card}" for card in machine.silent_cards)
    others = f"not taken: {'; '.join(selection.others)}" if selection.others else ""
    if not selection.gpus:
        note = f": {selection.note}" if selection.note else ""
        return (f"device: the CPU{f' ({others})' if others else ''}{note}", *silent)
    taken = ", ".join(f"{gpu.index}: {gpu.name}" for gpu in selection.gpus)
    others = f"; {others}" if others else ""
    return (f"device: {taken}{others}{' (' + selection.note + ')' if selection.note else ''}", *silent)
