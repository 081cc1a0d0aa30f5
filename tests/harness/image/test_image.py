"""Pins, the tag of an image, and the command that builds it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import PlanError, UserError
from harness.image.images import load_images
from harness.image.spec import BuildSettings, BuildSpec, docker_build_argv
from tests.helpers import ROOT
from tests.helpers.checks import golden
from tests.helpers.images import IMAGES, NAMES, change

BASE = 'base = "debian:bookworm-slim"'


def lines(argv: tuple[str, ...], what: BuildSpec) -> str:
    """An option and its value a line; what changes with each new lock is left out."""
    text = re.sub(r"\n(?!-)", " ", "\n".join(map(shlex.quote, argv))) + "\n"
    for found, shown in ((what.tag, f"gpudyno-{what.image}:<hash>"), (what.lock_sha256, "<lock>")):
        text = text.replace(found, shown)
    return text.replace(str(ROOT), "<clone>")


def tag(root: Path, name: str = "cuda", **options: object) -> str:
    """The tag that a clone's image would get."""
    return BuildSettings(root, **options).spec(load_images(root).image(name)).tag


ALIKE = (
    "cuda",
    "cuda126",
    "era-2019",
    "era-2019-turing",
    "nnunet",
    "tensorflow",
    "tensorflow-cuda",
    "mxnet",
    "chainer",
)
"""Built as one of the others is, but for pins that docker/images.toml has."""


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ALIKE])
def test_the_command_that_builds_an_image_is_this(name: str):
    what = BuildSettings(ROOT).spec(IMAGES.image(name))
    argv = docker_build_argv(what, client="docker", buildx=True)
    golden(f"image_{name}.txt", lines(argv, what))


def test_a_build_on_a_substituted_base_behind_a_proxy_is_this(tmp_path: Path):
    secrets = {name: tmp_path / name for name in ("proxy", "pipconf", "ca", "aptconf")}
    for path in secrets.values():
        path.touch()
    base = "mirror.example/debian:bookworm"
    settings = BuildSettings(ROOT, base=base, apex="none", secrets=secrets, network="host")
    what = settings.spec(IMAGES.image("cuda"))
    argv = docker_build_argv(what, client="/usr/bin/podman", buildx=False)
    golden("image_cuda_podman.txt", lines(argv, what).replace(str(tmp_path), "<secrets>"))


def test_a_docker_client_without_buildx_builds_with_plain_build():
    what = BuildSettings(ROOT).spec(IMAGES.image("cpu"))
    argv = docker_build_argv(what, client="/usr/bin/docker", buildx=False)
    assert argv[:4] == ("/usr/bin/docker", "build", "--progress", "plain")
    assert not {"buildx", "--load", "--provenance=false", "--metadata-file"} & set(argv)


def _change_line(file: str, before: str, after: str) -> Callable[[Path], None]:
    return lambda root: change(root, file, before, after)


@pytest.mark.parametrize(
    "ingredient",
    [
        pytest.param(_change_line("with-apex/Dockerfile", "g++", "clang"), id="Dockerfile"),
        pytest.param(_change_line("steps.sh", "--quiet", "--quiet --quiet"), id="steps"),
        pytest.param(_change_line("cuda/lock.txt", "timm==1.0.31", "timm==1.0.30"), id="lock"),
        pytest.param(_change_line("images.toml", BASE, 'base = "debian:bookworm"'), id="base"),
        pytest.param(_change_line("images.toml", "sha256:abd67ffc", "sha256:abd67ffd"), id="base digest"),
        pytest.param(_change_line("images.toml", "e13873de", "e13873df"), id="Apex's commit"),
        pytest.param(
            _change_line("images.toml", "github.com/NVIDIA", "github.com/other"), id="Apex's address"
        ),
        pytest.param(_change_line("images.toml", '"sm_75", ', ""), id="architectures"),
    ],
)
def test_a_tag_changes_with_every_ingredient(clone: Path, ingredient: Callable[[Path], None]):
    _drop_cpu(clone)
    before = tag(clone)
    ingredient(clone)
    assert tag(clone) != before


def _drop_cpu(root: Path) -> None:
    """The cpu image stands first and on the same base, so that a first match would be its own."""
    path = root / "docker" / "images.toml"
    text = path.read_text()
    path.write_text(text[text.index("[images.cuda]") :])


def test_a_tag_changes_with_what_the_build_is_told(clone: Path):
    assert len({tag(clone), tag(clone, apex="none"), tag(clone, base="debian:bookworm-slim")}) == 3


def test_comments_on_pins_change_no_tag(clone: Path):
    before = tag(clone)
    change(clone, "images.toml", "[images.cuda]", "# A word on it.\n[images.cuda]")
    assert tag(clone) == before


def test_an_unknown_image_is_answered_with_those_there_are():
    with pytest.raises(
        UserError, match=r"image 'tpu' is not in docker/images.toml; take one of cpu, cuda, cuda126, rocm"
    ):
        IMAGES.image("tpu")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('device = "cpu"', 'device = "cpu"\ncolour = "red"', "'images.cpu.colour': unknown key"),
        ("sha256:abd67ffc", "sha256:xyz", "'images.cpu.base_digest': String should match pattern"),
        (BASE, 'base = "debian"', "'images.cpu.base': String should match pattern"),
        ('lock = "cpu/lock.txt"', 'lock = "../lock.txt"', "'images.cpu.lock': String should match pattern"),
        ('device = "cpu"', 'device = "tpu"', "'images.cpu.device': Input should be 'cpu', 'cuda' or 'rocm'"),
        ('device = "cpu"', "device = ", "Invalid value"),
    ],
)
def test_pins_that_cannot_be_meant_are_refused_by_file_and_key(
    clone: Path, before: str, after: str, said: str
):
    change(clone, "images.toml", before, after)
    with pytest.raises(PlanError) as refused:
        load_images(clone)
    assert str(refused.value).startswith("docker/images.toml")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_folder_without_pins_is_no_clone(tmp_path: Path):
    with pytest.raises(PlanError, match=r"docker/images.toml is not there; run gpudyno from its clone"):
        load_images(tmp_path)


def test_a_lock_that_is_missing_is_named_with_what_writes_it(clone: Path):
    (clone / "docker" / "cpu" / "lock.txt").unlink()
    with pytest.raises(PlanError, match=r"docker/cpu/lock.txt is not there; write it with 'invoke lock"):
        tag(clone, "cpu")


def test_a_build_secret_that_is_missing_is_refused(tmp_path: Path):
    with pytest.raises(UserError, match="is not a file"):
        BuildSettings(ROOT, secrets={"ca": tmp_path / "none"}).spec(IMAGES.image("cpu"))
