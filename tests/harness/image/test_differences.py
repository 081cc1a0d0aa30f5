"""What differs between an environment and its lock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.image.lock import differences, normal_name

VERSIONS = st.from_regex(r"[0-9]{1,2}(\.[0-9]{1,2}){0,2}", fullmatch=True)
PACKAGES = st.dictionaries(st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True), VERSIONS, max_size=8)


@given(PACKAGES, st.sampled_from(["", "+cpu", "+cu130"]))
def test_an_environment_that_is_its_lock_differs_in_nothing(packages: dict[str, str], build: str):
    assert differences(packages, {name: version + build for name, version in packages.items()}) == ()


@given(PACKAGES, PACKAGES)
def test_every_difference_is_named_once(locked: dict[str, str], installed: dict[str, str]):
    tools = {"pip", "setuptools", "wheel"}
    wrong = {name for name in locked if installed.get(name) != locked[name]}
    extra = installed.keys() - locked.keys() - tools
    named = [clause.split()[0] for clause in differences(locked, installed)]
    assert sorted(named) == sorted(wrong | extra)


@pytest.mark.parametrize(
    ("locked", "installed", "said"),
    [
        ("2.13.0+cpu", "2.13.0", "torch is 2.13.0 where 2.13.0+cpu is locked"),
        ("2.13.0+cpu", "2.13.0+cu130", "torch is 2.13.0+cu130 where 2.13.0+cpu is locked"),
        ("2.13.0", "2.13.1+cpu", "torch is 2.13.1+cpu where 2.13.0 is locked"),
        ("2.13.0", None, "torch 2.13.0 is locked and not installed"),
        (None, "2.13.0", "torch 2.13.0 is installed and not locked"),
    ],
)
def test_what_differs_is_said_in_one_clause(locked: str | None, installed: str | None, said: str):
    pinned, found = ({"torch": version} if version else {} for version in (locked, installed))
    assert differences(pinned, found) == (said,)


def test_what_a_base_brings_besides_is_no_difference():
    assert (
        differences({"torch": "2.13.0"}, {"torch": "2.13.0+rocm10.0.0", "apex": "1.13"}, over_base=True) == ()
    )


def test_names_are_compared_as_the_index_normalises_them():
    assert normal_name("Typing_Extensions") == "typing-extensions"
    assert differences({"nvidia-ml-py": "13.1"}, {"nvidia_ml.py": "13.1"}) == ()
