"""Fetching data, against a server on the loopback that behaves as mirrors do."""

from __future__ import annotations

import gzip
import socket
import time
from dataclasses import replace

import pytest

from harness.data.datasets import Download, Member, check_dataset
from harness.data.fetch import fetch_dataset, hold_folder
from harness.errors import Busy, DataError, NoNetwork, NoSpace
from harness.network import USER_AGENT, Offline
from tests.helpers.mirror import CONTENT, MEMBERS, TARBALL, files_in, put, sha256, tarball, toy

PAGE = b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code></Error>'.ljust(243, b" ")


def test_a_data_set_is_fetched_unpacked_and_only_the_files_of_the_table_are_kept(mirror, tmp_path):
    mirror.files["/toy.tar.gz"] = TARBALL
    seen = []
    fetch_dataset(toy(f"{mirror.url}/toy.tar.gz"), tmp_path / "d", progress=lambda *a: seen.append(a))
    assert files_in(tmp_path / "d") == set(CONTENT)
    assert (tmp_path / "d/toy/train").read_bytes() == CONTENT["toy/train"]
    assert seen[-1] == ("toy.tar.gz", len(TARBALL), len(TARBALL))
    assert [done for _, done, _ in seen] == sorted({done for _, done, _ in seen})
    assert mirror.agents == {USER_AGENT}


def test_what_is_complete_is_not_fetched_again(mirror, tmp_path):
    mirror.files["/toy.tar.gz"] = TARBALL
    dataset = toy(f"{mirror.url}/toy.tar.gz")
    fetch_dataset(dataset, tmp_path / "d")
    fetch_dataset(dataset, tmp_path / "d")
    assert mirror.asked == ["/toy.tar.gz"]


@pytest.mark.parametrize("how", ["lies", "has a page", "refuses", "cuts off"])
def test_the_next_mirror_is_asked_when_one_does_not_give_the_file(mirror, tmp_path, how):
    first = {"lies": b"x" * len(TARBALL), "has a page": PAGE}.get(how, TARBALL)
    mirror.files |= {"/first": first, "/second": TARBALL}
    if how == "refuses":
        mirror.status["/first"] = 403
    if how == "cuts off":
        mirror.cut_at["/first"] = [100_000]
    fetch_dataset(toy(f"{mirror.url}/first", f"{mirror.url}/second"), tmp_path / "d")
    assert mirror.asked == ["/first", "/second"]
    assert files_in(tmp_path / "d") == set(CONTENT)


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        (b"x" * len(TARBALL), r"'toy.tar.gz' arrived corrupt and was not kept .*SHA-256 begins"),
        (TARBALL + b"x" * 5_000_000, "more bytes than belong"),
    ],
    ids=["corrupt", "too long"],
)
def test_a_download_that_is_another_file_is_named_and_leaves_none(mirror, tmp_path, sent, says):
    mirror.files["/toy.tar.gz"] = sent
    with pytest.raises(DataError, match=says):
        fetch_dataset(toy(f"{mirror.url}/toy.tar.gz"), tmp_path / "d")
    assert files_in(tmp_path / "d") == set()


def test_without_a_network_it_says_so_at_once(tmp_path, monkeypatch):
    def no_name(*_):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_name)
    dataset = toy("https://mirror.invalid/toy.tar.gz", "https://other.invalid/toy.tar.gz")
    began = time.monotonic()
    with pytest.raises(Offline, match=r"mirror\.invalid is not known.*other\.invalid") as caught:
        fetch_dataset(dataset, tmp_path / "d")
    assert time.monotonic() - began < 30
    assert caught.value.exit_code == 4


def test_a_disk_that_is_too_small_is_told_before_anything_is_fetched(mirror, tmp_path):
    huge = replace(MEMBERS[0], size=1 << 60)
    with pytest.raises(NoSpace, match=r"'toy' needs .* MiB of disk and .* MiB are free in '.*/d'"):
        fetch_dataset(toy(f"{mirror.url}/toy.tar.gz", members=(huge, MEMBERS[1])), tmp_path / "d")
    assert mirror.asked == []


def test_a_member_that_is_not_what_its_hash_says_is_not_put_in_place(mirror, tmp_path):
    other = tarball({**CONTENT, "toy/test": b"tset" * 1000})
    mirror.files["/toy.tar.gz"] = other
    with pytest.raises(DataError, match="'toy/test' as unpacked is not what its hash says"):
        fetch_dataset(toy(f"{mirror.url}/toy.tar.gz", body=other), tmp_path / "d")
    assert files_in(tmp_path / "d") == set()


def test_what_lies_corrupt_in_our_own_folder_is_replaced_whole(mirror, tmp_path):
    mirror.files["/toy.tar.gz"] = TARBALL
    (tmp_path / "d/toy").mkdir(parents=True)
    (tmp_path / "d/toy/train").write_bytes(b"short")
    fetch_dataset(toy(f"{mirror.url}/toy.tar.gz"), tmp_path / "d")
    assert files_in(tmp_path / "d") == set(CONTENT)


def test_files_fetched_one_by_one_are_inflated_and_put_in_place_together(mirror, tmp_path):
    packed = {path: gzip.compress(content) for path, content in CONTENT.items()}
    mirror.files |= {f"/{path}.gz": body for path, body in packed.items()}
    mirror.status["/toy/test.gz"] = 503
    files = tuple(
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
    dataset = replace(toy(), downloads=files)
    with pytest.raises(NoNetwork, match="answered 503"):
        fetch_dataset(dataset, tmp_path / "d")
    assert files_in(tmp_path / "d") == set()
    mirror.status.clear()
    fetch_dataset(dataset, tmp_path / "d")
    assert files_in(tmp_path / "d") == set(CONTENT)


def test_weights_are_put_beside_others_that_are_there_already(mirror, tmp_path):
    put(tmp_path / "d", {"weights/other.pth": b"other"})
    mirror.files["/one.pth"] = b"one"
    item = Download(
        "one.pth", "plain", None, sha256(b"one"), (f"{mirror.url}/one.pth",), {"one.pth": "weights/one.pth"}
    )
    dataset = replace(toy(), members=(Member("weights/one.pth", None, sha256(b"one")),), downloads=(item,))
    fetch_dataset(dataset, tmp_path / "d")
    assert check_dataset(dataset, tmp_path / "d").state == "complete"
    assert files_in(tmp_path / "d") == {"weights/other.pth", "weights/one.pth"}


def test_two_processes_do_not_fetch_into_one_folder(mirror, tmp_path):
    with hold_folder(tmp_path / "d"), pytest.raises(Busy, match="another gpudyno is fetching data"):
        fetch_dataset(toy(f"{mirror.url}/toy.tar.gz"), tmp_path / "d")
