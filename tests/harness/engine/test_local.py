"""Trials as plain processes."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from harness.engine import venv
from harness.engine.venv import VenvEngine, run_alternatives
from harness.errors import MachineError, NoEngine, NoSpace
from harness.image.spec import venv_steps
from harness.redact import find_leaks
from tests.helpers import ROOT
from tests.helpers.engine_bench import exit_of, laid_out, run_spec
from tests.helpers.images import IMAGES

WORKLOAD = """
import os, socket, tempfile
from pathlib import Path
folder = tempfile.mkdtemp()
socket.socket(socket.AF_UNIX).bind(folder + "/listener-12345678")
Path(os.environ["GPUDYNO_OUT"], "told").write_text(folder)
"""


def test_a_trial_s_loader_can_open_its_sockets_however_long_the_clone_s_path_is(tmp_path):
    work = tmp_path / ("long" * 20)
    spec = laid_out(run_spec(work, interpreter=Path(sys.executable)), WORKLOAD)
    engine = VenvEngine(tmp_path)
    handle = engine.start(spec)
    state = exit_of(engine, handle, work)
    assert state.code == 0, state.log
    told = Path((spec.folders.output / "told").read_text())
    assert told.is_relative_to(tempfile.gettempdir())
    engine.forget(handle, work)
    assert not told.exists()


def script(path: Path, line: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return path


def test_a_python_without_ensurepip_takes_another_or_uv_or_names_the_package(tmp_path, monkeypatch):
    image = IMAGES.image("cpu")
    says = 'echo "created not successfully because ensurepip is not available."; exit 1'
    bare = str(script(tmp_path / "bare" / "python3", says))
    monkeypatch.setattr(venv, "find_spec", lambda name: None)
    for found, taken in (("/usr/bin/other", "/usr/bin/other"), (None, sys.executable)):
        monkeypatch.setattr(venv, "find_python", lambda version, found=found: found)
        assert VenvEngine(ROOT)._find_interpreter(image) == taken

    with pytest.raises(NoEngine, match=r"'era-2019' is locked for Python 2.7, and none of it runs here"):
        VenvEngine(ROOT)._find_interpreter(IMAGES.image("era-2019").model_copy(update={"pythons": ("2.7",)}))

    def make() -> None:
        made = venv_steps(image, root=ROOT, venv=tmp_path / "made", interpreter=bare)[0]
        run_alternatives(made.label, made.alternatives, tmp_path / "log", lambda *_: None)

    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with pytest.raises(MachineError, match=r"has no ensurepip; install .*python3-venv\), or uv"):
        make()
    script(tmp_path / "programs" / "uv", "echo error: invalid peer certificate: UnknownIssuer; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path / 'programs'}:/usr/bin:/bin")
    with pytest.raises(
        MachineError, match=r"^virtual environment could not be installed: the certificate of"
    ):
        make()
    script(tmp_path / "programs" / "uv", 'mkdir -p "$6" && test "$5" = "' + bare + '"')
    monkeypatch.setenv("PATH", f"{tmp_path / 'programs'}:/usr/bin:/bin")
    make()
    assert (tmp_path / "made").is_dir()


def test_room_for_an_environment_is_asked_for_before_anything_is_fetched(tmp_path, monkeypatch):
    monkeypatch.setattr(venv, "free_bytes", lambda folder: 10**9)
    with pytest.raises(NoSpace, match=r"'cpu' as a virtual environment needs 11444 MiB .*953 .*/\.venvs'"):
        VenvEngine(ROOT).build(IMAGES.image("cuda").model_copy(update={"name": "cpu"}), print)


INHERITS = """
import json, os
from pathlib import Path
Path(os.environ["GPUDYNO_OUT"], "told").write_text(json.dumps(dict(os.environ)))
"""


def test_what_a_trial_inherits_is_in_its_record_and_other_libraries_are_not_pinned(tmp_path, monkeypatch):
    libraries, empty = tmp_path / "lib", tmp_path / "empty"
    for folder in (libraries, empty):
        folder.mkdir()
    (libraries / "libcudnn.so.9").touch()
    given = {"PATH": "/usr/bin:/opt/x/bin:/bin", "LD_PRELOAD": "/usr/lib/x.so", "TZ": "Europe/Berlin"}
    for name, value in {**given, "LD_LIBRARY_PATH": f"{empty}:/usr/lib/x"}.items():
        monkeypatch.setenv(name, value)
    spec = laid_out(run_spec(tmp_path, interpreter=Path(sys.executable)), INHERITS)
    engine = VenvEngine(ROOT)
    handle = engine.start(spec)
    state = exit_of(engine, handle, tmp_path)
    assert state.code == 0, state.log
    has = json.loads((spec.folders.output / "told").read_text())
    assert "LD_PRELOAD" not in has
    assert set(given) & set(has) == {"PATH", "TZ"}
    told = engine.expected_environment(IMAGES.image("cpu")).environment
    assert told.pinned
    assert told.inherited_variables == {
        "LD_LIBRARY_PATH": "withheld /usr/lib/x",
        "PATH": "/opt/x/bin",
        "TZ": "Europe/Berlin",
    }
    monkeypatch.setenv("LD_LIBRARY_PATH", str(libraries))
    told = engine.expected_environment(IMAGES.image("cpu")).environment
    assert (told.pinned, told.unpinned_because) == (
        False,
        ("LD_LIBRARY_PATH leads to libraries that no lock names",),
    )
    assert find_leaks(told.model_dump_json()) == ()
    for name in ("LD_LIBRARY_PATH", "TZ"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert (
        "inherited_variables" not in engine.expected_environment(IMAGES.image("cpu")).environment.model_dump()
    )


def test_what_builds_a_source_finds_the_programs_of_its_environment_before_the_machine_s(tmp_path):
    programs, log = tmp_path / "bin", tmp_path / "log"
    programs.mkdir()
    (programs / "uname").write_text("#!/bin/sh\necho one of the environment\n")
    (programs / "uname").chmod(0o755)
    run_alternatives("packages", (("sh", "-c", "uname"),), log, lambda *_: None, programs=programs)
    assert "one of the environment" in log.read_text()


def test_no_setting_of_pip_leads_packages_out_of_an_environment(tmp_path, monkeypatch):
    for name in ("PIP_TARGET", "PIP_PREFIX", "PIP_USER"):
        monkeypatch.setenv(name, str(tmp_path))
    log = tmp_path / "log"
    run_alternatives("packages", (("env",),), log, lambda *_: None)
    told = log.read_text()
    assert "PIP_USER=0" in told and "PIP_TARGET" not in told and "PIP_PREFIX" not in told


DETACHED = """
import os, subprocess, sys
from pathlib import Path
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"], start_new_session=True)
Path(os.environ["GPUDYNO_OUT"], "told").write_text(str(child.pid))
"""


def test_what_a_trial_left_running_in_a_session_of_its_own_ends_with_it(tmp_path):
    spec = laid_out(run_spec(tmp_path, interpreter=Path(sys.executable)), DETACHED)
    engine = VenvEngine(tmp_path)
    handle = engine.start(spec)
    exit_of(engine, handle, tmp_path)
    child = int((spec.folders.output / "told").read_text())
    assert psutil.pid_exists(child)
    engine.forget(handle, tmp_path)
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE
