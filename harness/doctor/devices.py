"""The doctor's findings about the devices: cards, the ways to them, and the settings of their machine."""

from __future__ import annotations

from collections.abc import Iterator

from harness.doctor.surroundings import Finding, Surroundings, ok, problem, warn
from harness.engine.access import KEEPS_GROUPS, PODMAN_GIVES_GPUS, PODMAN_TAKES_ANNOTATIONS
from harness.engine.base import EngineFacts
from harness.engines import ENGINES
from harness.record import Gpu, Load, Machine
from harness.units import size

FOREIGN_BYTES = 200 * 2**20
"""What another process may hold on a card before a trial beside it is invalid."""

UDEV_RULE = 'KERNEL=="kfd|renderD*", MODE="0666"'

_REMEDIES = {
    "different versions": "restart the machine, or load the driver's module anew",
    "library is not here": "install the driver, or start this container with its cards (--gpus all)",
    "does not list it": "see `sudo dmesg` whether it has fallen off the bus; restart the machine",
    "": "install the maker's driver, or load its module (modprobe)",
}
"""By a part of the reason, the first that it has."""
_ARM = ("aarch64", "arm64")


def cards(around: Surroundings) -> Iterator[Finding]:
    """Each card that is taken and its state, and those that are not."""
    for silent in around.machine.silent_cards:
        remedy = next(remedy for cause, remedy in _REMEDIES.items() if cause in silent)
        yield Finding(
            "problem" if around.selection.kind == "cpu" else "warn",
            f"a card is in this machine and does not answer: {silent}",
            f"{remedy}; --device cpu measures the processor in its place",
        )
    cpu = around.machine.cpu
    if around.selection.kind == "cpu":
        note = f" ({around.selection.note})" if around.selection.note else ""
        given = f", {cpu.model or 'unknown'}, {cpu.usable:g} CPUs" if cpu.usable else ""
        yield ok(f"device: the processor{given}{note}")
    for card in around.selection.gpus:
        yield ok(f"device {card.index}: {_card(card)}")
        yield from _card_state(card)
    for unused in around.selection.others:
        yield ok(f"not taken: {unused}", "name it with --device to take it")
    if around.image_problem:
        yield problem(around.image_problem, "take --device cpu, or add an image to docker/images.toml")


def _card(card: Gpu) -> str:
    memory = f", {size(card.memory_bytes)}" if card.memory_bytes else ""
    driver = f", driver {card.driver}" if card.driver else ""
    cuda = f" (CUDA {card.driver_cuda})" if card.driver_cuda else ""
    return f"{card.name}{memory}{driver}{cuda}"


def _card_state(card: Gpu) -> Iterator[Finding]:
    place = f"device {card.index}"
    limit, default = card.power_limit_watts, card.power_limit_default_watts
    if limit is not None and default is not None and abs(limit - default) > 1:
        yield warn(
            f"{place} is limited to {limit:.0f} W of {default:.0f} W: its trials will be invalid",
            f"nvidia-smi -i {card.index} -pl {default:.0f}"
            if card.vendor == "NVIDIA"
            else "restore its power cap",
        )
    if card.clocks_locked:
        release = "nvidia-smi -rgc and -rac" if card.vendor == "NVIDIA" else "rocm-smi --setperflevel auto"
        yield warn(f"a setting holds the clocks of {place}", f"{release} releases them")
    if card.mig == "on":
        yield problem(
            f"{place} is in MIG mode and has no slice, so CUDA sees nothing of it",
            f"sudo nvidia-smi mig -i {card.index} -cgi 0 -C makes one, nvidia-smi -mig 0 leaves the mode",
        )
    elif card.slice:
        yield warn(
            f"{place} is a slice ({card.mig}): it shares clocks, power and heat with the others",
            "a slice is a card of its own in the report, without energy",
        )
    if card.pcie_width and card.pcie_width_max and card.pcie_width < card.pcie_width_max:
        yield warn(
            f"{place} is connected by {card.pcie_width} of {card.pcie_width_max} PCI Express lanes",
            "move it to a full slot; figures in `host` mode suffer",
        )
    if card.persistence is False:
        yield warn(f"persistence mode of {place} is off", "nvidia-smi -pm 1, or nvidia-persistenced")


def access(around: Surroundings) -> Iterator[Finding]:
    """Whether a trial gets to its cards."""
    if around.selection.kind == "cuda" and around.engine is not None:
        yield _cuda_access(around.engine, around.access.refusal)
    if around.selection.kind == "rocm":
        yield from _rocm_access(around)


def _cuda_access(engine: EngineFacts, refusal: str | None) -> Finding:
    if refusal is None:
        way = "CDI" if engine.wants_cdi else "the NVIDIA runtime"
        return ok(f"containers reach NVIDIA's cards through {way}")
    if engine.name == "podman" and not engine.cdi:
        needed = ".".join(map(str, PODMAN_GIVES_GPUS[:2]))
        return problem(refusal, f"use Podman {needed} or newer with CDI, Docker, or --engine venv")
    configure = " and nvidia-ctk runtime configure --runtime=docker" if engine.name == "docker" else ""
    return problem(
        f"no container of {ENGINES[engine.name].title} gets to NVIDIA's cards: {refusal}",
        "install nvidia-container-toolkit, then nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
        + configure,
    )


def _rocm_access(around: Surroundings) -> Iterator[Finding]:
    nodes = around.access.nodes
    if not any(node.path == "/dev/kfd" for node in nodes):
        yield problem("there is no /dev/kfd", "load the amdgpu driver with compute support")
        return
    if around.access.refusal is not None:
        yield problem(around.access.refusal, _ways_to_kfd(around))
        return
    groups = ", ".join(f"{node.path} of group {node.group}" for node in nodes)
    yield ok(f"containers reach AMD's cards through {groups}")
    shut = [node.path for node in nodes if not node.may_open]
    if shut and around.engine is None:
        yield problem(f"this user may not open {', '.join(shut)}", _ways_to_kfd(around))


def _ways_to_kfd(around: Surroundings) -> str:
    """What opens AMD's device files, that which changes least first."""
    shut = sorted({node.group for node in around.access.nodes if not node.may_open})
    if shut:
        first = f"sudo usermod -aG {','.join(map(str, shut))} $USER and log in again"
    elif around.engine is not None and around.engine.name == "podman":
        first = f"take Podman {'.'.join(map(str, PODMAN_TAKES_ANNOTATIONS[:2]))} or newer with {KEEPS_GROUPS}"
    else:
        first = "take Podman, or an engine that runs as root"
    own = "" if shut else ", or name an interpreter with ROCm's PyTorch by --python"
    return f"{first}{own}; or let everyone open them by a udev rule: {UDEV_RULE}"


def precisions(around: Surroundings) -> Iterator[Finding]:
    """Which 16-bit types the processor computes in, where trials run on it and the system says."""
    native = around.machine.cpu.native_16_bit
    if around.selection.kind != "cpu" or native is None:
        return
    emulated = [name for name in ("bf16", "fp16") if name not in native]
    says = [f"computes in {' and '.join(native)}"] if native else []
    says += [f"only emulates {' and '.join(emulated)}, which plans leave out"] if emulated else []
    yield ok(f"the CPU {' and '.join(says)}")


def settings(machine: Machine, load: Load) -> Iterator[Finding]:
    """What else disturbs a measurement here."""
    if machine.architecture.lower() in _ARM:
        yield warn(
            f"the processor is {machine.architecture}, and the images are for x86-64: trials run in a "
            "virtual environment, whose lock may hold no wheel for it",
            "take an interpreter with a framework of its own by --python, as on a GH200",
        )
    if machine.virtual == "wsl":
        yield warn(
            "this is WSL2: the driver is that of Windows, which hides other processes and some counters",
            "records will say what was not told; for figures to compare, start Linux itself",
        )
    elif machine.virtual not in (None, "none"):
        yield warn(f"this is a virtual machine ({machine.virtual})", "neighbours may slow it unseen")
    if machine.cpu.governor and machine.cpu.governor != "performance":
        yield warn(
            f"the processor's governor is '{machine.cpu.governor}'",
            "sudo cpupower frequency-set -g performance, while measuring",
        )
    usable = machine.cpu.usable
    if load.load_average_1min is not None and usable and load.load_average_1min > usable / 2:
        yield warn(
            f"the load average is {load.load_average_1min:.1f} on {usable:g} CPUs",
            "let the other work end first",
        )
    held = load.other_gpu_memory_bytes or 0
    if held > FOREIGN_BYTES:
        yield warn(
            f"{load.other_gpu_processes} other processes hold {size(held)} on the cards",
            "end them: a trial on the same card is invalid",
        )
    if load.unknown_because:
        yield warn(load.unknown_because, "records will say so")
