"""Decoders of published shapes: GPT-2's block, and Llama's; whole, or frozen beside a low-rank part.

GPT-2 (Radford et al., 2019): layer norm before attention and a GELU of four times the width, learned
positions, biases. Llama 3 (Grattafiori et al., 2024): RMS norm, rotary positions, fewer heads for keys and
values, a gated SiLU, no biases. LoRA (Hu et al., 2021): each projection of a block has a product of two
narrow matrices beside it, and these alone train.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

INITIAL_SPREAD = 0.02


@dataclass(frozen=True)
class DecoderShape:
    """What a decoder is made of; `gated` is Llama's block, else GPT-2's."""

    layers: int
    width: int
    heads: int
    key_heads: int
    inner: int
    """Width of the perceptron between two blocks' attentions."""
    words: int
    gated: bool
    tied: bool
    """Whether the embedding is the last layer's weight, too."""
    positions: int = 0
    """Learned ones; rotary where there are none."""
    rotary_base: float = 500_000.0

    @property
    def head_width(self) -> int:
        return self.width // self.heads


SHAPES = {
    "tiny": DecoderShape(2, 64, 4, 2, 192, 256, gated=True, tied=True),
    "gpt2-124m": DecoderShape(12, 768, 12, 12, 3072, 50_257, gated=False, tied=True, positions=1024),
    "llama-1b": DecoderShape(16, 2048, 32, 8, 8192, 128_256, gated=True, tied=True),
    "llama-8b": DecoderShape(32, 4096, 32, 8, 14_336, 128_256, gated=True, tied=False),
}
"""GPT-2 small, Llama 3.2 1B and Llama 3.1 8B, as published; `tiny` is ours, for a look on a processor."""


class LowRank(nn.Module):
    """A frozen projection with a trained product of two narrow matrices beside it, which begins at zero."""

    def __init__(self, whole: nn.Linear, rank: int) -> None:
        super().__init__()
        self.whole = whole.requires_grad_(False)
        self.down = nn.Linear(whole.in_features, rank, bias=False)
        self.up = nn.Linear(rank, whole.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the projection, and what the low rank adds to it."""
        output: torch.Tensor = self.whole(inputs) + self.up(self.down(inputs))
        return output


class Attention(nn.Module):
    """Causal attention; keys and values of fewer heads serve several queries."""

    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        self.shape, keys = shape, shape.key_heads * shape.head_width
        bias = not shape.gated
        self.query = nn.Linear(shape.width, shape.width, bias=bias)
        self.key = nn.Linear(shape.width, keys, bias=bias)
        self.value = nn.Linear(shape.width, keys, bias=bias)
        self.output = nn.Linear(shape.width, shape.width, bias=bias)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return features of the same shape (sequences, tokens, width)."""
        shape, repeats = self.shape, self.shape.heads // self.shape.key_heads
        query, key, value = (
            projection(inputs).unflatten(-1, (-1, shape.head_width)).transpose(1, 2)
            for projection in (self.query, self.key, self.value)
        )
        if not shape.positions:
            query, key = (_rotate(part, shape.rotary_base) for part in (query, key))
        if repeats > 1:
            key, value = (part.repeat_interleave(repeats, dim=1) for part in (key, value))
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        output: torch.Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return output


def _rotate(heads: torch.Tensor, base: float) -> torch.Tensor:
    """Pairs of features turned by their token's place (Su et al., 2021), halves of a head being pairs."""
    half = heads.shape[-1] // 2
    each = torch.arange(half, device=heads.device, dtype=torch.promote_types(heads.dtype, torch.float32))
    angles = torch.arange(heads.shape[-2], device=heads.device)[:, None] * base ** (-each / half)
    turn, across = angles.cos().to(heads.dtype), angles.sin().to(heads.dtype)
    left, right = heads[..., :half], heads[..., half:]
    return torch.cat((left * turn - right * across, right * turn + left * across), dim=-1)


class Perceptron(nn.Module):
    """GPT-2's two layers with a GELU, or Llama's three with a gate."""

    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        self.up = nn.Linear(shape.width, shape.inner, bias=not shape.gated)
        self.gate = nn.Linear(shape.width, shape.inner, bias=False) if shape.gated else None
        self.down = nn.Linear(shape.inner, shape.width, bias=not shape.gated)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return features of the same shape."""
        inner = self.up(inputs)
        if self.gate is None:
            inner = functional.gelu(inner, approximate="tanh")
        else:
            inner = functional.silu(self.gate(inputs)) * inner
        output: torch.Tensor = self.down(inner)
        return output


class DecoderBlock(nn.Module):
    """Attention and perceptron, each behind a norm and beside a shortcut."""

    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        self.attention_norm, self.perceptron_norm = _norm(shape), _norm(shape)
        self.attention, self.perceptron = Attention(shape), Perceptron(shape)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return features of the same shape."""
        features = features + self.attention(self.attention_norm(features))
        output: torch.Tensor = features + self.perceptron(self.perceptron_norm(features))
        return output


def _norm(shape: DecoderShape) -> nn.Module:
    return nn.RMSNorm(shape.width, eps=1e-5) if shape.gated else nn.LayerNorm(shape.width)


class Decoder(nn.Module):
    """Tokens as (sequences, tokens) in, a score for each word out."""

    def __init__(self, shape: DecoderShape, *, checkpointing: bool = False) -> None:
        super().__init__()
        self.checkpointing = checkpointing
        self.embedding = nn.Embedding(shape.words, shape.width)
        self.positions = nn.Embedding(shape.positions, shape.width) if shape.positions else None
        self.blocks = nn.ModuleList(DecoderBlock(shape) for _ in range(shape.layers))
        self.norm = _norm(shape)
        self.scores = nn.Linear(shape.width, shape.words, bias=False)
        for layer in self.modules():
            if isinstance(layer, nn.Linear | nn.Embedding):
                nn.init.normal_(layer.weight, std=INITIAL_SPREAD)
            if isinstance(layer, nn.Linear) and layer.bias is not None:
                nn.init.zeros_(layer.bias)
        if shape.tied:
            self.scores.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return scores as (sequences, tokens, words)."""
        features = self.embedding(tokens)
        if self.positions is not None:
            features = features + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            if self.checkpointing and features.device.type != "meta":
                features = checkpoint(block, features, use_reentrant=False)
            else:
                features = block(features)
        scores: torch.Tensor = self.scores(self.norm(features))
        return scores


def replace_projections(model: Decoder, make: Callable[[nn.Linear], nn.Module]) -> None:
    """Put what is made of each projection of the decoder's blocks into its place."""
    for part in list(model.blocks.modules()):
        for name, layer in list(part.named_children()):
            if isinstance(layer, nn.Linear):
                setattr(part, name, make(layer))


def add_low_rank(model: Decoder, rank: int) -> Decoder:
    """Return the same decoder frozen, with a low rank beside each projection of its blocks."""
    model.requires_grad_(False)
    replace_projections(model, lambda layer: LowRank(layer, rank))
    return model


def attention_operations(shape: DecoderShape, sequences: int, tokens: int) -> int:
    """Return the operations of attention's products in one training step, which no layer's size gives.

    12 · layers · width · tokens² a sequence: two products forward and four backward, the causal half not
    taken off (Chowdhery et al., 2022, appendix B).
    """
    return 12 * shape.layers * shape.width * tokens**2 * sequences
