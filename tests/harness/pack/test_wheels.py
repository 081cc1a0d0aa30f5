"""What of an image can be packed as wheels."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import MachineError
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
