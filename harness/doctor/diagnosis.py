"""What this machine can do, before anything is spent: pure functions of what was read of its surroundings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.data.datasets import BRING_XRAYS, CHEST_XRAY
from harness.doctor.surroundings import (
    Diagnosis,
    Disk,
    Surroundings,
    ok,
    problem,
    warn,
)
from harness.engine.cdi import ALL_CARDS, CDI_REMEDY
from harness.engine.facts import PODMAN_GIVES_GPUS, EngineFacts
from harness.engines import ENGINES
from harness.image.images import ANOTHER_FRAMEWORK
from harness.record import Gpu
from harness.record.finding import finding_label, finding_remedy, finding_sentence
from harness.summary.device_checks import standing_findings
from harness.units import GIB, format_bytes

SPARE_BYTES = 2 * GIB
"""What a disk should have free beside what a plan needs."""
FULL_BYTES = 2**26
"""With less, no session is written."""
SMALL_MEMORY_BYTES = 4 * GIB
LITTLE_SHARED_BYTES = GIB

UDEV_RULE = 'KERNEL=="kfd|renderD*", MODE="0666"'

_SILENT_REMEDIES = {
    "/dev/dxg": "install its maker's driver in Windows, and none in WSL2; then run `wsl --shutdown` there",
    "different versions": "restart the machine, or load the driver's module again",
    "library is not here": "install the driver, or start this container with its cards (--gpus all)",
    "does not list it": "see `sudo dmesg` whether it has fallen off the bus; restart the machine",
    "": "install the maker's driver, or load its module (modprobe)",
}
"""What to do about a card that does not answer, by a part of the reason: the first that it has."""
_ARM = ("aarch64", "arm64")


def examine_surroundings(around: Surroundings) -> tuple[Diagnosis, ...]:
    """Return what this machine can do, and what prevents its plan."""
    parts = (
        _engine(around),
        _cards(around),
        _access(around),
        _state(around),
        _memory(around),
        _disks(around),
        _data(around),
    )
    return tuple(diagnosis for part in parts for diagnosis in part)


def find_obstacles(around: Surroundings) -> tuple[Diagnosis, ...]:
    """Return what prevents any plan, of engine, cards and disks."""
    parts = (_engine(around), _cards(around), _access(around), _disks(around))
    return tuple(found for part in parts for found in part if found.level == "problem")


def diagnosis_lines(diagnoses: Iterable[Diagnosis]) -> list[str]:
    """Return one line a diagnosis, its remedy below it."""
    marks = {"ok": "ok      ", "warn": "warning ", "problem": "PROBLEM "}
    shown = []
    for diagnosis in diagnoses:
        shown.append(marks[diagnosis.level] + diagnosis.what)
        if diagnosis.remedy:
            shown.append(" " * 8 + "→ " + diagnosis.remedy)
    return shown


def _engine(around: Surroundings) -> Iterator[Diagnosis]:
    engine = around.engine
    if engine is None:
        for lost in around.lost:
            yield warn(lost, "install Docker Engine or Podman to pin the system's libraries too")
        return
    kind = ", rootless" if engine.rootless else ""
    yield ok(f"{ENGINES[engine.name].title} {engine.version or 'of unknown version'} answers{kind}")


def _cards(around: Surroundings) -> Iterator[Diagnosis]:
    """Yield each card that is taken and its state, and each one that is not."""
    for silent in around.machine.silent_cards:
        remedy = next(remedy for cause, remedy in _SILENT_REMEDIES.items() if cause in silent)
        yield Diagnosis(
            "problem" if around.selection.kind == "cpu" and not around.selection.asked else "warn",
            f"a card is in this machine and does not answer: {silent}",
            f"{remedy}; --device cpu measures the processor in its place",
        )
    cpu = around.machine.cpu
    if around.selection.kind == "cpu":
        note = f" ({around.selection.note})" if around.selection.note else ""
        given = f", {cpu.model or 'unknown'}, {cpu.usable:g} CPUs" if cpu.usable else ""
        kinds = ", ".join(f"{count} {kind}" for kind, count in cpu.usable_kinds.items())
        given += f" ({kinds})" if kinds else ""
        yield ok(f"device: the processor{given}{note}")
    for card in around.selection.gpus:
        yield ok(f"device {card.index}: {_card_words(card)}")
        yield from _card_state(card)
    for unused in around.selection.others:
        yield ok(f"not taken: {unused}", "name it with --device to take it")
    for error in around.in_the_way:
        yield problem(error.problem, error.remedy)


def _card_words(card: Gpu) -> str:
    memory = f", {format_bytes(card.memory_bytes)}" if card.memory_bytes else ""
    driver = f", driver {card.driver}" if card.driver else ""
    cuda = f" (CUDA {card.driver_cuda})" if card.driver_cuda else ""
    return f"{card.name}{memory}{driver}{cuda}"


def _card_state(card: Gpu) -> Iterator[Diagnosis]:
    place = f"device {card.index}"
    if card.mig == "on":
        yield problem(
            f"{place} is in MIG mode and has no slice, so CUDA sees nothing of it",
            f"sudo nvidia-smi mig -i {card.index} -cgi 0 -C makes one, nvidia-smi -mig 0 leaves the mode",
        )
    if card.pcie_width and card.pcie_width_max and card.pcie_width < card.pcie_width_max:
        yield warn(
            f"{place} is connected by {card.pcie_width} of {card.pcie_width_max} PCI Express lanes",
            "move it to a full slot; figures in `host` mode suffer",
        )


def _access(around: Surroundings) -> Iterator[Diagnosis]:
    """Yield whether a trial gets to its cards."""
    if around.selection.kind == "cuda":
        yield _cuda_start(around)
    if around.selection.kind == "cuda" and around.engine is not None:
        yield _cuda_access(around.engine, around.refusal, around.machine.virtual == "wsl")
    if around.selection.kind == "rocm":
        yield from _rocm_access(around)


def _cuda_start(around: Surroundings) -> Diagnosis:
    start, inside = around.cuda, around.cuda_inside
    if inside.starts is not None:
        said = f"CUDA does not start in a container: {inside.said}"
        remedy = inside.remedy or "start one with its cards by hand, or take --engine venv"
        return ok("CUDA starts in a container") if inside.starts else problem(said, remedy)
    if start.starts is not False:
        said = "CUDA starts on this host" if start.starts else "a start of CUDA on this host: not tried"
        return ok(f"{said}; in a container: not tried" if around.engine else said)
    say = problem if start.remedy or around.engine is None else warn
    remedy = start.remedy or "look at the driver (`sudo dmesg`), or restart the machine"
    return say(f"the driver answers and CUDA does not start: {start.said}", remedy)


def _cuda_access(engine: EngineFacts, refusal: str | None, in_windows: bool) -> Diagnosis:
    if refusal is None:
        way = "CDI" if engine.wants_cdi else "the NVIDIA runtime"
        return ok(f"containers reach NVIDIA's cards through {way}")
    if engine.name == "podman" and not engine.cdi:
        return problem(refusal, f"use Podman {PODMAN_GIVES_GPUS} or newer with CDI, Docker, or --engine venv")
    if ALL_CARDS in refusal:
        return problem(
            refusal, "take all cards: leave --device and CUDA_VISIBLE_DEVICES out; or --engine venv"
        )
    if engine.name == "podman":
        remedy = CDI_REMEDY
    else:
        remedy = "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker"
        remedy += "; Docker Desktop brings both, so update it" if in_windows else ""
    return problem(
        f"no container of {ENGINES[engine.name].title} gets to NVIDIA's cards: {refusal}",
        f"install nvidia-container-toolkit, then {remedy}",
    )


def _rocm_access(around: Surroundings) -> Iterator[Diagnosis]:
    if not any(node.path == "/dev/kfd" for node in around.nodes):
        yield problem("there is no /dev/kfd", "load the amdgpu driver with compute support")
        return
    if around.refusal is not None:
        yield problem(around.refusal, _kfd_remedy(around))
        return
    if around.older_rocm:
        yield warn(around.older_rocm, ANOTHER_FRAMEWORK)
    groups = ", ".join(f"{node.path} of group {node.group}" for node in around.nodes)
    yield ok(f"containers reach AMD's cards through {groups}")
    shut = [node.path for node in around.nodes if not node.may_open]
    if shut and around.engine is None:
        yield problem(f"this user may not open {', '.join(shut)}", _kfd_remedy(around))


def _kfd_remedy(around: Surroundings) -> str:
    """Return what opens AMD's device files, that which changes least first."""
    shut = sorted({node.group for node in around.nodes if not node.may_open})
    if shut:
        first = f"sudo usermod -aG {','.join(map(str, shut))} $USER and log in again"
    elif around.engine is not None and around.engine.name == "podman":
        first = f"take Podman {PODMAN_GIVES_GPUS} or newer"
    else:
        first = "take Podman, or an engine that runs as root"
    own = "" if shut else ", or name an interpreter with ROCm's PyTorch by --python"
    return f"{first}{own}; or let everyone open them by a udev rule: {UDEV_RULE}"


def _state(around: Surroundings) -> Iterator[Diagnosis]:
    """Yield what would disturb a measurement here."""
    machine = around.machine
    if machine.architecture.lower() in _ARM:
        said = f"the processor is {machine.architecture}: image 'cuda' alone is locked for it"
        remedy = "take an interpreter with a framework of its own by --python"
        yield ok(said) if around.selection.kind == "cuda" else warn(said, remedy)
    if machine.virtual == "wsl":
        yield warn(
            "this is WSL2: the driver is that of Windows, which hides other processes and some counters",
            "records will say what is not known",
        )
    for found in standing_findings(machine, around.load, around.selection.gpus):
        if found.name not in machine.declared and (advice := finding_remedy(found)):
            yield warn(f"{finding_label(found)}: {finding_sentence(found)}", advice)
    if around.load.unknown_because:
        yield warn(around.load.unknown_because, "records will say so")


def _memory(around: Surroundings) -> Iterator[Diagnosis]:
    machine = around.machine
    memory = machine.memory_limit_bytes or machine.memory_bytes
    if memory is not None:
        small = memory < SMALL_MEMORY_BYTES
        remedy = "the quick plan needs about 4 GiB" if small else ""
        free = around.load.memory_available_bytes
        shown = f", {format_bytes(free)} of it available" if free is not None else ""
        yield Diagnosis("warn" if small else "ok", f"memory: {format_bytes(memory)}{shown}", remedy)
    shared = machine.shared_memory_bytes
    if around.engine is None and shared is not None and shared < LITTLE_SHARED_BYTES:
        yield warn(
            f"/dev/shm holds {format_bytes(shared)}, and loaders put their batches there",
            "sudo mount -o remount,size=50% /dev/shm",
        )


def _disks(around: Surroundings) -> Iterator[Diagnosis]:
    disks = list(around.disks)
    if engine := around.engine:
        title = f"{ENGINES[engine.name].title}'s storage"
        disks.append(Disk(title, None, engine.data_root_free_bytes))
    for disk in disks:
        if disk.free_bytes is None:
            continue
        shown = f"disk for {disk.what}: {format_bytes(disk.free_bytes)} free"
        # Whether an image and data have room, is said by what makes and fetches them.
        if disk.read_only:
            yield problem(
                f"disk for {disk.what}: '{disk.folder}' cannot be written to", "see its mount and owner"
            )
        elif disk.free_bytes < FULL_BYTES:
            place = f"in '{disk.folder}'" if disk.folder else "there"
            yield problem(f"{shown}, and a session needs {format_bytes(FULL_BYTES)}", f"make room {place}")
        elif disk.free_bytes < SPARE_BYTES:
            yield warn(shown, f"a plan should leave {format_bytes(SPARE_BYTES)}")
        else:
            yield ok(shown)


def _data(around: Surroundings) -> Iterator[Diagnosis]:
    for need in around.data:
        if need.problem:
            yield problem(need.problem, "remove or correct the file; GPUDYNO_DATA names the folder")
        elif need.at_hand:
            yield ok(f"data: {need.name} is at hand")
        else:
            fetched = f" ({format_bytes(need.download_bytes)})" if need.download_bytes else ""
            fetching = f"`invoke build --plan {around.plan}` fetches it"
            how = BRING_XRAYS if need.name == CHEST_XRAY else fetching
            yield warn(f"data: {need.name}{fetched} is not at hand", how)
