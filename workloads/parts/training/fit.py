"""The loop that trains a model, and the measurement of it: precision, rehearsal, clock, epochs, validation.

A workload that keeps to it is its model, its batches and its loss. A step is timed as in every workload (see
`parts/timing/clock.py`). Validation is outside the window, and its seconds are kept by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, Protocol

import torch
from torch import distributed, nn
from torch.optim.lr_scheduler import LRScheduler

from parts.device import facts, software
from parts.numerics import precision
from parts.numerics.flops import batch_operations, value_bytes
from parts.numerics.update import Update
from parts.ranks import SharedEnd
from parts.timing import profiler
from parts.timing.clock import Clock, stopwatch
from parts.timing.measurement import make_measurement
from parts.timing.profiler import forget_peak, peak_bytes
from parts.training.batches import Batch
from parts.training.parallel import VirtualRanks, share_buffers, spread, unwrap
from parts.training.setting import Setting

Loss = Callable[[Any, torch.Tensor], torch.Tensor]


class Batches(Sized, Protocol):
    """An epoch's batches of inputs and targets each time it is gone through."""

    def __iter__(self) -> Iterator[Batch]: ...


def accuracy(output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the share of targets that have the highest score of their output."""
    return (output.argmax(-1) == targets).float().mean()


@dataclass(frozen=True)
class Loop:
    """How long a protocol is, and where a published loop does otherwise than ours."""

    epochs: int
    sample_unit: str = "sample"
    warmed: bool = True
    """Whether a step that leaves no trace comes before the window."""
    waits: bool = False
    """Whether copies block and each step ends by reading its loss."""
    alike: bool = False
    """Whether ranks draw alike, and all steps have one shape: nothing may be compiled again in the window."""
    keeps_gradients: bool = False
    """Whether gradients are set to zero and not freed, and the peak of memory is the window's alone."""


class TrainingStep:
    """One training step: a batch in, new weights and the loss out."""

    def __init__(
        self, model: nn.Module, loss: Loss, update: Update, setting: Setting, *, keeps_gradients: bool = False
    ) -> None:
        self.model, self.loss_of, self.update, self.setting = model, loss, update, setting
        self.frees_gradients = not keeps_gradients
        apart = setting.virtual_ranks > 1 and not setting.options.get("sync_batchnorm", False)
        self.virtual = VirtualRanks(model, setting.virtual_ranks) if apart else None

    def __call__(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        self.update.optimiser.zero_grad(set_to_none=self.frees_gradients)
        if self.virtual is None:
            with self._precision():
                loss = self.loss_of(self.model(inputs), targets)
            self.update(loss)
            return loss
        total = torch.zeros((), device=inputs.device)
        for rank, part, aims in self.virtual.parts(inputs, targets):
            with self._precision():
                loss = self.loss_of(self.virtual.output(rank, part), aims)
            self.update.backward(loss / self.virtual.count)
            total += loss.detach() / self.virtual.count
        self.update.step()
        return total

    def _precision(self) -> Any:
        return precision.autocast(self.setting.label, self.setting.device)


def fit(
    setting: Setting,
    model: nn.Module,
    train: Batches,
    valid: Batches | None,
    loss: Loss,
    optimiser: Callable[[nn.Module], torch.optim.Optimizer],
    loop: Loop,
    *,
    quality_name: str | None = None,
    schedule: Callable[[Any], Sequence[LRScheduler]] = lambda optimiser: (),
    data: dict[str, Any] | None = None,
    structure: dict[str, int] | None = None,
    other_operations: int = 0,
) -> dict[str, Any]:
    """Train as far as protocol and limit let it go; returns the measurement's own part.

    `model` is on no device yet, a batch of `train` holds `setting.samples`, and `schedule` is given what
    `optimiser` gave. A validation's quality is its accuracy, and `quality_name` says so. `data` and
    `structure` are what the workload knows of them, and `other_operations` the operations of a step that no
    layer's size gives. Raises Failed where training cannot go on.
    """
    trial, device = setting.trial, setting.device
    trial.stage("setup")
    clock = Clock(trial, device, steps_per_epoch=len(train), epochs=loop.epochs)
    with trial.phase("model"):
        model.to(device, **_layout(setting)).train()
        counts = {"parameters": sum(weight.numel() for weight in model.parameters())}
    if setting.place.rank and not loop.alike:
        # Alike up to here, so that the models are; from here on each rank drops and augments by itself.
        torch.manual_seed(trial.seed + setting.place.rank)
    first = _first_batch(setting, train) if loop.warmed else None
    output_types: dict[str, int] = {}
    operations: dict[str, Any] = {}
    if first is not None:
        alone = _part_of_one_device(setting, first)
        operations = _operations(setting, model, alone, loss, loop, other_operations)
        with trial.phase("first_step"):
            output_types = _rehearse(setting, model, model, loss, alone)
    whole = spread(model, setting)
    of_model = optimiser(model)
    update = Update(setting.label, of_model, device)
    step = TrainingStep(whole, loss, update, setting, keeps_gradients=loop.keeps_gradients)
    if whole is not model and first is not None:
        with trial.phase("compile" if setting.compiled else "spread"):
            seen = _rehearse(setting, model, whole, loss, first, hooked=not setting.compiled)
            output_types = seen or output_types
    if setting.compiled and loop.alike:
        torch.compiler.set_stance("fail_on_recompile")
    rates = schedule(of_model)

    if loop.keeps_gradients:
        forget_peak(device)
    validation = Validation(setting, whole, loss, valid)
    epochs = _train(setting, loop, clock, step, train, validation, rates)
    series = clock.series()

    trial.stage("collect")
    if first is None:
        first = _first_batch(setting, train)
        alone = _part_of_one_device(setting, first)
        if loop.keeps_gradients and device.type == "cpu":
            # A step in half precision takes minutes on a processor without it, so one step shows both.
            with precision.counted_output_types(model) as output_types:
                series["memory"]["allocated_peak_bytes"] = peak_bytes(
                    lambda: step(*first), of_model, chain(*train)
                )
        else:
            output_types = _rehearse(setting, model, model, loss, alone)
        operations = _operations(setting, model, alone, loss, loop, other_operations)
    update.read()
    # Of several devices one's kernels would say nothing, and a rank must not train without the others.
    by_itself = setting.devices == 1 and not setting.shares_gradients
    return make_measurement(
        clock,
        epochs,
        series,
        device=dict(facts(trial.asked["device"], device), count=setting.devices),
        versions=software(),
        precision=precision.effective_precision(
            precision.facts(setting.label, device), model, output_types, update.method, update.log
        ),
        data=data or {},
        sample_unit=loop.sample_unit,
        samples_per_step=count_samples(first[1], loop),
        structure={**counts, **(structure or {})},
        valid_batches=validation.whole,
        quality_name=quality_name,
        flops=operations,
        kernels=profiler.kernel_time(partial(step, *first), device) if by_itself else None,
        parallel=setting.parallel if setting.devices > 1 else None,
        notes=_notes(setting),
    )


class Validation:
    """The model held against the validation's batches, which ranks share among them."""

    def __init__(self, setting: Setting, model: nn.Module, loss: Loss, valid: Batches | None) -> None:
        self.setting, self.model, self.loss, self.valid = setting, model, loss, valid
        self.by_itself = unwrap(model, setting)
        self.whole = 0 if valid is None else len(valid)
        self.limit = setting.trial.valid_batches(self.whole)

    @torch.no_grad()
    def __call__(self, batches: int) -> dict[str, Any]:
        """Return mean loss and accuracy over so many batches."""
        setting = self.setting
        if setting.shares_gradients:
            share_buffers(self.model)
        self.model.eval()
        with stopwatch(setting.device) as taken:
            sums = torch.zeros(3, dtype=torch.float64, device=setting.device)
            mine = islice(self.valid or (), setting.place.rank, batches, setting.place.count)
            for inputs, targets in mine:
                sums += self._score_batch(inputs.to(setting.device), targets.to(setting.device))
            if setting.shares_gradients:
                distributed.all_reduce(sums)
            loss, score, samples = sums.tolist()
        self.model.train()
        return {
            "valid_seconds": taken[0],
            "valid_batches": batches,
            "valid_loss": loss / samples,
            "quality": score / samples,
        }

    def _score_batch(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        with precision.autocast(self.setting.label, self.setting.device):
            output = self.by_itself(inputs)
            loss = self.loss(output, targets)
        score = accuracy(output, targets)
        count = torch.ones((), device=loss.device) * len(targets)
        return torch.stack([loss.double() * count, score.double() * count, count.double()])


def count_samples(targets: torch.Tensor, loop: Loop) -> int:
    """Return how many samples the targets hold: each token is one, of anything else each row."""
    return targets.numel() if loop.sample_unit == "token" else len(targets)


def _train(
    setting: Setting,
    loop: Loop,
    clock: Clock,
    step: TrainingStep,
    train: Batches,
    validation: Validation,
    rates: Sequence[LRScheduler],
) -> list[dict[str, Any]]:
    """Run epochs until the protocol or the trial's limit ends; one record each."""
    over: Callable[[], object] = clock.limit_reached
    if setting.shares_gradients:
        over = SharedEnd(clock, setting.place).limit_reached
    if setting.place.count > 1:
        distributed.barrier()

    def trained(batch: Batch) -> None:
        clock.ready(batch[0])
        inputs, targets = (half.to(setting.device, non_blocking=not loop.waits) for half in batch)
        loss = step(inputs, targets)
        if loop.waits:
            loss.item()
        clock.step(loss, count_samples(targets, loop))

    def after(epoch: dict[str, Any]) -> None:
        step.update.read()
        if validation.limit:
            setting.trial.stage("valid")
            # Ranks must agree, and each has a clock of its own.
            alone = not setting.shares_gradients
            epoch.update(validation(clock.valid_batches(validation.limit) if alone else validation.limit))
        for rate in rates:
            rate.step()

    return clock.run(lambda: train, trained, over, after)


def _layout(setting: Setting) -> dict[str, torch.memory_format]:
    """Return the memory format that the variant asks for; the model's own where it asks for none."""
    channels_last = setting.trial.variant["layout"] == "channels_last"
    return {"memory_format": torch.channels_last} if channels_last else {}


def _part_of_one_device(setting: Setting, batch: Batch) -> Batch:
    """Return one device's part of a batch, which is all that one of several may have room for."""
    own = slice(setting.batch_size * setting.virtual_ranks)
    return batch[0][own], batch[1][own]


def _first_batch(setting: Setting, train: Batches) -> Batch:
    """Return a batch of the training data, on the device; no random number is drawn for it."""
    with precision.preserved_random_state(setting.device):
        first = next(iter(train))
    return first[0].to(setting.device), first[1].to(setting.device)


def _rehearse(
    setting: Setting, model: nn.Module, whole: nn.Module, loss: Loss, batch: Batch, *, hooked: bool = True
) -> dict[str, int]:
    """Take a step without an update that leaves no trace; how often each type came out of a layer that
    works.

    A compiled model has no hooks: with them it would be another one, to be compiled again.
    """
    rehearsal, (inputs, targets) = precision.rehearsal if hooked else precision.leaving_no_trace, batch
    with rehearsal(model, setting.device) as counts, precision.autocast(setting.label, setting.device):
        loss(whole(inputs), targets).backward()
    return counts or {}


def _operations(
    setting: Setting, model: nn.Module, batch: Batch, loss: Loss, loop: Loop, others: int
) -> dict[str, Any]:
    inputs, targets = (half.to("meta") for half in batch)
    try:
        return batch_operations(
            model,
            lambda twin: loss(twin(inputs), targets).backward(),
            count_samples(targets, loop),
            value_bytes(setting.label),
            others,
        )
    except Exception as error:
        # A model may do what tensors without content cannot; it is measured all the same.
        reason = str(error).partition("\n")[0]
        return {"per_sample": None, "method": f"not given: {type(error).__name__}: {reason}"[:300]}


def _notes(setting: Setting) -> list[str]:
    if setting.virtual_ranks == 1:
        return []
    how = "together" if setting.options.get("sync_batchnorm", False) else "each by itself"
    return [f"{setting.virtual_ranks} virtual ranks on one device; batch norm: {how}"]
