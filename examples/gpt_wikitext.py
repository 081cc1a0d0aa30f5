"""A small GPT on WikiText-2 in plain PyTorch: a file to copy for one of your own (docs/extending.md)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from parts.training.batches import InOrder, Shuffled

TITLE = "Small GPT on WikiText-2"
ABOUT = "A decoder-only transformer over words, trained from random weights."
EPOCHS = 3
SAMPLE = "token"
METRIC = "perplexity"
OPTIONS = {"width": 256, "heads": 8, "layers": 4, "dropout": 0.1, "lr": 3e-4}


class Block(nn.Module):
    """Attention over what came before, and two linear layers, each with a way around it."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.before_attention, self.before_layers = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.layers = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.attention(self.before_attention(x)).unflatten(-1, (3, self.heads, -1)).unbind(-3)
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        dropout = self.dropout if self.training else 0.0
        seen = functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).flatten(-2))
        return x + self.layers(self.before_layers(x))


class GPT(nn.Module):
    """Words and places to blocks to a score for each word; the two tables of words are one."""

    def __init__(self, words: int, length: int, width: int, heads: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm, self.scores = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        nn.init.normal_(self.words.weight, std=0.02)
        self.scores.weight = self.words.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.scores(self.norm(x))


def data(setting: Any) -> tuple[Shuffled, InOrder]:
    corpus, length = setting.dataset("wikitext-2"), setting.sequence_length
    train, valid = (windows(split, length, setting.home) for split in (corpus.train, corpus.valid))
    batches = Shuffled(*train, setting.samples, seed=setting.seed, place=setting.place)
    return batches, InOrder(*valid, setting.batch_size)


def windows(tokens: Any, length: int, home: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    rows = (len(tokens) - 1) // length
    flat = torch.frombuffer(tokens, dtype=torch.int32)[: rows * length + 1].long().to(home)
    return flat[:-1].view(rows, length), flat[1:].view(rows, length)


def model(setting: Any) -> nn.Module:
    sizes = {name: setting.options[name] for name in ("width", "heads", "layers", "dropout")}
    return GPT(33278, setting.sequence_length, **sizes)


def loss(output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(output.flatten(0, 1), targets.flatten())


def optimiser(model: nn.Module, setting: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=setting.options["lr"] * setting.ranks, weight_decay=0.1)
