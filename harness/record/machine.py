"""What a machine is, what else it was doing, and the software stack that a trial used."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from harness.device_kinds import DeviceKind, Vendor
from harness.engines import EngineName
from harness.record.strict_model import LeftOutIfNull, Model
from harness.record.trial_spec import Name

_NOT_THE_MACHINE = ("id", "label")


def machine_differences(a: Machine, b: Machine) -> tuple[str, ...]:
    """Return every field that is not the same, as "field: a → b"; what is not known is "unknown". Pure."""
    return tuple(
        f"{field}: {_value_words(left)} → {_value_words(right)}"
        for field, left, right in differing_fields(a, b)
    )


def differing_fields(a: Machine, b: Machine) -> tuple[tuple[str, Any, Any], ...]:
    """Return every field that is not the same, with both values; null is unknown. Pure."""
    left, right = _fields(a), _fields(b)
    return tuple(
        (field, left.get(field), right.get(field))
        for field in dict.fromkeys((*left, *right))
        if left.get(field) != right.get(field)
    )


def _fields(machine: Machine) -> dict[str, Any]:
    fields = machine.model_dump(exclude={*_NOT_THE_MACHINE, "gpus", "cpu"})
    # Older records lack what follows from model and features anyway.
    cpu = machine.cpu.model_dump(exclude={"native_16_bit"})
    fields |= {f"cpu.{field}": value for field, value in cpu.items()}
    fields["gpus"] = len(machine.gpus)
    for at, card in enumerate(machine.gpus):
        fields |= {f"gpu {at} {field}": value for field, value in card.model_dump(exclude={"index"}).items()}
    return fields


def _value_words(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "none"
    return "unknown" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


Declared = Literal["power-limit", "locked-clocks"]


class Gpu(Model):
    """One card as its driver describes it. `unit` is its UUID as a hash keyed by the project."""

    index: int
    vendor: Vendor
    name: str
    unit: str | None = None
    architecture: str | None = None
    pci_id: str | None = None
    """The chip of AMD's cards and its revision, as 744c:c8."""
    compute_units: int | None = None
    memory_bytes: int | None = None
    driver: str | None = None
    driver_cuda: str | None = None
    vbios: str | None = None
    power_limit_watts: float | None = None
    power_limit_default_watts: float | None = None
    power_limit_max_watts: float | None = None
    clock_max_mhz: int | None = None
    clock_memory_max_mhz: int | None = None
    clocks_locked: bool | None = None
    ecc: bool | None = None
    remapped_rows: int | None = None
    """Rows of its memory that were replaced for good."""
    bar1_bytes: int | None = None
    compute_mode: Literal["default", "exclusive", "prohibited"] | None = None
    mig: str | None = None
    persistence: bool | None = None
    pcie_generation: int | None = None
    pcie_width: int | None = None
    pcie_generation_max: int | None = None
    pcie_width_max: int | None = None
    numa_node: int | None = None
    bus: LeftOutIfNull[str] = None
    """Its address on PCI, as 0000:1b:00.0."""
    pcie_generation_of_card: LeftOutIfNull[int] = None
    """What the card has by itself; `pcie_generation_max` is what it has in this slot."""
    remapping: LeftOutIfNull[Literal["pending", "failed"]] = None
    """Rows that wait for a restart to be replaced, or that no spare was left for."""
    ecc_uncorrected_ever: LeftOutIfNull[int] = None
    """Memory errors that ECC could not correct, over the card's life."""
    vgpu_license: LeftOutIfNull[Literal["licensed", "unlicensed"]] = None
    """Whether a virtual GPU has its license, without which a driver slows it down."""

    @property
    def slice(self) -> str | None:
        """Return what part of a divided card this is, or how AMD's is divided; null for a whole one."""
        return None if self.mig in (None, "off", "on") else str(self.mig).partition(" of ")[0]


class Cpu(Model):
    """The processor; counts are what the operating system shows."""

    model: str | None = None
    sockets: int | None = None
    cores: int | None = None
    threads: int | None = None
    usable: float | None = None
    """Logical CPUs this process may use, cgroup quota included."""
    governor: str | None = None
    turbo: bool | None = None
    smt: bool | None = None
    numa_affinity: tuple[int, ...] | None = None
    """The nodes whose CPUs this process may use."""
    usable_kinds: Annotated[dict[str, int], Field(exclude_if=lambda kinds: not kinds)] = {}
    """The CPUs of each kind of core within `usable`, as performance and efficiency; empty of one kind."""
    features: tuple[str, ...] = ()
    """Which of avx2, avx512f, avx512_bf16, amx_bf16, amx_int8, neon and sve it has."""
    native_16_bit: LeftOutIfNull[tuple[Literal["bf16", "fp16"], ...]] = None
    """The 16-bit types that it computes in by itself; others are emulated. Null is unknown."""


class Machine(Model):
    """A machine without its name: nothing here says whose it is."""

    id: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
    label: Annotated[str, Field(min_length=1, max_length=64)]
    system: str
    kernel: str | None = None
    distribution: str | None = None
    libc: str | None = None
    architecture: str
    virtual: str | None = None
    container: bool | None = None
    cpu: Cpu
    memory_bytes: int | None = None
    memory_limit_bytes: int | None = None
    shared_memory_bytes: int | None = None
    numa_nodes: int | None = None
    numa_balancing: bool | None = None
    gpus: tuple[Gpu, ...] = ()
    silent_cards: Annotated[tuple[str, ...], Field(exclude_if=lambda cards: not cards)] = ()
    """Cards on the bus that no driver describes, each with the reason."""
    declared: tuple[Declared, ...] = ()
    """What the user has set on the cards, and says so: it is then measured as it is."""


class Load(Model):
    """What else the machine was doing, read before the trial began."""

    load_average_1min: float | None = None
    """It remembers the trial before: a minute after one it has fallen by two thirds."""
    busy_cpus: float | None = None
    """CPUs' worth of work on the machine in the moment before the trial began."""
    memory_available_bytes: int | None = None
    other_gpu_processes: int | None = None
    other_gpu_memory_bytes: int | None = None
    unknown_because: str | None = None


class Environment(Model):
    """A software stack as it was used. `pinned` is false as soon as one reason against it is known."""

    image: Name
    device: DeviceKind
    engine: EngineName
    engine_version: str | None = None
    pinned: bool
    unpinned_because: tuple[str, ...] = ()
    tag: str | None = None
    image_id: str | None = None
    """The digest of the image's configuration, which OCI and Docker name an image by."""
    base: str | None = None
    base_digest: str | None = None
    base_digest_verified: bool = False
    base_substituted: bool = False
    lock_sha256: str | None = None
    build_arguments: dict[str, str] = {}
    writable_root: bool = False
    """A container's root file system could be written to, which Podman needs for CUDA's devices."""
    passed_variables: dict[str, str] = {}
    """Such as HSA_OVERRIDE_GFX_VERSION and CUDA_VISIBLE_DEVICES: they change what runs."""
    inherited_variables: Annotated[dict[str, str], Field(exclude_if=lambda names: not names)] = {}
    """Such as LD_LIBRARY_PATH, of a trial that is a process: they may."""
