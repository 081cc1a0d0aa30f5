"""What every workload stands on: how a trial ends, the hash of its sources, how its data is read."""

from __future__ import annotations

import ast
import errno
import hashlib
import importlib
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.data.datasets import find_dataset
from tests.helpers.workload_runner import DATA, WORKLOADS, Ended, module, run, trial

HEAD = "import sys; from parts import trial as trial_part\ndef run(trial):\n    trial.stage('train')\n    "

trial_part, datasets = module("parts.trial"), module("parts.inputs.datasets")


def end_of(folder: Path, body: str, **told: object) -> Ended:
    asked = trial("own", model="m", batch_size=1, **told)
    return run(folder, asked, code=f"{HEAD}{body}\ntrial_part.main(run)\n", python=sys.executable)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise MemoryError('no more')", "out-of-memory"),
        ("raise RuntimeError('HIP error: out of memory')", "out-of-memory"),
        ("raise RuntimeError('HIP error: hipErrorOutOfMemory')", "out-of-memory"),
        ("raise RuntimeError('cuDNN error: CUDNN_STATUS_ALLOC_FAILED')", "out-of-memory"),
        ("raise RuntimeError('GET was unable to find an engine to execute this computation')", "error"),
        ("raise type('OutOfMemoryError', (RuntimeError,), {})('tried to allocate')", "out-of-memory"),
        ("raise OSError(28, 'No space left on device')", "disk-full"),
        ("raise trial_part.Failed('not-finite', 'the loss is nan')", "not-finite"),
        ("raise KeyError('what')", "error"),
        ("return {'losses': object()}", "error"),
    ],
)
def test_a_trial_that_goes_wrong_says_where_and_why_and_leaves_no_measurement(tmp_path, body, reason):
    ended = end_of(tmp_path, body)
    assert ended.exit_code == 1
    assert (ended.failed.stage, ended.failed.reason) == ("train", reason)
    assert not list((tmp_path / "out").glob("measurement*"))


def test_a_log_on_a_full_disk_keeps_no_failure_from_being_written(tmp_path):
    ended = end_of(
        tmp_path, "sys.stderr = open('/dev/full', 'w'); raise OSError(28, 'No space left on device')"
    )
    assert ended.failed.reason == "disk-full"


@pytest.mark.parametrize(
    "words",
    [
        "GET was unable to find an engine to execute this computation",
        "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear if the input is not contiguous",
        "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
        "miopenStatusInternalError: Workspace is not enough",
    ],
)
@pytest.mark.parametrize(("reserved", "reason"), [(87, "out-of-memory"), (60, "error")])
def test_a_library_without_a_workspace_is_out_of_memory_where_the_card_is_full(
    monkeypatch, words, reserved, reason
):
    def card(number: int) -> SimpleNamespace:
        return SimpleNamespace(total_memory=100)

    cuda = SimpleNamespace(
        is_initialized=lambda: True,
        device_count=lambda: 2,
        get_device_properties=card,
        max_memory_reserved=lambda number: (3, reserved)[number],
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert trial_part.failure_of(RuntimeError(words))[0] == reason


def test_an_exception_is_told_by_its_class_and_its_text_stands_in_the_log_alone(tmp_path):
    ended = end_of(tmp_path, "from parts.inputs import datasets; datasets.mnist(7.0, 'real')")
    assert re.fullmatch(r"TypeError at parts/inputs/datasets.py, line \d+", ended.failed.message)
    assert "not float" in ended.stderr


def test_a_trial_that_hangs_ends_itself_when_its_time_is_over(tmp_path):
    ended = end_of(tmp_path, "__import__('time').sleep(60)", timeout_seconds=0.5)
    assert ended.exit_code == 1
    assert ended.failed.reason == "timeout"
    assert ended.failed.stage == "train"
    assert "0.5 s" in ended.failed.message


@pytest.mark.parametrize(
    ("given", "reason", "message"),
    [
        ({"rate": 1}, "unsupported", "option 'rate' is not known; there are: lr, tied"),
        ({"tied": 1}, "unsupported", "option 'tied' is 1 where it must be bool"),
        ({"lr": 5, "side": "A"}, "error", "{'lr': 5, 'tied': False}"),
    ],
    ids=["name", "type", "a side that no workload sees"],
)
def test_the_options_of_a_trial_are_checked_by_name_and_type(tmp_path, given, reason, message):
    body = "raise trial_part.Failed('error', str(trial.options({'lr': 20.0, 'tied': False})))"
    failed = end_of(tmp_path, body, options=given).failed
    assert (failed.reason, failed.message) == (reason, message)


def test_a_full_disk_leaves_no_half_of_a_file(tmp_path, monkeypatch):
    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space") as caught:
        trial_part.write_whole(str(tmp_path / "measurement.json"), {"measurement": 1})
    assert list(tmp_path.iterdir()) == []
    assert trial_part.failure_of(caught.value)[0] == "disk-full"


def test_numbers_that_json_does_not_have_become_words():
    assert trial_part.finite({"a": [float("nan"), float("inf"), (-float("inf"), 1.5)]}) == {
        "a": ["nan", "inf", ["-inf", 1.5]]
    }


def test_the_installed_packages_are_found_and_on_python_3_7_by_setuptools(monkeypatch):
    assert "pydantic-core" in trial_part.packages()
    monkeypatch.delattr(importlib, "metadata")
    monkeypatch.setitem(sys.modules, "importlib.metadata", None)
    old = SimpleNamespace(working_set=[SimpleNamespace(project_name="Pydantic_Core.x", version="2.1")])
    monkeypatch.setitem(sys.modules, "pkg_resources", old)
    assert trial_part.packages() == {"pydantic-core-x": "2.1"}


SAID = "Python 3.7 syntax"
OLD = [path for path in sorted(WORKLOADS.rglob("*.py")) if SAID in path.read_text()]


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_what_says_so_is_written_for_python_3_7(path):
    ast.parse(path.read_text(), feature_version=(3, 7))


def test_the_hash_of_the_sources_is_that_of_each_imported_file(tmp_path):
    folder = tmp_path / "workloads"
    shutil.copytree(WORKLOADS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    code = "import sys; sys.path.insert(0, sys.argv[1]); from parts.inputs import datasets"
    code += "; from parts import trial; print(trial.sources_sha256())"

    def sources_sha256() -> str:
        argv = [sys.executable, "-B", "-c", code, folder]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    found = [sources_sha256()]
    for changed in (folder / "parts" / "inputs" / "datasets.py", folder / "parts" / "launcher.py"):
        changed.write_text(changed.read_text() + "\n")
        found.append(sources_sha256())
    assert len(set(found)) == 2
    assert found[-1] == found[-2], "what was not imported changes nothing"


class Bomb:
    """Pickled, it writes a file when it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return os.mkdir, (str(self.path),)


def test_a_data_file_that_is_not_the_official_one_is_named_and_never_opened(tmp_path):
    (tmp_path / "cifar-100-python").mkdir()
    (tmp_path / "cifar-100-python" / "train").write_bytes(pickle.dumps(Bomb(tmp_path / "burst")))
    with pytest.raises(
        trial_part.Failed, match="'cifar-100-python/train' is not the official file"
    ) as caught:
        datasets.cifar_100(str(tmp_path), "real")
    assert caught.value.reason == "bad-data"
    assert not (tmp_path / "burst").exists()


def test_a_data_file_that_is_missing_is_named(tmp_path):
    with pytest.raises(trial_part.Failed, match=r"'wikitext-2/wiki.train.tokens' is not in the data folder"):
        datasets.wikitext_2(str(tmp_path), "real")


def test_weights_are_held_to_the_hash_in_their_name(tmp_path):
    (tmp_path / "weights").mkdir()
    content = b"weights"
    right = f"net-{hashlib.sha256(content).hexdigest()[:8]}.pth"
    for name in (right, "net-00000000.pth"):
        (tmp_path / "weights" / name).write_bytes(content)
    assert datasets.weights(str(tmp_path), right) == (content, hashlib.sha256(content).hexdigest())
    with pytest.raises(trial_part.Failed, match="is not what its name says"):
        datasets.weights(str(tmp_path), "net-00000000.pth")


def test_generated_images_differ_within_a_class_and_more_between_classes():
    images = datasets.cifar_10("", "generated")
    assert (len(images.train.labels), len(images.test.labels)) == (50000, 10000)
    assert images.sha256 is None
    size = 3 * 32 * 32

    def distance(one: int, other: int) -> int:
        first, second = (images.test.pixels[at * size : (at + 1) * size] for at in (one, other))
        return sum(abs(a - b) for a, b in zip(first, second, strict=True))

    labels = images.test.labels
    same = labels.index(labels[0], 1)
    different = next(at for at, label in enumerate(labels) if label != labels[0])
    assert 0 < distance(0, same) < distance(0, different) / 2


def test_a_generated_corpus_has_the_real_one_s_shape_and_something_to_learn():
    corpus = datasets.wikitext_2("", "generated")
    assert (len(corpus.train), len(corpus.valid), len(corpus.test)) == datasets.WIKITEXT_2_TOKENS
    assert corpus.types == datasets.WIKITEXT_2_TYPES
    assert max(corpus.train) == corpus.types - 1
    follows = {}
    for at in range(0, 200_000, 2):
        follows.setdefault(corpus.train[at], []).append(corpus.train[at + 1])
    word = max(follows, key=lambda one: len(follows[one]) if one else 0)
    most = max(follows[word].count(other) for other in set(follows[word]))
    assert most / len(follows[word]) > 0.5


@pytest.mark.data
@pytest.mark.parametrize(
    ("read", "name", "train", "first_labels"),
    [
        ("cifar_100", "cifar-100", 50000, [19, 29, 0, 11, 1]),
        ("cifar_10", "cifar-10", 50000, [6, 9, 9, 4, 1]),
        ("mnist", "mnist", 60000, [5, 0, 4, 1, 9]),
    ],
)
def test_the_real_images_are_read_as_their_authors_made_them(read, name, train, first_labels):
    images = getattr(datasets, read)(DATA, "real")
    assert (len(images.train.labels), len(images.test.labels)) == (train, 10000)
    assert images.train.labels[:5] == first_labels
    channels, height, width = images.shape
    assert len(images.train.pixels) == train * channels * height * width
    assert images.sha256 == find_dataset(name).sha256


@pytest.mark.data
def test_the_real_text_has_the_known_number_of_words_and_types():
    corpus = datasets.wikitext_2(DATA, "real")
    assert (len(corpus.train), len(corpus.valid), len(corpus.test)) == (2088628, 217646, 245569)
    assert corpus.types == 33278
    assert list(corpus.train[:4]) == [0, 1, 2, 3]
    assert corpus.sha256 == find_dataset("wikitext-2").sha256


def test_in_an_image_another_list_of_debian_s_packages_is_another_stack_and_elsewhere_there_is_none(
    tmp_path, monkeypatch
):
    process, program = module("parts.trial"), tmp_path / "dpkg-query"
    monkeypatch.setenv("PATH", str(tmp_path))
    found = []
    for listed in ("g++\t12.2.0-14", "g++\t12.2.0-14+deb12u1"):
        program.write_text(f"#!/bin/sh\necho '{listed}'\n")
        program.chmod(0o755)
        monkeypatch.setattr(process, "IMAGE_MARK", str(program))
        found.append(process.versions()["debian_packages"])
    assert len({*found}) == 2 and all(len(digest) == 16 for digest in found)
    program.unlink()
    assert process.debian_packages() is None
    assert "debian_packages" not in process.versions()
