"""A plan before anything is spent: its trials, time, disk and downloads, here or on a card by its name."""

from __future__ import annotations

from pathlib import Path

from commands.doctor import data_needs, is_built
from commands.plans import matrix
from commands.terminal import Screen
from harness.run import on_paper
from harness.run.choice import choose
from harness.run.setup import RunSetup
from harness.settings import Settings
from harness.units import size


def show(root: Path, settings: Settings, card: str = "") -> None:
    """Prints what a plan stands for; raises UserError for a card that results/cards.toml does not have."""
    setup = on_paper.prepare(root, settings, card)
    screen = Screen()
    for note in setup.notes:
        for line in matrix.wrapped(note, "  "):
            screen.say(line)
    chosen = choose(setup)
    for line in [*matrix.lines(setup, chosen), *_room(setup, anywhere=bool(card))]:
        screen.say(line)


def _room(setup: RunSetup, *, anywhere: bool) -> list[str]:
    """What has to be fetched, and the disk for image and data; `anywhere` has nothing of it yet."""
    needs = [need for need in data_needs(setup) if anywhere or not need.at_hand]
    data = sum(need.download_bytes for need in needs)
    each = (
        f"{need.name} ({size(need.download_bytes)})" if need.download_bytes else need.name for need in needs
    )
    fetched = ", ".join(each) or "no data"
    built = not anywhere and is_built(setup)
    image = 0 if built else setup.image.build_bytes
    made = "is built" if built else f"about {size(image)}" if image else "of unknown size"
    place = "your interpreter" if setup.settings.python else f"image '{setup.image.name}'"
    or_more = "" if all(need.download_bytes for need in needs) else " or more"
    return [
        *matrix.wrapped(f"to fetch: {fetched}", "  "),
        f"disk: {place} {made}, data {size(data)}{or_more} before it is unpacked",
    ]
