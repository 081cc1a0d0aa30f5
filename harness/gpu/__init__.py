"""What drivers report about cards, one module a vendor: `describe` once, `sample` each second.

Probe and sampler run where our packages are not: they need the standard library and NVIDIA's binding.
"""

from __future__ import annotations

from collections.abc import Callable
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
