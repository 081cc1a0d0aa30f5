"""IMDB's reviews: read without opening a foreign pickle, generated alike, numbered as study 003 did."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.workload_runner import module
from tests.workloads.test_trial import Bomb

trial_part, datasets, gru = (
    module(name) for name in ("parts.trial", "parts.inputs.datasets", "parts.small.gru")
)


def file_of(folder: Path, monkeypatch: pytest.MonkeyPatch, **changed: Any) -> None:
    """A file in the layout of Keras' own, whose hash is taken for the official one."""
    reviews = np.empty(2, object)
    reviews[:] = [[5, 30000, 7], [1]]
    arrays = {"x_train": reviews, "y_train": np.array([1, 0]), "x_test": reviews[:1], "y_test": np.array([1])}
    content = io.BytesIO()
    np.savez(content, **{**arrays, **changed})
    (folder / "imdb").mkdir()
    (folder / "imdb" / "imdb.npz").write_bytes(content.getvalue())
    digest = hashlib.sha256(content.getvalue()).hexdigest()
    monkeypatch.setattr(datasets, "IMDB", {"imdb/imdb.npz": digest})


def test_reviews_and_labels_are_read_out_of_keras_file(tmp_path, monkeypatch):
    file_of(tmp_path, monkeypatch)
    found = datasets.imdb(str(tmp_path), "real")
    assert found.train == datasets.Reviews([[5, 30000, 7], [1]], [1, 0])
    assert found.test == datasets.Reviews([[5, 30000, 7]], [1])
    assert found.sha256


def test_another_file_than_the_official_one_is_not_opened(tmp_path):
    (tmp_path / "imdb").mkdir()
    with zipfile.ZipFile(tmp_path / "imdb" / "imdb.npz", "w") as box:
        box.writestr("x_train.npy", b"anything")
    with pytest.raises(trial_part.Failed, match=r"'imdb/imdb.npz' is not the official file"):
        datasets.imdb(str(tmp_path), "real")


def test_even_a_file_of_the_right_hash_cannot_call_what_it_names(tmp_path, monkeypatch):
    bombs = np.empty(1, object)
    bombs[0] = Bomb(tmp_path / "burst")
    file_of(tmp_path, monkeypatch, x_train=bombs)
    with pytest.raises(trial_part.Failed, match="which no data file needs"):
        datasets.imdb(str(tmp_path), "real")
    assert not (tmp_path / "burst").exists()


def test_an_array_of_anything_but_whole_numbers_is_refused(tmp_path, monkeypatch):
    file_of(tmp_path, monkeypatch, y_train=np.array([0.5, 1.0]))
    with pytest.raises(trial_part.Failed, match="an array of type '<f8'"):
        datasets.imdb(str(tmp_path), "real")


def test_generated_reviews_have_the_real_ones_shape_and_something_to_learn():
    found = datasets.imdb("", "generated")
    assert (len(found.train.words), len(found.test.words)) == datasets.IMDB_REVIEWS
    assert (sum(found.train.labels), found.sha256) == (12500, None)
    told = [label for words, label in zip(*found.test, strict=True) if 1000 <= words[0] < 1200]
    assert told and not any(told)
    assert max(map(max, found.train.words)) <= datasets.IMDB_TYPES


def test_a_review_is_its_last_150_words_with_zeros_behind_a_shorter_one():
    short = gru.numbered([1, 2, 29996, 29997])
    assert short[:6].tolist() == [1, 4, 5, 29999, 2, 0]
    assert (len(short), short[5:].any()) == (150, False)
    long = gru.numbered(list(range(1, 201)))
    assert long.tolist() == list(range(54, 204))
