"""Trials in a SIF: the commands as written down, and as a stand-in for Apptainer's program is given them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from harness.engine import apptainer
from harness.engine.apptainer import ApptainerEngine, exec_line, find_client, require_client
from harness.engine.container import DeviceRequest, RunSpec, User
from harness.errors import DataError, MachineError, NoEngine, NotBuilt
from harness.image.images import load_images
from harness.image.spec import BuildSettings
from harness.run.setup import prepare_run
from harness.settings import Settings
from tests.helpers import ROOT
from tests.helpers.checks import golden, golden_difference
from tests.helpers.clone import make as make_clone
from tests.helpers.engine_bench import CPU, exit_of, laid_out, run_spec

UNITS = ("GPU-11111111-2222-3333-4444-555555555555", "GPU-66666666-7777-8888-9999-000000000000")
PROGRAM = """#!{python}
import json, os, shutil, sys, time
from pathlib import Path

verb, *words = sys.argv[1:]
if verb == "--version":
    print("apptainer version 0-stand-in")
elif verb == "build":
    sif, source = words
    archive = source.removeprefix("docker-archive:")
    if b"broken" in Path(archive).read_bytes():
        sys.exit("FATAL: a layer is broken")
    shutil.copy(archive, sif)
else:
    found = {{"words": [verb, *words], "variables": dict(os.environ)}}
    out = Path(os.environ["GPUDYNO_OUT"])
    out.joinpath("found.json").write_text(json.dumps(found))
    while not out.joinpath("may-end").exists():
        time.sleep(0.01)
    print("looked around")
"""
"""Stands in for Apptainer's program: its "SIF" is the archive, and a trial says how it was started."""


def spec(folder: Path, device: DeviceRequest = CPU, **changes: Any) -> RunSpec:
    return run_spec(folder, device, data="a set, with a comma", **{"user": User(1000, 1000), **changes})


ASKED = {
    "cpu": (CPU, False),
    "cpu_root": (CPU, True),
    "cuda": (DeviceRequest("cuda", ids=UNITS), False),
    "cuda_by_index": (DeviceRequest("cuda", indices=(1,)), False),
    "rocm": (DeviceRequest("rocm", ids=("0123456789abcdef",), groups=(44, 993)), False),
}


def line_of(name: str) -> str:
    device, root = ASKED[name]
    asked = spec(
        Path("/scratch/trial"),
        device,
        user=User(10001 if root else 1000, 1000),
        memory_bytes=2**30 if root else None,
        sif=Path("/clone/images/cpu.sif"),
    )
    words, variables = exec_line(asked, "apptainer", root=root)
    both = {"command": " ".join(words).split(" --"), "variables": variables}
    return json.dumps(both, indent=1) + "\n"


def test_a_trial_in_a_sif_is_asked_for_exactly_as_written_down():
    golden("apptainer_cpu.json", line_of("cpu"))


@pytest.mark.parametrize(
    ("name", "base"),
    [("cpu_root", "cpu"), ("cuda", "cpu"), ("cuda_by_index", "cuda"), ("rocm", "cpu")],
)
def test_a_trial_in_a_sif_differs_from_another_exactly_as_written_down(name, base):
    golden_difference(f"apptainer_{name}", line_of(name), line_of(base))


def archive_of(path: Path, layer: bytes = b"a layer") -> str:
    """What `docker save` writes of an image of one layer; gives back the image's digest."""
    configuration = json.dumps({"architecture": "amd64", "os": "linux", "config": {}}).encode()
    digest = hashlib.sha256(configuration).hexdigest()
    manifest = [{"Config": f"{digest}.json", "RepoTags": ["a:1"], "Layers": ["layer.tar"]}]
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name, content in (
            (f"{digest}.json", configuration),
            ("manifest.json", json.dumps(manifest).encode()),
            ("layer.tar", layer),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return f"sha256:{digest}"


@pytest.fixture
def engine(tmp_path):
    root = make_clone(tmp_path / "clone")
    program = tmp_path / "bin" / "apptainer"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    return ApptainerEngine(root, str(program), BuildSettings(root=root, base="a-base:1"))


def quiet(line: str, done: int = 0, total: int | None = None) -> None:
    pass


def brought(engine: ApptainerEngine) -> str:
    tag = engine.settings.spec(load_images(ROOT).image("cpu")).tag
    return archive_of(apptainer.archive_path(engine.root, tag))


def test_a_trial_runs_in_a_sif_of_the_image_with_its_own_variables_alone(engine, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "the user's own")
    image = load_images(ROOT).image("cpu")
    digest = brought(engine)
    built = engine.build(image, quiet)
    assert built.environment.image_id == digest
    assert built.environment.sif_sha256 == hashlib.sha256(built.sif.read_bytes()).hexdigest()
    assert (built.environment.engine, built.environment.engine_version) == ("apptainer", "0-stand-in")
    work = tmp_path / "work"
    asked = laid_out(spec(work, sif=built.sif, user=engine.user(), passed={"HSA_X": "a, b"}))
    handle = engine.start(asked)
    assert (work / "home").is_dir() and (work / "tmp").is_dir()
    assert engine.find("", work) == handle
    (asked.folders.output / "may-end").touch()
    state = exit_of(engine, handle, work)
    assert (state.code, state.log) == (0, "looked around\n")
    found = json.loads((asked.folders.output / "found.json").read_text())
    words, variables = exec_line(asked, engine.program, root=os.geteuid() == 0)
    assert (engine.program, *found["words"]) == words
    assert variables.items() <= found["variables"].items() and "SECRET" not in found["variables"]
    engine.forget(handle, work)
    assert not (work / "home").exists()


def test_a_sif_that_is_not_the_file_that_was_made_is_refused(engine):
    image = load_images(ROOT).image("cpu")
    brought(engine)
    built = engine.build(image, quiet)
    with built.sif.open("ab") as file:
        file.write(b"x")
    with pytest.raises(DataError, match="is not the file that was made"):
        engine.built_environment(image)


def test_without_a_sif_or_an_archive_the_line_that_brings_one_is_named(engine):
    image = load_images(ROOT).image("cpu")
    with pytest.raises(NotBuilt, match="docker save"):
        engine.build(image, quiet)
    brought(engine)
    with pytest.raises(NotBuilt, match="invoke build"):
        engine.built_environment(image)


def test_a_sif_that_cannot_be_made_leaves_nothing_nor_what_a_killed_build_left_and_says_why(engine):
    image = load_images(ROOT).image("cpu")
    tag = engine.settings.spec(image).tag
    path = apptainer.archive_path(engine.root, tag)
    archive_of(path, b"broken")
    sif = apptainer.sif_path(engine.root, tag)
    (sif.parent / f".{sif.name}.killed.part").write_bytes(b"half of one")
    with pytest.raises(MachineError, match="could not make a SIF of"):
        engine.build(image, quiet)
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    path.write_bytes(b"no archive")
    with pytest.raises(DataError, match="is no archive of one image"):
        engine.build(image, quiet)


def test_singularity_is_taken_where_apptainer_is_not_and_nothing_where_neither_is(tmp_path):
    with pytest.raises(NoEngine, match="neither 'apptainer' nor 'singularity'"):
        require_client({"PATH": str(tmp_path)})
    (tmp_path / "singularity").write_text("")
    (tmp_path / "singularity").chmod(0o755)
    assert find_client({"PATH": str(tmp_path)}) == str(tmp_path / "singularity")


def test_apptainer_is_taken_by_its_name_alone(engine, tmp_path):
    environ = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "DOCKER_HOST": f"unix://{tmp_path}/none"}
    settings = Settings(plan="mine", device="cpu", base="a-base:1")
    assert prepare_run(engine.root, settings, environ).engine.name == "venv"
    brought(engine)
    assert prepare_run(engine.root, settings, environ).engine.name == "venv"
    named = settings.model_copy(update={"engine": "apptainer"})
    assert prepare_run(engine.root, named, environ).engine.name == "apptainer"
