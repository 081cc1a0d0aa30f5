"""The two precisions of the study, as torch 1.0 has them: no autocast, no bf16, and no card with TF32.

So no switch is set, and what the arithmetic really is, is probed as everywhere.
"""

from __future__ import annotations

from typing import Any

import torch

from parts.numerics import precision
from parts.trial import Failed

LABELS = ("fp32-ieee", "fp16-master")


def prepare(label: str, device: torch.device) -> dict[str, Any]:
    """Label, flags and probes as a measurement has them; refuses what this torch cannot do on the device."""
    if label not in LABELS:
        raise Failed(
            "unsupported", f"'{label}' is asked; torch {torch.__version__} has {' and '.join(LABELS)}"
        )
    if label == "fp16-master" and device.type == "cpu":
        raise Failed("unsupported", f"'{label}' is asked; torch {torch.__version__} has no fp16 on a CPU")
    flags = {"cudnn.benchmark": torch.backends.cudnn.benchmark}
    return {"label": label, "flags": flags, "probes": precision.probes(label, device)}
