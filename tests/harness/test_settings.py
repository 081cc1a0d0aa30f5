from __future__ import annotations

import pytest

from harness import settings, units
from harness.errors import PlanError

BOTH = ("power-limit", "locked-clocks")


@pytest.mark.parametrize(
    ("file", "environ", "found"),
    [
        ("", {}, {"plan": "quick", "device": None}),
        # The containers' own variables, and those of the tests, are no settings.
        ("", {"GPUDYNO_IN": "/in", "GPUDYNO_TEST_DATA": "x"}, {"device": None}),
        ('device = "0"\nlabel = "box"', {"GPUDYNO_DEVICE": "1"}, {"device": "1", "label": "box"}),
        ("", {"GPUDYNO_DECLARED": "power-limit, locked-clocks"}, {"declared": BOTH}),
        ('declared = ["power-limit", "locked-clocks"]', {}, {"declared": BOTH}),
    ],
)
def test_an_option_wins_over_a_variable_and_a_variable_over_the_file(tmp_path, file, environ, found):
    (tmp_path / "gpudyno.toml").write_text(file)
    loaded = settings.load_settings(tmp_path, environ, {})
    assert {name: getattr(loaded, name) for name in found} == found
    assert settings.load_settings(tmp_path, environ | {"GPUDYNO_PLAN": "x"}, {"plan": "own"}).plan == "own"


@pytest.mark.parametrize(
    ("file", "environ", "words"),
    [
        ('paln = "quick"', {}, r"gpudyno\.toml: 'paln': unknown key"),
        ("", {"GPUDYNO_DEVCE": "0"}, r"GPUDYNO_DEVCE is no setting.*GPUDYNO_DEVICE"),
        ("", {"GPUDYNO_DECLARED": "water-cooled"}, "declared"),
    ],
)
def test_a_setting_that_there_is_not_is_refused_with_its_place(tmp_path, file, environ, words):
    (tmp_path / "gpudyno.toml").write_text(file)
    with pytest.raises(PlanError, match=words):
        settings.load_settings(tmp_path, environ, {})


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30m", 1800), ("8h", 28800), ("1h30m", 5400), ("1.5h", 5400)]
)
def test_a_budget_is_a_length_of_time(text, seconds):
    assert units.parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "8", "eight hours", "8h!", "-3h"])
def test_a_budget_that_is_none_is_refused(text):
    with pytest.raises(PlanError, match="write it as 30m, 8h or 1h30m"):
        units.parse_seconds(text)
