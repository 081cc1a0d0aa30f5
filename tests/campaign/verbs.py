"""The verbs as a person calls them, each in a fresh process of a clone in which one thing is wrong."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from random import Random

from tests.campaign.archives import bundle
from tests.campaign.attack import DOCUMENTED, MOST_SECONDS, Attack, Broken
from tests.campaign.mutation import (
    MARK,
    Change,
    any_text,
    changed,
    changed_bytes,
    changed_json,
    changed_toml,
)
from tests.campaign.records import lay_out
from tests.campaign.tables import SETTINGS
from tests.helpers import copied, without_settings
from tests.helpers.purchase_builder import FILE

PARTS = ("commands", "harness", "report", "tasks.py", "docker", "plans", "workloads", "results/claims")
CPU = ("--device", "cpu", "--engine", "venv")
X = "\N{WHITE SQUARE}"
"""In a line, a word that nobody means."""

LINES: tuple[tuple[str, ...], ...] = (
    ("plan", "--plan", "quick", *CPU),
    ("plan", "--plan", X, *CPU),
    ("plan", "--budget", X, *CPU),
    ("plan", "--claim", X, *CPU),
    ("plan", "--image", X, *CPU),
    ("claims",),
    ("claims", "--here", *CPU),
    ("compare", "cb7a72", "e09923"),
    ("compare", X, "e09923"),
    ("compare", "cb7a72", "e09923", "--fail-below", X),
    ("bundle", "--verify", "offer.tar.gz"),
    ("bundle", "--verify", "offer.tar.gz", "--challenge", X),
    ("accept", "offer.tar.gz", "--records", X, *CPU),
    ("report",),
    ("report", "--bundle", "offer.tar.gz"),
    ("report", "--baseline", X),
    ("bundle", "--out", "new.tar.gz"),
    ("bundle", "--out", "new.tar.gz", "--session", X),
    ("quote", "--overwrite"),
    ("gate", "--mine", "--session", "20261121-cb7a72"),
    ("gate", "--mine", "--session", X),
    ("jobs",),
    ("jobs", "--collect"),
)
CHANGES: Mapping[str, Change] = {
    "results/cards.toml": changed_toml,
    "results/claims/*.toml": changed_toml,
    "results/2*/*/*.json": changed_json,
    "results/ledger/*/*.jsonl": changed_bytes,
    "docker/images.toml": changed_toml,
    "plans/quick.toml": changed_toml,
    "gpudyno.toml": changed_toml,
    "purchase.toml": changed_toml,
    "offer.tar.gz": changed_bytes,
}


@cache
def _template() -> Path:
    """A clone with two sessions, kept until the process ends; its modules are compiled once."""
    kept = tempfile.TemporaryDirectory(prefix="gpudyno-campaign-clone-")
    _KEPT.append(kept)
    root = copied(Path(kept.name), *PARTS)
    lay_out(root)
    (root / "gpudyno.toml").write_bytes(SETTINGS)
    (root / "purchase.toml").write_text(FILE)
    (root / "offer.tar.gz").write_bytes(bundle())
    subprocess.run([sys.executable, "-m", "compileall", "-q", *PARTS[:4]], cwd=root, check=True)
    return root


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def _called(root: Path, words: tuple[str, ...], given: bytes, **variables: str) -> tuple[int, str]:
    """The exit code and what went to standard error."""
    beside = {"HOME": "home", "GPUDYNO_STATE": "state", "GPUDYNO_CACHE": "cache", "TMPDIR": "tmp"}
    for name in beside.values():
        (root.parent / name).mkdir(exist_ok=True)
    environ = without_settings() | {name: str(root.parent / folder) for name, folder in beside.items()}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "invoke", *words],
            cwd=root,
            env=environ | variables,
            input=given,
            capture_output=True,
            timeout=MOST_SECONDS - 5,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Broken("hangs", f"`invoke {' '.join(words)[:200]}` had not ended after a minute") from None
    return done.returncode, done.stderr.decode(errors="replace")


def _attack(rng: Random, folder: Path) -> None:
    root = folder / "clone"
    shutil.copytree(_template(), root)
    line = rng.choice(LINES)
    variables: dict[str, str] = {}
    own_words = X in line
    if own_words:
        word = any_text(rng).replace("\0", "")
        line = tuple(word if each == X else each for each in line)
    elif rng.random() < 0.1:
        variables = {
            rng.choice(("GPUDYNO_PLAN", "GPUDYNO_DATA", "GPUDYNO_LABEL", "COLUMNS", "LANG")): "\x1b[31m"
        }
    else:
        pattern = rng.choice(sorted(CHANGES))
        path = rng.choice(sorted(root.glob(pattern)))
        path.write_bytes(changed(path.read_bytes(), rng, CHANGES[pattern]))
    before = _records(root)
    given = any_text(rng).encode() + b"\n" * rng.randrange(40)
    code, said = _called(root, line, given, **variables)
    _judge(root, " ".join(line)[:200], code, said, own_words=own_words)
    if _records(root) != before:
        raise Broken("lost records", f"`invoke {line[0]}` changed what lies in results/")


def _records(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.glob("results/2*/*/*")}


def _judge(root: Path, line: str, code: int, said: str, *, own_words: bool) -> None:
    sentence = said.strip().splitlines()[-1:] and said.strip().splitlines()[-1].startswith("gpudyno: ")
    refused = code == 1 and own_words and "Traceback" not in said
    if "Traceback" in said or not (code == 0 or refused or (code in DOCUMENTED and sentence)):
        raise Broken("tracebacks", f"`invoke {line}` left code {code} and said {said[-400:]!r}")
    for path in (root / "report" / "out").rglob("*"):
        if path.suffix in (".html", ".md", ".svg") and f"<{MARK}" in path.read_text(encoding="utf-8"):
            raise Broken("silent wrong figures", f"`invoke {line}` brought an element into {path.name}")


ATTACKS: Mapping[str, Attack] = {"verb": _attack}
