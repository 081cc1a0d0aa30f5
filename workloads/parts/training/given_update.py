"""What a `train_step` of the user's own is given: gradients, clipping and the update, in any precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from parts.numerics.update import Update


class GivenUpdate:
    """That of one step; a rehearsal's has no update, and makes gradients alone.

    A `train_step` runs under the trial's autocast; what is done here does not. A compiler leaves it alone: no
    graph goes through a backward pass.
    """

    def __init__(self, update: Update | None, after_forward: Callable[[], None] = lambda: None) -> None:
        self._update, self._after_forward = update, after_forward
        self.backwards = self.steps = 0

    @torch.compiler.disable
    def backward(self, loss: torch.Tensor) -> None:
        """Gradients of the loss, added to those that are there."""
        if not self.backwards:
            self._after_forward()
        self.backwards += 1
        if self._update is None:
            loss.backward()
            return
        with _without_autocast(self._update):
            self._update.backward(loss)

    @torch.compiler.disable
    def clip(self, largest_norm: float) -> torch.Tensor:
        """All gradients scaled down to this norm where theirs is larger; gives the norm that they had."""
        if self._update is None:
            return torch.zeros(())
        with _without_autocast(self._update):
            return self._update.clip(largest_norm)

    @torch.compiler.disable
    def step(self) -> None:
        """Every optimiser's step, where the gradients are finite."""
        self.steps += 1
        if self._update is not None:
            with _without_autocast(self._update):
                self._update.step()


@contextmanager
def _without_autocast(update: Update) -> Iterator[None]:
    with torch.autocast(update.device.type, enabled=False):
        yield
    # The copies of weights in half would outlast an update, and be shared by the parts of a batch.
    torch.clear_autocast_cache()
