"""The archive across an air gap: what is written, and what unpack.py takes of it."""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from harness.data.check import sha256_of
from harness.errors import UserError
from harness.pack import unpack
from harness.pack.contents import UNPACK
from harness.pack.write import SUMS, beside, write
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
        f"unpacked: 5 files, 0 MB, each byte checked, in {tmp_path / 'site'}\n",
    )


def test_the_same_files_make_the_same_bytes(archive, tmp_path):
    assert packed(tmp_path / "again").read_bytes() == archive.read_bytes()


def test_a_name_that_would_leave_the_folder_is_not_packed(tmp_path):
    path = tmp_path / "a"
    path.write_text("x")
    with beside(tmp_path / "o.tar") as scratch, pytest.raises(UserError, match="no name for a file"):
        write((("../a", path),), TOP, tmp_path / "o.tar", scratch, lambda count: None)
    assert not list(tmp_path.glob("*o.tar*"))


def test_a_byte_that_was_changed_is_refused_or_changes_nothing(archive, tmp_path, monkeypatch):
    whole = archive.read_bytes()
    assert said(archive, tmp_path / "whole")[0] == 0
    expected = tree(tmp_path / "whole")
    monkeypatch.setattr(unpack.os, "fsync", lambda number: None)
    refused = 0
    for at in range(0, len(whole), 47):
        site, other = tmp_path / "site", tmp_path / "other.tar"
        other.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        try:
            unpack.unpack(str(other), str(site))
        except unpack.Refused:
            refused += 1
            assert not site.exists(), at
            shutil.rmtree(tmp_path / "site.unpacking", ignore_errors=True)
        else:
            assert tree(site) == expected, at
            shutil.rmtree(site)
    assert refused > 0.99 * len(range(0, len(whole), 47))


@pytest.mark.parametrize("kept", [0, 100, 700, 5000, -11000, -1100, -600])
def test_an_archive_that_is_cut_short_is_said_to_be_so_and_nothing_becomes_of_it(archive, tmp_path, kept):
    whole = archive.read_bytes()
    archive.write_bytes(whole[:kept])
    code, words = said(archive, tmp_path / "site")
    assert code == 2
    assert "cut short" in words
    assert "copy the archive again" in words
    assert not (tmp_path / "site").exists()


ONE = {"a.txt": b"one"}


@pytest.mark.parametrize(
    ("members", "clause"),
    [
        ([("top/SHA256SUMS", sums(ONE)), ("top/a.txt", b"two")], "'a.txt' is not what SHA256SUMS says"),
        ([("top/SHA256SUMS", sums(ONE))], "lacks 'a.txt'"),
        ([("top/SHA256SUMS", b""), ("top/a.txt", b"one")], "'a.txt', which SHA256SUMS does not list"),
        ([("top/a.txt", b"one")], "has no SHA256SUMS"),
        ([("top/SHA256SUMS", b"rubbish\n")], "line 1 of SHA256SUMS is damaged"),
        ([("top/SHA256SUMS", b""), ("top/../../a", b"")], "'top/../../a' would lie outside"),
        ([("top/SHA256SUMS", b""), ("/etc/a", b"")], "'/etc/a' would lie outside"),
        ([("top/SHA256SUMS", b""), ("other/a", b"")], "'other/a' would lie outside"),
        ([("top/SHA256SUMS", b""), ("top/a", None)], "'top/a' is a link"),
        ([("top/SHA256SUMS", b""), ("top/a", b""), ("top/a", b"")], "holds 'a' twice"),
        ([("top/SHA256SUMS", b""), ("top/a", b""), ("top/a/b", b"")], "as a file and as a folder"),
    ],
)
def test_an_archive_that_is_not_what_it_should_be_is_refused_in_one_sentence(tmp_path, members, clause):
    code, words = said(tar_of(tmp_path / "bad.tar", members, link="/etc/passwd"), tmp_path / "site")
    assert (code, clause in words, words.count("\n")) == (2, True, 1), words
    assert not (tmp_path / "site").exists()


def test_the_same_line_goes_on_where_it_was_stopped_and_mends_what_it_left_half(archive, tmp_path):
    half = tmp_path / "site.unpacking" / "data" / "set"
    half.mkdir(parents=True)
    (half / "a.bin").write_bytes(FILES["data/set/a.bin"])
    (half / "a.bin.part").write_bytes(b"half")
    (tmp_path / "site.unpacking" / "pack.json").write_bytes(b"xx")
    before = (half / "a.bin").stat().st_ino
    assert said(archive, tmp_path / "site")[0] == 0
    assert (tmp_path / "site" / "data" / "set" / "a.bin").stat().st_ino == before
    assert (tmp_path / "site" / "pack.json").read_bytes() == FILES["pack.json"]


def test_a_folder_that_is_done_is_checked_once_more_and_another_s_is_left_alone(archive, tmp_path):
    assert said(archive, tmp_path / "site")[0] == 0
    assert said(archive, tmp_path / "site")[0] == 0
    (tmp_path / "site" / "pack.json").write_text("mine")
    code, words = said(archive, tmp_path / "site")
    assert (code, "is not what this archive holds" in words) == (2, True)
    assert (tmp_path / "site" / "pack.json").read_text() == "mine"


def test_a_disk_without_room_is_said_before_anything_is_written(archive, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(unpack.shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(1, 1, 1 << 20))
    assert unpack.main([str(archive), str(tmp_path / "site"), "--only-unpack"]) == 4
    assert "MiB are needed" in capsys.readouterr().err
    assert not list((tmp_path / "site.unpacking").iterdir())


def test_a_disk_that_fills_up_meanwhile_is_said_in_one_sentence(archive, tmp_path, monkeypatch, capsys):
    def full(*ignored):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(unpack.os, "fsync", full)
    assert unpack.main([str(archive), str(tmp_path / "site"), "--only-unpack"]) == 4
    assert "the disk is full; make room" in capsys.readouterr().err


def test_a_hash_that_was_given_finds_a_change_that_somebody_meant(archive, tmp_path):
    assert said(archive, tmp_path / "site", "--sha256", sha256_of(archive))[0] == 0
    forged = tar_of(tmp_path / "forged.tar", [("top/SHA256SUMS", sums(ONE)), ("top/a.txt", b"one")])
    code, words = said(forged, tmp_path / "other", "--sha256", sha256_of(archive))
    assert (code, "is not the one that was given" in words) == (2, True)
