"""Fetching data, against a server on the loopback that behaves as mirrors do."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import io
import os
import socket
import tarfile
import threading
import time
import zipfile
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from harness.data import check
from harness.data import download as data_download
from harness.data import fetch as data
from harness.data.catalog import DATASETS, Dataset, Download, Member
from harness.data.check import dataset_named, present
from harness.data.fetch import DataFolders
from harness.data.folder import locked
from harness.errors import Busy, DataError, NoNetwork, NoSpace, UserError
from tests.helpers import ROOT
from tests.helpers.checks import require

PAGE = b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code></Error>'.ljust(243, b" ")


@dataclass
class Mirror:
    """A file server whose paths can be told to misbehave; it counts what it was asked."""

    files: dict[str, bytes] = field(default_factory=dict)
    status: dict[str, int] = field(default_factory=dict)
    cut_at: dict[str, list[int]] = field(default_factory=dict)
    """Bytes after which each next answer is cut off."""
    bytes_per_second: float | None = None
    ranges: bool = True
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    agents: set[str] = field(default_factory=set)
    url: str = ""


class _Handler(BaseHTTPRequestHandler):
    mirror: Mirror
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        mirror, path = self.mirror, self.path.split("?")[0]
        span = self.headers.get("Range")
        mirror.asked.append((path, span))
        mirror.agents.add(self.headers.get("User-Agent", ""))
        if path not in mirror.files or path in mirror.status:
            self.send_error(mirror.status.get(path, 404))
            return
        body = mirror.files[path]
        start = int(span.removeprefix("bytes=").rstrip("-")) if span and mirror.ranges else 0
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(body) - start))
        self.send_header("Connection", "close")
        self.end_headers()
        cuts = mirror.cut_at.get(path, [])
        self._send(body[start : start + cuts.pop(0)] if cuts else body[start:])
        self.close_connection = True

    def _send(self, body):
        step = 16 * 1024
        for at in range(0, len(body), step):
            try:
                self.wfile.write(body[at : at + step])
            except OSError:
                return
            if self.mirror.bytes_per_second:
                time.sleep(step / self.mirror.bytes_per_second)

    def log_message(self, *_):
        pass


@pytest.fixture
def mirror():
    behaviour = Mirror()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"mirror": behaviour}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    behaviour.url = f"http://127.0.0.1:{server.server_port}"
    yield behaviour
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUDYNO_CACHE", str(tmp_path / "cache"))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def sha256(content):
    return hashlib.sha256(content).hexdigest()


CONTENT = {"toy/train": os.urandom(300_000), "toy/test": b"test" * 1000}
MEMBERS = tuple(Member(path, len(content), sha256(content)) for path, content in CONTENT.items())


def tarball(content=CONTENT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as box:
        for path, held in {**content, "toy/readme.html": b"not wanted"}.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(held)
            box.addfile(entry, io.BytesIO(held))
    return out.getvalue()


TARBALL = tarball()


def toy(*urls, body=TARBALL, members=MEMBERS):
    item = Download("toy.tar.gz", "tar", len(body), sha256(body), urls, {path: path for path in CONTENT})
    return Dataset("toy", "Toy", "none", members, ((item,),))


def fetch(dataset, folder, *, seconds=None, progress=data_download.silent):
    deadline = data_download.Deadline(seconds)
    return data.fetch_dataset(dataset, folder, progress=progress, deadline=deadline)


def files_in(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {".lock"}


def test_a_data_set_is_fetched_unpacked_and_only_the_files_of_the_table_are_kept(mirror, tmp_path):
    mirror.files["/toy.tar.gz"] = TARBALL
    seen = []
    found = fetch(toy(f"{mirror.url}/toy.tar.gz"), tmp_path / "d", progress=lambda *a: seen.append(a))
    assert found.state == "complete"
    assert files_in(tmp_path / "d") == set(CONTENT)
    assert (tmp_path / "d/toy/train").read_bytes() == CONTENT["toy/train"]
    assert seen[-1] == ("toy.tar.gz", len(TARBALL), len(TARBALL))
    assert [done for _, done, _ in seen] == sorted({done for _, done, _ in seen})
    assert mirror.agents == {data_download.USER_AGENT}


def test_what_is_complete_is_not_fetched_again(mirror, tmp_path):
    mirror.files["/toy.tar.gz"] = TARBALL
    dataset = toy(f"{mirror.url}/toy.tar.gz")
    fetch(dataset, tmp_path / "d")
    fetch(dataset, tmp_path / "d")
    assert len(mirror.asked) == 1


@pytest.mark.parametrize(
    ("bad", "status"), [(b"x" * len(TARBALL), None), (PAGE, None), (b"", 403), (b"", 404), (b"", 500)]
)
def test_the_next_mirror_is_asked_when_one_refuses_or_lies(mirror, tmp_path, bad, status):
    mirror.files |= {"/first": bad, "/second": TARBALL}
    if status:
        mirror.status["/first"] = status
    found = fetch(toy(f"{mirror.url}/first", f"{mirror.url}/second"), tmp_path / "d")
    assert found.state == "complete"
    assert [path for path, _ in mirror.asked] == ["/first", "/second"]


def test_a_corrupt_download_is_named_and_leaves_no_file(mirror, tmp_path):
    mirror.files["/toy.tar.gz"] = b"x" * len(TARBALL)
    with pytest.raises(DataError, match=r"'toy.tar.gz' arrived corrupt and was not kept .*SHA-256 begins"):
        fetch(toy(f"{mirror.url}/toy.tar.gz"), tmp_path / "d")
    assert files_in(tmp_path / "d") == set()


def test_an_error_page_in_place_of_the_file_is_recognised_by_its_size(mirror, tmp_path):
    mirror.files["/toy.tar.gz"] = PAGE
    with pytest.raises(DataError, match=r"gave 243 bytes, an error page where .* belong"):
        fetch(toy(f"{mirror.url}/toy.tar.gz"), tmp_path / "d")
    assert files_in(tmp_path / "d") == set()


def test_more_bytes_than_belong_are_not_waited_for(mirror, tmp_path):
    mirror.files["/toy.tar.gz"] = TARBALL + b"x" * 5_000_000
    with pytest.raises(DataError, match="more bytes than belong"):
        fetch(toy(f"{mirror.url}/toy.tar.gz"), tmp_path / "d")
    assert files_in(tmp_path / "d") == set()


def test_a_transfer_that_is_cut_off_goes_on_where_it_ended(mirror, tmp_path):
    mirror.files["/toy.tar.gz"] = TARBALL
    mirror.cut_at["/toy.tar.gz"] = [100_000]
    assert fetch(toy(f"{mirror.url}/toy.tar.gz"), tmp_path / "d").state == "complete"
    (_, first), (_, second) = mirror.asked
    assert first is None
    assert 0 < int(second.removeprefix("bytes=").rstrip("-")) <= 100_000


def test_a_server_that_knows_no_ranges_makes_the_transfer_begin_again(mirror, tmp_path):
    mirror.files["/toy.tar.gz"] = TARBALL
    mirror.cut_at["/toy.tar.gz"] = [100_000]
    mirror.ranges = False
    assert fetch(toy(f"{mirror.url}/toy.tar.gz"), tmp_path / "d").state == "complete"


def test_a_part_left_by_an_earlier_process_is_gone_on_with(mirror, tmp_path):
    mirror.files["/toy.tar.gz"] = TARBALL
    mirror.cut_at["/toy.tar.gz"] = [100_000, 0, 0, 0]
    with pytest.raises(NoNetwork, match="cut the transfer off"):
        fetch(toy(f"{mirror.url}/toy.tar.gz"), tmp_path / "d")
    assert files_in(tmp_path / "d") == {".parts/toy.tar.gz.part"}
    mirror.cut_at.clear()
    assert fetch(toy(f"{mirror.url}/toy.tar.gz"), tmp_path / "d").state == "complete"
    assert mirror.asked[-1][1] is not None
    assert files_in(tmp_path / "d") == set(CONTENT)


def test_a_part_that_was_wrong_is_thrown_away_and_the_same_mirror_asked_for_the_whole(mirror, tmp_path):
    mirror.files["/toy.tar.gz"] = TARBALL
    part = tmp_path / "d/.parts/toy.tar.gz.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * 1000)
    assert fetch(toy(f"{mirror.url}/toy.tar.gz"), tmp_path / "d").state == "complete"
    assert [span for _, span in mirror.asked] == ["bytes=1000-", None]


def test_a_slow_server_is_left_when_the_time_is_over_and_the_part_is_kept(mirror, tmp_path):
    mirror.files["/toy.tar.gz"] = TARBALL
    mirror.bytes_per_second = 100_000
    began = time.monotonic()
    with pytest.raises(NoNetwork, match="did not arrive within"):
        fetch(toy(f"{mirror.url}/toy.tar.gz"), tmp_path / "d", seconds=0.6)
    assert time.monotonic() - began < 3
    assert files_in(tmp_path / "d") == {".parts/toy.tar.gz.part"}


def test_without_a_network_it_says_so_at_once(tmp_path, monkeypatch):
    def no_name(*_):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_name)
    dataset = toy("https://mirror.invalid/toy.tar.gz", "https://other.invalid/toy.tar.gz")
    began = time.monotonic()
    with pytest.raises(data_download.Offline, match=r"mirror.invalid: .*other.invalid: ") as caught:
        fetch(dataset, tmp_path / "d")
    assert time.monotonic() - began < 1
    assert caught.value.exit_code == 4


def test_a_name_server_that_never_answers_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(data_download, "CONNECT_SECONDS", 0.05)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: time.sleep(0.5) or [])
    began = time.monotonic()
    with pytest.raises(data_download.Offline, match="its name is not found"):
        fetch(toy("https://mirror.invalid/toy.tar.gz"), tmp_path / "d")
    assert time.monotonic() - began < 0.4


def test_a_closed_port_counts_as_no_network(mirror, tmp_path):
    with pytest.raises(data_download.Offline, match="cannot be reached"):
        fetch(toy("http://127.0.0.1:9/toy.tar.gz"), tmp_path / "d")


def test_a_full_disk_is_said_and_leaves_no_part(mirror, tmp_path):
    mirror.files["/toy.tar.gz"] = TARBALL
    part = tmp_path / "d/.parts/toy.tar.gz.part"
    part.parent.mkdir(parents=True)
    part.symlink_to("/dev/full")
    with pytest.raises(NoSpace, match="the disk is full while fetching data") as caught:
        fetch(toy(f"{mirror.url}/toy.tar.gz"), tmp_path / "d")
    assert caught.value.exit_code == 4
    assert files_in(tmp_path / "d") == set()


def test_a_disk_that_is_too_small_is_told_before_anything_is_fetched(mirror, tmp_path):
    huge = replace(MEMBERS[0], size=1 << 60)
    with pytest.raises(NoSpace, match=r"'toy' needs .* MiB of disk and .* MiB are free"):
        fetch(toy(f"{mirror.url}/toy.tar.gz", members=(huge, MEMBERS[1])), tmp_path / "d")
    assert mirror.asked == []


def test_a_folder_that_may_not_be_written_is_told_in_one_sentence(mirror, tmp_path):
    (tmp_path / "d").write_text("a file where a folder belongs")
    with pytest.raises(UserError, match="cannot be written"):
        fetch(toy(f"{mirror.url}/toy.tar.gz"), tmp_path / "d")


def test_a_member_that_is_not_what_its_hash_says_is_not_put_in_place(mirror, tmp_path):
    other = tarball({**CONTENT, "toy/test": b"tset" * 1000})
    mirror.files["/toy.tar.gz"] = other
    with pytest.raises(DataError, match="'toy/test' as unpacked is not what its hash says"):
        fetch(toy(f"{mirror.url}/toy.tar.gz", body=other), tmp_path / "d")
    assert files_in(tmp_path / "d") == set()


def test_what_lies_corrupt_in_our_own_folder_is_replaced_whole(mirror, tmp_path):
    mirror.files["/toy.tar.gz"] = TARBALL
    (tmp_path / "d/toy").mkdir(parents=True)
    (tmp_path / "d/toy/train").write_bytes(b"short")
    assert fetch(toy(f"{mirror.url}/toy.tar.gz"), tmp_path / "d").state == "complete"
    assert files_in(tmp_path / "d") == set(CONTENT)


def test_the_second_way_is_taken_when_the_first_cannot_be_had(mirror, tmp_path):
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w") as archive:
        for path, content in CONTENT.items():
            archive.writestr(path, content)
    body = box.getvalue()
    mirror.files["/toy.zip"] = body
    first = Download("toy.gz", "gzip", None, "0" * 64, (f"{mirror.url}/gone",), {"toy": "toy/train"})
    second = Download(
        "toy.zip", "zip", len(body), sha256(body), (f"{mirror.url}/toy.zip",), {p: p for p in CONTENT}
    )
    dataset = replace(toy(), ways=((first,), (second,)))
    assert fetch(dataset, tmp_path / "d").state == "complete"


def test_files_fetched_one_by_one_are_inflated_and_kept_across_a_pause(mirror, tmp_path):
    packed = {path: gzip.compress(content) for path, content in CONTENT.items()}
    mirror.files |= {f"/{path}.gz": body for path, body in packed.items()}
    mirror.status["/toy/test.gz"] = 503
    way = tuple(
        Download(
            f"{path.replace('/', '-')}.gz",
            "gzip",
            None,
            sha256(body),
            (f"{mirror.url}/{path}.gz",),
            {"": path},
        )
        for path, body in packed.items()
    )
    dataset = replace(toy(), ways=(way,))
    with pytest.raises(NoNetwork, match="answered 503"):
        fetch(dataset, tmp_path / "d")
    mirror.status.clear()
    assert fetch(dataset, tmp_path / "d").state == "complete"
    assert [path for path, _ in mirror.asked].count("/toy/train.gz") == 1
    assert files_in(tmp_path / "d") == set(CONTENT)


def test_weights_are_put_beside_others_that_are_there_already(mirror, tmp_path):
    put(tmp_path / "d", {"weights/other.pth": b"other"})
    mirror.files["/one.pth"] = b"one"
    item = Download(
        "one.pth", "plain", None, sha256(b"one"), (f"{mirror.url}/one.pth",), {"one.pth": "weights/one.pth"}
    )
    dataset = replace(toy(), members=(Member("weights/one.pth", None, sha256(b"one")),), ways=((item,),))
    assert fetch(dataset, tmp_path / "d").state == "complete"
    assert files_in(tmp_path / "d") == {"weights/other.pth", "weights/one.pth"}


def test_two_processes_do_not_fetch_into_one_folder(mirror, tmp_path):
    with locked(tmp_path / "d"), pytest.raises(Busy, match="another gpudyno is fetching data"):
        fetch(toy(f"{mirror.url}/toy.tar.gz"), tmp_path / "d")


def put(folder, content=CONTENT):
    for path, held in content.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(held)


def test_a_file_is_hashed_once_and_again_as_soon_as_it_changes(tmp_path, monkeypatch):
    put(tmp_path)
    hashed = []
    real = check.sha256_of
    monkeypatch.setattr(check, "sha256_of", lambda path: hashed.append(path.name) or real(path))
    assert check.check(toy(), tmp_path).state == "complete"
    assert check.check(toy(), tmp_path).state == "complete"
    assert hashed == ["train", "test"]
    stat = (tmp_path / "toy/test").stat()
    (tmp_path / "toy/test").write_bytes(b"tset" * 1000)
    os.utime(tmp_path / "toy/test", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    found = check.check(toy(), tmp_path)
    assert (found.state, found.file) == ("corrupt", "toy/test")
    assert hashed == ["train", "test", "test"]


@pytest.mark.parametrize("broken", ["{", "[]", '{"x": 3}'])
def test_a_broken_cache_of_hashes_is_only_a_loss_of_time(tmp_path, broken):
    put(tmp_path)
    cache = check.cache_folder() / "data-stamps.json"
    cache.parent.mkdir(parents=True)
    cache.write_text(broken)
    assert check.check(toy(), tmp_path).state == "complete"


def test_a_folder_that_has_nothing_is_missing_and_one_that_has_a_part_is_corrupt(tmp_path):
    assert check.check(toy(), tmp_path).state == "missing"
    put(tmp_path, {"toy/test": CONTENT["toy/test"]})
    found = check.check(toy(), tmp_path)
    assert (found.state, found.file) == ("corrupt", "toy/train")


@pytest.fixture
def table(mirror, monkeypatch):
    """A table with one toy set on the mirror, and one that no mirror has."""
    mirror.files["/toy.tar.gz"] = TARBALL
    there = toy(f"{mirror.url}/toy.tar.gz")
    elsewhere = (Member("gone/train", 1, "0" * 64),)
    gone = replace(toy("http://127.0.0.1:9/gone.tar.gz"), name="gone", members=elsewhere)
    monkeypatch.setitem(DATASETS, "toy", there)
    monkeypatch.setitem(DATASETS, "gone", gone)


def test_a_folder_of_the_users_is_used_in_place_and_never_written(table, mirror, tmp_path):
    put(tmp_path / "own")
    before = files_in(tmp_path / "own")
    found = data.resolve(["toy"], folders=DataFolders(tmp_path / "own", tmp_path / "d"))["toy"]
    assert (found.source, found.folder, found.subfolder) == ("real", tmp_path / "own", "toy")
    assert found.sha256 == dataset_named("toy").sha256
    assert files_in(tmp_path / "own") == before
    assert mirror.asked == []


def test_a_corrupt_file_in_the_users_folder_is_named_and_nothing_else_is_taken_instead(table, tmp_path):
    put(tmp_path / "own", {**CONTENT, "toy/train": b"x" * 300_000})
    put(tmp_path / "d")
    with pytest.raises(DataError, match="'toy/train' in your data folder is not what its hash says"):
        data.resolve(["toy"], folders=DataFolders(tmp_path / "own", tmp_path / "d"), allow_generated=True)


def test_what_the_users_folder_lacks_is_fetched_into_ours(table, tmp_path):
    (tmp_path / "own").mkdir()
    found = data.resolve(["toy"], folders=DataFolders(tmp_path / "own", tmp_path / "d"))["toy"]
    assert (found.source, found.folder) == ("real", tmp_path / "d")
    assert files_in(tmp_path / "own") == set()


def test_only_where_it_is_allowed_is_missing_data_answered_as_generated(table, tmp_path):
    folders = DataFolders(None, tmp_path / "d")
    with pytest.raises(NoNetwork):
        data.resolve(["gone"], folders=folders)
    found = data.resolve(["toy", "gone"], folders=folders, allow_generated=True)
    assert {name: answer.source for name, answer in found.items()} == {"toy": "real", "gone": "generated"}
    assert found["gone"].folder is None
    assert "cannot be reached" in found["gone"].why


def test_data_that_does_not_arrive_in_time_is_answered_as_generated(table, mirror, tmp_path):
    mirror.bytes_per_second = 100_000
    found = data.resolve(
        ["toy"], folders=DataFolders(None, tmp_path / "d"), allow_generated=True, deadline_seconds=0.3
    )["toy"]
    assert found.source == "generated"
    assert "did not arrive within" in found.why


def test_without_time_to_wait_nothing_is_asked_for(table, mirror, tmp_path):
    folders = DataFolders(None, tmp_path / "d")
    found = data.resolve(["toy"], folders=folders, allow_generated=True, deadline_seconds=0)["toy"]
    assert (found.source, found.why) == ("generated", "'toy.tar.gz' was not waited for")
    assert mirror.asked == []


def test_a_corrupt_download_is_an_error_even_where_generated_data_is_allowed(table, mirror, tmp_path):
    mirror.files["/toy.tar.gz"] = b"x" * len(TARBALL)
    with pytest.raises(DataError):
        data.resolve(["toy"], folders=DataFolders(None, tmp_path / "d"), allow_generated=True)


def test_an_unknown_data_set_is_refused_with_those_there_are(tmp_path):
    with pytest.raises(UserError, match="no data set is called 'imagenet'; take one of cifar-100, "):
        present("imagenet", tmp_path)


def test_the_table_and_the_workloads_agree_on_every_hash(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "workloads")
    theirs = importlib.import_module("parts.inputs.datasets")
    tables = {
        "cifar-100": "CIFAR_100",
        "cifar-10": "CIFAR_10",
        "mnist": "MNIST",
        "wikitext-2": "WIKITEXT_2",
        "imdb": "IMDB",
    }
    for name, table in tables.items():
        hashes = getattr(theirs, table)
        ours = {member.path: member.sha256 for member in DATASETS[name].members if member.trained_on}
        assert ours == hashes
        assert dataset_named(name).sha256 == theirs._hash_of_hashes(hashes)


def test_every_way_in_the_table_gives_every_member():
    for dataset in DATASETS.values():
        for way in dataset.ways:
            held = {path for download in way for path in download.holds.values()}
            assert held == {member.path for member in dataset.members}, dataset.name


PUBLISHED_IN_PART = ("weights-densenet121",)
"""Of whose hash no public file has more than the first eight digits, which stand in its name."""


def test_every_hash_in_the_table_is_whole_and_every_weight_is_named_by_its_hash():
    for dataset in DATASETS.values():
        hashes = [item.sha256 for item in (*dataset.members, *(d for way in dataset.ways for d in way))]
        digits = 8 if dataset.name in PUBLISHED_IN_PART else 64
        assert all(len(found) == digits and int(found, 16) for found in hashes), dataset.name
        if dataset.name.startswith("weights-"):
            assert dataset.members[0].path.endswith(f"-{hashes[0][:8]}.pth")


def test_the_slow_host_of_cifar_is_asked_last():
    for name in ("cifar-10", "cifar-100"):
        urls = DATASETS[name].ways[0][0].urls
        assert "cs.toronto.edu" in urls[-1]
        assert not any("cs.toronto.edu" in url for url in urls[:-1])


@pytest.mark.data
@pytest.mark.parametrize("name", ["cifar-100", "cifar-10", "mnist", "wikitext-2"])
def test_the_real_data_is_accepted(name):
    folder = os.environ.get("GPUDYNO_TEST_DATA", "")
    require("data", bool(folder) and Path(folder).is_dir(), "GPUDYNO_TEST_DATA names no folder")
    found = present(name, Path(folder))
    assert (found.state, found.why) == ("complete", None)
