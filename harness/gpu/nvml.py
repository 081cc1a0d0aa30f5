"""NVIDIA's driver through nvidia-ml-py (module pynvml). No driver, no cards: cleanly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


def number(answer: Any) -> int:
    """Return a count as drivers give them; raises TypeError for any other shape."""
    if not isinstance(answer, int) or answer < 0:
        raise TypeError("no count")
    return int(answer)


def text(answer: Any) -> str:
    """Return a text as drivers give it; raises TypeError for any other shape."""
    if not isinstance(answer, str | bytes):
        raise TypeError("no text")
    return answer.decode(errors="replace") if isinstance(answer, bytes) else answer


def handle(answer: Any) -> Any:
    """Return what only its library reads."""
    return answer


def query(
    library: Any,
    name: str,
    *arguments: Any,
    read: Callable[[Any], Any] = number,
    missing: dict[str, str] | None = None,
    what: str = "",
) -> Any:
    """Return what `read` finds in a driver's answer; None where it finds none, the reason in `missing`."""
    question = getattr(library, name, None)
    reason = "the library is older"
    if question is not None:
        try:
            return read(question(*arguments))
        except (TypeError, AttributeError, LookupError, ValueError):
            reason = "the driver's answer has another shape"
        except Exception as error:
            # The library raises ctypes' and Unicode's errors beside its own when a driver goes away.
            reason = type(error).__name__
    if missing is not None:
        missing.setdefault(what, reason)
    return None


def load_library() -> Any | None:
    """Return the pynvml module; None where it is not installed, or broken."""
    try:
        import pynvml
    except Exception:
        return None
    return pynvml


def open_driver(nvml: Any | None) -> str | None:
    """Open the driver; return why it does not answer, as its error is called, null where it does."""
    if nvml is None:
        return "nvidia-ml-py is not installed"
    try:
        nvml.nvmlInit()
    except Exception as error:
        return type(error).__name__
    return None


@contextmanager
def driver_session(nvml: Any | None) -> Iterator[str | None]:
    """Open the driver for a while; give why it does not answer, null where it does."""
    refused = open_driver(nvml)
    try:
        yield refused
    finally:
        if refused is None:
            query(nvml, "nvmlShutdown", read=handle)


@dataclass(frozen=True)
class NvmlDevice:
    """What CUDA takes for one device: a card, or a slice of one in MIG mode. A handle of None was refused."""

    index: int
    card: Any
    part: Any = None
    """The slice's own handle: its name, memory and processes. All else is the card's."""
    parent: int | None = None

    @property
    def own(self) -> Any:
        """Return the handle that this device alone answers to."""
        return self.card if self.part is None else self.part


def find_units(nvml: Any) -> list[NvmlDevice]:
    """Return every card by the driver's index; a divided card's slices replace it, after the last."""
    count = query(nvml, "nvmlDeviceGetCount") or 0
    handles = [query(nvml, "nvmlDeviceGetHandleByIndex", index, read=handle) for index in range(count)]
    slices = [() if card is None else _slices(nvml, card) for card in handles]
    whole = [NvmlDevice(index, card) for index, card in enumerate(handles) if not slices[index]]
    parts = [(parent, part) for parent, of_card in enumerate(slices) for part in of_card]
    return whole + [
        NvmlDevice(count + at, handles[parent], part, parent) for at, (parent, part) in enumerate(parts)
    ]


def _slices(nvml: Any, card: Any) -> tuple[Any, ...]:
    if not in_mig_mode(nvml, query(nvml, "nvmlDeviceGetMigMode", card, read=first_mode)):
        return ()
    most = query(nvml, "nvmlDeviceGetMaxMigDeviceCount", card) or 0
    name = "nvmlDeviceGetMigDeviceHandleByIndex"
    parts = (query(nvml, name, card, at, read=handle) for at in range(most))
    return tuple(part for part in parts if part is not None)


def first_mode(pair: Any) -> int:
    """Return the mode of now from an answer that has that of the next start, too."""
    return number(pair[0])


def in_mig_mode(nvml: Any, mode: int | None) -> bool:
    """Return whether a card is divided, by its mode."""
    return mode is not None and mode == getattr(nvml, "NVML_DEVICE_MIG_ENABLE", None)
