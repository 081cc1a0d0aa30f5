"""The only way a version changes, with uv played by a function."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from harness.errors import MachineError, NoNetwork, UserError
from harness.image.images import Image, load_images
from harness.image.lock import OWN_LOCK, hashed_pin, lock_differences, lock_packages, relock, relock_own
from tests.helpers import ROOT
from tests.helpers.checks import golden

RESOLVED = """\
timm==1.0.32 \\
    --hash=sha256:{0} \\
    --hash=sha256:{1}
fastai==2.8.13 \\
    --hash=sha256:{0}
""".format("a" * 64, "b" * 64)


class Outside:
    """Answers as uv would, and keeps what it was asked."""

    def __init__(self, *, said: str | None = None, odd_python: str = "") -> None:
        self.said, self.odd_python = said, odd_python
        self.asked: list[tuple[str, ...]] = []
        self.excludes = ""
        self.resolved = RESOLVED

    def __call__(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        self.asked.append(tuple(command))
        if self.said is not None:
            return subprocess.CompletedProcess(command, 1, "", self.said)
        self.excludes = Path(_after(command, "--excludes")).read_text()
        odd = "six==1.17.0 \\\n    --hash=sha256:" + "c" * 64 + "\n"
        text = self.resolved + (odd if _after(command, "--python-version") == self.odd_python else "")
        Path(_after(command, "--output-file")).write_text(text)
        return subprocess.CompletedProcess(command, 0, "", "")


def _after(command: Sequence[str], option: str) -> str:
    return command[command.index(option) + 1]


@pytest.fixture(autouse=True)
def _with_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")


def image(root: Path, name: str) -> Image:
    return load_images(root).image(name)


def test_the_lock_is_asked_of_uv_for_every_python_and_holds_no_path(clone: Path):
    outside = Outside()
    relock(image(clone, "cpu"), clone, run=outside)
    asked = [command for command in outside.asked if "compile" in command]
    assert [_after(command, "--python-version") for command in asked] == ["3.11", "3.12", "3.13"]
    folder = str(Path(_after(asked[0], "--output-file")).parent)
    text = "\n".join(" ".join(command) for command in outside.asked) + "\n"
    golden("lock_cpu.txt", text.replace(str(clone), "<clone>").replace(folder, "<temporary>"))
    written = (clone / "docker" / "cpu" / "lock.txt").read_text()
    assert str(clone) not in written and folder not in written


def test_the_lock_is_sorted_and_ends_with_what_the_channel_pins(clone: Path):
    relock(image(clone, "cpu"), clone, run=Outside())
    locked = lock_packages(clone / "docker" / "cpu" / "lock.txt")
    pinned = {package.name: package.version for package in image(clone, "cpu").channel.packages}
    assert locked == {"fastai": "2.8.13", "timm": "1.0.32", **pinned}
    assert list(locked) == sorted(locked)


def test_a_package_that_has_no_wheel_is_resolved_with_the_tools_that_are_pinned(clone: Path):
    outside = Outside()
    outside.resolved = RESOLVED.replace("timm==1.0.32", "setuptools==65.5.0")
    relock(image(clone, "chainer"), clone, run=outside)
    (asked,) = (command for command in outside.asked if "compile" in command)
    assert _after(asked, "--no-binary") == "chainer"
    assert _after(asked, "--build-constraints") == str(clone / "docker" / "chainer" / "requirements.in")
    assert lock_packages(clone / "docker" / "chainer" / "tools.txt") == {"setuptools": "65.5.0"}
    assert lock_packages(clone / "docker" / "chainer" / "lock.txt") == {
        "fastai": "2.8.13",
        "setuptools": "65.5.0",
    }


def test_what_needs_all_others_to_be_built_is_resolved_and_built_in_the_same_surroundings(clone: Path):
    outside = Outside()
    relock(image(clone, "horovod"), clone, run=outside)
    (asked,) = (command for command in outside.asked if "compile" in command)
    assert asked[0] == "env" and "HOROVOD_WITHOUT_MPI=1" in asked[: asked.index("compile")]
    locked = lock_packages(clone / "docker" / "horovod" / "lock.txt")
    assert lock_packages(clone / "docker" / "horovod" / "tools.txt") == locked


def test_what_a_base_brings_is_kept_out_of_the_resolution(clone: Path):
    outside = Outside()
    relock(image(clone, "rocm"), clone, run=outside)
    assert set(outside.excludes.split()) == {"spacy", "torch", "torchvision"}


def test_a_lock_that_stays_the_same_is_no_change(clone: Path):
    first = relock(image(clone, "cpu"), clone, run=Outside())
    again = relock(image(clone, "cpu"), clone, run=Outside())
    assert "docker/cpu/lock.txt is written again" in first
    assert again == ()


def test_pythons_that_come_to_other_packages_do_not_share_a_lock(clone: Path):
    before = (clone / "docker" / "cpu" / "lock.txt").read_text()
    with pytest.raises(UserError, match=r"gives Python 3\.13 other packages than 3\.11; take 3\.13 out of"):
        relock(image(clone, "cpu"), clone, run=Outside(odd_python="3.13"))
    assert (clone / "docker" / "cpu" / "lock.txt").read_text() == before


@pytest.mark.parametrize(
    ("said", "kind", "shown"),
    [
        (
            "error: Failed to fetch: dns error",
            NoNetwork,
            "to lock docker/cpu/requirements.in a package index is needed",
        ),
        ("No solution found:\n  because fastai==9 is not there", UserError, "because fastai==9 is not there"),
    ],
)
def test_why_uv_failed_is_one_sentence(clone: Path, said: str, kind: type[Exception], shown: str):
    with pytest.raises(kind) as refused:
        relock(image(clone, "cpu"), clone, run=Outside(said=said))
    assert shown in str(refused.value) and "\n" not in str(refused.value)


def test_without_uv_it_is_said_how_to_get_it(clone: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(MachineError, match=r"uv is not on the PATH.*pip install uv"):
        relock(image(clone, "cpu"), clone, run=Outside())


def test_one_package_moves_where_it_is_named_and_the_base_keeps_its_digest(clone: Path):
    outside = Outside()
    relock(image(clone, "cpu"), clone, run=outside, only=["timm==1.0.32"])
    assert len(outside.asked) == 3
    assert all(_after(command, "--upgrade-package") == "timm==1.0.32" for command in outside.asked)
    assert not any("--upgrade" in command for command in outside.asked)


PACKAGES = st.dictionaries(st.sampled_from("abcdefghij"), st.sampled_from(["1", "2.0", "2.0.1", "10.3"]))


@given(PACKAGES, st.sampled_from(["", "+cpu", "+cu130"]))
def test_an_environment_that_is_its_lock_differs_in_nothing(packages: dict[str, str], build: str):
    assert lock_differences(packages, {name: version + build for name, version in packages.items()}) == ()


@given(PACKAGES, PACKAGES)
def test_every_difference_is_named_once(locked: dict[str, str], installed: dict[str, str]):
    tools = {"pip", "setuptools", "wheel"}
    wrong = {name for name in locked if installed.get(name) != locked[name]}
    extra = installed.keys() - locked.keys() - tools
    named = [clause.split()[0] for clause in lock_differences(locked, installed)]
    assert sorted(named) == sorted(wrong | extra)


@pytest.mark.parametrize(
    ("locked", "installed", "said"),
    [
        ("torch 2.13.0+cpu", "torch 2.13.0", "torch is 2.13.0 where 2.13.0+cpu is locked"),
        ("torch 2.13.0+cpu", "torch 2.13.0+cu130", "torch is 2.13.0+cu130 where 2.13.0+cpu is locked"),
        ("torch 2.13.0", "torch 2.13.1+cpu", "torch is 2.13.1+cpu where 2.13.0 is locked"),
        ("torch 2.13.0", "", "torch 2.13.0 is locked and not installed"),
        ("", "torch 2.13.0", "torch 2.13.0 is installed and not locked"),
        ("nvidia-ml-py 13.1", "nvidia_ml.py 13.1", ""),
    ],
)
def test_what_differs_is_said_in_one_clause(locked: str, installed: str, said: str):
    pinned, found = (dict([text.split()]) if text else {} for text in (locked, installed))
    assert lock_differences(pinned, found) == ((said,) if said else ())


def test_what_a_base_brings_besides_is_no_difference():
    brought = {"torch": "2.13.0+rocm10.0.0", "apex": "1.13"}
    assert lock_differences({"torch": "2.13.0"}, brought, over_base=True) == ()


def test_ones_own_lock_serves_every_python_and_moves_one_package_where_one_is_asked_for(clone: Path):
    own = clone / "requirements.lock"

    def uv(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        assert {"--universal", "--generate-hashes"} <= set(command)
        assert (_after(command, "--python-version"), _after(command, "--output-file")) == ("3.11", str(own))
        moved = "--upgrade" in command or _after(command, "--upgrade-package") == "rich==15.0.0"
        own.write_text(hashed_pin("rich==15.0.0" if moved else "rich==14.0.0", ["a" * 64]))
        return subprocess.CompletedProcess(command, 0, "", "")

    own.write_text(hashed_pin("rich==14.0.0", ["b" * 64]))
    assert relock_own(clone, run=uv, only=["rich==15.0.0"]) == ("rich: 14.0.0 → 15.0.0",)
    assert relock_own(clone, run=uv) == ()


def test_the_own_lock_pins_each_package_that_is_asked_for_on_every_python():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned: dict[str, list[str]] = {}
    for line in re.findall(r"^\S+==.*(?= \\$)", (ROOT / OWN_LOCK).read_text(), re.M):
        pin = Requirement(line)
        versions = pinned.setdefault(canonicalize_name(pin.name), [])
        for minor in range(11, 14):
            if pin.marker is None or pin.marker.evaluate({"python_full_version": f"3.{minor}.0"}):
                versions.append(str(pin.specifier).removeprefix("=="))
    for asked in (*project["dependencies"], *project["optional-dependencies"]["test"]):
        each = Requirement(asked)
        versions = pinned.get(canonicalize_name(each.name), [])
        assert len(versions) == 3 and all(map(each.specifier.contains, versions)), (each.name, versions)
