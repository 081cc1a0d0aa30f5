"""Generated files in the place of the X-rays, for what a loader does with a file, and for nothing else.

An image is grey and of 1,024 px, as the makers' are: blurred light and shade with a grain. 64 PNGs of them
have 427 kB on average, where theirs have 401 (45 GB in 112,120 files). At 264 px it is made from that as
`invoke build --only chestxray` makes the real ones: bilinear, then RGB. A JPEG is of quality 95. The labels
are 0 or 1 at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from parts.chexnet.protocol import CLASSES
from parts.chexnet.xrays import PIXELS

SEED = 45
FULL_PIXELS = 1024
SHADES = 8
GRAIN = 1.3
"""Standard deviation in grey levels, of 256."""
JPEG_QUALITY = 95


@dataclass(frozen=True)
class Files:
    """Images by their paths, and their labels as 0 or 1 in fp32, (images, 14)."""

    paths: list[str]
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.paths)

    def rgb(self, item: int) -> np.ndarray:
        """An image as (height, width, 3), read from its file."""
        with Image.open(self.paths[item]) as image:
            return np.asarray(image.convert("RGB"))


def generated(folder: str, count: int, pixels: int, kind: str) -> Files:
    """As many files in the folder, and their labels; the same bytes each time with the same Pillow."""
    paths = []
    for number in range(count):
        image = grey(number)
        if pixels == PIXELS:
            image = image.resize((PIXELS, PIXELS), Image.Resampling.BILINEAR).convert("RGB")
        paths.append(str(Path(folder, f"{number:05d}.{kind}")))
        image.save(paths[-1], **({"quality": JPEG_QUALITY} if kind == "jpeg" else {"compress_level": 6}))
    labels = np.random.RandomState(SEED - 1).random_sample((count, CLASSES)) < 0.5
    return Files(paths, labels.astype(np.float32))


def grey(number: int) -> Image.Image:
    """An image by its number, in 256 levels."""
    stream = np.random.RandomState(SEED + number)
    shades = Image.fromarray(stream.randint(32, 224, (SHADES, SHADES)).astype(np.uint8))
    whole = np.asarray(shades.resize((FULL_PIXELS, FULL_PIXELS), Image.Resampling.BICUBIC), np.float32)
    grain = stream.normal(0, GRAIN, whole.shape)
    return Image.fromarray(np.clip(np.rint(whole + grain), 0, 255).astype(np.uint8))
