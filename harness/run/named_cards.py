"""A plan on cards that are not here, by their rows in results/cards.toml: planned, and never run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from harness.device_kinds import BY_VENDOR
from harness.errors import NoDevice, UserError
from harness.image.images import ANOTHER_FRAMEWORK, choose_image, load_images
from harness.machine import Selection
from harness.plan import plan_file
from harness.record import Cpu, Gpu, Machine
from harness.record.published.cards import Card, find_card, load_cards
from harness.record.published.claim_set import suggest_name
from harness.run import setup as run_setup
from harness.run.second_stack import second_stack
from harness.run.setup import RunSetup, prepare_build
from harness.settings import Settings
from harness.units import GIB


def prepare_for_cards(root: Path, settings: Settings, named: str) -> RunSetup:
    """What a line would work with on a machine with such cards, as "4x RTX 4090"; on this one without a name.

    Raises UserError for a card that the table does not have, NoDevice where the image named does not serve
    it, and what plan.load raises.
    """
    if not named:
        return run_setup.prepare_run(root, settings)
    count, card = parse_cards(named, load_cards(root))
    gpus = _card_devices(count, card)
    kind = BY_VENDOR[card.vendor]
    images = load_images(root)
    unserved: tuple[str, ...] = ()
    try:
        image = choose_image(images, kind, capability=card.capability, name=settings.image)
    except NoDevice as error:
        if settings.image is not None:
            raise
        # The first of its kind, so that the caller sees what it would run.
        image, unserved = (
            choose_image(images, kind),
            (f"it cannot run there: {error.problem}; {ANOTHER_FRAMEWORK}",),
        )
    _, engine, _ = prepare_build(root, settings.model_copy(update={"image": image.name}))
    machine = Machine(
        id="0" * 12, label="on-paper", system="Linux", architecture="x86_64", cpu=Cpu(), gpus=gpus
    )
    return RunSetup(
        root=root,
        settings=settings,
        machine=machine,
        selection=Selection(kind, gpus=gpus),
        image=image,
        engine=engine,
        plan=plan_file.load_plan(root, settings.plan),
        passed={},
        against=second_stack(root, settings, image, images.image),
        notes=(f"for {count} × {card.name}, by its figures on paper and published runs", *unserved),
    )


def parse_cards(named: str, cards: Sequence[Card]) -> tuple[int, Card]:
    """Return how many of which card, by its name or a driver's; raises UserError with the nearest names."""
    counted = re.fullmatch(r"\s*(?:([1-9]\d{0,2})\s*[x×]\s*)?(.+?)\s*", named, re.IGNORECASE)
    count, name = (int(counted[1] or 1), counted[2]) if counted else (1, named)
    known = {card.name.casefold(): card for card in cards}
    card = find_card(name, cards) or known.get(name.casefold())
    if card is not None:
        return count, card
    near = [card.name for key, card in known.items() if name.casefold() in key]
    remedy = f"name one, such as {', '.join(near)}" if near else "see its names there"
    meant = "" if near else suggest_name(name, [card.name for card in cards])
    raise UserError(f"'{name}' is no card of results/cards.toml{meant}", remedy=remedy)


def _card_devices(count: int, card: Card) -> tuple[Gpu, ...]:
    """What a framework would see."""
    one = Gpu(
        index=0,
        vendor=card.vendor,
        name=device_name(card),
        architecture=card.capability,
        memory_bytes=int(card.memory_gb * GIB / card.devices) if card.memory_gb else None,
    )
    return tuple(one.model_copy(update={"index": at}) for at in range(count * card.devices))


def device_name(card: Card) -> str:
    """What its driver may call it: the first name that its pattern matches, without optional parts."""
    return re.sub(r"\([^)]*\)\?|.\?", "", card.name_regex).partition("|")[0]
