"""Files that people save with other systems' editors, and users without a home."""

from __future__ import annotations

import codecs

import pytest

from harness import settings
from harness.data.fetch import default_folder
from harness.engine.venv import find_python
from harness.errors import MachineError, PlanError, UserError
from harness.machine.fingerprint import user_state_folder
from harness.plan import plan_file
from report.buying.purchase import parse_purchase

TEXT = 'plan = "desk"\n'


def test_the_mark_that_windows_editors_put_first_changes_nothing(tmp_path):
    (tmp_path / "gpudyno.toml").write_bytes(codecs.BOM_UTF8 + TEXT.encode())
    assert settings.load_settings(tmp_path, {}, {}).plan == "desk"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "latin-1"])
def test_another_encoding_is_named_as_such_and_saving_it_again_helps(tmp_path, encoding):
    text = f"# ü\n{TEXT}"
    (tmp_path / "gpudyno.toml").write_bytes(text.encode(encoding))
    with pytest.raises(PlanError, match=r"gpudyno\.toml is not UTF-8.*save it again as UTF-8"):
        settings.load_settings(tmp_path, {}, {})
    with pytest.raises(UserError, match="is not UTF-8"):
        parse_purchase(text.encode(encoding))
    (tmp_path / "gpudyno.toml").write_bytes(text.encode())
    assert settings.load_settings(tmp_path, {}, {}).plan == "desk"


def test_a_user_without_a_home_is_told_what_to_set_and_setting_it_helps(monkeypatch, tmp_path):
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "GPUDYNO_CACHE", "GPUDYNO_STATE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "nowhere")
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    for folder, variable in ((default_folder, "GPUDYNO_CACHE"), (user_state_folder, "GPUDYNO_STATE")):
        with pytest.raises(MachineError, match=f"HOME is not set.*set HOME, or {variable}"):
            folder()
        monkeypatch.setenv(variable, str(tmp_path))
        assert folder().is_relative_to(tmp_path)
    assert find_python("2.99") is None


def test_a_data_set_that_nobody_knows_is_refused_when_the_plan_is_read(tmp_path):
    (tmp_path / "plans").mkdir()
    measure = (
        '[[measure]]\nworkload = "word_lm"\nprotocol = "published/1"\nmodel = "LSTM"\n'
        'precision = "fp32-ieee"\nbatch_size = 20\ndata_mode = "device"\ndata = "cifar100"\n'
    )
    (tmp_path / "plans" / "mine.toml").write_text(f'name = "mine"\ntitle = "x"\n{measure}')
    with pytest.raises(PlanError, match=r"called 'cifar100'; take one of cifar-100, .*chestxray"):
        plan_file.load_plan(tmp_path, "mine")
