"""Docker Engine, or Podman through its Docker-compatible socket: trials as containers."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import docker.errors

from harness.engine import container
from harness.engine import image_build as building
from harness.engine.api_errors import engine_errors
from harness.engine.cdi import cdi_names
from harness.engine.container import LABEL, DeviceRequest, RunSpec, TrialFolders, User
from harness.engine.facts import Connection, EngineFacts, device_refusal, engine_facts
from harness.engine.interface import GONE, Built, Exit, Handle, Say
from harness.engine.local import LOG, log_tail, user_variables
from harness.engines import ENGINES, EngineName
from harness.errors import MachineError, NoDevice, NoEngine, NotBuilt
from harness.files import Files, need_room
from harness.gpu.cuda_start import (
    NOT_TRIED,
    START,
    START_SECONDS,
    CudaStart,
    read_start,
    silent_start,
)
from harness.image.images import Image, leading_release
from harness.image.spec import BuildSettings, BuildSpec
from harness.record import DeviceKind, Environment, store

ANSWER_SECONDS = 20
WHOLE_IMAGE_SECONDS = 3600
STOP_SECONDS = 10
REMOVAL_PAUSES = (0.2, 0.5, 1.0, 2.0)
"""Seconds between attempts: a container that is just ending can be neither killed nor removed."""

_GOING_ON = frozenset({"running", "paused", "restarting", "stopping", "removing"})


class DockerEngine:
    """One engine that answered. Every call raises NoEngine where it no longer does, within ANSWER_SECONDS."""

    def __init__(self, connection: Connection, build: BuildSettings) -> None:
        self.connection = connection
        self.name: EngineName = connection.kind
        self._title = ENGINES[connection.kind].title
        self._build = build

    def _client(self, seconds: int) -> Any:
        """Return a client that waits so long for an answer."""
        host, version = self.connection.host, self.connection.api_version
        return docker.APIClient(base_url=host, timeout=seconds, version=version)

    @cached_property
    def _api(self) -> Any:
        return self._client(ANSWER_SECONDS)

    @cached_property
    def facts(self) -> EngineFacts:
        """Return what the engine can do here, read once."""
        with engine_errors(self._title, "describe itself"):
            return engine_facts(self.connection, self._api.info(), Files(), self._podman_info())

    def _podman_info(self) -> Mapping[str, Any] | None:
        """Return what Podman's own API says of it; null for Docker, and where that API does not answer."""
        if self.connection.kind != "podman":
            return None
        version = leading_release(self.connection.version)
        answer = self._api.get(f"{self._api.base_url}/v{version}/libpod/info", timeout=ANSWER_SECONDS)
        return answer.json() if answer.ok else None

    def refusal(self, device: DeviceRequest) -> str | None:
        """Return why containers here would not get to these cards, in one clause; null where they do."""
        return device_refusal(self.facts, device, Files())

    def user(self) -> User:
        """Return who trials run as: the caller; where that is root, a user of no rights.

        In a rootless Docker Engine the caller outside is root inside, and nothing else maps to the caller.
        """
        if os.getuid() == 0:
            return User()
        if self.facts.rootless and self.connection.kind == "docker":
            return User(0, 0)
        return User(os.getuid(), os.getgid(), keep_id=self.facts.rootless)

    def check(self, image: Image) -> None:
        """Raise NoEngine without a client that builds, NoSpace without room, unless the image is built."""
        if self._image_id(self._build.spec(image)) is None:
            building.find_client(self.connection)
            free, remedy = self.facts.data_root_free_bytes, "remove images that nobody needs any more"
            need_room(f"image '{image.name}'", image.build_bytes, free, f"{self._title}'s storage", remedy)

    def build(self, image: Image, say: Say) -> Built:
        """Build the image, or find it built; raises NoEngine, NoSpace, NoNetwork or MachineError."""
        build_spec = self._build.spec(image)
        if self._image_id(build_spec) is None:
            self.check(image)
            client = building.find_client(self.connection)
            logs = store.clone_state_folder(self._build.root) / "logs"
            log = logs / f"{build_spec.tag.replace(':', '-')}.log"
            building.build_image(build_spec, client, self._build.proxy, log, say)
        return self.built_environment(image)

    def expected_environment(self, image: Image) -> Built:
        """Return the environment as `build` would make it, with its tag where the image has no id yet."""
        build_spec = self._build.spec(image)
        return Built(self._environment(build_spec, self._image_id(build_spec) or build_spec.tag))

    def built_environment(self, image: Image) -> Built:
        """Return the environment of a built image; raises NotBuilt."""
        build_spec = self._build.spec(image)
        image_id = self._image_id(build_spec)
        if image_id is None:
            raise NotBuilt(
                f"image '{image.name}' ({build_spec.tag}) is not built in {self._title}",
                remedy=f"run `{self._build_line(image.name)}`",
            )
        return Built(self._environment(build_spec, image_id))

    def _build_line(self, image_name: str) -> str:
        return f"invoke build --image {image_name} --engine {self.name}"

    def _image_id(self, build_spec: BuildSpec) -> str | None:
        """Return the id of the image with this tag; Podman keeps its own under localhost/."""
        prefixes = ("localhost/", "") if self.connection.kind == "podman" else ("",)
        for tag in (prefix + build_spec.tag for prefix in prefixes):
            with (
                engine_errors(self._title, f"look for image {tag}"),
                contextlib.suppress(docker.errors.NotFound),
            ):
                return str(self._api.inspect_image(tag)["Id"])
        return None

    def _environment(self, build_spec: BuildSpec, image_id: str) -> Environment:
        known = build_spec.identity()
        if build_spec.base_substituted:
            # Where a substitute came from may name a company's own registry.
            known["base"] = known["base"].rpartition("/")[2]
        reasons = (f"its base is {known['base']}, not the pinned one",) if build_spec.base_substituted else ()
        return Environment(
            **known,
            engine=self.name,
            engine_version=self.connection.version,
            pinned=not reasons,
            unpinned_because=reasons,
            image_id=image_id,
            writable_root=self._opens_root(build_spec.device),
            passed_variables=user_variables(),
        )

    def _fit_spec(self, spec: RunSpec) -> RunSpec:
        """Return the same trial in the terms of this engine; raises NoDevice where it cannot."""
        facts, device = self.facts, spec.device
        reason = self.refusal(device) if device.kind == "cuda" else None
        if reason is not None:
            raise NoDevice(reason, remedy="see `invoke doctor`")
        return replace(
            spec,
            device=self._named_by_cdi(device),
            userns_host=facts.userns_remap,
            writable_root=self._opens_root(device.kind),
            selinux=facts.selinux,
        )

    def _named_by_cdi(self, device: DeviceRequest) -> DeviceRequest:
        if device.kind != "cuda" or not self.facts.wants_cdi:
            return device
        return replace(device, cdi=cdi_names(device, self.facts.cdi_devices))

    def start_cuda(self, image: Image, device: DeviceRequest) -> CudaStart:
        """Start CUDA in a container of an image with its cards; not tried where that is not built."""
        image_id = self._image_id(self._build.spec(image)) if image.program == "python" else None
        if image_id is None or self.refusal(device) is not None:
            return NOT_TRIED
        body = container.script_config(image_id, self._named_by_cdi(device), ("python", "-c", START))
        handle: Handle | None = None
        try:
            with engine_errors(self._title, "start CUDA in a container"):
                made = self._api.create_container_from_config(body)
                handle = Handle(engine=self.name, container=str(made["Id"]))
                self._api.start(handle.container)
                until = time.monotonic() + START_SECONDS
                while self._api.inspect_container(handle.container)["State"]["Status"] in _GOING_ON:
                    if time.monotonic() > until:
                        return silent_start(START_SECONDS)
                    time.sleep(REMOVAL_PAUSES[0])
                printed = self._api.logs(handle.container, stderr=False, stream=False)
                return read_start(printed.decode(errors="replace"))
        except NoEngine:
            return NOT_TRIED
        except MachineError as error:
            return CudaStart(False, error.problem, error.remedy)
        finally:
            if handle is not None:
                self.forget(handle, Path())

    def _opens_root(self, kind: DeviceKind) -> bool:
        return kind == "cuda" and self.connection.kind == "podman"

    def start(self, spec: RunSpec) -> Handle:
        """Create and start a trial's container, after removing what an earlier process left of its session.

        Raises NotBuilt, NoDevice, NoSpace or MachineError where the engine will not.
        """
        fitted = self._fit_spec(spec)
        for orphan in self.leftovers(spec.session):
            self.forget(orphan, spec.folders.output.parent)
        _chown_to_trial_user(fitted.folders, fitted.user)
        body = container.container_config(fitted)
        # For a caller's own id a rootless Podman first copies the whole image, once.
        seconds = WHOLE_IMAGE_SECONDS if fitted.user.keep_id else ANSWER_SECONDS
        with engine_errors(self._title, "create a container"), self._client(seconds) as api:
            try:
                made = api.create_container_from_config(body, name=fitted.name)
            except docker.errors.ImageNotFound:
                raise NotBuilt(
                    f"the image {spec.image_id} is not in {self._title} any more",
                    remedy=f"run `{self._build_line(spec.trial.asked.environment)}`",
                ) from None
        handle = Handle(engine=self.name, container=str(made["Id"]))
        try:
            with engine_errors(self._title, "start a container"):
                self._api.start(handle.container)
        except NoEngine:
            raise
        except MachineError:
            self.forget(handle, spec.folders.output.parent)
            raise
        return handle

    def pid(self, handle: Handle) -> int | None:
        """Return the container's first process; null where it ended, or its engine has its own machine."""
        with engine_errors(self._title, "look at a container"):
            try:
                pid = int(self._api.inspect_container(handle.container)["State"].get("Pid") or 0)
            except docker.errors.NotFound:
                return None
        return pid if pid and Path(f"/proc/{pid}").exists() else None

    def find(self, name: str, work: Path) -> Handle | None:
        """Return the container of this name, if it was ever started; one that was only created is removed."""
        with engine_errors(self._title, "look for a container"):
            try:
                details = self._api.inspect_container(name)
            except docker.errors.NotFound:
                return None
            handle = Handle(engine=self.name, container=str(details["Id"]))
            status = str(details["State"]["Status"])
        if status in ("created", "initialized", "configured"):
            self.forget(handle, work)
            return None
        return handle

    def leftovers(self, session: str) -> tuple[Handle, ...]:
        """Return the containers of a session, running or ended, by any process."""
        with engine_errors(self._title, "list containers"):
            listed = self._api.containers(all=True, filters={"label": [f"{LABEL}.session={session}"]})
            ids = [str(entry["Id"]) for entry in listed]
        return tuple(Handle(engine=self.name, container=each) for each in ids)

    def poll(self, handle: Handle, work: Path) -> Exit | None:
        """Return how the trial ended, with its output in the work folder's log; null while it still runs."""
        with engine_errors(self._title, "look at a container"):
            try:
                state = self._api.inspect_container(handle.container)["State"]
            except docker.errors.NotFound:
                return replace(GONE, log=log_tail(work / LOG))
            status, code = str(state["Status"]), state.get("ExitCode")
            code = None if code is None else int(code)
        if status in _GOING_ON:
            return None
        # An engine that keeps no logs has none to give.
        with (
            engine_errors(self._title, "show a container's output"),
            contextlib.suppress(docker.errors.APIError),
        ):
            # Not as a stream: the SDK takes the time limit off a streaming connection.
            (work / LOG).write_bytes(self._api.logs(handle.container, stream=False))
        ended = Exit(code=code, log=log_tail(work / LOG))
        if not state.get("OOMKilled"):
            return ended
        return replace(ended, cause="out-of-memory", said="it was killed at its memory limit")

    def stop(self, handle: Handle, work: Path) -> None:
        """End the trial politely, then at once; what it left can still be polled."""
        with engine_errors(self._title, "stop a container"), contextlib.suppress(docker.errors.NotFound):
            self._api.stop(handle.container, timeout=STOP_SECONDS)

    def forget(self, handle: Handle, work: Path) -> None:
        """Remove the trial's container."""
        for pause in (*REMOVAL_PAUSES, None):
            try:
                with (
                    engine_errors(self._title, "remove a container"),
                    contextlib.suppress(docker.errors.NotFound),
                ):
                    self._api.remove_container(handle.container, force=True, v=True)
                return
            except MachineError as refusal:
                if pause is None or isinstance(refusal, NoEngine):
                    raise
                time.sleep(pause)


def _chown_to_trial_user(folders: TrialFolders, user: User) -> None:
    """Give a trial's own folders to the user inside, where the caller is root and that user is not."""
    if os.geteuid() != 0 or user.uid == 0:
        return
    for folder in (folders.input, folders.output, folders.cache):
        for path in (folder, *folder.rglob("*")):
            if path.lstat().st_uid != user.uid:
                os.chown(path, user.uid, user.gid, follow_symlinks=False)
