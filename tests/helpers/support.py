"""docs/support.md: what was seen at work, what a test replays, what was not tried, and what cannot be.

None of it is written by hand: it is made of what docker/images.toml states, of the records in results/, and
of the marks `replays` of the tests.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.doctor.devices import settings
from harness.engine import access
from harness.engine.base import EngineFacts
from harness.engine.container import DeviceRequest
from harness.errors import NoDevice, NoEngine
from harness.files import Files
from harness.image.catalog import Image, ImageFile, choose, load_images
from harness.image.spec import venv_steps
from harness.record import Cpu, DeviceKind, Load, Machine, Record
from harness.record.store import Stored

ENGINES = ("docker", "docker, rootless", "podman", "podman, rootless", "venv")
"""A record does not say whether its engine was rootless, so it stands under the engine alone."""

PAGE = "docs/support.md"


@dataclass(frozen=True, slots=True)
class Family:
    """Cards, or processors, that one image serves or does not; `capabilities` as images.toml has them."""

    name: str
    kinds: tuple[DeviceKind, ...]
    capabilities: tuple[str, ...] = ()
    machine: str = "x86_64"


FAMILIES = (
    Family("CPU, x86-64", ("cpu",)),
    Family("CPU, aarch64", ("cpu", "cuda"), ("sm_90",), machine="aarch64"),
    Family("NVIDIA Maxwell to Volta", ("cuda",), ("sm_50", "sm_52", "sm_60", "sm_61", "sm_70")),
    Family("NVIDIA Turing to Ada", ("cuda",), ("sm_75", "sm_80", "sm_86", "sm_89")),
    Family("NVIDIA Hopper", ("cuda",), ("sm_90",)),
    Family("NVIDIA Blackwell", ("cuda",), ("sm_100", "sm_120")),
    Family("AMD CDNA", ("rocm",), ("gfx90a", "gfx942")),
    Family("AMD RDNA 3", ("rocm",), ("gfx1100", "gfx1101", "gfx1102")),
)
MODELS = {
    "CPU, aarch64": "also as a GH200's host",
    "NVIDIA Maxwell to Volta": "GTX 900 to GTX 1080 Ti, P100, V100",
    "NVIDIA Turing to Ada": "RTX 2060 to RTX 4090, T4, A100, L40S",
    "NVIDIA Hopper": "H100, H200",
    "NVIDIA Blackwell": "B200, RTX 5090",
    "AMD CDNA": "MI210, MI250, MI300X, MI325X",
    "AMD RDNA 3": "RX 7900 XTX",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One family of cards with one engine and one image."""

    family: str
    engine: str
    image: str


@dataclass(frozen=True, slots=True)
class Replay:
    """What a test says that it replays."""

    cell: Cell
    test: str


def replays(tests: Path) -> tuple[Replay, ...]:
    """Every mark `replays` of a test function below a folder, in the order of the files."""
    return tuple(
        Replay(
            Cell(**{word.arg: ast.literal_eval(word.value) for word in mark.keywords if word.arg}), node.name
        )
        for path in sorted(tests.rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        for mark in node.decorator_list
        if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Attribute) and mark.func.attr == "replays"
    )


def seen(records: Iterable[Stored]) -> dict[Cell, str]:
    """The folder of the first session in which something was measured, for each cell that has one."""
    found: dict[Cell, str] = {}
    for stored in sorted(records, key=lambda stored: stored.record.started_at):
        family = _family_of(stored.record)
        if family is not None and stored.record.status == "ok":
            environment = stored.record.environment
            found.setdefault(
                Cell(family.name, environment.engine, environment.image), stored.path.rpartition("/")[0]
            )
    return found


def _family_of(record: Record) -> Family | None:
    asked, machine = record.trial.asked, record.machine
    if machine.architecture == "aarch64":
        return next(family for family in FAMILIES if family.machine == "aarch64")
    known = {gpu.architecture for gpu in machine.gpus if gpu.index in record.cards_given}
    return next(
        (
            family
            for family in FAMILIES
            if asked.device in family.kinds
            and family.machine == machine.architecture
            and (asked.device == "cpu" or known & set(family.capabilities))
        ),
        None,
    )


class _Kfd(Files):
    """A machine with AMD's compute driver, whose file belongs to a group."""

    def exists(self, path: str) -> bool:
        return True

    def mode(self, path: str) -> int:
        return 0o660


def cannot(family: Family, engine: str, image: Image, root: Path) -> str | None:
    """Why a cell cannot be, in one clause, by the rules that a line is refused by; null where it may."""
    images = ImageFile(images={image.name: image})
    device = next(kind for kind in image.devices if kind in family.kinds)
    if device != "cpu":
        refusals = [_refused(images, image, capability) for capability in family.capabilities]
        if all(refusals):
            return refusals[0]
    if engine == "venv":
        try:
            venv_steps(image, root=root, venv=Path("venv"), interpreter="python3")
        except NoEngine as error:
            return f"{error.problem}: `--python` names an interpreter that has one"
        return None
    if not image.runs_on(family.machine):
        return f"image '{image.name}' is for {image.platform}; an engine asked for by name may emulate it"
    return access.refusal(_facts(engine), DeviceRequest(device, indices=(0,)), _Kfd())


def _refused(images: ImageFile, image: Image, capability: str) -> str | None:
    try:
        choose(images, image.device, capability=capability, name=image.name)
    except NoDevice as error:
        return error.problem
    return None


def _facts(engine: str) -> EngineFacts:
    """A present engine that is set up for cards."""
    name, _, rootless = engine.partition(", ")
    facts = EngineFacts(
        name="docker", version="28.3.0", api_version=None, buildkit=True, buildx=True, runtimes=("nvidia",),
        cdi=True, cdi_devices=("nvidia.com/gpu=0",), rootless=bool(rootless), userns_remap=False,
        selinux=False, data_root_free_bytes=None,
    )  # fmt: skip
    return replace(facts, name="podman", version="5.4.0", runtimes=("crun",)) if name == "podman" else facts


def rows(images: ImageFile) -> Iterator[tuple[Family, Image]]:
    """Each family with each image for its kind of device."""
    for family in FAMILIES:
        kinds = set(family.kinds)
        yield from ((family, image) for image in images.images.values() if kinds & set(image.devices))


HEAD = """# Which card, engine and image was tried

Nothing here is written by hand: `GPUDYNO_ACCEPT=1 pytest tests/project/test_support.py` makes it of what the
images state, of the records in `results/`, and of what tests say that they replay.

| word | means |
| --- | --- |
| seen | a record of it is in `results/`; the word leads to the first session |
| replay | without the card, a test plays back what drivers and engines answer: its line below names it |
| not tried | nothing is known against it |
| cannot | its line below says why |

A record does not say whether its engine was rootless. No image is taken for devices of another kind.

"""
MACHINES = """
## Machines

What `invoke doctor` says of two kinds of machine, whatever card they have:

| machine | |
| --- | --- |
"""


def page(root: Path, records: Sequence[Stored]) -> str:
    """The whole page. Raises KeyError for a mark of a cell that is none, or that cannot be."""
    images = load_images(root)
    worked, played = seen(records), _by_cell(replays(root / "tests"))
    lines: list[str] = []
    table = [f"| card | image | {' | '.join(ENGINES)} |", "| --- | --- |" + " --- |" * len(ENGINES)]
    for family, image in rows(images):
        cells = [Cell(family.name, engine, image.name) for engine in ENGINES]
        words = [
            _word(worked, played, cannot(family, cell.engine, image, root), cell, lines) for cell in cells
        ]
        models = f" ({MODELS[family.name]})" if family.name in MODELS else ""
        table.append(f"| {family.name}{models} | `{image.name}` | {' | '.join(words)} |")
    if played:
        raise KeyError(f"no such cell, or one that cannot be: {', '.join(map(str, played))}")
    numbered = (f"{number}. {line}" for number, line in enumerate(lines, 1))
    return "\n".join([HEAD + table[0], *table[1:], "", *numbered, MACHINES + "\n".join(_machines()), ""])


def _by_cell(found: Iterable[Replay]) -> dict[Cell, str]:
    tests: dict[Cell, list[str]] = {}
    for replay in found:
        tests.setdefault(replay.cell, []).append(f"`{replay.test}`")
    return {cell: ", ".join(sorted(names)) for cell, names in tests.items()}


def _word(
    worked: dict[Cell, str], played: dict[Cell, str], reason: str | None, cell: Cell, lines: list[str]
) -> str:
    """What a cell says; its reason or its tests go to the lines below the table, and off `played`."""
    if cell in worked:
        played.pop(cell, None)
        return f"[seen](../{worked[cell]})"
    if reason is not None:
        return f"cannot {_number(reason, lines)}"
    if cell in played:
        return f"replay {_number(played.pop(cell), lines)}"
    return "not tried"


def _number(line: str, lines: list[str]) -> int:
    if line not in lines:
        lines.append(line)
    return lines.index(line) + 1


def _machines() -> Iterator[str]:
    plain = Machine(id="0" * 12, label="x", system="Linux", architecture="x86_64", cpu=Cpu())
    for name, change in (("aarch64", {"architecture": "aarch64"}), ("WSL2", {"virtual": "wsl"})):
        (finding,) = settings(plain.model_copy(update=change), Load())
        yield f"| {name} | {finding.what}: {finding.remedy} |"
