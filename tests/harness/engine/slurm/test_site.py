"""Site profiles."""

from __future__ import annotations

import pytest

from harness.engine.slurm.site import Site, load_site
from harness.errors import PlanError


def written(folder, text):
    path = folder / "ours.toml"
    path.write_text(text)
    return str(path)


def test_a_clone_without_a_profile_asks_its_site_for_nothing(tmp_path):
    assert load_site(tmp_path, None) == Site()


def test_the_clone_s_own_profile_is_taken_where_none_is_named(tmp_path):
    (tmp_path / "site.toml").write_text('partition = "gpu"\n')
    assert load_site(tmp_path, None).partition == "gpu"


def test_a_profile_that_is_named_and_not_there_is_refused(tmp_path):
    with pytest.raises(PlanError, match=r"no site profile 'elsewhere\.toml'"):
        load_site(tmp_path, "elsewhere.toml")
    with pytest.raises(PlanError, match="names no user of this machine"):
        load_site(tmp_path, "~nobody-has-this-name/site.toml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('partion = "gpu"', "ours.toml: 'partion': unknown key"),
        ('runtime = "apptainer"', "ours.toml: 'runtime': unknown key"),
        ('account = "a\\nb"', "ours.toml: 'account': 'a\\nb' holds a line break"),
        ('lines = ["constraint=a100"]', "'lines 1': 'constraint=a100' is no option of sbatch"),
        ('time_limit = "soon"', "'time_limit': 'soon' is no length of time"),
        ("partition = ", "ours.toml is not TOML"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(tmp_path, text, words):
    with pytest.raises(PlanError) as refused:
        load_site(tmp_path, written(tmp_path, text))
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
