"""The protocol of Karmanov 2018 (DenseNet-121 on chest X-rays), stated once for every framework.

`published/1` is what each framework's notebook did, by VARIANTS. `fair/1` is one variant for all of them,
FAIR, and the one that frameworks are ranked by. Both: DenseNet-121 with 14 outputs, binary cross-entropy,
Adam(0.9, 0.999) at 1e-4 times the number of devices without schedule or weight decay, batch 64 a device,
224 px, five epochs of 87,306 images, the last batch dropped. Each step copies its batch from the host's
memory, and the copy is inside the step.

Option `data` is `synthetic`, arrays in memory with nothing validated; `real`, the prepared X-rays
(`xrays`), validated after each epoch and tested at the end; or `files`, generated files of the X-rays' size
in their place, which measure loading alone. Real images are cropped at random to 224 of 264 px and flipped
one time in two; `published/1` crops as the framework's notebook did. The middle of an image is validated and
tested, in `published/1` the whole image made smaller, as in all notebooks.

`loading/1` trains nothing: a step is a batch that the loader brought. What a loader does on the processor
is so measured where no GPU is, at its published size.

Not the study's: on synthetic data and files the weights are one random set (`network`) where it began with
ImageNet's, and a few batches or files come round and round, where it held 52.6 GB of images; the window
begins after one step that is not counted, which the study counted, with its autotuning and graph building.

Python 3.7 syntax, and no framework.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from parts.trial import Failed, TrialProcess

PROTOCOLS = ("published/1", "fair/1")
LOADING = "loading/1"
MODEL = "densenet121"
CLASSES = 14
IMAGE_SIZE = 224
BATCH_SIZE = 64
IMAGES = {"train": 87306, "valid": 7616, "test": 17198}
TRAIN_IMAGES = IMAGES["train"]
EPOCHS = 5
LEARNING_RATE = 1e-4
BETAS = (0.9, 0.999)
BATCHES = 4
"""Different ones of synthetic images, that come round."""


@dataclass(frozen=True)
class Variant:
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
    crop: str = "part"
    """What a real image gives: a `part` as large as the input; one of any size, `resized`, as
    RandomResizedCrop; or the `whole`, made smaller."""
    tested_on: str = "middle"
    """`middle` of a real image, or the `whole` made smaller."""
    pixels: str = "torch"
    """How real pixels are normalised: ImageNet's mean and deviation as torchvision has them (`torch`), or
    its mean, and 0.017 for the deviation, as in Caffe (`caffe`)."""
    valid_ahead: bool = False
    """Whether the loader of the validation starts before the training of its epoch."""


FAIR = Variant()
VARIANTS = {
    "pytorch": Variant(
        labels="uniform", loss_of_logits=False, reads_loss_every=1, crop="resized", tested_on="whole"
    ),
    "pytorch-loss-per-gpu": Variant(
        labels="uniform", loss_of_logits=False, crop="resized", tested_on="whole", valid_ahead=True
    ),
    "tensorflow": Variant(labels="uniform", tested_on="whole", pixels="caffe"),
    "keras-tensorflow": Variant(
        labels="uniform",
        loss_of_logits=False,
        adam_epsilon=1e-7,
        reads_loss_every=1,
        crop="whole",
        tested_on="whole",
    ),
    "mxnet-gluon": Variant(
        images="ones", labels="ones", reads_loss_every=7, crop="resized", tested_on="whole"
    ),
    "chainer": Variant(labels="zeros", rate_by_devices=False, tested_on="whole", pixels="caffe"),
}
"""The study's own, by the names that its published figures have."""


LOADER: dict[str, Any] = {
    "workers": 0,
    "loader": "processes",
    "source_pixels": 264,
    "format": "png",
    "valid_batch": "as in training",
    "valid_loader": "as the protocol",
    "valid_devices": "all",
    "loss": "as the protocol",
}
"""The options of loading where a framework has them, each as in the protocol; 0 workers are WORKERS."""
CHOICES: dict[str, tuple[Any, ...]] = {
    "loader": ("processes", "threads"),
    "source_pixels": (264, 1024),
    "format": ("png", "jpeg"),
    "valid_batch": ("as in training", "larger"),
    "valid_loader": ("as the protocol", "before training"),
    "valid_devices": ("all", "first"),
    "loss": ("as the protocol", "kept"),
}
NEEDS: dict[str, tuple[str, ...]] = {
    "source_pixels": ("files",),
    "format": ("files",),
    "loader": ("real", "files"),
    "valid_batch": ("real",),
    "valid_loader": ("real",),
    "valid_devices": ("real",),
}
"""The data that an option can have: nothing else is validated, or read from files."""
WORKERS = 6
"""The study's; on arrays in memory there are none unless they are asked for."""
LARGER = 4
"""Times the batch of training, where that of the validation is larger: ours, for the study does not say."""


@dataclass(frozen=True)
class Terms:
    """What one trial has to do."""

    framework: str
    variant: Variant
    precision: str
    batch_size: int
    """Per device."""
    devices: int
    parallel: str
    image_size: int
    protocol: str = PROTOCOLS[1]
    data: str = "synthetic"
    """`synthetic`, `real` or `files`."""
    loading: Mapping[str, Any] = field(default_factory=dict)
    """The options of LOADER, where the framework has them."""
    train_images: int = TRAIN_IMAGES

    @property
    def global_batch_size(self) -> int:
        """Images of one step of all devices."""
        return self.batch_size * self.devices

    @property
    def valid_batch_size(self) -> int:
        """Images of one batch of the validation, of all devices."""
        return self.global_batch_size * (LARGER if self.loading.get("valid_batch") == "larger" else 1)

    @property
    def workers(self) -> int:
        """The workers of the loader; 0 is none."""
        return self.loading.get("workers") or (0 if self.data == "synthetic" else WORKERS)

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches of the training images."""
        return self.train_images // self.global_batch_size

    @property
    def learning_rate(self) -> float:
        """The study's linear rule, where the variant has it."""
        return LEARNING_RATE * (self.devices if self.variant.rate_by_devices else 1)

    @property
    def source_pixels(self) -> int:
        """The side of a file's image, in pixels."""
        return int(self.loading.get("source_pixels", LOADER["source_pixels"]))

    @property
    def reads_loss_every(self) -> int:
        """As the variant has it, or kept: steps from one reading to the next, 0 is an epoch."""
        return 0 if self.loading.get("loss") == "kept" else self.variant.reads_loss_every

    @property
    def valid_ahead(self) -> bool:
        """As the variant has it, or as asked."""
        return self.variant.valid_ahead or self.loading.get("valid_loader") == "before training"

    @property
    def data_name(self) -> str:
        """What decides the content of an image and its labels."""
        if self.data == "real":
            return "chestxray"
        if self.data == "files":
            return "generated files: %s of %d px" % (self.loading["format"], self.source_pixels)
        return "random: %s images of %d px, labels %s" % (
            self.variant.images,
            self.image_size,
            self.variant.labels,
        )

    @property
    def notes(self) -> list[str]:
        """What is smaller than the protocol, and what a reader has to know."""
        notes = []
        if self.batch_size != BATCH_SIZE:
            notes.append("scaled down: %d images a device and step, of %d" % (self.batch_size, BATCH_SIZE))
        if self.image_size != IMAGE_SIZE:
            notes.append("scaled down: images of %d px, of %d" % (self.image_size, IMAGE_SIZE))
        if self.train_images != TRAIN_IMAGES:
            notes.append("scaled down: %d images to train on, of %d" % (self.train_images, TRAIN_IMAGES))
        return notes


def terms(trial: TrialProcess, frameworks: dict[str, tuple[str, ...]], *, reads_files: bool = False) -> Terms:
    """Return a trial's terms; `frameworks` has the names that a workload answers to, and the ways of
    `parallel`.

    A workload that `reads_files` has the options of LOADER, and its loading can be measured alone. Raises
    Failed, naming what there is, for anything that the workload does not do.
    """
    variant = trial.variant
    protocols = (*PROTOCOLS, LOADING) if reads_files else PROTOCOLS
    protocol = trial.choose("protocol", trial.asked["protocol"], protocols)
    trial.choose("model", variant["model"], (MODEL,))
    trial.choose("data mode", variant["data_mode"], ("host",))
    trial.choose("profile", variant["profile"], ("default",))
    trial.choose("layout", variant["layout"], ("contiguous",))
    options = _options(trial, frameworks, reads_files)
    framework = options["framework"]
    if protocol == "published/1" and framework not in VARIANTS:
        raise Failed("unsupported", "Karmanov 2018 published no notebook of '%s'; take 'fair/1'" % framework)
    return Terms(
        framework=framework,
        variant=FAIR if protocol == "fair/1" else VARIANTS[framework],
        precision=trial.choose("precision", variant["precision"], ("fp32-ieee",)),
        batch_size=variant["batch_size"],
        devices=variant["gpus"],
        parallel=options["parallel"],
        image_size=variant["image_size"] or IMAGE_SIZE,
        protocol=protocol,
        data=options["data"],
        loading={name: options[name] for name in LOADER if reads_files},
    )


def _options(
    trial: TrialProcess, frameworks: dict[str, tuple[str, ...]], reads_files: bool
) -> dict[str, Any]:
    first, more = next(iter(frameworks)), LOADER if reads_files else {}
    kinds = ("synthetic", "real", "files") if reads_files else ("synthetic", "real")
    options = trial.options({"framework": first, "data": "synthetic", "parallel": "", **more})
    ways = trial.choose("framework", options["framework"], frameworks)
    trial.choose("data", options["data"], kinds)
    options["parallel"] = trial.choose("parallel", options["parallel"] or ways[0], ways)
    if reads_files:
        for name, choices in CHOICES.items():
            trial.choose(name, options[name], choices)
        _refuse_without_files(options)
    return options


def _refuse_without_files(options: dict[str, Any]) -> None:
    """An option that its data cannot have would leave a record that says what did not happen."""
    for name, data in NEEDS.items():
        if options[name] != LOADER[name] and options["data"] not in data:
            message = "option '%s' is of data '%s', and the data is '%s'"
            raise Failed("unsupported", message % (name, "' or '".join(data), options["data"]))
    if options["workers"] < 0:
        raise Failed("unsupported", "option 'workers' is below 0")
