"""Which image serves a card, and what is said where none does."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import NoDevice
from harness.image.images import choose_image, load_images
from tests.helpers.images import IMAGES, change


@pytest.mark.parametrize("capability", ["3.7", "sm_35", "11.0", "13.0"])
def test_a_card_that_no_cuda_build_serves_is_told_so(capability: str):
    with pytest.raises(NoDevice) as refused:
        choose_image(IMAGES, "cuda", capability=capability)
    card = "sm_" + capability.removeprefix("sm_").replace(".", "")
    assert str(refused.value) == (
        f"image 'cuda' serves sm_75, sm_80, sm_86, sm_90, sm_100, sm_120, and this card is {card}; "
        f"image 'cuda126' serves sm_50, sm_60, sm_70, sm_75, sm_80, sm_86, sm_90, and this card is {card}; "
        "name an interpreter whose framework serves this card by --python, or take --device cpu"
    )


@pytest.mark.parametrize(
    ("capabilities", "driver", "image"),
    [
        (("5.2", "7.0"), "535.183.01", "cuda126"),
        (("6.1",), "580.65.06", "cuda126"),
        (("8.9", "9.0"), "579.99", "cuda126"),
        (
            ("7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "10.3", "12.0", "12.1", "sm_90", None),
            "580.65.06",
            "cuda",
        ),
        (("gfx942", "gfx90a:sramecc+:xnack-", "gfx1201", None), None, "rocm"),
        ((None,), None, "cpu"),
    ],
)
def test_a_card_and_its_driver_choose_the_image(capabilities, driver, image):
    device = "cuda" if driver else image
    found = {choose_image(IMAGES, device, capability=each, driver=driver).name for each in capabilities}
    assert found == {image}


@pytest.mark.parametrize(
    ("capability", "driver", "said", "needed"),
    [
        (
            "12.0",
            "570.124.06",
            r"'cuda' needs driver 580 or newer.* has 570\.124\.06; image 'cuda126' serves",
            "580",
        ),
        ("6.1", "525.53", r"this card is sm_61; image 'cuda126' needs driver 525\.60\.13", "525.60.13"),
        ("8.6", "470.82", r"needs driver 580 or newer.*; image 'cuda126' needs driver 525\.60\.13", "580"),
    ],
)
def test_a_card_whose_driver_is_too_old_is_told_the_number_and_it_helps(capability, driver, said, needed):
    with pytest.raises(NoDevice, match=said) as refused:
        choose_image(IMAGES, "cuda", capability=capability, driver=driver)
    assert refused.value.remedy.startswith(f"update the driver to {needed}, or name an interpreter")
    assert choose_image(IMAGES, "cuda", capability=capability, driver=needed)


@pytest.mark.parametrize(
    ("name", "device", "capability"),
    [
        ("cuda126", "cuda", "8.9"),
        ("era-2019", "cuda", "7.0"),
        ("era-2019", "cuda", "6.1"),
        ("era-2019", "cpu", None),
        ("era-2019-turing", "cuda", "7.5"),
    ],
)
def test_an_image_that_is_named_is_taken_and_of_a_study_s_own_no_other_is_chosen(name, device, capability):
    taken = choose_image(IMAGES, device, capability=capability, driver="580.65", name=name)
    assert (taken.name, taken.device) == (name, device)
    assert IMAGES.image(name).by_name_alone == name.startswith("era-2019")
    assert choose_image(IMAGES, device, capability=capability).name in ("cpu", "cuda", "cuda126")


@pytest.mark.parametrize(
    ("name", "device", "capability", "said"),
    [
        ("cuda", "cuda", "6.1", "image 'cuda' serves .*, and this card is sm_61; leave --image out"),
        ("rocm", "cpu", None, "image 'rocm' is for 'rocm' devices, and this line runs on 'cpu'"),
        ("era-2019", "cuda", "9.0", "image 'era-2019' serves .*, and this card is sm_90; leave --image out"),
        ("era-2019", "cuda", "7.5", "'era-2019' does not serve sm_75: .*image 'era-2019-turing' has"),
        ("era-2019", "rocm", None, "image 'era-2019' is for 'cuda' and 'cpu' devices, and this line runs on"),
        (None, "rocm", "gfx906", "and this card is gfx906; "),
        (None, "rocm", "gfx90", "and this card is gfx90; "),
    ],
)
def test_an_image_that_does_not_serve_a_card_is_refused_and_never_swapped(name, device, capability, said):
    with pytest.raises(NoDevice, match=said):
        choose_image(IMAGES, device, capability=capability, name=name)


def test_an_image_that_is_passed_over_is_in_no_answer_to_a_card_that_none_serves(clone: Path):
    change(clone, "images.toml", "name_alone = true", "name_alone = false")
    alone, among = IMAGES, load_images(clone)
    for images, there in ((alone, False), (among, True)):
        with pytest.raises(NoDevice) as refused:
            choose_image(images, "cuda", capability="3.0")
        assert ("era-2019" in str(refused.value)) == there
