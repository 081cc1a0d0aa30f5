"""The protocol of study 003 (DenseNet-121 on chest X-rays), stated once for every framework.

`published/1` is what each framework's notebook did on synthetic data, by MANNERS. `fair/1` is one manner for
all of them, FAIR, and the one that frameworks are ranked by. Both: DenseNet-121 with 14 outputs, binary
cross-entropy, Adam(0.9, 0.999) at 1e-4 times the number of devices without schedule or weight decay, batch 64
a device, 224 px, five epochs of 87,306 images, the last batch dropped; nothing is validated. Each step copies
its batch from the host's memory, and the copy is inside the step.

Not the study's, in both: the weights are one random set (`weights`) where it began with ImageNet's; a few
batches come round and round, where it held 52.6 GB of images; the window begins after one step that is not
counted, which the study counted, with its autotuning and graph building.

Python 3.7 syntax, and no framework.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from parts.trial import Failed, Trial

PROTOCOLS = ("published/1", "fair/1")
MODEL = "densenet121"
CLASSES = 14
IMAGE_SIZE = 224
BATCH_SIZE = 64
TRAIN_IMAGES = 87306
EPOCHS = 5
LEARNING_RATE = 1e-4
BETAS = (0.9, 0.999)
FEWEST_BATCHES = 4


@dataclass(frozen=True)
class Manner:
    """What may differ between frameworks."""

    images: str = "uniform"
    """`uniform` in [0, 1), or `ones`."""
    labels: str = "classes"
    """`classes`: 0 or 1 at random; `uniform` in [0, 1), `zeros` or `ones`."""
    rate_by_devices: bool = True
    """Whether the learning rate is multiplied by the number of devices."""
    loss_of_logits: bool = True
    """Whether sigmoid and cross-entropy are one operation; else the network ends with the sigmoid."""
    adam_epsilon: float = 1e-8
    reads_loss_every: int = 0
    """Steps from one reading of the loss to the next, for which the device is waited for; 0 is an epoch."""


FAIR = Manner()
MANNERS = {
    "pytorch": Manner(labels="uniform", loss_of_logits=False, reads_loss_every=1),
    "pytorch-loss-per-gpu": Manner(labels="uniform", loss_of_logits=False),
    "tensorflow": Manner(labels="uniform"),
    "keras-tensorflow": Manner(labels="uniform", loss_of_logits=False, adam_epsilon=1e-7, reads_loss_every=1),
    "mxnet-gluon": Manner(images="ones", labels="ones", reads_loss_every=7),
    "chainer": Manner(labels="zeros", rate_by_devices=False),
}
"""The study's own, by the names that its published figures have."""


@dataclass(frozen=True)
class Terms:
    """What one trial has to do."""

    framework: str
    manner: Manner
    precision: str
    batch_size: int
    """Per device."""
    devices: int
    parallel: str
    image_size: int
    batches: int
    """Different ones, that come round."""

    @property
    def global_batch_size(self) -> int:
        """Images of one step of all devices."""
        return self.batch_size * self.devices

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches of the study's training images."""
        return TRAIN_IMAGES // self.global_batch_size

    @property
    def learning_rate(self) -> float:
        """The study's linear rule, where the manner has it."""
        return LEARNING_RATE * (self.devices if self.manner.rate_by_devices else 1)

    @property
    def data_name(self) -> str:
        """What decides the content of an image and its labels."""
        return "random: %s images of %d px, labels %s" % (
            self.manner.images,
            self.image_size,
            self.manner.labels,
        )

    @property
    def notes(self) -> list[str]:
        """What is smaller than the protocol, and what a reader has to know."""
        notes = []
        if self.batch_size != BATCH_SIZE:
            notes.append("scaled down: %d images a device and step, of %d" % (self.batch_size, BATCH_SIZE))
        if self.image_size != IMAGE_SIZE:
            notes.append("scaled down: images of %d px, of %d" % (self.image_size, IMAGE_SIZE))
        return notes


def terms(
    trial: Trial,
    frameworks: dict[str, tuple[str, ...]],
    precisions: tuple[str, ...] = ("fp32-ieee",),
) -> Terms:
    """A trial's terms; `frameworks` has the names that a workload answers to, and the ways of `parallel`.

    Raises Failed, naming what there is, for anything that the workload does not do.
    """
    variant = trial.variant
    protocol = trial.choose("protocol", trial.asked["protocol"], PROTOCOLS)
    trial.choose("model", variant["model"], (MODEL,))
    trial.choose("data mode", variant["data_mode"], ("host",))
    trial.choose("profile", variant["profile"], ("default",))
    trial.choose("layout", variant["layout"], ("contiguous",))
    options = _options(trial, frameworks)
    if options["batches"] < FEWEST_BATCHES:
        raise Failed("unsupported", "option 'batches' is below %d, as good as constant" % FEWEST_BATCHES)
    framework = options["framework"]
    return Terms(
        framework=framework,
        manner=FAIR if protocol == "fair/1" else MANNERS[framework],
        precision=trial.choose("precision", variant["precision"], precisions),
        batch_size=variant["batch_size"],
        devices=variant["gpus"],
        parallel=options["parallel"],
        image_size=variant["image_size"] or IMAGE_SIZE,
        batches=options["batches"],
    )


def _options(trial: Trial, frameworks: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    first = next(iter(frameworks))
    options = trial.options(
        {"framework": first, "data": "synthetic", "parallel": "", "batches": FEWEST_BATCHES}
    )
    ways = trial.choose("framework", options["framework"], frameworks)
    trial.choose("data", options["data"], ("synthetic",))
    options["parallel"] = trial.choose("parallel", options["parallel"] or ways[0], ways)
    return options
