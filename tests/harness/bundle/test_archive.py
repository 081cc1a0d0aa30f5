from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.bundle import archive
from harness.errors import MachineError, UserError

FILES = {"statement.json": b"{}", "results/one.json": b'{"a": 1}' * 90, "plans/quick.toml": b"\0" * 3000}


def packed(folder: Path, files: dict[str, bytes] = FILES) -> Path:
    folder.mkdir(exist_ok=True)
    out = folder / "bundle.tar.gz"
    with out.open("wb") as file:
        archive.pack(files, file)
    return out


def unpacked(path: Path, folder: Path) -> archive.Unpacked:
    folder.mkdir()
    return archive.unpack(path, folder)


def read(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def tar(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    """An archive as another program would write it."""
    with tarfile.open(path, "w:gz") as file:
        for info, content in members:
            info.size = len(content) if info.isreg() else info.size
            file.addfile(info, io.BytesIO(content))
    return path


def test_what_is_packed_comes_back_whole_and_without_a_problem(tmp_path):
    found = unpacked(packed(tmp_path), tmp_path / "out")
    assert (found.names, found.problems) == (list(FILES), [])
    assert read(tmp_path / "out") == FILES


def test_the_same_files_give_the_same_bytes(tmp_path):
    assert packed(tmp_path / "one").read_bytes() == packed(tmp_path / "two").read_bytes()


def test_every_other_program_reads_it_as_a_plain_tar_gz(tmp_path):
    path = packed(tmp_path)
    with tarfile.open(path) as file:
        contents = {info.name: file.extractfile(info).read() for info in file.getmembers()}
        assert {info.mtime for info in file.getmembers()} == {0}
    assert contents == {f"{archive.TOP}/{name}": content for name, content in FILES.items()}


def test_a_name_too_long_for_the_first_form_of_tar_comes_back(tmp_path):
    name = f"results/2026-01-31/{'a' * 80}/{'b' * 120}.json"
    found = unpacked(packed(tmp_path, {name: b"{}"}), tmp_path / "out")
    assert (found.names, found.problems) == ([name], [])


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    return packed(tmp_path_factory.mktemp("whole")).read_bytes()


@settings(max_examples=300)
@given(st.data())
def test_a_changed_byte_is_found_or_changes_nothing_that_is_read(whole, data):
    content = bytearray(whole)
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    with TemporaryDirectory() as folder:
        path, out = Path(folder, "bundle.tar.gz"), Path(folder, "out")
        path.write_bytes(content)
        try:
            assert unpacked(path, out).problems or read(out) == FILES
        except UserError as error:
            assert "archive" in str(error)


@pytest.mark.parametrize("cut", [0, 5, 40, 150])
def test_an_archive_that_is_cut_short_is_found(tmp_path, cut):
    path = packed(tmp_path)
    path.write_bytes(path.read_bytes()[: cut or None][: -1 if not cut else None])
    assert unpacked(path, tmp_path / "out").problems


@pytest.mark.parametrize("more", [b"more", b"\0", gzip.compress(b""), gzip.compress(bytes(512))])
def test_something_behind_the_end_is_found(tmp_path, more):
    path = packed(tmp_path)
    path.write_bytes(path.read_bytes() + more)
    assert unpacked(path, tmp_path / "out").problems


def test_an_archive_that_another_program_packed_is_read_as_well(tmp_path):
    path = tar(tmp_path / "b.tar.gz", (tarfile.TarInfo(f"{archive.TOP}/a.json"), b"{}"))
    found = unpacked(path, tmp_path / "out")
    assert (found.names, found.problems) == (["a.json"], [])


def member(name: str, kind: bytes = tarfile.REGTYPE, **headers: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.pax_headers = kind, headers
    info.linkname = "" if info.isreg() else "/etc/passwd"
    return info


HERE = archive.TOP
OUTSIDE = (
    "../outside.json",
    f"{HERE}/../outside.json",
    f"{HERE}/a/../../../outside.json",
    "/etc/outside.json",
)
HIDDEN = (f"{HERE}/.hidden/a.json", f"{HERE}/a\\b.json", f"{HERE}/a\nb.json", f"{HERE}/-rf")
KINDS = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE)
HEADERS = (("comment", "x" * 9000), ("size", "-1024"), ("mtime", "1e99"))


@pytest.mark.parametrize(
    ("names", "words"),
    [
        *(((name,), "is no name of a file inside") for name in (*OUTSIDE, *HIDDEN)),
        ((f"{HERE}//etc/outside.json",), "is no name of a file inside"),
        (("elsewhere/a.json",), "is no name of a file inside"),
        *(((member(f"{HERE}/results/link", kind),), "results/link' is") for kind in KINDS),
        ((f"{HERE}/a.json", f"{HERE}/a.json"), "twice"),
        ((f"{HERE}/a.json", f"{HERE}/a.json/b.json"), "twice"),
        *(
            ((member(f"{HERE}/a.json", **{field: text}),), "a header that says more than a name")
            for field, text in HEADERS
        ),
        (tuple(f"{HERE}/{n}.json" for n in range(4)), "more than 3 files"),
    ],
)
def test_a_member_that_no_bundle_has_is_refused_by_name(tmp_path, monkeypatch, names, words):
    monkeypatch.setattr(archive, "MOST_FILES", 3)
    members = [(member(one) if isinstance(one, str) else one, b"") for one in names]
    with pytest.raises(UserError, match=words):
        unpacked(tar(tmp_path / "b.tar.gz", *members), tmp_path / "out")
    assert not list(tmp_path.rglob("outside.json"))


def test_a_file_that_is_larger_than_any_of_ours_is_refused_before_it_is_read(tmp_path):
    info = tarfile.TarInfo(f"{archive.TOP}/results/huge.json")
    info.size = archive.MOST_FILE_BYTES + 1
    path = tmp_path / "b.tar.gz"
    path.write_bytes(gzip.compress(info.tobuf()))
    with pytest.raises(UserError, match=r"huge\.json' has 67,108,865 bytes"):
        unpacked(path, tmp_path / "out")


def test_a_bomb_is_refused_while_it_unfolds(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MOST_BYTES", 10 * 2**20)
    path = tmp_path / "b.tar.gz"
    path.write_bytes(gzip.compress(bytes(40 * 2**20)))
    assert path.stat().st_size < 100_000
    with pytest.raises(UserError, match="unfolds to more than 10 MiB"):
        unpacked(path, tmp_path / "out")


def test_what_unfolds_to_far_more_than_it_holds_is_refused_though_a_bundle_may_be_as_large(tmp_path):
    path = tmp_path / "b.tar.gz"
    path.write_bytes(gzip.compress(bytes(64 * 2**20)))
    with pytest.raises(UserError, match="unfolds to more than 44 MiB"):
        unpacked(path, tmp_path / "out")


def header(kind: bytes = tarfile.REGTYPE, size: int = 0) -> bytes:
    info = tarfile.TarInfo(f"{archive.TOP}/a.json")
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    "content",
    [
        header(tarfile.XHDTYPE, 2**30) + bytes(2**20),
        header(tarfile.GNUTYPE_LONGNAME, 2**30) + bytes(2**20),
        header(tarfile.XHDTYPE, -1024) + header(),
        header(tarfile.XHDTYPE) * 5000 + header(),
        header() + header(b"?", -2048) + header(),
    ],
    ids=["a long header", "a long name", "a header that leads back", "headers of headers", "a loop"],
)
def test_a_header_that_costs_a_reader_memory_or_time_breaks_the_archive(tmp_path, content):
    path = tmp_path / "b.tar.gz"
    path.write_bytes(gzip.compress(content))
    try:
        assert "breaks" in unpacked(path, tmp_path / "out").problems[0]
    except UserError as error:
        assert "plain file" in str(error)


def test_a_python_without_safe_unpacking_is_told_so(tmp_path, monkeypatch):
    monkeypatch.delattr(tarfile, "data_filter")
    with pytest.raises(MachineError, match=r"take Python 3\.11\.4 or newer"):
        unpacked(packed(tmp_path), tmp_path / "out")
