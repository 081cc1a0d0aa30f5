"""Image classifiers trained on synthetic images: images per second on one device and on several.

Protocol `synthetic/1` stands for SURF 2021 (PyTorch 1.8, MI50 and RTX 2080 Ti, 2021), whose code, batch,
resolution and optimiser are lost: what follows is declared here and not the study's. Random normal images in
several batches that come round, never one constant batch, with random labels; cross-entropy; SGD at 0.01 with
momentum 0.9 and weight decay 1e-4; random weights; images as large as the model was made for, unless the
variant says otherwise; 100 epochs of 100 steps; nothing is validated.

Several devices, by the option `parallel`: `dp` is DataParallel in one process, as published; `ddp` is
DistributedDataParallel, one rank a device; `each` runs one independent copy a device at the same time. The
batch is per device. An image of the global batch depends on the seed and its place alone, so that any number
of ranks trains on the same images.

Profile `tuned` has channels_last, cudnn.benchmark, a fused optimiser and torch.compile (the option `compile`
leaves the last out, `cudnn_benchmark` asks for the second alone); in the window nothing is compiled again.
"""

from parts.trial import Failed, TrialProcess, main  # isort: skip  (its clock starts with this line)

from parts.networks.vision import torchvision  # isort: skip  (before timm)

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import timm
import torch
from torch import nn

from parts import launcher, ranks
from parts.device import choose_own, facts, seed_everything, software
from parts.launcher import Place
from parts.networks.models import classifier, image_size, loss_of
from parts.numerics import precision
from parts.numerics.flops import of_step, value_bytes
from parts.numerics.update import LABELS, Update
from parts.timing import kernels
from parts.timing.clock import Clock
from parts.training.parallel import ForwardTimer, InPrecision, entries

STEPS_PER_EPOCH, EPOCHS = 100, 100
TITLE = "Image classifiers on synthetic images, on one device and on several"
ABOUT = (
    "Classifiers train on random images, so that no loader stands in their way (SURF "
    "2021; its batch, resolution and optimiser are lost: protocol reconstructed)."
)
FEWEST_BATCHES = 4
MOMENTUM = 0.9
PARALLEL = ("dp", "ddp", "each")
OPTIONS: dict[str, Any] = {
    "parallel": "ddp",
    "batches": FEWEST_BATCHES,
    "classes": 1000,
    "lr": 0.01,
    "weight_decay": 1e-4,
    "compile": True,
    "cudnn_benchmark": False,
}

Batch = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Setting:
    """A trial's variant as this process has to run it."""

    label: str
    parallel: str
    place: Place
    devices: int
    """That this process itself drives."""
    batch_size: int
    """Per device."""
    tuned: bool
    compiled: bool
    layout: torch.memory_format

    @property
    def shares_gradients(self) -> bool:
        """Whether this process is one of several that train one model."""
        return self.place.count > 1 and self.parallel == "ddp"

    @property
    def samples(self) -> int:
        """Of one step of this process."""
        return self.batch_size * self.devices


class TrainingStep:
    """One training step: a batch in, new weights and the loss out."""

    def __init__(self, model: nn.Module, update: Update, label: str, device: torch.device) -> None:
        self.model, self.update, self.label, self.device = model, update, label, device
        self.after_forward: Callable[[], None] = lambda: None

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        self.update.optimiser.zero_grad()
        loss = self.loss(images, labels)
        self.after_forward()
        self.update(loss)
        return loss

    def loss(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The forward pass in the trial's precision."""
        with precision.autocast(self.label, self.device):
            return loss_of(self.model(images), labels)


def run(trial: TrialProcess) -> dict[str, Any]:
    """One trial of the protocol, by itself or as the ranks that it is made of."""
    trial.choose("protocol", trial.asked["protocol"], ("synthetic/1",))
    variant, options = trial.variant, trial.options(OPTIONS)
    parallel = trial.choose("parallel", options["parallel"], PARALLEL)
    label = trial.choose("precision", variant["precision"], LABELS)
    trial.choose("data mode", variant["data_mode"], ("cached", "host"))
    if options["batches"] < FEWEST_BATCHES:
        raise Failed("unsupported", f"option 'batches' is below {FEWEST_BATCHES}, as good as constant")
    gpus, place = variant["gpus"], launcher.here()
    if gpus > 1 and parallel != "dp" and place is None:
        return ranks.launched(trial, parallel, gpus)
    tuned = variant["profile"] == "tuned"
    channels_last = tuned or variant["layout"] == "channels_last"
    setting = Setting(
        label=label,
        parallel=parallel,
        place=place or Place(),
        devices=gpus if place is None else 1,
        batch_size=variant["batch_size"],
        tuned=tuned,
        compiled=tuned and options["compile"],
        layout=torch.channels_last if channels_last else torch.contiguous_format,
    )
    with trial.phase("device"):
        device = device_of(trial.asked["device"], setting)
        torch.backends.cudnn.benchmark = tuned or options["cudnn_benchmark"]
        arithmetic = precision.prepare(label, device)
    meeting: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    if setting.place.count > 1:
        meeting = ranks.together(setting.place, device, gradients=setting.shares_gradients)
    with meeting:
        return measured(trial, setting, options, device, arithmetic)


def measured(
    trial: TrialProcess,
    setting: Setting,
    options: dict[str, Any],
    device: torch.device,
    arithmetic: dict[str, Any],
) -> dict[str, Any]:
    """The training of this process and what it measured."""
    variant = trial.variant
    trial.stage("setup")
    with trial.phase("model"):
        seed_everything(trial.seed)
        model = classifier(variant["model"], options["classes"])
        made_for = image_size(variant["model"], model)
        size = variant["image_size"] or made_for
        shape = (setting.batch_size, 3, size, size)
        labels = torch.zeros(setting.batch_size, dtype=torch.long, device="meta")
        flops = of_step(model, shape, lambda output: loss_of(output, labels), value_bytes(setting.label))
        model.to(device, memory_format=setting.layout).train()
    trial.stage("data")
    with trial.phase("data"):
        home = torch.device("cpu") if variant["data_mode"] == "host" else device
        batches = synthetic(setting, size, options, trial.seed, home)

    trial.stage("setup")
    with trial.phase("first_step"), precision.rehearsal(model, device) as output_types:
        single = TrainingStep(model, update_of(setting, model, options, device), setting.label, device)
        local = slice(0, setting.batch_size)
        single.loss(*(half[local].to(device) for half in batches[0])).backward()
    parallel_model = spread(model, setting, device)
    step = TrainingStep(parallel_model, update_of(setting, model, options, device), setting.label, device)
    if parallel_model is not model:
        # A compiled model has no hooks: with them it would be another one, to be compiled again.
        rehearsal = precision.untraced if setting.compiled else precision.rehearsal
        with trial.phase("compile" if setting.compiled else "spread"), rehearsal(model, device) as seen:
            step.loss(*(half.to(device) for half in batches[0])).backward()
        output_types = seen or output_types
    if setting.compiled:
        torch.compiler.set_stance("fail_on_recompile")

    clock = Clock(trial, device, steps_per_epoch=STEPS_PER_EPOCH, epochs=EPOCHS)
    trial.stage("train")
    timer = ForwardTimer(device)
    epochs = train(trial, setting, clock, step, batches, timer)
    series = clock.series()

    trial.stage("collect")
    # Of several devices one's kernels would say nothing, and a rank must not train without the others.
    alone = setting.devices == 1 and not setting.shares_gradients

    def again() -> None:
        step(*(half.to(device) for half in batches[0]))

    protocol = {"steps_per_epoch": STEPS_PER_EPOCH, "epochs": EPOCHS, "valid_batches": 0}
    return {
        "device": dict(facts(trial.asked["device"], device), count=setting.devices),
        "versions": software(torchvision, timm),
        "precision": dict(
            arithmetic,
            output_dtypes=output_types,
            parameter_dtypes=precision.parameter_types(model),
            **step.update.facts(),
        ),
        "data": {"name": "random", "source": trial.asked["data"], "distinct_batches": len(batches)},
        "protocol": dict(protocol, **clock.ended(epochs, whole=True)),
        "sample_unit": "image",
        "samples_per_step": setting.samples,
        "epochs": epochs,
        "flops": flops,
        "structure": {
            "parameters": sum(weight.numel() for weight in model.parameters()),
            "classes": options["classes"],
            "image_size": size,
        },
        "parallel": setting.parallel if setting.devices > 1 else None,
        "notes": []
        if size >= made_for
        else [f"smaller images than the model's own: {size} of {made_for} px"],
        "kernels": kernels.kernel_time(again, device) if alone else None,
        "ranks": entries(setting.place.rank, setting.devices, series, timer) if variant["gpus"] > 1 else [],
        **series,
    }


def train(
    trial: TrialProcess,
    setting: Setting,
    clock: Clock,
    step: TrainingStep,
    batches: list[Batch],
    timer: ForwardTimer,
) -> list[dict[str, Any]]:
    """Epochs until the protocol or the trial's limit ends; one record each."""
    over: Callable[[], object] = clock.over
    if setting.shares_gradients:
        over = ranks.End(clock, setting.place).over
    if setting.place.count > 1:
        step.after_forward = timer.end
        torch.distributed.barrier()
    epochs: list[dict[str, Any]] = []
    ended = False
    while len(epochs) < clock.epochs and not ended:
        clock.start()
        for number in range(STEPS_PER_EPOCH):
            batch = batches[number % len(batches)]
            clock.ready()
            images, labels = (half.to(step.device, non_blocking=True) for half in batch)
            if setting.place.count > 1:
                timer.begin()
            clock.step(step(images, labels), len(labels))
            ended = bool(over())
            if ended:
                break
        epochs.append(clock.stop())
        step.update.read()
        trial.event("epoch", **epochs[-1])
    return epochs


def device_of(kind: str, setting: Setting) -> torch.device:
    """The device of this process, of the kind asked; raises Failed where there are too few."""
    if kind == "cpu" and setting.devices > 1:
        raise Failed("unsupported", "parallel 'dp' is DataParallel, which needs GPUs; take 'ddp'")
    return choose_own(kind, setting.place.local, setting.devices)


def update_of(setting: Setting, model: nn.Module, options: dict[str, Any], device: torch.device) -> Update:
    """SGD with momentum; `tuned` fuses it."""
    optimiser = torch.optim.SGD(
        model.parameters(),
        lr=options["lr"],
        momentum=MOMENTUM,
        weight_decay=options["weight_decay"],
        fused=True if setting.tuned else None,
    )
    return Update(setting.label, optimiser, device)


def spread(model: nn.Module, setting: Setting, device: torch.device) -> nn.Module:
    """The model over the devices or ranks of the setting, compiled where that is asked."""
    if setting.devices > 1:
        if setting.compiled:
            message = "DataParallel cannot be compiled; set the option 'compile' to false"
            raise Failed("unsupported", message)
        within = InPrecision(model, setting.label, device)
        return nn.DataParallel(within, list(range(setting.devices)))
    if setting.shares_gradients:
        device_ids = [device] if device.type == "cuda" else None
        model = nn.parallel.DistributedDataParallel(model, device_ids=device_ids)
    return torch.compile(model) if setting.compiled else model


def synthetic(
    setting: Setting, size: int, options: dict[str, Any], seed: int, home: torch.device
) -> list[Batch]:
    """This process's part of each global batch: normal images and uniform labels, by seed and place."""
    first = setting.place.rank * setting.batch_size
    pinned = setting.tuned and home.type == "cpu" and torch.cuda.is_available()
    batches = []
    for number in range(options["batches"]):
        items = list(pictures(number, range(first, first + setting.samples), size, options["classes"], seed))
        images = torch.stack([image for image, _ in items]).contiguous(memory_format=setting.layout)
        labels = torch.tensor([label for _, label in items])
        if pinned:
            images, labels = images.pin_memory(), labels.pin_memory()
        batches.append((images.to(home), labels.to(home)))
    return batches


def pictures(
    batch: int, items: range, size: int, classes: int, seed: int
) -> Iterator[tuple[torch.Tensor, int]]:
    """Images as (3, size, size) with their labels; `items` are places in the global batch."""
    for item in items:
        generator = torch.Generator().manual_seed(seed * 1_000_003 + batch * 100_003 + item)
        image = torch.randn((3, size, size), generator=generator)
        yield image, int(torch.randint(classes, (), generator=generator))


if __name__ == "__main__":
    launcher.settle()
    main(run, __file__)
