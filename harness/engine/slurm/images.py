"""The file of an image that a site's runtime starts its containers from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.data.check import sha256_of
from harness.engine import build as building
from harness.engine.apptainer import ApptainerEngine
from harness.engine.base import BuildStep, Built, Say
from harness.errors import NotBuilt
from harness.image import packed
from harness.image.catalog import Image

UNKNOWN = "the site's file of the image does not say which image it was made of"


@dataclass(frozen=True, slots=True)
class SiteImage(ApptainerEngine):
    """One file that the site profile names, in place of the clone's own."""

    file: Path = Path()

    def at_hand(self, image: Image) -> bool:
        """Whether the file is there."""
        return self.file.is_file()

    def steps(self, image: Image) -> tuple[BuildStep, ...]:
        """Nothing is made: the site has it."""
        return (BuildStep("the site's file of the image", str(self.file)),)

    def build(self, image: Image, say: Say) -> Built:
        """The file, as it is there; raises NotBuilt."""
        return self.built(image)

    def built(self, image: Image) -> Built:
        """The file with its hash, which is read anew; raises NotBuilt where there is none."""
        if not self.file.is_file():
            raise NotBuilt(
                f"the image '{self.file.name}' of the site profile is not there", remedy="see docs/running.md"
            )
        return self._of(image, sha256_of(self.file))

    def expected(self, image: Image) -> Built:
        """The same without its hash."""
        return self._of(image, None)

    def _of(self, image: Image, sha256: str | None) -> Built:
        spec = self.settings.spec(image)
        note = packed.note_of(self.file)
        known = note is not None and note.tag == spec.tag and sha256 in (None, note.sif_sha256)
        made = building.environment(
            spec, self.name, None, note.image_id if note and known else spec.tag, self.passed
        )
        changes: dict[str, object] = {"sif_sha256": sha256}
        if not known:
            changes |= {
                "pinned": False,
                "unpinned_because": (*made.unpinned_because, UNKNOWN),
                "image_id": None,
            }
        return Built(made.model_copy(update=changes), sif=self.file)
