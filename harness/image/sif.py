"""Images as files, for Apptainer: an archive as `docker save` writes it, and the SIF that is made of it."""

from __future__ import annotations

import contextlib
import io
import json
import re
import tarfile
from pathlib import Path

from pydantic import ValidationError

from harness.errors import DataError
from harness.image.catalog import Sha256
from harness.record import Model, first_problem

IMAGES = "images"
"""The folder of a clone that holds them, each named by its tag."""

_CONFIGURATION = re.compile(r"(?:^|/)([0-9a-f]{64})(?:\.json)?$")


class SifNote(Model):
    """What lies beside a SIF: the image that it was made of, by tag and digest, and its own hash."""

    tag: str
    image_id: str
    sif_sha256: Sha256


def archive_of(root: Path, tag: str) -> Path:
    """Where an image of that tag lies as an archive, as `docker save` writes it."""
    return root / IMAGES / f"{tag.replace(':', '-')}.tar"


def sif_of(root: Path, tag: str) -> Path:
    """Where it lies as a SIF."""
    return archive_of(root, tag).with_suffix(".sif")


def note_of(sif: Path) -> SifNote | None:
    """What is known of a SIF; null where nothing is. Raises DataError for a note that cannot be read."""
    path = sif.with_suffix(".json")
    if not path.is_file():
        return None
    try:
        return SifNote.model_validate_json(path.read_bytes())
    except ValidationError as error:
        problem = f"{IMAGES}/{path.name}: {first_problem(error)}"
        raise DataError(problem, remedy="remove it and the .sif beside it, and build again") from None


def image_id(archive: Path) -> str:
    """The digest of the image in an archive; raises DataError where it holds none that we know."""
    found = None
    with contextlib.suppress(OSError, tarfile.TarError, KeyError, TypeError, ValueError):
        with tarfile.open(archive, "r:") as tar, tar.extractfile("manifest.json") or io.BytesIO() as file:
            (entry,) = json.load(file)
        found = _CONFIGURATION.search(entry["Config"])
    if found is None:
        raise DataError(f"'{archive.name}' is no archive of one image", remedy="make it with `docker save`")
    return f"sha256:{found[1]}"
