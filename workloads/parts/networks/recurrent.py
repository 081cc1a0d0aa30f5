"""Recurrent layers that compute in the type that autocast asks for.

torch's autocast casts a fused recurrent layer to fp16 on CUDA and HIP, whatever type it was entered with, and
a GRU on a CPU to none. Under bf16 these layers leave autocast and cast input, state and weights themselves;
the gradients of the weights come back in the weights' own type.
"""

from typing import Any

import torch
from torch import _VF, nn

FUSED = {"LSTM": _VF.lstm, "GRU": _VF.gru, "RNN_TANH": _VF.rnn_tanh, "RNN_RELU": _VF.rnn_relu}


class _InAutocastType(nn.RNNBase):
    def forward(self, sequence: torch.Tensor, state: Any) -> tuple[torch.Tensor, Any]:
        """Output and state as torch's layer gives them, in bf16 where autocast is entered with it."""
        kind, dtype = sequence.device.type, torch.bfloat16
        entered = kind != "meta" and torch.is_autocast_enabled(kind)
        if not entered or torch.get_autocast_dtype(kind) is not dtype:
            return super().forward(sequence, state)
        with torch.autocast(kind, enabled=False):
            several = isinstance(state, tuple)
            output, *states = FUSED[self.mode](
                sequence.to(dtype),
                tuple(part.to(dtype) for part in state) if several else state.to(dtype),
                [weight.to(dtype) for weight in self._flat_weights],
                self.bias,
                self.num_layers,
                self.dropout,
                self.training,
                self.bidirectional,
                self.batch_first,
            )
        return output, tuple(states) if several else states[0]


class LSTM(_InAutocastType, nn.LSTM):
    """torch's LSTM."""


class GRU(_InAutocastType, nn.GRU):
    """torch's GRU."""


class RNN(_InAutocastType, nn.RNN):
    """torch's plain recurrent layer."""
