from __future__ import annotations

import pytest

from harness import settings, units
from harness.errors import PlanError


def test_an_option_wins_over_a_variable_and_a_variable_over_the_file(tmp_path):
    (tmp_path / "gpudyno.toml").write_text('plan = "from-file"\ndevice = "0"\nlabel = "box"\n')
    environ = {"GPUDYNO_PLAN": "from-variable", "GPUDYNO_DEVICE": "1"}
    found = settings.load(tmp_path, environ, {"plan": "from-option"})
    assert (found.plan, found.device, found.label) == ("from-option", "1", "box")


def test_without_anything_the_plan_is_quick(tmp_path):
    assert settings.load(tmp_path, {}, {}).plan == "quick"


def test_an_unknown_key_in_the_users_file_is_named_with_the_file(tmp_path):
    (tmp_path / "gpudyno.toml").write_text('paln = "quick"\n')
    with pytest.raises(PlanError, match=r"gpudyno\.toml: 'paln': unknown key"):
        settings.load(tmp_path, {}, {})


def test_a_misspelt_variable_is_refused_with_those_there_are(tmp_path):
    with pytest.raises(PlanError, match=r"GPUDYNO_DEVCE is no setting.*GPUDYNO_DEVICE"):
        settings.load(tmp_path, {"GPUDYNO_DEVCE": "0"}, {})


def test_the_containers_own_variables_are_no_settings(tmp_path):
    assert settings.load(tmp_path, {"GPUDYNO_IN": "/in", "GPUDYNO_TEST_DATA": "x"}, {}).device is None


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30m", 1800), ("8h", 28800), ("1h30m", 5400), ("1.5h", 5400)]
)
def test_a_budget_is_a_length_of_time(text, seconds):
    assert units.seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "8", "eight hours", "8h!", "-3h"])
def test_a_budget_that_is_none_is_refused(text):
    with pytest.raises(PlanError, match="write it as 30m, 8h or 1h30m"):
        units.seconds_of(text)


def test_what_is_declared_of_the_cards_is_a_list_in_a_variable_and_in_the_file(tmp_path):
    both = ("power-limit", "locked-clocks")
    assert settings.load(tmp_path, {"GPUDYNO_DECLARED": "power-limit, locked-clocks"}, {}).declared == both
    (tmp_path / "gpudyno.toml").write_text('declared = ["power-limit", "locked-clocks"]\n')
    assert settings.load(tmp_path, {}, {}).declared == both
    with pytest.raises(PlanError, match="declared"):
        settings.load(tmp_path, {"GPUDYNO_DECLARED": "water-cooled"}, {})
