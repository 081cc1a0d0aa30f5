"""nanoGPT's recipe for Shakespeare's letters, written anew.

Sizes, rates, steps and weights' spread: train.py, model.py and config/train_shakespeare_char.py of
https://github.com/karpathy/nanoGPT at 3adf61e154c3fe3fca428ad6bc3818b27a3b8291 (MIT)."""

import math
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy, gelu, linear
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

from parts.training.batches import InOrder, Shuffled

TITLE = "nanoGPT's recipe on Shakespeare's letters"
ABOUT = "A small GPT: gradients accumulated and clipped, a rate that warms up and falls with each step."
EPOCHS, SAMPLE, METRIC, SCHEDULE = 20, "token", "loss", "step"
OPTIONS = {"layers": 6, "heads": 6, "width": 384, "dropout": 0.2, "accumulate": 1, "clip": 1.0}
OPTIONS |= {"lr": 1e-3, "lowest_lr": 1e-4, "warmup_steps": 100, "decay_steps": 5000}


class GPT(nn.Module):
    def __init__(self, length: int, width: int, heads: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.letters, self.places = nn.Embedding(65, width), nn.Embedding(length, width)
        kind = {"activation": gelu, "batch_first": True, "norm_first": True, "bias": False}
        blocks = [nn.TransformerEncoderLayer(width, heads, 4 * width, dropout, **kind) for _ in range(layers)]
        for block in blocks:
            block.dropout = nn.Identity()  # nanoGPT has none between a block's two linear layers.
        self.dropout, self.norm = nn.Dropout(dropout), nn.LayerNorm(width, bias=False)
        self.blocks = nn.ModuleList(blocks)
        for name, weight in self.named_parameters():
            if weight.dim() > 1:
                ends_block = name.endswith(("out_proj.weight", "linear2.weight"))
                nn.init.normal_(weight, std=0.02 / math.sqrt(2 * layers if ends_block else 1))

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        places = torch.arange(letters.shape[1], device=letters.device)
        hidden = torch.ones(len(places), len(places), dtype=torch.bool, device=letters.device).triu(1)
        x = self.dropout(self.letters(letters) + self.places(places))
        for block in self.blocks:
            x = block(x, src_mask=hidden, is_causal=True)
        return linear(self.norm(x), self.letters.weight)


class AnyWindows(Shuffled):
    def __len__(self) -> int:
        return 250  # Steps from one validation to the next.


def data(setting: Any) -> tuple[Shuffled, InOrder]:
    text, length = setting.dataset("tiny-shakespeare"), setting.sequence_length
    train, valid = (torch.tensor(part).long().to(setting.home) for part in (text.train, text.valid))
    pairs = (half.unfold(0, length, 1) for half in (train[:-1], train[1:]))
    batches = AnyWindows(*pairs, setting.samples, seed=setting.seed, place=setting.place)
    return batches, InOrder(*(half.unfold(0, length, length) for half in (valid[:-1], valid[1:])), 64)


def model(setting: Any) -> nn.Module:
    sizes = {name: setting.options[name] for name in ("width", "heads", "layers", "dropout")}
    return GPT(setting.sequence_length, **sizes)


def loss(output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return cross_entropy(output.flatten(0, 1), targets.flatten())


def optimiser(model: nn.Module, setting: Any) -> torch.optim.Optimizer:
    tables = {"params": [weight for weight in model.parameters() if weight.dim() > 1], "weight_decay": 0.1}
    norms = {"params": [weight for weight in model.parameters() if weight.dim() < 2], "weight_decay": 0.0}
    return torch.optim.AdamW([tables, norms], lr=setting.options["lr"], betas=(0.9, 0.99))


def schedule(optimiser: torch.optim.Optimizer, setting: Any) -> SequentialLR:
    warmup, decay = setting.options["warmup_steps"], setting.options["decay_steps"]
    rise = LinearLR(optimiser, 1 / (warmup + 1), total_iters=warmup)
    fall = CosineAnnealingLR(optimiser, decay - warmup, setting.options["lowest_lr"])
    return SequentialLR(optimiser, [rise, fall], [warmup])


def train_step(setting: Any, model: nn.Module, batch: Any, update: Any) -> torch.Tensor:
    parts, losses = setting.options["accumulate"], []
    for inputs, targets in zip(*(half.chunk(parts) for half in batch), strict=True):
        losses.append(loss(model(inputs), targets) / parts)
        update.backward(losses[-1])
    update.clip(setting.options["clip"])
    update.step()
    return sum(losses)
