"""A contribution as git brings it: its objects alone, which are read and never checked out."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from random import Random

from commands import gate
from harness.errors import GateError
from tests.campaign.attack import Attack, Broken
from tests.campaign.mutation import MARK, MARKUP, STRINGS, changed, changed_bytes, changed_json
from tests.campaign.records import lay_out

MODES = ("100644", "100755", "120000", "160000")
_WHO = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "a"), ("EMAIL", "a@b.example"), ("DATE", "2026-01-01T00:00:00Z"))
}


def _git(root: Path, *words: str, given: bytes = b"") -> str:
    environ = {**os.environ, **_WHO, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(
        ["git", *words], cwd=root, input=given, capture_output=True, env=environ, check=True
    )
    return done.stdout.decode().strip()


def _object(root: Path, kind: str, content: bytes) -> str:
    """Written as it is, whether git would have made it or not."""
    return _git(root, "hash-object", "-t", kind, "-w", "--literally", "--stdin", given=content)


def _entry(mode: str, name: bytes, digest: str) -> bytes:
    return mode.encode() + b" " + name + b"\0" + bytes.fromhex(digest)


def _hostile_tree(root: Path, rng: Random) -> str:
    """A tree whose one name, mode or object nobody would commit."""
    name = rng.choice(STRINGS).encode()[:300].replace(b"\0", b"") or b"x"
    blob = _object(root, "blob", rng.choice((b"{}", MARKUP.encode(), b"../../outside")))
    digest = rng.choice((blob, blob, "0" * 40, _git(root, "rev-parse", "HEAD")))
    inner = _object(root, "tree", _entry(rng.choice(MODES), name, digest))
    for folder in (b"folder-20261121-aaaaaa", b"2026-11-21", b"results"):
        inner = _object(root, "tree", _entry("40000", rng.choice((folder, folder, name)), inner))
    return inner


def _committed(root: Path, rng: Random) -> str:
    """Two sessions of which one file is another."""
    paths = lay_out(root)
    path = rng.choice(paths)
    path.write_bytes(changed(path.read_bytes(), rng, changed_json))
    if rng.random() < 0.2:
        path.rename(path.with_name(rng.choice(("a.rejected.json", "x.json", "x.html", "\u202e.json"))))
    _git(root, "add", "--all")
    return _git(root, "write-tree")


def _attack(rng: Random, root: Path) -> None:
    _git(root, "init", "--quiet")
    (root / "README.md").write_text("a clone\n")
    _git(root, "add", "--all")
    base = _git(root, "commit-tree", _git(root, "write-tree"), "-m", "base")
    _git(root, "update-ref", "HEAD", base)
    tree = _hostile_tree(root, rng) if rng.random() < 0.5 else _committed(root, rng)
    head = _git(root, "commit-tree", tree, "-p", base, "-m", "a contribution")
    if rng.random() < 0.2:
        content = subprocess.run(
            ["git", "cat-file", "commit", head], cwd=root, capture_output=True, check=True
        ).stdout
        head = _object(root, "commit", changed_bytes(content, rng))
    comment = root / "comment.md"
    with suppress(GateError):
        gate.judge(root, base, head, comment)
    if comment.exists() and f"<{MARK}" in comment.read_text(encoding="utf-8"):
        raise Broken("silent wrong figures", "a contribution brought an element into the comment")


ATTACKS: Mapping[str, Attack] = {"contribution": _attack}
