"""A model over several devices, ranks or virtual ranks."""

from __future__ import annotations

from typing import Any

import torch
from torch import distributed, nn
from torch.distributed.fsdp import fully_shard
from torch.func import functional_call

from parts.numerics import precision
from parts.training.setting import Setting
from parts.trial import Failed


class InPrecision(nn.Module):
    """A model that enters the trial's precision itself: DataParallel's threads lose autocast's type."""

    def __init__(self, model: nn.Module, label: str, device: torch.device) -> None:
        super().__init__()
        self.model, self.label, self.device = model, label, device

    def forward(self, inputs: torch.Tensor) -> Any:
        """Return the model's output."""
        with precision.autocast(self.label, self.device):
            return self.model(inputs)


class VirtualRanks:
    """Several ranks one after the other on one device: each has its part of the batch and its own buffers.

    So batch norm normalises each part by itself, as ranks do that share no statistics, and the model's own
    running statistics are those of rank 0.
    """

    def __init__(self, model: nn.Module, count: int) -> None:
        self.model, self.count = model, count
        self.buffers = [
            {name: buffer.clone() for name, buffer in model.named_buffers()} for _ in range(count - 1)
        ]

    def output(self, rank: int, inputs: torch.Tensor) -> Any:
        """Return the model's output as that rank has it."""
        if rank == 0:
            return self.model(inputs)
        return functional_call(self.model, self.buffers[rank - 1], (inputs,))

    def parts(
        self, inputs: torch.Tensor, targets: torch.Tensor
    ) -> list[tuple[int, torch.Tensor, torch.Tensor]]:
        """Return each rank with its equal part of a batch."""
        halves = zip(inputs.chunk(self.count), targets.chunk(self.count), strict=True)
        return [(rank, part, aims) for rank, (part, aims) in enumerate(halves)]


def spread(model: nn.Module, setting: Setting) -> nn.Module:
    """Return the model over the devices or ranks of the setting, compiled where that is asked.

    Raises Failed where two of these do not go together.
    """
    device = setting.device
    if setting.options.get("sync_batchnorm", False) and setting.ranks > setting.virtual_ranks:
        if device.type == "cpu" or setting.devices > 1:
            raise Failed("unsupported", "batch norm over several devices needs one process a GPU")
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    if setting.devices > 1:
        if setting.compiled:
            message = "DataParallel cannot be compiled; set the option 'compile' to false"
            raise Failed("unsupported", message)
        return nn.DataParallel(InPrecision(model, setting.label, device), list(range(setting.devices)))
    if setting.shares_gradients and setting.parallel == "fsdp":
        for part in model.modules():
            if isinstance(part, nn.ModuleList):
                for block in part:
                    fully_shard(block)
        model = fully_shard(model)
    elif setting.shares_gradients:
        device_ids = [device] if device.type == "cuda" else None
        model = nn.parallel.DistributedDataParallel(model, device_ids=device_ids)
    return torch.compile(model) if setting.compiled else model


def unwrap(model: nn.Module, setting: Setting) -> nn.Module:
    """Return the model of one rank, under what shares gradients: that shares buffers too, at each forward
    pass.

    Ranks validate unequal numbers of batches, and would wait for each other for ever.
    """
    inner = getattr(model, "_orig_mod", model)
    if not isinstance(inner, nn.parallel.DistributedDataParallel):
        return model
    return torch.compile(inner.module) if setting.compiled else inner.module


def share_buffers(model: nn.Module) -> None:
    """Give every rank rank 0's buffers, so that all of them validate one model."""
    for buffer in model.buffers():
        distributed.broadcast(buffer, src=0)
