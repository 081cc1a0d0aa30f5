"""A challenge: a nonce that trials answer by a short training, which whoever gave it makes again.

An answer shows that this code ran once the nonce was known. It shows neither how fast it ran nor on which
device.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.errors import UserError
from harness.files import last_line
from harness.record import Record
from harness.record.measurement import NONCE, Proof

SECONDS = 600.0
"""The answers that are made again within this time are held against the records'."""
CLOSE = 1e-9
"""Relative: threads and instruction sets add up in another order, and differ by far less."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What became of a challenge over the records of a bundle."""

    alike: int
    """Answers that came out the same here."""
    differing: tuple[str, ...]
    """A clause for each that did not, or that answers to something else."""
    unproven: Mapping[str, int]
    """Trials without an answer, by their workload."""
    left: int
    """Answers that there was no time for."""


def new() -> str:
    """A nonce that nobody can have known before."""
    return secrets.token_hex(8)


def refuse_malformed(nonce: str) -> None:
    """Raises UserError for what is no nonce."""
    if not NONCE.fullmatch(nonce):
        raise UserError(
            f"'{nonce[:80]}' is no challenge: 4 to 64 letters, digits and . : / - _",
            remedy="`invoke bundle --challenge` makes one",
        )


def answered(records: Sequence[Record], nonce: str, interpreter: Path, root: Path) -> Answered:
    """Makes the answers of all trials that measured something again, on this machine's processor."""
    measured = [(record, record.measurement) for record in records if record.measurement is not None]
    unproven: dict[str, int] = {}
    differing: list[str] = []
    asked: list[tuple[Record, Proof]] = []
    for record, measurement in measured:
        proof = measurement.proof
        # The card's UUID as a hash; where there is none, the machine's id.
        unit = measurement.device.unit or record.machine.id
        if proof is None:
            workload = record.trial.asked.workload
            unproven[workload] = unproven.get(workload, 0) + 1
        elif proof.nonce != nonce:
            differing.append(f"{_name(record)}: answers to the challenge '{proof.nonce}'")
        elif proof.unit != unit:
            differing.append(f"{_name(record)}: its answer is that of another unit")
        else:
            asked.append((record, proof))
    answers = _made_again(asked, interpreter, root)
    alike = 0
    for (record, proof), answer in zip(asked, answers, strict=False):
        difference = _difference(proof, answer)
        alike += not difference
        differing += [f"{_name(record)}: {difference}"] if difference else []
    return Answered(alike, tuple(differing), unproven, len(asked) - len(answers))


def _name(record: Record) -> str:
    variant = record.trial.asked.variant
    return f"{record.session}, {variant.model} {variant.precision}, repeat {record.trial.repeat}"


def _made_again(asked: Sequence[tuple[Record, Proof]], interpreter: Path, root: Path) -> list[dict[str, Any]]:
    """The answers in the order in which they are asked for, as many as there was time for."""
    if not asked:
        return []
    questions = [
        {
            "asked": record.trial.asked.model_dump(mode="json"),
            "trial": record.trial.id,
            "challenge": {"nonce": proof.nonce, "unit": proof.unit},
        }
        for record, proof in asked
    ]
    with TemporaryDirectory() as folder:
        (Path(folder) / "questions.json").write_text(json.dumps(questions), encoding="utf-8")
        environment = {**os.environ, "GPUDYNO_IN": folder, "GPUDYNO_OUT": folder}
        try:
            subprocess.run(
                [str(interpreter), "-m", "parts.proof"],
                cwd=root / "workloads",
                env=environment,
                check=True,
                capture_output=True,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            pass
        except (OSError, subprocess.CalledProcessError) as error:
            raise UserError(
                f"the answers cannot be made here: {last_line(getattr(error, 'stderr', None) or str(error))}",
                remedy="`invoke build --engine venv --device cpu` makes what they need",
            ) from None
        written = Path(folder) / "answers.jsonl"
        lines = written.read_text(encoding="utf-8").split("\n")[:-1] if written.exists() else []
    return [json.loads(line) for line in lines]


def _difference(proof: Proof, answer: Mapping[str, Any]) -> str:
    """What of an answer came out otherwise here; empty where nothing did."""
    if "why" in answer:
        return f"cannot be answered here ({answer['why']})"
    for name, told in (("loss", proof.losses), ("gradient norm", proof.gradient_norms)):
        here = answer["losses" if name == "loss" else "gradient_norms"]
        if len(here) != len(told):
            return f"has {len(told)} steps where the proof has {len(here)}"
        for step, (one, other) in enumerate(zip(told, here, strict=True), 1):
            if not math.isclose(one, other, rel_tol=CLOSE):
                return f"the {name} of step {step} is {one:.12g}, and {other:.12g} here"
    return ""
