"""What drivers report about cards, one module a vendor: `describe` once, `sample` each second.

Probe and sampler run where our packages are not: they need the standard library and NVIDIA's binding.
"""

from __future__ import annotations

from typing import Any


def query(
    library: Any, name: str, *arguments: Any, missing: dict[str, str] | None = None, what: str = ""
) -> Any:
    """Return a driver's answer; None where there is none, with the first reason in `missing`."""
    question = getattr(library, name, None)
    reason = "the library is older"
    if question is not None:
        try:
            return question(*arguments)
        except Exception as error:
            # The library raises ctypes' and Unicode's errors beside its own when a driver goes away.
            reason = type(error).__name__
    if missing is not None:
        missing.setdefault(what, reason)
    return None
