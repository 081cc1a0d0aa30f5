"""Files that a person writes: plans, settings, prices, claims, cards, images, locks, sites; and variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from harness import settings
from harness.engine.slurm.site import load_site
from harness.image.catalog import load_images
from harness.image.lock import disagreements, lock_packages
from harness.plan import plan
from harness.record import DataSource, DeviceKind
from harness.record.published.cards import load_cards
from harness.record.published.claims import load_claims
from harness.redact import Names, kept
from harness.units import seconds_of
from report.buying.purchase import load_purchase
from tests.campaign.attack import Attack
from tests.campaign.mutation import any_text, changed, changed_toml
from tests.helpers import ROOT
from tests.helpers.purchase_builder import FILE

SETTINGS = b"""
plan = "quick"
device = "cpu"
budget = "30m"
blocks = 3
data_seconds = 90.0
memory_bytes = 8589934592
declared = ["power-limit"]
"""
SITE = b"""
partition = "gpu"
account = "project"
time_limit = "2h"
nodes = 1
"""


def _planned(root: Path) -> None:
    loaded = plan.load(root, "x")
    device: DeviceKind = "cuda" if any("cuda" in measure.devices for measure in loaded.measure) else "cpu"
    sources: dict[str, DataSource] = {name: "synthetic" for name in plan.datasets(loaded, device)}
    asked = [image for measure in loaded.measure if device in measure.devices for image in measure.images]
    context = plan.PlanContext(device, asked[0] if asked else "cuda", None, sources, {})
    plan.trials(loaded, context, seed=1)


def _images(root: Path) -> None:
    for image in load_images(root).images.values():
        disagreements(image, ROOT)


Read = Callable[[Path], object]
FILES: Mapping[str, tuple[str, Callable[[Random], bytes], Read]] = {
    "plan": ("plans/x.toml", lambda rng: _named_x(_one_of("plans", rng)), _planned),
    "settings": ("gpudyno.toml", lambda rng: SETTINGS, lambda root: settings.load(root, {}, {})),
    "purchase": ("purchase.toml", lambda rng: FILE.encode(), load_purchase),
    "claims": ("results/claims/x.toml", lambda rng: _one_of("results/claims", rng), load_claims),
    "cards": ("results/cards.toml", lambda rng: _content("results/cards.toml"), load_cards),
    "images": ("docker/images.toml", lambda rng: _content("docker/images.toml"), _images),
    "site": ("site.toml", lambda rng: SITE, lambda root: load_site(root, None)),
    "lock": (
        "lock.txt",
        lambda rng: _content("docker/cpu/lock.txt"),
        lambda root: lock_packages(root / "lock.txt"),
    ),
}


def _content(name: str) -> bytes:
    return (ROOT / name).read_bytes()


def _one_of(folder: str, rng: Random) -> bytes:
    return rng.choice(sorted((ROOT / folder).glob("*.toml"))).read_bytes()


def _named_x(plan_text: bytes) -> bytes:
    return re.sub(rb"^name = .*$", b'name = "x"', plan_text, count=1, flags=re.MULTILINE)


def _of_file(name: str, content: Callable[[Random], bytes], read: Read) -> Attack:
    def attack(rng: Random, root: Path) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(changed(content(rng), rng, changed_toml))
        read(root)

    return attack


def _environment(rng: Random, root: Path) -> None:
    name = rng.choice([*settings.Settings.model_fields, any_text(rng)])
    value = any_text(rng)
    settings.load(root, {f"GPUDYNO_{name.upper()}": value}, {})


NAMES: tuple[Callable[[Path, str], Any], ...] = (
    plan.load,
    load_site,
    lambda root, text: settings.load(root, {}, {"label": text}),
    lambda root, text: settings.own_path(text),
    lambda root, text: seconds_of(text),
    lambda root, text: load_images(ROOT).image(text),
    lambda root, text: kept("message", text, Names()),
)


def _name(rng: Random, root: Path) -> None:
    rng.choice(NAMES)(root, any_text(rng))


ATTACKS: Mapping[str, Attack] = {
    **{kind: _of_file(*parts) for kind, parts in FILES.items()},
    "environment": _environment,
    "name": _name,
}
