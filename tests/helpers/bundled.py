"""A small clone of constructed sessions for tests of bundles: no figure here was measured."""

from __future__ import annotations

import hashlib
import shutil
import zlib
from collections.abc import Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from harness.image.lock import lock_packages
from harness.record import Flops, Record, Session, store
from harness.summary.statistics import judge_trial
from tests.helpers import ROOT
from tests.helpers import records_builder as build

PLAN = """
name = "constructed"
title = "constructed for a test"
repeats = 3

[[measure]]
workload = "word_lm"
protocol = "published/1"
model = "lstm"
precision = "fp32-ieee"
batch_size = 20
data_mode = "cached"
"""
LEAD = "20260131-aaaaaa"
OTHER = "20260130-bbbbbb"
PAPER = "NVIDIA H100 80GB HBM3"
"""A card of results/cards.toml, so that its limits are on the page; its figures are constructed as well."""


def session_of(records: Sequence[Record], plan_sha256: str) -> Session:
    """The session that planned just these trials."""
    first = records[0]
    return Session(
        session=1,
        id=first.session,
        plan=first.plan,
        plan_sha256=plan_sha256,
        machine=first.machine.id,
        label=first.machine.label,
        started_at=first.started_at - timedelta(minutes=first.order),
        order_seed=1,
        trials=tuple({record.trial.id: record.trial for record in records}.values()),
        cards=tuple(
            gpu.unit or ""
            for gpu in first.machine.gpus
            if any(record.trial.asked.card is not None for record in records)
        ),
    )


def write(root: Path, records: Sequence[Record]) -> Path:
    """Records with the summaries that their samples give, own sessions, a plan, cards, images and locks."""
    (root / "plans").mkdir(parents=True, exist_ok=True)
    (root / "plans" / "constructed.toml").write_text(PLAN)
    (root / "results").mkdir(exist_ok=True)
    shutil.copy(ROOT / "results" / "cards.toml", root / "results")
    if not (root / "docker").is_dir():
        shutil.copytree(ROOT / "docker", root / "docker")
    sessions: dict[str, list[Record]] = {}
    for record in records:
        sessions.setdefault(record.session, []).append(record)
    for members in sessions.values():
        session = session_of(members, hashlib.sha256(PLAN.encode()).hexdigest())
        store.write_session(root, session)
        store.keep_as_own(root, session.id)
        places = {trial.id: place for place, trial in enumerate(session.trials)}
        for record in map(_installed, members):
            whole = judge_trial(record) if record.measurement else None
            placed = {"summary": whole, "order": places[record.trial.id]}
            store.write_record(root, session, record.model_copy(update=placed))
    return root


def _installed(record: Record) -> Record:
    """With the packages of the lock that its environment names."""
    if record.measurement is None or record.environment.lock_sha256 != lock_sha256():
        return record
    packages = lock_packages(ROOT / "docker" / "cuda" / "lock.txt")
    return record.model_copy(
        update={"measurement": record.measurement.model_copy(update={"packages": packages})}
    )


@cache
def lock_sha256() -> str:
    """Of the cuda image's lock, as this repository has it."""
    return hashlib.sha256((ROOT / "docker" / "cuda" / "lock.txt").read_bytes()).hexdigest()


def one_card(
    session: str = LEAD,
    *,
    digits: str = "a",
    seconds: float = 0.0120,
    card: str = "Constructed Card A",
    repeats: int = 3,
) -> list[Record]:
    """Repeats of one work on one card, in the environment that the repository's lock describes."""
    on = build.machine(card, label=f"card-{digits}", digits=digits)
    within = build.environment(lock_sha256=lock_sha256())
    return build.series_of(
        build.LM,
        "fp32-ieee",
        # No two sessions have equal steps.
        seconds * (1 + zlib.crc32(session.encode()) / 2**32 / 5000),
        batch_size=20,
        on=on,
        card=card,
        session=session,
        within=within,
        repeats=repeats,
        lock_sha256=lock_sha256(),
    )


def proven(
    kind: dict[str, Any],
    precision: str,
    seconds: float,
    *,
    card: str,
    digits: str,
    session: str,
    batch_size: int,
    order: int = 0,
    **measured: Any,
) -> list[Record]:
    """Three repeats of one work with windows so long that their own samples prove them."""
    on = build.machine(card, label=f"card-{digits}", digits=digits)
    within = build.environment(lock_sha256=lock_sha256())
    found = []
    for repeat in (1, 2, 3):
        asked = build.trial(kind, precision, repeat, batch_size=batch_size, lock_sha256=lock_sha256())
        step = seconds * (1 + 0.01 * (repeat - 2))
        short = build.measurement(kind, asked, step, card=card, seed=repeat, **measured)
        whole = build.measurement(
            kind,
            asked,
            step,
            card=card,
            seed=repeat,
            steps=round(80 / step),
            **{**measured, "losses": short.losses},
        )
        found.append(build.record(asked, whole, on=on, within=within, session=session, order=order + repeat))
    return found


def two_cards() -> list[Record]:
    """Two cards with proven windows in three works, so that they may be ranked and priced."""
    found = []
    counted = {"flops": Flops(per_sample=840e6, bytes_per_sample=1e6)}
    for card, digits, session, speed in ((PAPER, "a", LEAD, 1.0), ("Constructed Card B", "b", OTHER, 0.7)):
        at: dict[str, Any] = {"card": card, "digits": digits, "session": session}
        found += proven(build.CIFAR, "fp32-ieee", 0.15 * speed, batch_size=98, **at, **counted)
        found += proven(build.CIFAR, "fp16-master", 0.1 * speed, batch_size=98, order=10, **at, **counted)
        found += proven(build.LM, "fp32-ieee", 0.012 * speed, batch_size=20, order=20, **at)
    return found
