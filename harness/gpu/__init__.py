"""What drivers tell of cards, one module a vendor: `describe` once, `Cards.sample` each second.

Standard library and the drivers' own libraries alone: probe and sampler run where our packages are not.
"""

from __future__ import annotations

from typing import Any


def query(
    library: Any, name: str, *arguments: Any, missing: dict[str, str] | None = None, what: str = ""
) -> Any:
    """A driver's answer; None where library, driver or card has none, the first reason kept in `missing`."""
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


def constant(library: Any, *names: str) -> Any:
    """What a driver's library calls by these names, one within the other; None where it has no such."""
    for name in names:
        library = getattr(library, name, None)
    return library
