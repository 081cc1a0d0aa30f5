"""Images that a real engine builds: once, without a secret in them, or a user's own."""

from __future__ import annotations

import dataclasses
import json
import shutil
import time
from pathlib import Path

import pytest

from harness.engine.docker import DockerEngine
from harness.engine.image_build import find_client
from harness.errors import MachineError, NoEngine, NotBuilt
from harness.image.images import Image
from harness.image.spec import BuildSettings
from tests.helpers import ROOT
from tests.helpers.checks import require
from tests.helpers.engine_bench import Bench, closed
from tests.helpers.fake_image import contents

SECRET = "https://user:3f9d1c77-not-in-any-layer@index.example/simple"

DOCKERFILE = """\
ARG BASE
FROM ${BASE}
COPY docker/steps.sh /step.py
RUN --mount=type=secret,id=pipconf --mount=type=secret,id=proxy ["python", "/step.py"]
"""

STEP = """\
import hashlib, sys
from pathlib import Path
seen = "".join(Path("/run/secrets", name).read_text() for name in ("pipconf", "proxy"))
Path("/seen.txt").write_text(hashlib.sha256(seen.encode()).hexdigest())
print("the step ran")
"""


def clone(bench: Bench, step: str) -> tuple[Image, DockerEngine]:
    """A clone with one tiny image, and the engine set up to build it with secrets."""
    root = bench.folder / "clone"
    folder = root / "docker" / "tiny"
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text(DOCKERFILE)
    (folder / "lock.txt").write_text("# nothing\n")
    (root / "docker" / "steps.sh").write_text(step)
    shutil.copy(ROOT / ".dockerignore", root)
    (bench.folder / "pip.conf").write_text(f"[global]\nindex-url = {SECRET}\n")
    image = Image(
        name="tiny",
        device="cpu",
        dockerfile="tiny/Dockerfile",
        base="debian:bookworm-slim",
        base_digest="sha256:" + "0" * 64,
        base_digest_verified=False,
        platform="linux/amd64",
        pythons=("3.11",),
        requirements="tiny/lock.txt",
        lock="tiny/lock.txt",
    )
    settings = BuildSettings(
        root=root,
        base=bench.base,
        secrets={"pipconf": bench.folder / "pip.conf"},
        proxy={"HTTPS_PROXY": SECRET},
        network="host",
    )
    connection = bench.engine.connection
    try:
        find_client(connection)
    except NoEngine as error:
        require(connection.kind, False, error.problem)
    return image, DockerEngine(connection, settings)


def test_an_image_is_built_once_and_its_secrets_stand_in_no_layer(bench):
    image, engine = clone(bench, STEP + f"print({time.time_ns()})\n")
    with pytest.raises(NotBuilt, match="image 'tiny'"):
        engine.built_environment(image)
    lines: list[str] = []
    environment = engine.build(image, lines.append).environment
    assert any("the step ran" in line for line in lines)
    assert (environment.engine, environment.base_substituted, environment.pinned) == (
        engine.name,
        True,
        False,
    )
    assert environment.unpinned_because == (
        f"its base is {bench.base.rpartition('/')[2]}, not the pinned one",
    )
    again: list[str] = []
    assert engine.build(image, again.append).environment == environment
    assert again == []
    labels = bench.api.inspect_image(environment.image_id)["Config"]["Labels"]
    assert labels["dev.gpudyno.image"] == image.name
    parts = list(contents(bench.api, environment.image_id))
    assert any(b"seen.txt" in part for part in parts), "the layer with what the step wrote was looked through"
    assert not any(b"not-in-any-layer" in part for part in parts)
    assert "not-in-any-layer" not in json.dumps(bench.api.history(environment.image_id))
    closed(engine)


def test_a_build_that_fails_says_why_and_where_its_log_lies(bench):
    image, engine = clone(bench, "print('no wheel fits')\nraise SystemExit(3)\n")
    with pytest.raises(
        MachineError, match="image 'tiny' cannot be built: a step of it failed, no wheel fits; "
    ) as caught:
        engine.build(image, lambda line: None)
    log = Path(str(caught.value).rpartition(" ")[2])
    assert "no wheel fits" in log.read_text()
    closed(engine)


OWN_DOCKERFILE = """
ARG BASE
FROM ${BASE}
COPY docker/tiny/start /opt/mine/start
ARG ENVIRONMENT
"""
OWN_PROGRAM = """#!/usr/bin/python
import json, os, sys
asked = json.load(open(os.environ["GPUDYNO_IN"] + "/trial.json"))["asked"]
json.dump([sys.argv, asked["workload"]], open(os.environ["GPUDYNO_OUT"] + "/measurement.json", "w"))
"""


def test_an_image_of_one_s_own_starts_trials_by_its_own_program_and_needs_no_workload_of_ours(bench):
    image, engine = clone(bench, "")
    folder = bench.folder / "clone" / "docker" / "tiny"
    (folder / "Dockerfile").write_text(OWN_DOCKERFILE)
    (folder / "start").write_text(OWN_PROGRAM)
    (folder / "start").chmod(0o755)
    built = engine.build(image, lambda line, *rest: None).environment
    spec = dataclasses.replace(
        bench.spec("", program="/opt/mine/start", own_workloads="mine"), image_id=built.image_id
    )
    (bench.folder / "in" / "trial.json").write_text(spec.trial.model_dump_json())
    ended = bench.ended(engine.start(spec))
    assert ended.code == 0, ended.log
    found = json.loads((bench.folder / "out" / "measurement.json").read_text())
    assert found == [["/opt/mine/start", "/workloads/mine/word_lm.py"], "word_lm"]
    closed(engine)
