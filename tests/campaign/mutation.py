"""How a file that is right becomes one that is not, and strings that nobody means."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from random import Random
from typing import Any, TypeVar
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException

T = TypeVar("T")
Change = Callable[[bytes, Random], bytes]

MARK = "gpudynomark"
"""An element of this name in a page was brought by what it shows."""
MARKUP = f'"><{MARK} onload=alert(1)></script></style></title>'

STRINGS: tuple[str, ...] = (
    "",
    " ",
    "x" * 5000,
    MARKUP,
    "../../../outside",
    "/",
    ".",
    "a\0b",
    "\x1b[31mred",
    "two\nlines",
    "\u202egap eht\u2067",
    "@everyone #1 [x](y) `z` | *w*",
    "nan",
    "9" * 400,
    "~nobody-has-this-name/x",
    "$(touch outside)",
    "a." * 2000,
    "{}",
    "%s",
)
NUMBERS: tuple[float | int, ...] = (
    -1,
    0,
    1,
    2,
    0.5,
    1e308,
    -1e308,
    5e-324,
    2**31,
    2**63,
    10**30,
    float("nan"),
    float("inf"),
)
TOKENS: tuple[bytes, ...] = (
    b"",
    b"\0",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"[" * 20_000,
    b'{"a":' * 20_000,
    b"9" * 400,
    b"1e999",
    b"NaN",
    b"null",
    b"true",
    b"{",
    b"]",
    b'"',
    b"\n\n= [[",
    b"2099-12-31T23:59:59Z",
    MARKUP.encode(),
)

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=60)
    | st.sampled_from(STRINGS)
    | st.sampled_from(NUMBERS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=6,
)
TEXTS = st.text(max_size=200) | st.sampled_from(STRINGS) | st.from_regex(r"[a-z0-9 ._/=:@\\-]{0,80}")


def _from_the_seed_alone() -> AbstractContextManager[object]:
    """Newer versions also draw the constants of whatever modules are loaded by then."""
    providers = sys.modules.get("hypothesis.internal.conjecture.providers")
    if not hasattr(providers, "_get_local_constants"):
        return nullcontext()
    return patch.object(providers, "_get_local_constants", providers.Constants)


def drawn(strategy: st.SearchStrategy[T], rng: Random) -> T:
    """A value of Hypothesis's, by the seed; its very first one is always the simplest."""
    found: list[T] = []
    healthy = tuple(HealthCheck)

    @seed(rng.getrandbits(64))
    @settings(
        max_examples=3,
        database=None,
        phases=(Phase.generate,),
        deadline=None,
        suppress_health_check=healthy,
    )
    @given(strategy)
    def one(value: T) -> None:
        found.append(value)

    with _from_the_seed_alone(), suppress(HypothesisException):
        one()
    return found[-1]


def changed_bytes(content: bytes, rng: Random) -> bytes:
    """Cut, flipped, doubled or removed pieces, or a token in the middle."""
    at = rng.randrange(len(content) + 1)
    until = min(len(content), at + rng.choice((1, 2, 8, 64, 4096)))
    return rng.choice(
        (
            lambda: content[:at],
            lambda: content[:at] + content[until:],
            lambda: content[:until] + content[at:],
            lambda: content[:at] + rng.choice(TOKENS) + content[at:],
            lambda: content[:at] + rng.choice(TOKENS) + content[until:],
            lambda: content[:at] + rng.randbytes(until - at) + content[until:],
            lambda: content.decode(errors="replace").encode("utf-16"),
            lambda: b"\xef\xbb\xbf" + content,
        )
    )()


def changed_json(content: bytes, rng: Random) -> bytes:
    """One value of a JSON document is another, is gone, or has a neighbour that nobody knows."""
    raw = json.loads(content)
    places = list(_places(raw))
    if not places:
        return changed_bytes(content, rng)
    *path, last = rng.choice(places)
    inner = raw
    for key in path:
        inner = inner[key]
    how = rng.randrange(8)
    if how == 0:
        del inner[last]
    elif how == 1 and isinstance(inner, dict):
        inner[drawn(TEXTS, rng)] = inner[last]
    elif how == 2 and isinstance(inner[last], int | float) and not isinstance(inner[last], bool):
        inner[last] *= rng.choice((0.5, 0.9, 1.1, 2, 3, -1, 1000))
    elif how in (3, 4):
        inner[last] = rng.choice(rng.choice((STRINGS, NUMBERS)))
    else:
        inner[last] = drawn(VALUES, rng)
    return json.dumps(raw).encode(errors="surrogatepass")


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every key and the first items of every list."""
    items: Any = value.items() if isinstance(value, dict) else enumerate(value[:3])
    for key, inner in items:
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from _places(inner, (*path, key))


def changed_toml(content: bytes, rng: Random) -> bytes:
    """One line's value is another, or a line stands twice, is gone, or stands elsewhere."""
    lines = content.decode().splitlines()
    values = [at for at, line in enumerate(lines) if " = " in line] or [0]
    at = rng.choice(values)
    key, _, _ = lines[at].partition(" = ")
    how = rng.randrange(7)
    if how == 0:
        lines.insert(rng.randrange(len(lines)), lines[at])
    elif how == 1:
        del lines[at]
    elif how == 2:
        lines[at] = f"{json.dumps(drawn(TEXTS, rng))} = 1"
    else:
        lines[at] = f"{key} = {_toml_value(drawn(VALUES, rng) if how < 5 else rng.choice(STRINGS))}"
    return "\n".join(lines).encode(errors="surrogatepass")


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return "''" if value is None else json.dumps(value, ensure_ascii=False)


def changed_lines(content: bytes, rng: Random) -> bytes:
    """One line of JSON lines is changed, doubled or gone; or the bytes are."""
    lines = content.splitlines(keepends=True)
    if not lines or rng.random() < 0.3:
        return changed_bytes(content, rng)
    at = rng.randrange(len(lines))
    how = rng.randrange(4)
    if how == 0:
        del lines[at]
    elif how == 1:
        lines.insert(rng.randrange(len(lines)), lines[at])
    else:
        lines[at] = changed_json(lines[at], rng).replace(b"\n", b" ") + b"\n"
    return b"".join(lines)


def changed(content: bytes, rng: Random, whole: Change) -> bytes:
    """Mostly a change that leaves the form whole, now and then one of the bytes."""
    return (whole if rng.random() < 0.7 else changed_bytes)(content, rng)
