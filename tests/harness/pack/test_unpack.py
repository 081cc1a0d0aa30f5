"""The archive across an air gap: what is written, and what unpack.py takes of it."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from harness.data.check import sha256_of
from harness.errors import UserError
from harness.pack.contents import SUMS, UNPACK, beside, write
from tests.helpers.checks import require

TOP = "gpudyno-mine"
FILES = {"pack.json": b"{}", "data/set/a.bin": bytes(range(256)) * 8, "wheels/b-1-py3-none-any.whl": b"wheel"}
OLDEST = sorted(Path.home().glob(".pyenv/versions/3.6.*/bin/python"))


def packed(folder: Path) -> Path:
    files = []
    for name, content in FILES.items():
        path = folder / "from" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        files.append((name, path))
    out = folder / "mine.tar"
    with beside(out) as scratch:
        assert write(tuple(files), TOP, out, scratch, lambda count: None) == sha256_of(out)
    return out


@pytest.fixture
def archive(tmp_path):
    return packed(tmp_path)


def sums(files: dict[str, bytes]) -> bytes:
    lines = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items()]
    return "".join(lines).encode()


def tar_of(path: Path, members: list[tuple[str, bytes | None]], link: str = "") -> Path:
    """An archive as no `pack` writes it; without content a member is a link."""
    with tarfile.open(path, "w") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if content is None:
                info.type, info.linkname = tarfile.SYMTYPE, link
            info.size = len(content or b"")
            tar.addfile(info, io.BytesIO(content or b""))
    return path


def said(archive: Path, folder: Path, *options: str, python: str = sys.executable) -> tuple[int, str]:
    line = [python, str(UNPACK), str(archive), str(folder), "--only-unpack", *options]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_what_was_packed_comes_out_as_it_was_with_the_program_and_the_sums(archive, tmp_path):
    assert said(archive, tmp_path / "site")[0] == 0
    found = tree(tmp_path / "site")
    assert found.pop("unpack.py") == UNPACK.read_bytes()
    assert found.pop(SUMS).splitlines()[0].endswith(b"  data/set/a.bin")
    assert found == FILES
    assert not list(tmp_path.glob("*.unpacking"))


def test_python_3_6_unpacks_it_too(archive, tmp_path):
    require("python3.6", bool(OLDEST), "no Python 3.6 is here")
    assert said(archive, tmp_path / "site", python=str(OLDEST[0])) == (
        0,
        f"unpacked, each file checked, in {tmp_path / 'site'}\n",
    )


def test_the_same_files_make_the_same_bytes(archive, tmp_path):
    assert packed(tmp_path / "again").read_bytes() == archive.read_bytes()


def test_a_name_that_would_leave_the_folder_is_not_packed(tmp_path):
    path = tmp_path / "a"
    path.write_text("x")
    with beside(tmp_path / "o.tar") as scratch, pytest.raises(UserError, match="no name for a file"):
        write((("../a", path),), TOP, tmp_path / "o.tar", scratch, lambda count: None)
    assert not list(tmp_path.glob("*o.tar*"))


@pytest.mark.parametrize("kept", [0, 100, 700, 5000])
def test_an_archive_that_is_cut_short_is_refused_and_nothing_becomes_of_it(archive, tmp_path, kept):
    archive.write_bytes(archive.read_bytes()[:kept])
    code, words = said(archive, tmp_path / "site")
    assert code == 2
    assert words.count("\n") == 1
    assert not (tmp_path / "site").exists()


def test_a_folder_that_is_done_is_checked_once_more_and_another_s_is_left_alone(archive, tmp_path):
    assert said(archive, tmp_path / "site")[0] == 0
    assert said(archive, tmp_path / "site")[0] == 0
    (tmp_path / "site" / "pack.json").write_text("mine")
    assert said(archive, tmp_path / "site")[0] == 2
    assert (tmp_path / "site" / "pack.json").read_text() == "mine"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes").write_text("mine")
    assert said(archive, tmp_path / "other")[0] == 2
    assert tree(tmp_path / "other") == {"notes": b"mine"}


ONE = {"a.txt": b"one"}


@pytest.mark.parametrize(
    ("members", "clause"),
    [
        ([("top/SHA256SUMS", sums(ONE)), ("top/a.txt", b"two")], "is not what SHA256SUMS says"),
        ([("top/SHA256SUMS", sums(ONE))], "is not what SHA256SUMS says"),
        (
            [(f"top/{SUMS}", sums(ONE)), ("top/a.txt", b"one"), ("top/b", b"")],
            "'b', which SHA256SUMS does not",
        ),
        ([("top/a.txt", b"one")], "has no SHA256SUMS"),
        ([("top/SHA256SUMS", b"rubbish\n")], "is not what SHA256SUMS says"),
        ([("top/SHA256SUMS", b""), ("top/../../a", b"")], "cannot be unpacked"),
        ([("top/SHA256SUMS", b""), ("/etc/a", b"")], "is not of one folder"),
        ([("top/SHA256SUMS", b""), ("other/a", b"")], "is not of one folder"),
        ([(f"top/{SUMS}", sums(ONE)), ("top/a.txt", b"one"), ("top/b", None)], "'b' is a link"),
    ],
)
def test_an_archive_that_is_not_what_it_should_be_is_refused_in_one_sentence(tmp_path, members, clause):
    code, words = said(tar_of(tmp_path / "bad.tar", members, link="/etc/passwd"), tmp_path / "site")
    assert (code, clause in words, words.count("\n")) == (2, True, 1), words
    assert not (tmp_path / "site").exists()


def test_a_pipe_in_an_archive_is_refused_before_anything_waits_for_it(tmp_path):
    path = tar_of(tmp_path / "bad.tar", [(f"top/{SUMS}", sums(ONE))])
    with tarfile.open(path, "a") as archive:
        pipe = tarfile.TarInfo("top/a.txt")
        pipe.type = tarfile.FIFOTYPE
        archive.addfile(pipe)
    code, words = said(path, tmp_path / "site")
    assert (code, "'a.txt' is no plain file" in words) == (2, True), words


def test_a_hash_that_was_given_finds_a_change_that_somebody_meant(archive, tmp_path):
    assert said(archive, tmp_path / "site", "--sha256", sha256_of(archive))[0] == 0
    forged = tar_of(tmp_path / "forged.tar", [("top/SHA256SUMS", sums(ONE)), ("top/a.txt", b"one")])
    code, words = said(forged, tmp_path / "other", "--sha256", sha256_of(archive))
    assert (code, "is not the one that was given" in words) == (2, True)
