"""The only way a version changes, with uv and the registry played by a function."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from harness.errors import MachineError, NoNetwork, UserError
from harness.image.catalog import Image, load_images
from harness.image.lock import lock_packages, relock
from harness.image.repin import read_page, repin
from tests.helpers import ROOT
from tests.helpers.checks import golden

DIGEST = "sha256:" + "d" * 64
RESOLVED = """\
timm==1.0.32 \\
    --hash=sha256:{0} \\
    --hash=sha256:{1}
fastai==2.8.13 \\
    --hash=sha256:{0}
""".format("a" * 64, "b" * 64)


OF_THE_INDEX = "torchvision==0.29.1 \\\n    --hash=sha256:" + "e" * 64 + "\n"


class Outside:
    """Answers as uv and docker would, and keeps what it was asked."""

    def __init__(self, *, manifest: str | None = None, said: str | None = None, odd_python: str = "") -> None:
        self.manifest, self.said, self.odd_python = manifest, said, odd_python
        self.asked: list[tuple[str, ...]] = []
        self.excludes = ""
        self.resolved = RESOLVED

    def __call__(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        self.asked.append(tuple(command))
        if "imagetools" in command:
            return subprocess.CompletedProcess(command, self.manifest is None, self.manifest or "", "")
        if self.said is not None:
            return subprocess.CompletedProcess(command, 1, "", self.said)
        if "--no-deps" in command:
            Path(_after(command, "--output-file")).write_text(OF_THE_INDEX)
            return subprocess.CompletedProcess(command, 0, "", "")
        self.excludes = Path(_after(command, "--excludes")).read_text()
        odd = "six==1.17.0 \\\n    --hash=sha256:" + "c" * 64 + "\n"
        text = self.resolved + (odd if _after(command, "--python-version") == self.odd_python else "")
        Path(_after(command, "--output-file")).write_text(text)
        return subprocess.CompletedProcess(command, 0, "", "")


def _after(command: Sequence[str], option: str) -> str:
    return command[command.index(option) + 1]


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with docker/ alone, on a machine that has uv and docker."""
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    shutil.copytree(ROOT / "docker", tmp_path / "docker")
    return tmp_path


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
    assert "docker/cpu/lock.txt is written again" in first.changed
    assert again.changed == ()


def test_a_registry_that_does_not_answer_is_said_and_the_digest_stays_unverified(clone: Path):
    before = (clone / "docker" / "images.toml").read_text()
    report = relock(image(clone, "cpu"), clone, run=Outside())
    assert report.unreachable == (
        "the digest of debian:bookworm-slim: no registry or no 'docker buildx' answers",
    )
    assert (clone / "docker" / "images.toml").read_text() == before


@pytest.mark.parametrize("manifest", ["", "not json", "[]", '{"digest": 3}', '{"digest": "sha256:short"}'])
def test_an_answer_that_holds_no_digest_changes_nothing(clone: Path, manifest: str):
    report = relock(image(clone, "cuda"), clone, run=Outside(manifest=manifest))
    assert report.unreachable
    assert image(clone, "cuda") == image(ROOT, "cuda")


def test_a_resolved_digest_is_written_as_verified_and_touches_no_other_image(clone: Path):
    report = relock(image(clone, "cuda"), clone, run=Outside(manifest=json.dumps({"digest": DIGEST})))
    assert report.unreachable == ()
    assert f"the base of 'cuda' is {DIGEST}, verified" in report.changed
    changed = image(clone, "cuda")
    assert (changed.base_digest, changed.base_digest_verified) == (DIGEST, True)
    assert changed.apex == image(ROOT, "cuda").apex
    for other in ("cpu", "rocm"):
        assert image(clone, other) == image(ROOT, other)
    before, after = ((root / "docker" / "images.toml").read_text().splitlines() for root in (ROOT, clone))
    assert sum(one != other for one, other in zip(before, after, strict=True)) == 2


def test_pythons_that_come_to_other_packages_do_not_share_a_lock(clone: Path):
    before = (clone / "docker" / "cpu" / "lock.txt").read_text()
    with pytest.raises(UserError, match=r"gives Python 3\.13 other packages than 3\.11; take 3\.13 out of"):
        relock(image(clone, "cpu"), clone, run=Outside(odd_python="3.13"))
    assert (clone / "docker" / "cpu" / "lock.txt").read_text() == before


@pytest.mark.parametrize(
    ("said", "kind", "shown"),
    [
        ("error: Failed to fetch: dns error", NoNetwork, "the lock of 'cpu' needs a package index"),
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


def wheels(version: str, *pythons: str, name: str = "torch") -> str:
    """A channel's page, with what else lies there."""
    names = [f"{name}-{version}%2Bcpu-cp{python}-cp{python}-manylinux_2_28_x86_64.whl" for python in pythons]
    names += [name.replace("x86_64", "aarch64") for name in names] + ["torch-1.0.0-cp311-cp311-win_amd64.whl"]
    names.append(f"{name}-{version}%2Bcpu-cp313-cp313t-manylinux_2_28_x86_64.whl")
    return "".join(
        f'<a href="/whl/cpu/{name}#sha256={number:064x}">{name}</a>\n' for number, name in enumerate(names, 1)
    )


def test_one_package_moves_with_its_channel_s_hashes_and_nothing_else(clone: Path):
    outside, asked = Outside(), []

    def page(address: str) -> str:
        asked.append(address)
        return wheels("2.14.1", "311", "312", "313")

    report = repin(clone, "cpu", ["torch==2.14.1"], run=outside, page=page)
    (torch, other) = image(clone, "cpu").channel.packages
    assert asked == [f"{image(clone, 'cpu').channel.address}/torch/"]
    assert (torch.version, torch.sha256) == ("2.14.1+cpu", tuple(f"{number:064x}" for number in (1, 2, 3)))
    assert other == image(ROOT, "cpu").channel.packages[1]
    assert "\ntorch==2.14.1\n" in (clone / "docker" / "cpu" / "requirements.in").read_text()
    assert lock_packages(clone / "docker" / "cpu" / "lock.txt")["torch"] == "2.14.1+cpu"
    was = image(ROOT, "cpu").channel.packages[0].version
    assert f"torch: {was} → 2.14.1+cpu" in report.changed
    commands = [command for command in outside.asked if "compile" in command]
    assert len(commands) == len(outside.asked) == 3, "the base keeps its digest"
    assert all(_after(command, "--upgrade-package") == "torch==2.14.1" for command in commands)
    assert not any("--upgrade" in command for command in commands)


class Channel(BaseHTTPRequestHandler):
    """A vendor's channel on this machine, with two packages."""

    def do_GET(self) -> None:
        pages = {
            "/whl/cpu/torch/": wheels("2.14.1", "311", "312", "313"),
            "/whl/cpu/torchvision/": wheels("0.29.1", "311", "312", "313", name="torchvision"),
        }
        self.send_response(200 if self.path in pages else 404)
        self.end_headers()
        self.wfile.write(pages.get(self.path, "").encode())

    def log_message(self, format: str, *words: Any) -> None:
        """Says nothing."""


@pytest.fixture
def channel() -> Iterator[Callable[[str], str]]:
    """What a page's address gives where the channel is played on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Channel)
    thread = Thread(target=server.serve_forever)
    thread.start()
    here = f"http://127.0.0.1:{server.server_address[1]}"
    yield lambda address: read_page(re.sub(r"^https://[^/]+", here, address))
    server.shutdown()
    thread.join()
    server.server_close()


def test_packages_that_need_each_other_move_together_from_a_channel_that_answers(clone: Path, channel):
    outside = Outside()
    repin(clone, "cpu", ["torch==2.14.1", "torchvision==0.29.1"], run=outside, page=channel)
    torch, vision = image(clone, "cpu").channel.packages
    own = tuple(f"{number:064x}" for number in (1, 2, 3))
    assert (torch.version, torch.sha256) == ("2.14.1+cpu", own)
    assert (vision.version, vision.sha256) == ("0.29.1", (*own, "e" * 64)), "the index's build is pinned too"
    (first, *_) = [command for command in outside.asked if "--upgrade-package" in command]
    assert [after for word, after in pairwise(first) if word == "--upgrade-package"] == [
        "torch==2.14.1",
        "torchvision==0.29.1",
    ]
    text = (clone / "docker" / "cpu" / "channel.txt").read_text()
    assert "torch==2.14.1+cpu" in text and "torchvision==0.29.1" in text


def test_a_channel_that_does_not_have_the_page_is_said_and_every_file_stays(clone: Path, channel):
    before = {path: path.read_bytes() for path in clone.rglob("*") if path.is_file()}
    with pytest.raises(NoNetwork, match="the channel did not give 'http://127"):
        repin(clone, "cpu", ["torch==2.14.1"], run=Outside(), page=lambda address: channel(address + "x"))
    assert {path: path.read_bytes() for path in clone.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("name", "asked", "said"),
    [
        ("cpu", "torch==2.14.1", r"no wheel of torch 2\.14\.1\+cpu with a SHA-256 for Python 3\.13"),
        ("cpu", "torch", "names no version of a package"),
        ("cpu", "tensorflow==2.1", "has no package 'tensorflow'"),
        ("rocm", "torch==2.14.1", "'torch' of image 'rocm' comes with its base"),
    ],
)
def test_what_cannot_move_leaves_every_file_as_it_was(clone: Path, name, asked, said):
    before = {path: path.read_bytes() for path in clone.rglob("*") if path.is_file()}
    with pytest.raises(UserError, match=said):
        repin(clone, name, [asked], run=Outside(), page=lambda address: wheels("2.14.1", "311", "312"))
    with pytest.raises(NoNetwork):
        repin(clone, name, ["timm==9.9"], run=Outside(said="dns error"))
    assert {path: path.read_bytes() for path in clone.rglob("*") if path.is_file()} == before


def test_a_requirement_with_extras_moves_too(clone: Path):
    outside = Outside()
    outside.resolved = RESOLVED.replace("timm==1.0.32", "tensorflow==2.22.0")
    repin(clone, "tensorflow-cuda", ["tensorflow==2.22.0"], run=outside)
    text = (clone / "docker" / "tensorflow-cuda" / "requirements.in").read_text()
    assert "tensorflow[and-cuda]==2.22.0" in text
