"""Which image serves a card, and what is said where none does."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import NoDevice, UserError
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


def test_an_image_that_is_named_is_taken_or_refused_and_never_swapped_for_another():
    assert choose_image(IMAGES, "cuda", capability="8.9", driver="580.65", name="cuda126").name == "cuda126"
    with pytest.raises(NoDevice, match=r"image 'cuda' serves .*, and this card is sm_61; leave --image out"):
        choose_image(IMAGES, "cuda", capability="6.1", name="cuda")
    with pytest.raises(NoDevice, match="image 'rocm' is for 'rocm' devices, and this line runs on 'cpu'"):
        choose_image(IMAGES, "cpu", name="rocm")
    with pytest.raises(UserError, match="take one of cpu, cuda, cuda126, rocm"):
        choose_image(IMAGES, "cpu", name="tpu")


@pytest.mark.parametrize("capability", ["gfx906", "gfx900", "gfx1010", "gfx90"])
def test_a_target_that_rocm_dropped_is_told_so(capability: str):
    with pytest.raises(NoDevice, match=f"and this card is {capability}; "):
        choose_image(IMAGES, "rocm", capability=capability)


def test_a_study_s_own_stack_serves_its_card_and_a_cpu_where_it_is_named_and_is_never_chosen():
    assert IMAGES.image("era-2019").by_name_alone
    for device, capability in (("cuda", "7.0"), ("cuda", "6.1"), ("cpu", None)):
        assert choose_image(IMAGES, device, capability=capability).name != "era-2019"
        taken = choose_image(IMAGES, device, capability=capability, driver="410.48", name="era-2019")
        assert (taken.name, taken.device) == ("era-2019", device)
    with pytest.raises(
        NoDevice, match=r"image 'era-2019' serves .*, and this card is sm_90; leave --image out"
    ):
        choose_image(IMAGES, "cuda", capability="9.0", name="era-2019")
    with pytest.raises(NoDevice, match=r"'era-2019' does not serve sm_75: .*image 'era-2019-turing' has"):
        choose_image(IMAGES, "cuda", capability="7.5", name="era-2019")
    assert (
        choose_image(IMAGES, "cuda", capability="7.5", driver="410.48", name="era-2019-turing").device
        == "cuda"
    )
    with pytest.raises(
        NoDevice, match="image 'era-2019' is for 'cuda' and 'cpu' devices, and this line runs on"
    ):
        choose_image(IMAGES, "rocm", name="era-2019")


def test_an_image_that_is_passed_over_is_in_no_answer_to_a_card_that_none_serves(clone: Path):
    change(clone, "images.toml", "name_alone = true", "name_alone = false")
    alone, among = IMAGES, load_images(clone)
    for images, there in ((alone, False), (among, True)):
        with pytest.raises(NoDevice) as refused:
            choose_image(images, "cuda", capability="3.0")
        assert ("era-2019" in str(refused.value)) == there
