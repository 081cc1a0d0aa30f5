"""A second stack's lock. The packages are constructed: their wheels hold a version and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.bundle import validate
from harness.errors import NoNetwork, UserError
from harness.image import lock, second_lock
from harness.image.images import load_images
from harness.image.lock import lock_packages, lock_sha256
from harness.image.second_lock import given_image, known_locks, moved_image
from harness.image.spec import BuildSettings, venv_name, venv_steps
from tests.helpers import ROOT
from tests.helpers import records_builder as build
from tests.helpers.wheels import pinned, tiny_image, wheel


@pytest.fixture
def clone(tmp_path):
    """An image of two packages, of which 'follows' needs one version of 'leads', and a wheelhouse of both."""
    wheels = tmp_path / "wheelhouse"
    wheels.mkdir()
    for version in ("1.0", "2.0", "3.0"):
        wheel(wheels, "leads", version)
        wheel(wheels, "follows", version, needs=f"leads=={version}")
    wheel(wheels, "apart", "1.0")
    wheel(wheels, "apart", "2.0")
    return tiny_image(tmp_path, {"apart": "1.0", "follows": "2.0", "leads": "2.0"})


def test_only_what_has_to_move_moves_and_each_version_has_its_hash(clone):
    image, wheels = load_images(clone).image("tiny"), clone / "wheelhouse"
    moved = moved_image(image, clone, ["leads==1.0"], wheelhouse=wheels)
    path = clone / "docker" / moved.lock
    assert lock_packages(path) == {"apart": "1.0", "follows": "1.0", "leads": "1.0"}
    for name in ("follows", "leads"):
        assert pinned(wheels / f"{name}-1.0-py3-none-any.whl", name, "1.0") in path.read_text()


def test_a_lock_is_resolved_once_and_known_by_its_hash_beside_the_image_s_own(clone):
    image, wheels = load_images(clone).image("tiny"), clone / "wheelhouse"
    moved = moved_image(image, clone, ["leads==3.0"], wheelhouse=wheels)

    def never(line):
        raise AssertionError(line)

    assert moved_image(image, clone, ["leads==3.0"], wheelhouse=wheels, run=never) == moved
    known = known_locks(clone)
    assert known[lock_sha256(clone, moved.lock)] == moved and known[lock_sha256(clone, image.lock)] == image
    assert venv_name(moved, root=clone) != venv_name(image, root=clone)


def test_a_second_lock_s_image_and_environment_are_made_of_it_and_not_of_the_first(clone):
    image = load_images(clone).image("tiny")
    moved = moved_image(image, clone, ["leads==3.0"], wheelhouse=clone / "wheelhouse")
    spec, own = (BuildSettings(clone).spec(each) for each in (moved, image))
    assert spec.tag != own.tag and spec.lock_sha256 == lock_sha256(clone, moved.lock)
    assert f"/context/docker/{moved.lock}" in spec.dockerfile.read_text()
    steps = venv_steps(moved, root=clone, venv=clone / "v", interpreter="python3")
    assert steps[-1].alternatives[0][-1] == str(clone / "docker" / moved.lock)


def test_a_version_that_is_nowhere_or_goes_with_nothing_is_refused_in_a_sentence(clone):
    image, wheels = load_images(clone).image("tiny"), clone / "wheelhouse"
    with pytest.raises((UserError, NoNetwork), match=r"leads==9\.0|package index"):
        moved_image(image, clone, ["leads==9.0"], wheelhouse=wheels)
    with pytest.raises(UserError, match="has no package 'other'"):
        moved_image(image, clone, ["other==1.0"], wheelhouse=wheels)
    assert not (clone / "docker" / "against").exists()


def test_a_lock_of_the_user_s_is_kept_and_one_without_hashes_is_refused(clone, tmp_path):
    image, path = load_images(clone).image("tiny"), tmp_path / "mine.txt"
    path.write_text(pinned(clone / "wheelhouse" / "leads-3.0-py3-none-any.whl", "leads", "3.0"))
    given = given_image(image, clone, path)
    assert lock_packages(clone / "docker" / given.lock) == {"leads": "3.0"}
    path.write_text("leads==3.0\n")
    with pytest.raises(UserError, match=r"'mine\.txt' is no lock"):
        given_image(image, clone, path)


def test_on_a_processor_the_channel_s_packages_keep_their_build_and_hashes_when_others_move(
    monkeypatch,
):
    image = load_images(ROOT).image("cpu")
    text = (ROOT / "docker" / image.lock).read_text()
    monkeypatch.setattr(second_lock, "uv_line", None)
    monkeypatch.setattr(lock.shutil, "which", lambda name: name)

    def answer(line):
        output = Path(line[line.index("--output-file") + 1])
        plain = text.replace("torch==2.13.0+cpu", "torch==2.13.0").replace("pillow==13.0.0", "pillow==12.0.0")
        output.write_text(plain + "nvidia-nccl-cu13==2.30.7 \\\n    --hash=sha256:" + "0" * 64 + "\n")
        asked = Path(line[line.index("compile") + 1]).read_text().splitlines()
        assert {"torch==2.13.0", "torchvision==0.28.0", "pillow==12.0.0", "timm"} <= set(asked)
        return type("Done", (), {"returncode": 0, "stdout": "", "stderr": ""})

    blocks = second_lock._resolve_blocks(image, ROOT, ["pillow==12.0.0"], None, answer)
    assert image.channel is not None
    torch = image.channel.packages[0]
    assert blocks["torch"].startswith(f"torch=={torch.version} ") and torch.sha256[0] in blocks["torch"]
    assert "nvidia-nccl-cu13" not in blocks and blocks["pillow"].startswith("pillow==12.0.0")
    assert set(blocks) == set(lock_packages(ROOT / "docker" / image.lock))


def test_another_version_s_hash_is_that_of_the_channel_s_build_in_the_wheelhouse(monkeypatch, tmp_path):
    image = load_images(ROOT).image("cpu")
    text = (ROOT / "docker" / image.lock).read_text()
    monkeypatch.setattr(second_lock, "uv_line", lambda *_: ["uv"])
    monkeypatch.setattr(lock.shutil, "which", lambda name: name)

    def answer(line):
        if "--output-file" in line:
            output = Path(line[line.index("--output-file") + 1])
            output.write_text(text.replace("torch==2.13.0+cpu", "torch==2.12.1"))
        return type(
            "Done", (), {"returncode": 0 if "--output-file" in line else 1, "stdout": "", "stderr": ""}
        )

    wheel(tmp_path, "torch", "2.12.1")
    with pytest.raises(NoNetwork, match="that channel's wheel"):
        second_lock._resolve_blocks(image, ROOT, ["torch==2.12.1"], tmp_path, answer)
    built = wheel(tmp_path, "torch", "2.12.1+cpu")
    blocks = second_lock._resolve_blocks(image, ROOT, ["torch==2.12.1"], tmp_path, answer)
    assert blocks["torch"] == pinned(built, "torch", "2.12.1+cpu")


def test_a_record_is_held_against_its_own_lock_in_a_clone_or_in_a_folder_alone(clone, tmp_path):
    image = load_images(clone).image("tiny")
    moved = moved_image(image, clone, ["leads==3.0"], wheelhouse=clone / "wheelhouse")
    sha256 = lock_sha256(clone, moved.lock)
    asked = build.trial(build.LM, "fp32-ieee", 1, lock_sha256=sha256)
    packages = {"apart": "1.0", "follows": "3.0", "leads": "2.0"}
    found = build.changed(build.measurement(build.LM, asked, 0.02, card="x"), packages=packages)
    within = build.environment(image="tiny", lock_sha256=sha256)
    record = build.record(asked, found, on=build.machine("x", label="x"), within=within)
    archived = tmp_path / "packed" / "docker" / moved.lock
    archived.parent.mkdir(parents=True)
    shutil.copy(clone / "docker" / moved.lock, archived)
    for root, other in ((clone, clone), (tmp_path / "packed", tmp_path / "empty")):
        (said,) = validate.KnownLocks(root, other).unlike(record)
        assert said == "it says 'pinned', and leads is 2.0 where 3.0 is locked"
