"""torchvision, also where its CUDA build stands beside a CPU-only torch; import it before fastai or timm.

That build cannot load its compiled operators there and then fails on two that were never declared. They are
declared after the first attempt only: where they exist, a second declaration would abort the process.
"""

import importlib
import sys
from types import ModuleType

import torch


def _load() -> ModuleType:
    try:
        return importlib.import_module("torchvision")
    except RuntimeError as error:
        cpu_alone = torch.version.cuda is None and torch.version.hip is None
        if not (cpu_alone and "torchvision::" in str(error) and "does not exist" in str(error)):
            raise
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]
    for operator in ("nms", "qnms"):
        schema = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
        torch.library.define(f"torchvision::{operator}", schema)
    return importlib.import_module("torchvision")


torchvision = _load()
