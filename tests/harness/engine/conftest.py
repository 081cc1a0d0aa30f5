"""The engines that GPUDYNO_TEST_DOCKER and GPUDYNO_TEST_PODMAN name, as DOCKER_HOST would."""

from __future__ import annotations

import docker
import pytest

from harness.engine.docker import DockerEngine
from harness.image.spec import BuildSettings
from tests.helpers.engine_bench import ENGINES, SESSION, Bench, closed, connection
from tests.helpers.fake_image import NAME, imported, make


@pytest.fixture(scope="session")
def rootfs(tmp_path_factory):
    return make(tmp_path_factory.mktemp("rootfs") / "rootfs.tar")


@pytest.fixture(scope="module", params=ENGINES)
def imported_base(request, rootfs):
    found = connection(request.param)
    api = docker.APIClient(base_url=found.host, timeout=60, version=found.api_version)
    yield found, api, imported(api, rootfs, podman=request.param == "podman")
    for image in api.images():
        if any(NAME in tag or "gpudyno-tiny" in tag for tag in image.get("RepoTags") or ()):
            api.remove_image(image["Id"], force=True)
    closed(api)


@pytest.fixture
def bench(imported_base, tmp_path):
    found, api, base = imported_base
    tmp_path.chmod(0o755)
    engine = DockerEngine(found, BuildSettings(root=tmp_path / "clone", base=base))
    yield Bench(engine, api, base, tmp_path)
    for handle in engine.leftovers(SESSION):
        engine.forget(handle, tmp_path)
    closed(engine)
