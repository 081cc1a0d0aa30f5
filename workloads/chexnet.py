"""Karmanov 2018's CheXNet in PyTorch: images per second of DenseNet-121, on one device and on several.

The terms are those of every framework (`parts.chexnet.protocol`); this is torchvision's DenseNet-121. The
framework `pytorch` shares a step by `dp`, DataParallel as published, which gathers the outputs on the first
device for the loss, or by `ddp`, one rank a device. `pytorch-loss-per-gpu` is the study's second notebook:
the loss is taken on each device by itself, the mean is trained on, and nothing reads it before an epoch's
end.

`published/1` has cudnn.benchmark, as the notebook; `fair/1` has torch's default. A step copies pinned images
without waiting for the copy. On real X-rays the weights are ImageNet's where the trial has them, with a head
drawn by the rule that all frameworks have.

`loading/1` is the loader alone. Options of loading, each by itself as in the protocol
(`parts.chexnet.loading`): `workers`, in `loader` "processes" or "threads"; files of `source_pixels` 264 or
1024 in `format` "png" or "jpeg"; `valid_batch` "larger", four times that of training; `valid_loader` "before
training"; `valid_devices` "first"; `loss` "kept" on the device.
"""

from parts.trial import TrialProcess, main  # isort: skip  (its clock starts with this line)

import io
import re
from typing import Any

import numpy as np
import torch
import torchvision
from torch import distributed, nn

from parts import launcher, ranks
from parts.chexnet import feed, training
from parts.chexnet.loading import TorchLoading
from parts.chexnet.network import BLOCKS, neutral_weights
from parts.chexnet.protocol import BETAS, CLASSES, EPOCHS, LOADING, PROTOCOLS, Terms, terms
from parts.device import choose_own, facts, seed_everything, software
from parts.inputs import datasets
from parts.launcher import ALONE, Place
from parts.numerics import precision
from parts.timing.clock import Clock
from parts.timing.step_clock import StepClock
from parts.training.parallel import share_buffers

TITLE = "DenseNet-121 with 14 labels, in several frameworks"
ABOUT = "DenseNet-121 trains on random images, with equal weights in each framework (Karmanov 2018)."
FRAMEWORKS = {"pytorch": ("dp", "ddp"), "pytorch-loss-per-gpu": ("dp",)}
NAMES = {"pytorch": "PyTorch", "pytorch-loss-per-gpu": "PyTorch, loss per GPU"}
WAYS = {"dp": "DataParallel", "ddp": "DistributedDataParallel"}
WEIGHTS = "densenet121-a639ec97.pth"
"""torchvision's, trained on ImageNet."""
NORM = {"scale": "weight", "shift": "bias", "mean": "running_mean", "variance": "running_var"}


class WithLoss(nn.Module):
    """A network that ends with the loss, so that each device of DataParallel takes its own."""

    def __init__(self, network: nn.Module, of_logits: bool) -> None:
        super().__init__()
        self.network, self.of_logits = network, of_logits

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the mean over images and labels."""
        return mean_loss(self.network(images), labels, self.of_logits)


class TorchTrainer(training.Trainer):
    """torchvision's DenseNet-121 with Adam, over the devices or ranks that share a step."""

    def __init__(self, asked: Terms, device: torch.device, place: Place) -> None:
        self.terms, self.device = asked, device
        self.network = torchvision.models.densenet121(weights=None, num_classes=CLASSES).to(device)
        self.model: nn.Module = self.network
        self.evaluated: nn.Module = self.network
        self.place = place
        self.loss_inside = asked.framework == "pytorch-loss-per-gpu"
        if self.loss_inside:
            self.model = WithLoss(self.network, asked.variant.loss_of_logits)
        if place.count > 1:
            ids = [device] if device.type == "cuda" else None
            self.model = nn.parallel.DistributedDataParallel(self.network, device_ids=ids)
        elif asked.devices > 1:
            devices = list(range(asked.devices))
            self.model = nn.DataParallel(self.model, devices)
            if asked.loading.get("valid_devices") != "first":
                self.evaluated = nn.DataParallel(self.network, devices)

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over weights, and begin again with a new Adam."""
        self.network.load_state_dict(
            {torch_name(name): torch.from_numpy(array) for name, array in arrays.items()}, strict=False
        )
        self.optimiser = torch.optim.Adam(
            self.model.parameters(),
            lr=self.terms.learning_rate,
            betas=BETAS,
            eps=self.terms.variant.adam_epsilon,
        )

    def outputs(self, images: Any) -> np.ndarray:
        """Return the 14 outputs before the sigmoid, by the running means; takes arrays and tensors."""
        self.network.eval()
        images = torch.as_tensor(images).to(self.device, non_blocking=True)
        with torch.no_grad():
            return self.evaluated(images).cpu().numpy()

    def evaluate(self, batches: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return outputs and labels; ranks evaluate rank 0's running means and variances."""
        if self.place.count == 1:
            return super().evaluate(batches)
        share_buffers(self.network)
        every: list[Any] = [None] * self.place.count
        distributed.all_gather_object(every, super().evaluate(batches))
        return tuple(np.concatenate(half) for half in zip(*every, strict=True))

    def step(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Take one training step; takes NumPy arrays too."""
        images, labels = (torch.as_tensor(half) for half in (images, labels))
        self.network.train()
        images, labels = (half.to(self.device, non_blocking=True) for half in (images, labels))
        self.optimiser.zero_grad()
        if self.loss_inside:
            loss = self.model(images, labels).mean()
        else:
            loss = mean_loss(self.model(images), labels, self.terms.variant.loss_of_logits)
        loss.backward()
        self.optimiser.step()
        return loss


def mean_loss(logits: torch.Tensor, labels: torch.Tensor, of_logits: bool) -> torch.Tensor:
    """Return binary cross-entropy in one operation, or after the sigmoid as published."""
    if of_logits:
        return nn.functional.binary_cross_entropy_with_logits(logits, labels)
    return nn.functional.binary_cross_entropy(logits.sigmoid(), labels)


def torch_name(name: str) -> str:
    """Return torchvision's name of a neutral one, as `block2/layer11/conv1/weight` or `head/bias`."""
    *place, part = name.split("/")
    number = place[0][-1]
    if place[0] == "head":
        return f"classifier.{part}"
    if place[0] == "stem":
        module = f"features.{place[1]}0"
    elif place[0] == "final":
        module = f"features.norm{len(BLOCKS) + 1}"
    elif place[0].startswith("block"):
        layer = place[1].removeprefix("layer")
        module = f"features.denseblock{number}.denselayer{layer}.{place[2]}"
    else:
        module = f"features.transition{number}.{place[1]}"
    return f"{module}.{NORM.get(part, part)}"


def pretrained_arrays(content: bytes) -> dict[str, np.ndarray]:
    """Return torchvision's file as neutral arrays, with the head that is drawn by rule."""
    state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    # The file is older than names that may hold no point: `norm.1` is now `norm1`.
    state = {re.sub(r"(norm|conv)\.([12])\.", r"\1\2.", name): value for name, value in state.items()}
    return {
        name: array if name.startswith("head/") else state[torch_name(name)].numpy()
        for name, array in neutral_weights().items()
    }


def run(trial: TrialProcess) -> dict[str, Any]:
    """Run one trial of the protocol, by itself or as the ranks that it is made of."""
    asked = terms(trial, FRAMEWORKS, reads_files=True)
    place = launcher.own_place()
    if asked.protocol == LOADING:
        return measure_loading(trial, asked)
    if asked.devices > 1 and asked.parallel == "ddp" and place is None:
        return ranks.launch_ranks(trial, "ddp", asked.devices)
    place = place or ALONE
    with trial.phase("device"):
        device = choose_own(trial.asked["device"], place.local, 1 if place.count > 1 else asked.devices)
        torch.backends.cudnn.benchmark = trial.asked["protocol"] == PROTOCOLS[0]
        arithmetic = precision.prepare(asked.precision, device)
    with ranks.process_group(place, device, gradients=True):
        return measure_training(trial, asked, place, device, arithmetic)


def measure_loading(trial: TrialProcess, asked: Terms) -> dict[str, Any]:
    """Measure the loader alone: no device has anything to do."""
    kind = trial.asked["device"]
    with trial.phase("device"):
        device = choose_own(kind, 0, 1 if kind == "cpu" else asked.devices)
    trial.stage("data")
    with trial.phase("data"):
        seed_everything(trial.seed)
        read = feed.dataset(trial, asked, TorchLoading(pinned=device.type == "cuda"))
    together = max(1, asked.workers)
    clock = StepClock(trial, steps_per_epoch=read.terms.steps_per_epoch, epochs=EPOCHS, together=together)
    epochs = training.load_epochs(clock, read.train)
    trial.stage("collect")
    arithmetic = {"label": asked.precision, "output_dtypes": {}, "parameter_dtypes": {}, "method": "none"}
    found = {**framework_facts(trial, asked, device, asked.devices), "precision": arithmetic}
    made = training.make_chexnet_measurement(read.terms, clock, epochs, read.facts, found)
    # What is waited for is the work itself, so nothing is a wait for input.
    return {**made, "input_us": None}


def framework_facts(trial: TrialProcess, asked: Terms, device: torch.device, count: int) -> dict[str, Any]:
    """Return device, versions and framework, as a measurement has them."""
    return {
        "device": dict(facts(trial.asked["device"], device), count=count),
        "versions": software(torchvision),
        "framework": {
            "name": NAMES[asked.framework],
            "version": torch.__version__,
            "ways": {way: WAYS[way] for way in FRAMEWORKS[asked.framework]},
            "loader": TorchLoading(pinned=device.type == "cuda").loader_name(asked),
        },
    }


def first_weights(trial: TrialProcess) -> tuple[dict[str, np.ndarray] | None, dict[str, Any]]:
    """Return ImageNet's weights where training begins with them, and a measurement's part about them."""
    if trial.asked["weights"] != "pretrained":
        return None, {}
    content, digest = datasets.weights(trial.data_folder, WEIGHTS)
    return pretrained_arrays(content), {"weights": "pretrained", "weights_sha256": digest}


def measure_training(
    trial: TrialProcess, asked: Terms, place: Place, device: torch.device, arithmetic: dict[str, Any]
) -> dict[str, Any]:
    """Train in this process and return what it measured."""
    with trial.phase("model"):
        seed_everything(trial.seed)
        trainer = TorchTrainer(asked, device, place)
    trial.stage("data")
    with trial.phase("data"):
        read = feed.dataset(trial, asked, TorchLoading(trainer, pinned=device.type == "cuda"), place)
        asked = read.terms
        arrays, begun = first_weights(trial)
    trial.stage("setup")
    with trial.phase("first_step"), precision.counted_output_types(trainer.network) as output_types:
        training.begin(trainer, read.first, arrays)
    clock = Clock(trial, device, steps_per_epoch=asked.steps_per_epoch, epochs=EPOCHS)
    over = ranks.SharedEnd(clock, place).limit_reached if place.count > 1 else clock.limit_reached
    epochs = trainer.train(trial, clock, asked, read.train, read.valid, over)
    score = training.score_test(trial, read.test, read.labels)
    trial.stage("collect")
    found = {
        **framework_facts(trial, asked, device, 1 if place.count > 1 else asked.devices),
        "tested": score,
        "precision": precision.effective_precision(arithmetic, trainer.network, output_types),
        "samples_per_step": len(read.first[1]),
    }
    data = {**begun, **read.facts}
    return training.make_chexnet_measurement(asked, clock, epochs, data, found, read.valid)


if __name__ == "__main__":
    launcher.settle()
    main(run)
