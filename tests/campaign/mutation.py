"""How a file that is right becomes one that is not, and strings that nobody means."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

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

WORD = "abcxyz0129 ._/=:@\\-"
"""Letters of which names, paths and settings are made."""


def any_text(rng: Random) -> str:
    """A string that nobody means, one as a name or a path is, or letters of any script."""
    how, length = rng.randrange(3), rng.randrange(200)
    if how == 0:
        return rng.choice(STRINGS)
    if how == 1:
        return "".join(rng.choices(WORD, k=length))
    most = rng.choice((0x80, 0x3000, 0x110000))
    letters = (chr(rng.randrange(most)) for _ in range(length))
    return "".join(letter for letter in letters if not "\ud800" <= letter <= "\udfff")


def any_value(rng: Random, depth: int = 2) -> Any:
    """A value as JSON and TOML have them, of whatever kind."""
    inner = range(rng.randrange(4) if depth else 0)
    return rng.choice(
        (
            lambda: None,
            lambda: rng.random() < 0.5,
            lambda: rng.getrandbits(rng.choice((4, 64, 200))) * rng.choice((1, -1)),
            lambda: rng.choice(NUMBERS),
            lambda: rng.gauss(0, 1e3),
            lambda: any_text(rng),
            lambda: [any_value(rng, depth - 1) for _ in inner],
            lambda: {any_text(rng)[:12]: any_value(rng, depth - 1) for _ in inner},
        )
    )()


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
        inner[any_text(rng)] = inner[last]
    elif how == 2 and isinstance(inner[last], int | float) and not isinstance(inner[last], bool):
        inner[last] *= rng.choice((0.5, 0.9, 1.1, 2, 3, -1, 1000))
    elif how in (3, 4):
        inner[last] = rng.choice(rng.choice((STRINGS, NUMBERS)))
    else:
        inner[last] = any_value(rng)
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
        lines[at] = f"{json.dumps(any_text(rng))} = 1"
    else:
        lines[at] = f"{key} = {_toml_value(any_value(rng) if how < 5 else rng.choice(STRINGS))}"
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
