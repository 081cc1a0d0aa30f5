"""A short training that a challenge decides: the same code, nonce, trial and unit give the same numbers.

Three steps of plain SGD in float64, eager, on one device: weights and four samples a batch are drawn by
NumPy's Philox from a hash of the challenge, nothing is dropped and nothing augmented. A language model has
1,000 words here and a decoder its first two blocks, so that a processor makes the same again in seconds. It
shows that this code ran once the nonce was known. Of speed, and of what device it was, it shows nothing.

`python -m parts.proof` makes the answers of other machines again: questions.json, each with its trial and
challenge, lies in the folder of a trial's input; its output gets a line for each as it is answered.
"""

from __future__ import annotations

import copy
import gc
import hashlib
import importlib
import json
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from parts.networks.decoder import SHAPES, Decoder, with_low_rank
from parts.networks.language import LanguageModel
from parts.networks.models import classifier, image_size, loss_of
from parts.trial import Failed, why

SAMPLES, BATCHES = 4, 3
PIXELS, TOKENS, WORDS, BLOCKS = 96, 64, 1000, 2
RATE = 0.01
BIAS_SPREAD = 0.1
CIFAR_CLASSES = 100
DROPPING = ("p", "dropout", "drop_prob", "drop_rate", "attention_dropout")
"""What layers of torch, torchvision and timm call the share that they drop."""

Batch = tuple[torch.Tensor, torch.Tensor]


class Generator:
    """Numbers that depend on a text alone: Philox's raw bits, made uniform by exact arithmetic."""

    def __init__(self, text: str) -> None:
        digest = hashlib.sha256(text.encode()).digest()
        self._bits = np.random.Philox(key=int.from_bytes(digest[:16], "big"))

    def numbers(self, shape: tuple[int, ...], spread: float = 1.0) -> torch.Tensor:
        """Of mean 0 and this standard deviation, in float64."""
        uniform = (self._raw(shape) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return torch.from_numpy(((uniform - 0.5) * (math.sqrt(12.0) * spread)).reshape(shape))

    def below(self, end: int, shape: tuple[int, ...]) -> torch.Tensor:
        """Whole numbers from 0."""
        return torch.from_numpy((self._raw(shape) % np.uint64(end)).astype(np.int64).reshape(shape))

    def _raw(self, shape: tuple[int, ...]) -> Any:
        return np.atleast_1d(self._bits.random_raw(math.prod(shape)))


@dataclass(frozen=True)
class Task:
    """A workload's model as the proof trains it: what a batch is, and its loss."""

    model: nn.Module
    batch: Callable[[Generator], Batch]
    loss: Callable[[nn.Module, torch.Tensor, torch.Tensor], torch.Tensor]


def answer(asked: dict[str, Any], trial_id: str, challenge: dict[str, str], device: str) -> dict[str, Any]:
    """The proof of one trial: nonce and unit, and of each batch the loss and the norm of all gradients.

    `device` is "cpu" or any other, which is the first card. Raises Failed where the workload has no proof.
    """
    gc.collect()
    generator = Generator("\n".join((challenge["nonce"], trial_id, challenge["unit"])))
    task = TASKS[asked["workload"]](asked["variant"])
    model = drawn(task.model, generator).to("cpu" if device == "cpu" else "cuda")
    found = list(trained(model, task, [task.batch(generator) for _ in range(BATCHES)]))
    if not all(math.isfinite(value) for pair in found for value in pair):
        raise Failed("not-finite", "the proof's losses are not finite")
    losses, norms = zip(*found, strict=True)
    return {**challenge, "losses": losses, "gradient_norms": norms}


def drawn(model: nn.Module, generator: Generator) -> nn.Module:
    """The model in float64 with drawn weights, which nothing is dropped of.

    A weight's spread is one over the root of its fan-in; of one dimension it lies around what it was.
    """
    for layer in model.modules():
        for name in DROPPING:
            if isinstance(getattr(layer, name, None), float):
                setattr(layer, name, 0.0)
    model.double().train()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                weight.copy_(generator.numbers(tuple(weight.shape), (weight.numel() / len(weight)) ** -0.5))
            else:
                weight.copy_(generator.numbers(tuple(weight.shape), BIAS_SPREAD) + name.endswith("weight"))
    return model


def trained(model: nn.Module, task: Task, batches: list[Batch]) -> Iterator[tuple[float, float]]:
    """Of each step the loss before it, and the norm of its gradients."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    device = weights[0].device
    for inputs, targets in batches:
        model.zero_grad()
        loss = task.loss(model, inputs.to(device), targets.to(device))
        loss.backward()
        gradients = {weight: weight.grad for weight in weights if weight.grad is not None}
        norm = torch.stack([gradient.norm() for gradient in gradients.values()]).norm()
        with torch.no_grad():
            for weight, gradient in gradients.items():
                weight -= RATE * gradient
        yield loss.item(), norm.item()


def _classifier(name: str, classes: int) -> Task:
    model = classifier(name, classes)
    made_for = image_size(name, model)
    size = PIXELS if made_for <= PIXELS or _takes(model, PIXELS) else made_for

    def batch(generator: Generator) -> Batch:
        return generator.numbers((SAMPLES, 3, size, size)), generator.below(classes, (SAMPLES,))

    return Task(model, batch, lambda model, images, labels: loss_of(model(images), labels))


def _takes(model: nn.Module, size: int) -> bool:
    """Whether the model takes images of so many pixels, tried without computing anything."""
    try:
        copy.deepcopy(model).to("meta").train()(torch.empty((SAMPLES, 3, size, size), device="meta"))
    except (AssertionError, RuntimeError, ValueError):
        return False
    return True


def _convnet(variant: dict[str, Any]) -> Task:
    options = {**importlib.import_module("convnet").OPTIONS, **variant["options"]}
    return _classifier(variant["model"], options["classes"])


def _word_lm(variant: dict[str, Any]) -> Task:
    workload, given = importlib.import_module("word_lm"), variant["options"]
    options = {**workload.OPTIONS, **workload.PRESETS[given.get("preset", "apex")], **given}
    language_model = LanguageModel(variant["model"], WORDS, options)

    def batch(generator: Generator) -> Batch:
        tokens = generator.below(WORDS, (TOKENS + 1, SAMPLES))
        return tokens[:-1], tokens[1:].flatten()

    def loss(model: nn.Module, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(model(tokens, language_model.first_state(SAMPLES))[0], targets)

    return Task(language_model, batch, loss)


def _llm_step(variant: dict[str, Any]) -> Task:
    shape = SHAPES[variant["model"]]
    model = Decoder(replace(shape, layers=min(shape.layers, BLOCKS), words=min(shape.words, WORDS)))
    rank = variant["options"].get("lora_rank", 0)

    def batch(generator: Generator) -> Batch:
        tokens = generator.below(model.embedding.num_embeddings, (SAMPLES, TOKENS + 1))
        return tokens[:, :-1], tokens[:, 1:]

    def loss(model: nn.Module, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())

    return Task(with_low_rank(model, rank) if rank else model, batch, loss)


TASKS: dict[str, Callable[[dict[str, Any]], Task]] = {
    "cifar_fastai": lambda variant: _classifier(variant["model"], CIFAR_CLASSES),
    "convnet": _convnet,
    "llm_step": _llm_step,
    "word_lm": _word_lm,
}


def main() -> None:
    """Answers all questions; one that cannot be answered says why."""
    questions = json.loads((Path(os.environ["GPUDYNO_IN"]) / "questions.json").read_text(encoding="utf-8"))
    with (Path(os.environ["GPUDYNO_OUT"]) / "answers.jsonl").open("w", encoding="utf-8") as file:
        for asked in questions:
            try:
                found = answer(asked["asked"], asked["trial"], asked["challenge"], "cpu")
            except Exception as error:
                found = {"why": why(error)[1]}
            file.write(json.dumps(found) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
