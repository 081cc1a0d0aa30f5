"""What stands in the locks and Dockerfiles of every image, and the commands of its virtual environment."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import NoEngine
from harness.image.images import Image, load_images
from harness.image.lock import lock_differences, lock_packages
from harness.image.spec import BuildSettings, docker_build_argv, venv_name, venv_steps
from tests.helpers import ROOT
from tests.helpers.checks import golden
from tests.helpers.images import IMAGES, NAMES, OF_TODAY, change


@pytest.mark.parametrize("name", ["cpu", "chainer", "horovod"])
def test_a_virtual_environment_is_made_by_these_commands(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("harness.image.spec.shutil.which", lambda name: None)
    steps = venv_steps(
        IMAGES.image(name),
        root=ROOT,
        venv=Path("/venvs/one"),
        interpreter="python3.11",
        wheelhouse=Path("/wheels"),
    )
    text = "".join(
        f"# {step.label}\n" + "".join(" ".join(argv) + "\n" for argv in step.alternatives) for step in steps
    )
    golden(f"image_venv_{name}.txt", text.replace(str(ROOT), "<clone>"))


def test_without_a_wheelhouse_the_channel_is_tried_first_and_briefly():
    _, framework, packages, _ = venv_steps(
        IMAGES.image("cpu"), root=ROOT, venv=Path("/v"), interpreter="python3"
    )
    channel, index = framework.alternatives
    assert channel[channel.index("--index-url") + 1] == "https://download.pytorch.org/whl/cpu"
    assert channel[channel.index("--retries") + 1] == "1"
    assert not any("http" in word for word in index)
    assert len(packages.alternatives) == 1


def test_an_image_over_a_framework_s_own_base_has_no_virtual_environment():
    with pytest.raises(NoEngine, match="image 'rocm' takes torch and torchvision from its base"):
        venv_steps(IMAGES.image("rocm"), root=ROOT, venv=Path("/v"), interpreter="python3")


def test_the_name_of_a_virtual_environment_changes_with_the_lock(clone: Path):
    image = load_images(clone).image("cpu")
    before = venv_name(image, root=clone)
    change(clone, "cpu/lock.txt", "timm==1.0.31", "timm==1.0.30")
    assert before.startswith("cpu-") and venv_name(image, root=clone) != before


def _requirements(path: Path) -> list[str]:
    """The logical lines of a requirement file."""
    text = path.read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize("name", NAMES)
def test_a_lock_holds_hashes_for_every_package_and_no_address(name: str):
    text = (ROOT / "docker" / IMAGES.image(name).lock).read_text()
    found = _requirements(ROOT / "docker" / IMAGES.image(name).lock)
    assert len(found) > (20 if name in OF_TODAY else 5)
    for line in found:
        assert re.fullmatch(r"[a-z0-9-]+==[^\s]+( +--hash=sha256:[0-9a-f]{64})+", line.strip()), line
    assert "://" not in text and "--index" not in text and "--find-links" not in text


@pytest.mark.parametrize(
    ("name", "pins"),
    [
        ("era-2019", {"torch": "1.0.0", "torchvision": "0.2.1", "fastai": "1.0.41"}),
        ("era-2019-turing", {"torch": "1.2.0", "torchvision": "0.4.0", "fastai": "1.0.57"}),
    ],
)
def test_the_locks_of_2019_are_those_of_their_time(name, pins):
    image = IMAGES.image(name)
    locked = lock_packages(ROOT / "docker" / image.lock)
    assert not lock_differences(pins, locked, over_base=True)
    assert not set(image.left_out) & set(locked)
    assert "setuptools" in locked, (
        "fastai 1 imports it, and the image's environment has no pip that would bring it"
    )


@pytest.mark.parametrize("name", ["chainer", "horovod"])
def test_what_builds_a_source_is_locked_and_the_same_in_both_files(name: str):
    image = IMAGES.image(name)
    assert image.sources is not None
    whole, tools = (lock_packages(ROOT / "docker" / lock) for lock in (image.lock, image.sources.lock))
    everything_else = whole.keys() - set(image.sources.packages)
    assert tools == {name: whole[name] for name in image.sources.tools or everything_else}
    assert set(image.sources.packages) <= set(whole)
    dockerfile = (ROOT / "docker" / image.dockerfile).read_text()
    assert dockerfile.index(image.sources.lock) < dockerfile.index(image.lock)


@pytest.mark.parametrize("name", OF_TODAY)
def test_a_lock_is_of_the_family_and_leaves_out_what_it_should(name: str):
    image = IMAGES.image(name)
    locked = lock_packages(ROOT / "docker" / image.lock) | image.from_base
    family = lock_packages(ROOT / "docker" / "cpu" / "requirements.in")
    # The last whose build on the package index serves cards before sm_75.
    own = {"torch": "2.7.1", "torchvision": "0.22.1"} if name == "cuda126" else {}
    assert not lock_differences(family | own, locked, over_base=True)
    assert locked["fastprogress"] < "1.1"
    assert not set(image.left_out) & set(locked)
    assert ("nvidia-ml-py" in locked) == (image.device == "cuda")
    assert any(package.startswith("nvidia-cu") for package in locked) == (name in ("cuda", "cuda126"))


def test_the_channel_s_part_of_a_lock_is_what_the_pins_say():
    channel = IMAGES.image("cpu").channel
    assert channel is not None
    part = set(_requirements(ROOT / "docker" / channel.lock))
    assert part <= set(_requirements(ROOT / "docker" / IMAGES.image("cpu").lock))
    assert {line.split("==")[0] for line in part} == {package.name for package in channel.packages}
    for package in channel.packages:
        line = next(line for line in part if line.startswith(f"{package.name}=={package.version} "))
        assert tuple(re.findall(r"[0-9a-f]{64}", line)) == package.sha256


def _dockerfile(image: Image) -> str:
    return (ROOT / "docker" / image.dockerfile).read_text()


@pytest.mark.parametrize("name", NAMES)
def test_a_dockerfile_pins_all_that_it_takes(name: str):
    text = _dockerfile(IMAGES.image(name))
    steps = (ROOT / "docker" / "steps.sh").read_text()
    assert "latest" not in text and not text.startswith("# syntax")
    assert not re.search(r"pip3? install|curl|wget|https?://|--pre\b", text)
    for install in re.findall(r"run_pip install[^\n]*(?:\\\n[^\n]*)*", steps):
        assert "--require-hashes" in install or "--no-index" in install
    stages = set(re.findall(r"^FROM \S+ AS (\S+)$", text, re.MULTILINE))
    for source in re.findall(r"^FROM (\S+)", text, re.MULTILINE):
        assert source in stages or source == "${BASE}"


@pytest.mark.parametrize("name", NAMES)
def test_a_dockerfile_is_given_every_argument_that_it_asks_for(name: str):
    image = IMAGES.image(name)
    what = BuildSettings(ROOT).spec(image)
    argv = docker_build_argv(what, buildx=True)
    given_ = {word.split("=")[0] for at, word in enumerate(argv) if argv[at - 1] == "--build-arg"}
    assert given_ == set(re.findall(r"^ARG (\w+)", _dockerfile(image), re.MULTILINE))


def test_a_base_s_packages_that_pip_cannot_take_away_give_way_to_the_lock_s(tmp_path):
    theirs = tmp_path / "dist-packages"
    for name, record in (
        ("numpy-1.2.dist-info", False),
        ("scipy-1.0.dist-info", True),
        ("six-1.0.dist-info", False),
    ):
        (theirs / name).mkdir(parents=True)
        (theirs / name / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.split('-')[0]}\n")
        if record:
            (theirs / name / "RECORD").write_text("scipy/__init__.py,,\n")
    (theirs / "blinker-1.4.egg-info").write_text("Metadata-Version: 1.1\nName: blinker\n")
    lock = tmp_path / "lock.txt"
    lock.write_text("numpy==2.0 \\\n    --hash=sha256:0\nscipy==1.0\nblinker==1.9\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={theirs} exec {sys.executable} -S "$@"\n')
    python.chmod(0o700)
    subprocess.run(["sh", ROOT / "docker" / "steps.sh", "disown", python, lock], check=True)
    assert sorted(path.name for path in theirs.iterdir()) == ["scipy-1.0.dist-info", "six-1.0.dist-info"]
