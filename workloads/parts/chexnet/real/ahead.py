"""Batches made by threads of this process, in their order, ahead of those who ask for them.

Python 3.7 syntax, and no framework.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

AHEAD = 2
"""Batches a worker."""


class Ahead(Iterator):
    """An epoch of them: the threads begin at once, before the first batch is asked for."""

    def __init__(self, wanted: Iterator[Any], made: Callable[[Any], Any], workers: int) -> None:
        self.wanted, self.made = wanted, made
        self.pool = ThreadPoolExecutor(workers)
        self.coming: deque[Any] = deque()
        for _ in range(AHEAD * workers):
            self._send()

    def __next__(self) -> Any:
        if not self.coming:
            self.pool.shutdown()
            raise StopIteration
        batch = self.coming.popleft().result()
        self._send()
        return batch

    def __del__(self) -> None:
        while self.coming:
            self.coming.pop().cancel()
        self.pool.shutdown(wait=False)

    def _send(self) -> None:
        wanted = next(self.wanted, None)
        if wanted is not None:
            self.coming.append(self.pool.submit(self.made, wanted))
