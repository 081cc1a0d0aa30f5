"""Constructed records whose strings try to be more than strings."""

from __future__ import annotations

from pathlib import Path

from harness.record import Failure, Finding, Record, finding
from tests.helpers import records_builder as build

SCRIPT = "<script>alert(1)</script>"
RIGHT_TO_LEFT = "\u202eegap eht\u202c \u2067right\u2069"
BREAKOUT = '"><img src=x onerror=alert(2)><svg onload=alert(3)></title></desc></style>'
LONG = "L" * 10_000


def hostile() -> list[Record]:
    """A script in a card's name, a broken-out attribute, direction marks, a long string, odd figures."""
    on = build.machine(f"{SCRIPT}{BREAKOUT}", label="hostile").model_copy(
        update={"label": f"constructed-{SCRIPT}"[:64]}
    )
    found = build.series_of(build.CIFAR, "fp32-ieee", 0.1, on=on, card=f"{SCRIPT}{BREAKOUT}")
    found += build.series_of(
        build.CIFAR, "fp16-master", 0.1, on=on, card=RIGHT_TO_LEFT + LONG, first_order=10
    )
    found = [record.model_copy(update={"warnings": _said()}) for record in found]
    asked = build.trial(build.LM, "fp32-ieee", 1, options={f"{SCRIPT}": f"{BREAKOUT}"})
    message = f"{SCRIPT}{RIGHT_TO_LEFT}"
    failure = Failure(
        kind="trial",
        stage="train",
        reason="error",
        message=message,
    )
    found.append(build.record(asked, None, on=on, failure=failure, order=40))
    return found


def _said() -> tuple[Finding, ...]:
    words = (BREAKOUT, "javascript:alert(4)")
    return tuple(finding("unwatched", why=f"{each} {SCRIPT} {RIGHT_TO_LEFT}") for each in words)


def odd_numbers() -> list[Record]:
    """A loss that is not a number, seconds below zero, and a date in 2099."""
    card = "Constructed Card A"
    on = build.machine(card, label="odd")
    found = build.series_of(build.CIFAR, "fp32-ieee", 0.1, on=on, card=card)
    first, second, third = found
    assert first.measurement and second.summary
    epochs = tuple(
        epoch.model_copy(update={"valid_loss": float("nan")}) for epoch in first.measurement.epochs
    )
    first = first.model_copy(update={"measurement": first.measurement.model_copy(update={"epochs": epochs})})
    below = second.summary.model_copy(update={"protocol_seconds": -5.0, "step_seconds_median": float("inf")})
    second = second.model_copy(update={"summary": below})
    third = third.model_copy(update={"started_at": third.started_at.replace(year=2099)})
    return [first, second, third]


def write(root: Path) -> Path:
    """Both kinds under root/results."""
    return build.write(root, hostile())
