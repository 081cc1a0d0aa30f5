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

from typing import Any

import timm
import torch
import torchvision
from torch import distributed, nn

from parts import launcher, ranks
from parts.numerics import precision
from parts.numerics.flops import of_images, value_bytes
from parts.numerics.update import Update
from parts.timing import kernels
from parts.timing.clock import Clock
from parts.training.batches import Batch, Rotated
from parts.training.parallel import TrainingStep, spread
from parts.training.setting import Setting, over_processes

STEPS_PER_EPOCH, EPOCHS = 100, 100
TITLE = "Image classifiers on synthetic images, on one device and on several"
ABOUT = (
    "Classifiers train on random images, so that no loader stands in their way (SURF "
    "2021; its batch, resolution and optimiser are lost: protocol reconstructed)."
)
BATCHES = 4
RATE, MOMENTUM, WEIGHT_DECAY = 0.01, 0.9, 1e-4
WAYS = ("dp", "ddp", "each")
OPTIONS: dict[str, Any] = {
    "parallel": "ddp",
    "classes": 1000,
    "compile": True,
    "cudnn_benchmark": False,
}

AUXILIARY_WEIGHT = 0.4
"""Of an auxiliary classifier's loss, as torchvision trains InceptionV3."""
TIMM = "timm/"


def run(trial: TrialProcess) -> dict[str, Any]:
    """One trial of the protocol, by itself or as the ranks that it is made of."""
    trial.choose("protocol", trial.asked["protocol"], ("synthetic/1",))
    trial.choose("data mode", trial.variant["data_mode"], ("cached",))
    return over_processes(trial, trained, OPTIONS, ways=WAYS)


def trained(setting: Setting) -> dict[str, Any]:
    """The training of this process and what it measured."""
    trial, device, options = setting.trial, setting.device, setting.options
    torch.backends.cudnn.benchmark |= options["cudnn_benchmark"]
    options["compile"] = setting.tuned and options["compile"]
    classes = options["classes"]
    channels_last = setting.tuned or trial.variant["layout"] == "channels_last"
    layout = torch.channels_last if channels_last else torch.contiguous_format
    trial.stage("setup")
    with trial.phase("model"):
        model = classifier(setting.model, classes)
        made_for = image_size(setting.model, model)
        size = setting.image_size or made_for
        flops = of_images(model, size, setting.batch_size, value_bytes(setting.label), loss_of)
        model.to(device, memory_format=layout).train()
    trial.stage("data")
    with trial.phase("data"):
        batches = synthetic(setting, size, layout)

    trial.stage("setup")
    with trial.phase("first_step"), precision.rehearsal(model, device) as output_types:
        update = Update(setting.label, sgd(setting, model), device)
        one_device = (half[: setting.batch_size] for half in batches[0])
        TrainingStep(model, loss_of, update, setting).loss(*one_device).backward()
    whole = spread(model, setting)
    step = TrainingStep(whole, loss_of, update, setting)
    if whole is not model:
        # A compiled model has no hooks: with them it would be another one, to be compiled again.
        rehearsal = precision.untraced if setting.compiled else precision.rehearsal
        with trial.phase("compile" if setting.compiled else "spread"), rehearsal(model, device) as seen:
            step.loss(*batches[0]).backward()
        output_types = seen or output_types
    if setting.compiled:
        torch.compiler.set_stance("fail_on_recompile")

    clock = Clock(trial, device, steps_per_epoch=STEPS_PER_EPOCH, epochs=EPOCHS)
    trial.stage("train")
    epochs = train(setting, clock, step, batches)
    measured = clock.told(epochs, modules=(torchvision, timm))
    of_ranks = ranks.entries(setting.place, trial.variant["gpus"], clock)

    trial.stage("collect")
    # Of several devices one's kernels would say nothing, and a rank must not train without the others.
    alone = setting.devices == 1 and not setting.shares_gradients

    return {
        **measured,
        "device": dict(measured["device"], count=setting.devices),
        "precision": dict(
            precision.facts(setting.label, device),
            output_dtypes=output_types,
            parameter_dtypes=precision.parameter_types(model),
            **update.facts(),
        ),
        "data": {"name": "random", "source": trial.asked["data"], "distinct_batches": len(batches)},
        "sample_unit": "image",
        "samples_per_step": setting.samples,
        "flops": flops,
        "structure": {
            "parameters": sum(weight.numel() for weight in model.parameters()),
            "classes": classes,
            "image_size": size,
        },
        "parallel": setting.parallel if setting.devices > 1 else None,
        "notes": []
        if size >= made_for
        else [f"smaller images than the model's own: {size} of {made_for} px"],
        "kernels": kernels.kernel_time(lambda: step(*batches[0]), device) if alone else None,
        "ranks": of_ranks,
    }


def train(setting: Setting, clock: Clock, step: TrainingStep, batches: list[Batch]) -> list[dict[str, Any]]:
    """Epochs until the protocol or the trial's limit ends; one record each."""
    over = ranks.SharedEnd(clock, setting.place).over if setting.shares_gradients else None
    if setting.place.count > 1:
        distributed.barrier()

    def step_of(batch: Batch) -> None:
        clock.ready()
        clock.step(step(*batch), len(batch[1]))

    rounds = Rotated(batches, STEPS_PER_EPOCH)
    return clock.run(lambda: rounds, step_of, over, lambda epoch: step.update.read())


def sgd(setting: Setting, model: torch.nn.Module) -> torch.optim.SGD:
    """SGD with momentum; `tuned` fuses it."""
    return torch.optim.SGD(
        model.parameters(),
        lr=RATE,
        momentum=MOMENTUM,
        weight_decay=WEIGHT_DECAY,
        fused=True if setting.tuned else None,
    )


def synthetic(setting: Setting, size: int, layout: torch.memory_format) -> list[Batch]:
    """This process's part of each global batch: normal images and uniform labels, by seed and place."""
    classes, first = setting.options["classes"], setting.place.rank * setting.batch_size
    batches = []
    for number in range(BATCHES):
        places = range(first, first + setting.samples)
        items = [picture(setting.seed * 1_000_003 + number * 100_003 + at, size, classes) for at in places]
        images = torch.stack([image for image, _ in items]).contiguous(memory_format=layout)
        labels = torch.tensor([label for _, label in items])
        batches.append((images.to(setting.device), labels.to(setting.device)))
    return batches


def picture(seed: int, size: int, classes: int) -> tuple[torch.Tensor, int]:
    """An image as (3, size, size), and its label."""
    generator = torch.Generator().manual_seed(seed)
    image = torch.randn((3, size, size), generator=generator)
    return image, int(torch.randint(classes, (), generator=generator))


def classifier(name: str, classes: int) -> nn.Module:
    """A torchvision classifier, or timm's where torchvision has none; `timm/NAME` is timm's in any case."""
    own = name.removeprefix(TIMM)
    if _in_torchvision(name):
        # Asked for by name, since these two warn otherwise; it is their default.
        more = {"init_weights": True} if name in ("inception_v3", "googlenet") else {}
        return torchvision.models.get_model(name, weights=None, num_classes=classes, **more)
    if timm.is_model(own):
        return timm.create_model(own, num_classes=classes)
    raise Failed("unsupported", f"neither torchvision nor timm has a classifier '{name}'")


def image_size(name: str, model: nn.Module) -> int:
    """Pixels of the images that the model was made for."""
    if _in_torchvision(name):
        return torchvision.models.get_model_weights(name).DEFAULT.transforms().crop_size[0]
    return model.default_cfg["input_size"][-1]  # type: ignore[index, union-attr]


def loss_of(output: torch.Tensor | tuple[torch.Tensor, ...], labels: torch.Tensor) -> torch.Tensor:
    """Cross-entropy, of auxiliary classifiers too where there are any."""
    if isinstance(output, torch.Tensor):
        return nn.functional.cross_entropy(output, labels)
    main, *others = (nn.functional.cross_entropy(scores, labels) for scores in output)
    return main + AUXILIARY_WEIGHT * sum(others)


def _in_torchvision(name: str) -> bool:
    return name in torchvision.models.list_models(module=torchvision.models)


if __name__ == "__main__":
    launcher.settle()
    main(run)
