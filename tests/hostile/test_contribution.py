"""A contribution as git brings it: its objects alone, which are read and never checked out."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from commands import gate
from harness.errors import GateError
from harness.record import Record
from tests.hostile.judging import LONG, attacked, drawn
from tests.hostile.strategies import MARKUP, TEXTS, damaged, json_files
from tests.hostile.test_records import laid_out, lay_out, paths

pytestmark = LONG

MODES = ("100644", "100755", "120000", "160000")
WHO = {f"GIT_{who}_{what}": "a@b.example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(root, *words, given=b""):
    environ = {**os.environ, **WHO, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(
        ["git", *words], cwd=root, input=given, capture_output=True, env=environ, check=True
    )
    return done.stdout.decode().strip()


def written(root, kind, content):
    """An object as it is, whether git would have made it or not."""
    return git(root, "hash-object", "-t", kind, "-w", "--literally", "--stdin", given=content)


def hostile_tree(root, data):
    """A tree whose one name, mode or object nobody would commit."""

    def entry(mode, name, digest):
        return written(root, "tree", f"{mode} ".encode() + name + b"\0" + bytes.fromhex(digest))

    name = data.draw(st.sampled_from(TEXTS)).encode()[:300].replace(b"\0", b"") or b"x"
    blob = written(root, "blob", data.draw(st.sampled_from((b"{}", MARKUP.encode(), b"../../outside"))))
    digest = data.draw(st.sampled_from((blob, "0" * 40, git(root, "rev-parse", "HEAD"))))
    inner = entry(data.draw(st.sampled_from(MODES)), name, digest)
    for folder in (b"folder-20261121-aaaaaa", b"2026-11-21", b"results"):
        inner = entry("40000", data.draw(st.sampled_from((folder, folder, name))), inner)
    return inner


def changed_records(root, data):
    lay_out(root)
    name = data.draw(st.sampled_from(paths(Record)))
    (root / name).write_bytes(data.draw(json_files(laid_out()[name], Record)))
    other = data.draw(st.sampled_from((None, None, "a.rejected.json", "x.html", "\u202e.json")))
    if other:
        (root / name).rename((root / name).with_name(other))
    git(root, "add", "--all")
    if data.draw(st.booleans()):
        git(root, "update-index", "--add", "--info-only", "--cacheinfo", f"100644,{'1' * 40},{name}.json")
    return git(root, "write-tree", "--missing-ok")


@drawn(25, shrunk=False)
@given(st.data())
def test_a_contribution_is_judged_or_refused_in_one_sentence(data):
    with attacked() as root:
        git(root, "init", "--quiet")
        base = git(root, "commit-tree", git(root, "write-tree"), "-m", "base")
        git(root, "update-ref", "HEAD", base)
        tree = data.draw(st.sampled_from((hostile_tree, changed_records)))(root, data)
        head = git(root, "commit-tree", tree, "-p", base, "-m", "a contribution")
        if data.draw(st.integers(0, 4)) == 0:
            head = written(root, "commit", data.draw(damaged(git(root, "cat-file", "commit", head).encode())))
        with suppress(GateError):
            gate.judge_commit(root, base, head)
