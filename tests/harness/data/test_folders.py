"""What lies in a folder of ours or of the user's, and what is done about what does not."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from harness.data import datasets
from harness.data import fetch as data
from harness.data.datasets import DATASETS, Member, find_dataset
from harness.data.fetch import DataFolders
from harness.errors import DataError, NoNetwork, NoSpace, UserError
from tests.helpers.mirror import CONTENT, TARBALL, files_in, put, toy


def test_a_folder_that_has_nothing_is_missing_and_one_that_has_a_part_is_corrupt(tmp_path):
    assert datasets.check_dataset(toy(), tmp_path).state == "missing"
    put(tmp_path, {"toy/test": CONTENT["toy/test"]})
    found = datasets.check_dataset(toy(), tmp_path)
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
    found = data.resolve_datasets(["toy"], folders=DataFolders(tmp_path / "own", tmp_path / "d"))["toy"]
    assert (found.source, found.folder) == ("real", tmp_path / "own" / "toy")
    assert files_in(tmp_path / "own") == before
    assert mirror.asked == []


def test_a_corrupt_file_in_the_users_folder_is_named_and_nothing_else_is_taken_instead(table, tmp_path):
    put(tmp_path / "own", {**CONTENT, "toy/train": b"x" * 300_000})
    put(tmp_path / "d")
    with pytest.raises(DataError, match="'toy/train' in your data folder is not what its hash says"):
        data.resolve_datasets(
            ["toy"], folders=DataFolders(tmp_path / "own", tmp_path / "d"), allow_generated=True
        )


def test_what_the_users_folder_lacks_is_fetched_into_ours(table, tmp_path):
    (tmp_path / "own").mkdir()
    found = data.resolve_datasets(["toy"], folders=DataFolders(tmp_path / "own", tmp_path / "d"))["toy"]
    assert (found.source, found.folder) == ("real", tmp_path / "d" / "toy")
    assert files_in(tmp_path / "own") == set()


def test_only_where_it_is_allowed_is_missing_data_answered_as_generated(table, tmp_path):
    folders = DataFolders(None, tmp_path / "d")
    with pytest.raises(NoNetwork):
        data.resolve_datasets(["gone"], folders=folders)
    found = data.resolve_datasets(["toy", "gone"], folders=folders, allow_generated=True)
    assert {name: answer.source for name, answer in found.items()} == {"toy": "real", "gone": "generated"}
    assert found["gone"].folder is None
    assert "cannot be reached" in found["gone"].why


def test_a_set_that_is_not_tried_once_the_network_is_away_says_which_file_showed_that(
    table, tmp_path, monkeypatch
):
    monkeypatch.setitem(DATASETS, "later", replace(DATASETS["gone"], name="later"))
    folders = DataFolders(None, tmp_path / "d")
    found = data.resolve_datasets(["gone", "later"], folders=folders, allow_generated=True)
    assert found["later"].why == f"'later' was not tried, since {found['gone'].why}"


def test_room_for_all_that_is_missing_is_asked_for_before_the_first_is_fetched(
    table, mirror, tmp_path, monkeypatch
):
    enough = sum(len(content) for content in CONTENT.values()) + len(TARBALL) + (64 << 20)
    monkeypatch.setattr(data, "free_bytes", lambda folder: enough)
    data.resolve_datasets(["toy"], folders=DataFolders(None, tmp_path / "a"))
    with pytest.raises(
        NoSpace, match=f"'toy' and 'gone' needs .* are free in '{tmp_path}/d'; free some space"
    ):
        data.resolve_datasets(
            ["toy", "gone"], folders=DataFolders(None, tmp_path / "d"), allow_generated=True
        )
    assert mirror.asked == ["/toy.tar.gz"]


def test_data_that_does_not_arrive_in_time_is_answered_as_generated(table, mirror, tmp_path):
    mirror.bytes_per_second = 100_000
    found = data.resolve_datasets(
        ["toy"], folders=DataFolders(None, tmp_path / "d"), allow_generated=True, deadline_seconds=0.3
    )["toy"]
    assert found.source == "generated"
    assert "did not arrive within" in found.why


def test_without_time_to_wait_nothing_is_asked_for(table, mirror, tmp_path):
    folders = DataFolders(None, tmp_path / "d")
    found = data.resolve_datasets(["toy"], folders=folders, allow_generated=True, deadline_seconds=0)["toy"]
    assert (found.source, found.why) == ("generated", "'toy.tar.gz' was not waited for")
    assert mirror.asked == []


def test_a_corrupt_download_is_an_error_even_where_generated_data_is_allowed(table, mirror, tmp_path):
    mirror.files["/toy.tar.gz"] = b"x" * len(TARBALL)
    with pytest.raises(DataError):
        data.resolve_datasets(["toy"], folders=DataFolders(None, tmp_path / "d"), allow_generated=True)


@pytest.mark.parametrize("laid", ["as in a data folder", "side by side"])
def test_a_data_set_is_taken_from_a_folder_of_the_users_by_its_hashes(table, tmp_path, laid):
    flat = laid == "side by side"
    put(tmp_path / "own", {path.split("/")[1] if flat else path: text for path, text in CONTENT.items()})
    data.bring_dataset(find_dataset("toy"), tmp_path / "own", tmp_path / "d")
    assert datasets.check_dataset(find_dataset("toy"), tmp_path / "d").state == "complete"
    assert not list((tmp_path / "d").glob(".new-*"))


def test_data_that_is_brought_is_whole_and_what_its_hash_says(table, tmp_path):
    put(tmp_path / "own", {"train": CONTENT["toy/train"]})
    with pytest.raises(UserError, match="has no 'test' of toy; name the folder that has all its files"):
        data.bring_dataset(find_dataset("toy"), tmp_path / "own", tmp_path / "d")
    put(tmp_path / "own", {"test": b"another"})
    with pytest.raises(DataError, match="'toy/test' as brought is not what its hash says"):
        data.bring_dataset(find_dataset("toy"), tmp_path / "own", tmp_path / "d")
    assert files_in(tmp_path / "d") <= {".lock"}


def test_a_file_alone_is_taken_for_a_data_set_of_one_file(tmp_path, monkeypatch):
    member = Member("letters/input.txt", 3, hashlib.sha256(b"abc").hexdigest())
    one = replace(toy(), name="letters", members=(member,))
    (tmp_path / "anything").write_bytes(b"abc")
    data.bring_dataset(one, tmp_path / "anything", tmp_path / "d")
    assert (tmp_path / "d" / "letters" / "input.txt").read_bytes() == b"abc"
