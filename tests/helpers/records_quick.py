"""A constructed first look, none of it measured."""

from __future__ import annotations

from typing import Any

from harness.record import Limit, Record, finding
from tests.helpers import records_builder as build


def quick_look() -> list[Record]:
    """A CPU's quick look: generated data, a random body, an unpinned venv, unproven windows."""
    card = "Constructed CPU"
    on = build.machine(card, label="cpu")
    loose = build.environment(
        image="cpu",
        device="cpu",
        engine="venv",
        pinned=False,
        unpinned_because=("an interpreter named by --python is taken as it is",),
        base_digest=None,
        base_digest_verified=False,
        base=None,
        image_id=None,
        tag=None,
    )
    at: dict[str, Any] = {
        "on": on,
        "card": card,
        "within": loose,
        "complete": False,
        "verdict": "unproven",
        "causes": (
            finding("short-window", level_seconds=9.0, level_steps=9, least_seconds=60, least_steps=100),
        ),
        "device": "cpu",
    }
    found: list[Record] = []
    for place, precision in enumerate(("fp32-ieee", "amp-bf16")):
        slower = 1.0 + 0.6 * place
        found += build.series_of(
            {**build.CIFAR, "model": "resnet18"},
            precision,
            0.9 * slower,
            batch_size=16,
            data="generated",
            weights="random",
            mode="host",
            first_order=10 * place,
            limit=Limit(steps=60),
            spread=0.03,
            **at,
        )
        found += build.series_of(
            build.LM,
            precision,
            0.05 * slower,
            batch_size=20,
            first_order=30 + 10 * place,
            limit=Limit(steps=60),
            **at,
        )
    return found
