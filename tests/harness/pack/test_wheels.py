"""What of an image can be packed as wheels."""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path

import pytest

from harness.errors import MachineError, UserError
from harness.image.catalog import load_images
from harness.pack import wheels
from tests.helpers import ROOT


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rocm", "takes torch and torchvision from its base, not from wheels; pack it as an image"),
        ("chainer", "builds chainer from source, not from wheels; pack it as an image"),
    ],
)
def test_an_image_whose_packages_are_not_all_wheels_is_packed_as_an_image_alone(
    tmp_path: Path, name: str, words: str
):
    image = load_images(ROOT).image(name)
    with pytest.raises(MachineError, match=words):
        wheels.locked(
            image,
            ROOT,
            tmp_path,
            pythons=image.pythons,
            python="python3",
            wheelhouse=None,
            log=tmp_path / "log",
            say=print,
        )
    assert not list(tmp_path.iterdir())


def test_wheels_are_pinned_by_all_their_hashes_but_gpudyno_s_own_is_installed_where_it_lies(tmp_path):
    for name in ("Some_Thing-1.0-cp311-a.whl", "Some_Thing-1.0-cp312-a.whl", "b-2-py3-none-any.whl"):
        (tmp_path / name).write_text(name)
    (tmp_path / "gpudyno-0.1.0-py3-none-any.whl").write_text("ours")
    hashes = {name.name: sha256(name.read_bytes()).hexdigest() for name in tmp_path.iterdir()}
    assert wheels.requirements(tmp_path) == (
        "some-thing==1.0 \\\n"
        f"    --hash=sha256:{hashes['Some_Thing-1.0-cp311-a.whl']} \\\n"
        f"    --hash=sha256:{hashes['Some_Thing-1.0-cp312-a.whl']}\n"
        "b==2 \\\n"
        f"    --hash=sha256:{hashes['b-2-py3-none-any.whl']}\n"
    )


def test_a_site_s_pythons_are_told_apart_and_one_that_gpudyno_does_not_run_on_is_refused():
    assert wheels.asked_pythons("3.12, 3.11,3.12") == ("3.12", "3.11")
    assert wheels.asked_pythons("") == (f"{sys.version_info.major}.{sys.version_info.minor}",)
    for wrong in ("3.10", "2.7", "311", "3.x"):
        with pytest.raises(UserError, match=f"'{wrong}' is no Python that gpudyno runs on"):
            wheels.asked_pythons(wrong)


def test_an_image_is_packed_for_the_site_s_pythons_that_its_lock_is_for_else_for_its_own():
    image = load_images(ROOT).image("cpu")
    assert wheels.for_image(image, ("3.12", "3.14")) == ("3.12",)
    assert wheels.for_image(image, ("3.14",)) == (image.python,)
