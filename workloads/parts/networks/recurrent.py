"""An LSTM that computes in the type that autocast asks for.

torch's autocast casts a fused recurrent layer to fp16 on CUDA and HIP, whatever type it was entered with.
Under bf16 this layer leaves autocast and casts input, state and weights itself; the gradients of the weights
come back in the weights' own type.
"""

from typing import Any

import torch
from torch import _VF, nn


class LSTM(nn.LSTM):
    """torch's LSTM, in bf16 where autocast is entered with it."""

    def forward(self, sequence: torch.Tensor, state: Any) -> tuple[torch.Tensor, Any]:
        """Return output and state as torch's layer gives them."""
        kind, dtype = sequence.device.type, torch.bfloat16
        entered = kind != "meta" and torch.is_autocast_enabled(kind)
        if not entered or torch.get_autocast_dtype(kind) is not dtype:
            return super().forward(sequence, state)
        with torch.autocast(kind, enabled=False):
            output, *states = _VF.lstm(
                sequence.to(dtype),
                tuple(part.to(dtype) for part in state),
                [weight.to(dtype) for weight in self._flat_weights],
                self.bias,
                self.num_layers,
                self.dropout,
                self.training,
                self.bidirectional,
                self.batch_first,
            )
        return output, tuple(states)
