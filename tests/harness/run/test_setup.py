"""From a line's settings to its engine and its devices, on machines that are made up."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from harness.doctor.diagnosis import find_obstacles
from harness.engine import choose as engine_choice
from harness.engine import image_build
from harness.engine.facts import Client
from harness.engine.venv import VenvEngine
from harness.errors import NoDevice, NoNetwork
from harness.files import unit_hash
from harness.image.lock import lock_sha256
from harness.machine.devices import select_devices
from harness.record import Cpu, Gpu, Machine
from harness.run import setup as run_setup
from harness.run.obstacles import look_around
from harness.run.setup import RunSetup
from harness.settings import Settings
from tests.helpers import ROOT
from tests.helpers.fake_engine import DOCKER, answering

UUIDS = [f"GPU-{n}f2a1b2c-1111-2222-3333-123456789abc" for n in range(2)]


@pytest.fixture(autouse=True)
def _client(monkeypatch):
    monkeypatch.setattr(image_build, "find_client", lambda connection: Client("docker", True, {}))


def card(index: int, *, vendor: str = "NVIDIA", architecture: str = "sm_89", driver: str = "580.65") -> Gpu:
    return Gpu(
        index=index, vendor=vendor, name="a card", architecture=architecture, driver=driver,
        memory_bytes=24 * 2**30, unit=unit_hash(UUIDS[index]),
    )  # fmt: skip


def prepared(*cards: Gpu, environ: dict[str, str] | None = None, of: str = "x86_64", **settings) -> RunSetup:
    machine = Machine(id="0" * 12, label="x", system="Linux", architecture=of, cpu=Cpu(), gpus=cards)
    selection = select_devices(
        machine, None, uuids={unit_hash(uuid): uuid for uuid in UUIDS}, environ=environ
    )
    given = Settings(plan="card", **settings)
    return run_setup.prepare_run(
        ROOT, given, {"DOCKER_HOST": "unix:///nowhere", **(environ or {})}, (machine, selection)
    )


def test_an_interpreter_of_the_user_s_may_serve_a_card_that_no_image_serves():
    old = card(0, architecture="sm_35", driver="390.10")
    with pytest.raises(NoDevice):
        prepared(old)
    setup = prepared(old, python="/usr/bin/python3")
    assert setup.image.device == "cuda"
    assert any("your interpreter's own framework is taken" in note for note in setup.notes)


def test_an_image_that_is_named_is_taken_where_it_serves_the_card_and_refused_where_not():
    assert prepared(card(0)).image.name == "cuda"
    assert prepared(card(0), image="cuda126", engine="venv").image.name == "cuda126"
    with pytest.raises(NoDevice, match="image 'cpu' is for 'cpu' devices, and this line runs on 'cuda'"):
        prepared(card(0), image="cpu")


def test_inside_an_image_that_serves_the_card_no_other_is_asked_for(monkeypatch):
    for module in (run_setup, engine_choice):
        monkeypatch.setattr(module, "image_identity", lambda: {"image": "cuda126"})
    assert prepared(card(0)).image.name == "cuda126"


def test_an_image_of_a_contributor_s_is_built_by_its_name_without_a_look_at_the_devices(
    tmp_path, monkeypatch
):
    shutil.copytree(ROOT / "docker", tmp_path / "docker")
    shutil.copytree(ROOT / "docker" / "cuda", tmp_path / "docker" / "mine")
    pins = tmp_path / "docker" / "images.toml"
    table = pins.read_text().split("[images.cuda]")[1].split("[images.cuda.apex]")[0]
    pins.write_text(pins.read_text() + "\n[images.mine]" + table.replace("cuda/", "mine/"))
    monkeypatch.setattr(run_setup, "look_at_machine", None)
    settings = Settings(image="mine", engine="venv", device="7")
    (image,), engine, _ = run_setup.prepare_build(tmp_path, settings, {})
    assert image.name == "mine"
    assert engine.expected_environment(image).environment.lock_sha256 == lock_sha256(
        tmp_path, "mine/lock.txt"
    )


@pytest.mark.parametrize("vendor", ["NVIDIA", "AMD"])
def test_a_trial_without_a_container_sees_its_cards_through_one_variable_alone(vendor):
    name = "HIP_VISIBLE_DEVICES" if vendor == "AMD" else "CUDA_VISIBLE_DEVICES"
    architecture = "gfx942" if vendor == "AMD" else "sm_89"
    cards = [card(at, vendor=vendor, architecture=architecture) for at in range(2)]
    own = {"python": sys.executable} if vendor == "AMD" else {}
    setup = prepared(*cards, environ={name: "1", "OMP_NUM_THREADS": "2"}, engine="venv", **own)
    assert [gpu.index for gpu in setup.selection.gpus] == [1]
    assert setup.passed == {"OMP_NUM_THREADS": "2"}


def at(path: Path) -> dict[str, str]:
    return {"DOCKER_HOST": f"unix://{path}"}


def unspecified(tmp_path: Path) -> dict[str, object]:
    """Docker 28.2 and newer has CDI switched on; here no specification names a card."""
    return {**DOCKER, "info": {"Runtimes": {"runc": {}}, "CDISpecDirs": [str(tmp_path / "none")]}}


def test_an_engine_that_gives_no_card_is_left_before_anything_is_built(tmp_path):
    with answering(tmp_path / "s", unspecified(tmp_path)):
        setup = prepared(card(0), environ=at(tmp_path / "s"))
        asked = look_around(prepared(card(0), environ=at(tmp_path / "s"), engine="docker"))
    assert any("no CDI specification that Docker" in met.what for met in find_obstacles(asked))
    assert isinstance(setup.engine, VenvEngine)
    assert any("no CDI specification" in note for note in setup.notes)


def test_on_another_processor_than_the_images_trials_run_in_a_virtual_environment(tmp_path):
    with answering(tmp_path / "s", DOCKER):
        locked = prepared(card(0), environ=at(tmp_path / "s"), of="aarch64")
        setup = prepared(card(0), environ=at(tmp_path / "s"), of="aarch64", image="cuda126")
    assert not isinstance(locked.engine, VenvEngine) and locked.image.platform_on("aarch64") == "linux/arm64"
    assert isinstance(setup.engine, VenvEngine)
    assert any("is for linux/amd64, and this machine is aarch64" in note for note in setup.notes)


def test_of_two_equal_cards_a_trial_on_one_is_given_and_shown_the_first_alone(tmp_path):
    with answering(tmp_path / "s", DOCKER):
        setup = prepared(card(0), card(1), environ=at(tmp_path / "s"))
        given = run_setup.device_request(setup.selection).part(1)
    assert (len(setup.selection.gpus), given.ids) == (2, (UUIDS[0],))


def test_an_engine_that_cannot_build_is_left_for_a_virtual_environment_unless_it_was_asked_for(tmp_path):
    with answering(tmp_path / "s", DOCKER):
        found = prepared(environ=at(tmp_path / "s"))
        error = NoNetwork("image 'cpu' cannot be built: its registry cannot be reached", remedy="wait")
        venv, note = engine_choice.fall_back_to_venv(ROOT, found.settings, found.image, found.engine, error)
        assert isinstance(venv, VenvEngine)
        assert error.problem in note
        asked = found.settings.model_copy(update={"engine": "docker"})
        with pytest.raises(NoNetwork, match="cannot be reached; wait"):
            engine_choice.fall_back_to_venv(ROOT, asked, found.image, found.engine, error)
        program = found.image.model_copy(update={"program": "horovodrun"})
        with pytest.raises(NoNetwork):
            engine_choice.fall_back_to_venv(ROOT, found.settings, program, found.engine, error)
