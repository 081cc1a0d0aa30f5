"""Apptainer, or Singularity: trials in a SIF that was made of the same image, started by the user alone.

Options and their limits are those of Apptainer 1.2 and SingularityCE 4.0 and newer.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from harness.device_kinds import DEVICE_KINDS
from harness.engine import container
from harness.engine import image_build as building
from harness.engine.container import RunSpec, User
from harness.engine.docker import chown_to_trial_user
from harness.engine.interface import Built, Handle, Say
from harness.engine.local import Processes
from harness.engines import EngineName
from harness.errors import DataError, MachineError, NoEngine, NoSpace, NotBuilt
from harness.files import command_output, hash_file, last_line, write_then_rename
from harness.image.images import Image, Sha256
from harness.image.spec import BuildSettings, BuildSpec
from harness.record import Environment, Model, first_problem, store

IMAGES = "images"
"""The folder of a clone that holds them, each named by its tag."""

_CONFIGURATION = re.compile(r"(?:^|/)([0-9a-f]{64})(?:\.json)?$")

CLIENTS = ("apptainer", "singularity")
HOME = "/home/gpudyno"
ABSENT = NoEngine(
    "Apptainer is asked for, and neither 'apptainer' nor 'singularity' is on PATH",
    remedy="load the site's module for it, or take a virtual environment",
)


def find_client(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return Apptainer on PATH, else Singularity; null where neither is."""
    found = (shutil.which(name, path=environ.get("PATH")) for name in CLIENTS)
    return next((path for path in found if path), None)


def exec_line(spec: RunSpec, program: str, *, root: bool) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return one trial as `apptainer exec`: its words, and the variables that it hands over. Pure.

    A variable is handed over by its own name with a prefix, since --env parts a value at its commas. A home
    folder cannot be set so. Only `root` may choose another user inside.
    """
    inside = container.container_variables(spec, own_devices=False)
    inside.pop("HOME")
    words = [program, "exec", "--containall", "--no-eval", "--net", "--network", "none", "--pwd", "/tmp"]
    words += ["--home", f"{spec.folders.output.parent / 'home'}:{HOME}"]
    # Without one of ours /tmp is in memory, with 64 MiB.
    words += ["--workdir", str(spec.folders.output.parent / "tmp")]
    user = spec.user
    words += ["--no-privs", "--security", f"uid:{user.uid}", "--security", f"gid:{user.gid}"] if root else []
    words += DEVICE_KINDS[spec.device.kind].apptainer
    for mount in container.trial_mounts(spec):
        words += ["--mount", _mount_value(mount.source, mount.target, read_only=mount.read_only)]
    words += ["--memory", str(spec.memory_bytes)] if spec.memory_bytes is not None else []
    words += [str(spec.sif), spec.program, f"/workloads/{container.file_of(spec)}"]
    return tuple(words), {f"APPTAINERENV_{name}": value for name, value in sorted(inside.items())}


def _mount_value(source: Path, target: str, *, read_only: bool) -> str:
    """Return one mount, as a line of comma-separated values, in which a path may have commas and quotes."""
    parts = ("type=bind", f"source={source}", f"destination={target}", *(("ro",) if read_only else ()))
    return ",".join(_quote_value(part) for part in parts)


def _quote_value(part: str) -> str:
    return '"' + part.replace('"', '""') + '"' if re.search(r'[",]', part) else part


@dataclass(frozen=True, slots=True)
class ApptainerEngine(Processes):
    """SIFs in the clone's folder of images, each made of an image's archive in the same folder."""

    root: Path
    program: str
    settings: BuildSettings
    passed: Mapping[str, str] = field(default_factory=dict)
    name: EngineName = "apptainer"

    def user(self) -> User:
        """Return who trials run as: the caller; where that is root, a user of no rights."""
        if os.geteuid() == 0:
            return User()
        return User(os.getuid(), os.getgid())

    def build(self, image: Image, say: Say) -> Built:
        """Make the SIF of an archive, or find it made; raises NotBuilt, NoSpace or MachineError."""
        tag = self.settings.spec(image).tag
        sif, archive = sif_path(self.root, tag), archive_path(self.root, tag)
        if not sif.is_file() and archive.is_file():
            say(f"making {sif.name} of {archive.name}")
            self._make(tag, sif, archive)
        return self.built_environment(image)

    def _make(self, tag: str, sif: Path, archive: Path) -> None:
        if shutil.which(self.program) is None:
            raise ABSENT
        made_of = archived_image_id(archive)
        for killed in sif.parent.glob(f".{sif.name}.*.part"):
            killed.unlink(missing_ok=True)
        with write_then_rename(sif) as unfinished:
            unfinished.unlink()
            line = (self.program, "build", str(unfinished), f"docker-archive:{archive}")
            done = subprocess.run(line, capture_output=True, text=True, errors="replace", check=False)
            if done.returncode != 0:
                why = last_line(done.stderr + done.stdout)
                kind = NoSpace if "no space left" in done.stderr.lower() else MachineError
                raise kind(
                    f"{Path(self.program).name} could not make a SIF of '{archive.name}': {why}",
                    remedy="set APPTAINER_TMPDIR to a folder with room, or make the SIF elsewhere",
                )
            note = SifNote(tag=tag, image_id=made_of, sif_sha256=hash_file(unfinished))
            store.write_whole(sif.with_suffix(".json"), note.model_dump_json() + "\n", replace=True)

    def expected_environment(self, image: Image) -> Built:
        """Return the environment as `build` would make it."""
        spec = self.settings.spec(image)
        sif = sif_path(self.root, spec.tag)
        return Built(self._environment(spec, read_note(sif)), sif=sif)

    def built_environment(self, image: Image) -> Built:
        """Return the environment of a SIF that is there, once its hash is computed and compared.

        Raises NotBuilt where there is none, DataError where it is not the file that was made.
        """
        spec = self.settings.spec(image)
        sif = sif_path(self.root, spec.tag)
        note = read_note(sif)
        if not sif.is_file() or note is None:
            raise self._absent(image, spec.tag)
        if note.tag != spec.tag or hash_file(sif) != note.sif_sha256:
            raise DataError(
                f"'{IMAGES}/{sif.name}' is not the file that was made of image {spec.tag}",
                remedy=f"remove it, and run `invoke build --image {image.name} --engine apptainer`",
            )
        return Built(self._environment(spec, note), sif=sif)

    def _absent(self, image: Image, tag: str) -> NotBuilt:
        archive = f"{IMAGES}/{archive_path(self.root, tag).name}"
        if archive_path(self.root, tag).is_file():
            return NotBuilt(
                f"the SIF of image '{image.name}' is not made",
                remedy=f"run `invoke build --image {image.name} --engine apptainer`",
            )
        return NotBuilt(
            f"image '{image.name}' ({tag}) is not here, and Apptainer makes a SIF only of an archive of it",
            remedy=f"`docker save` it where Docker is, as '{archive}'",
        )

    def _environment(self, spec: BuildSpec, note: SifNote | None) -> Environment:
        image_id = note.image_id if note else spec.tag
        words = (command_output(self.program, "--version") or "").split()
        made = building.image_environment(
            spec, self.name, words[-1] if words else None, image_id, self.passed
        )
        return made.model_copy(update={"sif_sha256": note.sif_sha256 if note else None})

    def start(self, spec: RunSpec) -> Handle:
        """Start the trial as a process of the user's, which has the container's as its children.

        Raises NotBuilt where the SIF is gone.
        """
        if spec.sif is None or not spec.sif.is_file():
            raise NotBuilt(
                "the SIF is not there any more",
                remedy=f"run `invoke build --image {spec.trial.asked.environment} --engine apptainer`",
            )
        work = spec.folders.output.parent
        for folder in (work / "home", work / "tmp"):
            folder.mkdir(exist_ok=True)
            if os.geteuid() == 0:
                os.chown(folder, spec.user.uid, spec.user.gid)
        chown_to_trial_user(spec.folders, spec.user)
        words, variables = exec_line(spec, self.program, root=os.geteuid() == 0)
        # By this name `find` knows the process again; inside it is another folder's.
        return self._begin(words, {**variables, "GPUDYNO_OUT": str(spec.folders.output)}, work)

    def forget(self, handle: Handle, work: Path) -> None:
        """Remove an ended attempt's temporary files."""
        for name in ("home", "tmp"):
            shutil.rmtree(work / name, ignore_errors=True)


def require_client(environ: Mapping[str, str]) -> str:
    """Return Apptainer's program; raises NoEngine with what to do."""
    program = find_client(environ)
    if program is None:
        raise ABSENT
    return program


class SifNote(Model):
    """The note in the file next to a SIF: its image, by tag and digest, and its own hash."""

    tag: str
    image_id: str
    sif_sha256: Sha256


def archive_path(root: Path, tag: str) -> Path:
    """Return the path of the archive of the image with that tag, as `docker save` writes it."""
    return root / IMAGES / f"{tag.replace(':', '-')}.tar"


def sif_path(root: Path, tag: str) -> Path:
    """Return the path of the SIF of the image with that tag."""
    return archive_path(root, tag).with_suffix(".sif")


def read_note(sif: Path) -> SifNote | None:
    """Return what is known of a SIF, null for nothing; raises DataError for a note that cannot be read."""
    path = sif.with_suffix(".json")
    if not path.is_file():
        return None
    try:
        return SifNote.model_validate_json(path.read_bytes())
    except ValidationError as error:
        problem = f"{IMAGES}/{path.name}: {first_problem(error)}"
        raise DataError(problem, remedy="remove it and the .sif beside it, and build again") from None


def archived_image_id(archive: Path) -> str:
    """Return the digest of the image in an archive; raises DataError where it holds none that we know."""
    match = None
    with contextlib.suppress(OSError, tarfile.TarError, KeyError, TypeError, ValueError):
        with tarfile.open(archive, "r:") as tar, tar.extractfile("manifest.json") or io.BytesIO() as file:
            (entry,) = json.load(file)
        match = _CONFIGURATION.search(entry["Config"])
    if match is None:
        raise DataError(f"'{archive.name}' is no archive of one image", remedy="make it with `docker save`")
    return f"sha256:{match[1]}"
