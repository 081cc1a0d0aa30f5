"""Backward pass and update in fp32 and under autocast: a loss in, new weights out.

Nothing here waits for the device but what torch's own GradScaler reads; the scales of a loss stay on the
device until they are asked for.
"""

from typing import Any

import torch

from parts.master_weights import ScaleLog

LABELS = ("fp32-ieee", "fp32-tf32", "fp32-default", "amp-fp16", "amp-bf16")


class Update:
    """One optimiser's step under a precision label; fp16 has torch's dynamic loss scale."""

    def __init__(self, label: str, optimiser: torch.optim.Optimizer, device: torch.device) -> None:
        self.optimiser = optimiser
        self.scaler = torch.amp.GradScaler(device.type, enabled=label == "amp-fp16")
        self.method = "torch.autocast" if label.startswith("amp-") else "none"
        self._log: ScaleLog | None = None
        self._scales: list[torch.Tensor] = []
        self._steps = 0
        if self.scaler.is_enabled():
            self.method += ", torch.amp.GradScaler"
            self._log = ScaleLog("dynamic", self.scaler.get_scale())

    def __call__(self, loss: torch.Tensor) -> None:
        """Gradients of the loss, and the step where they are finite."""
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimiser)
        self.scaler.update()
        if self._log:
            self._scales.append(self.scaler._get_scale_async().clone())

    def read(self) -> None:
        """Notes the scales of the steps so far; waits for the device."""
        if self._log is None or not self._scales:
            return
        for scale in torch.stack(self._scales).tolist():
            self._steps += 1
            self._log.note(self._steps, scale, skipped=scale < self._log.scale)
        self._scales.clear()

    def found(self) -> dict[str, Any]:
        """What a measurement tells of it: the method, and the loss scale where there is one."""
        self.read()
        return {"method": self.method, "loss_scale": self._log.found() if self._log else None}
