"""The table of data sets: its downloads, its hashes, and the real data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.data.datasets import DATASETS, check_dataset, find_dataset
from harness.errors import UserError
from tests.helpers.checks import require


def test_an_unknown_data_set_is_refused_with_those_there_are():
    with pytest.raises(UserError, match="no data set is called 'imagenet'; take one of cifar-100, "):
        find_dataset("imagenet")


def test_the_downloads_of_a_data_set_give_every_member():
    for dataset in DATASETS.values():
        held = {path for download in dataset.downloads for path in download.holds.values()}
        assert held == {member.path for member in dataset.members}, dataset.name


PUBLISHED_IN_PART = ("weights-densenet121",)
"""Of whose hash no public file has more than the first eight digits, which stand in its name."""


def test_every_hash_in_the_table_is_whole_and_every_weight_is_named_by_its_hash():
    for dataset in DATASETS.values():
        hashes = [item.sha256 for item in (*dataset.members, *dataset.downloads)]
        digits = 8 if dataset.name in PUBLISHED_IN_PART else 64
        assert all(len(found) == digits and int(found, 16) for found in hashes), dataset.name
        if dataset.name.startswith("weights-"):
            assert dataset.members[0].path.endswith(f"-{hashes[0][:8]}.pth")


def test_the_slow_host_of_cifar_is_asked_last():
    for name in ("cifar-10", "cifar-100"):
        urls = DATASETS[name].downloads[0].urls
        assert "cs.toronto.edu" in urls[-1]
        assert not any("cs.toronto.edu" in url for url in urls[:-1])


@pytest.mark.data
@pytest.mark.parametrize("name", ["cifar-100", "cifar-10", "mnist", "wikitext-2"])
def test_the_real_data_is_accepted(name):
    folder = os.environ.get("GPUDYNO_TEST_DATA", "")
    require("data", bool(folder) and Path(folder).is_dir(), "GPUDYNO_TEST_DATA names no folder")
    found = check_dataset(find_dataset(name), Path(folder))
    assert (found.state, found.why) == ("complete", None)
