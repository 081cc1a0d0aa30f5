"""What is wrong in a file that people write: file, line, key and reason, one line a cause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

Loc = Sequence[str | int]
MOST_CAUSES = 20
MOST_PLACE = 120
"""Characters of a key's name that are repeated."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong; `line` is that of the key, else of its table; null where neither is."""

    file: str
    line: int | None
    field: str
    message: str

    @property
    def place(self) -> str:
        """'results/claims/s001.toml:12: claims.x.value'"""
        half = MOST_PLACE // 2
        field = self.field if len(self.field) <= MOST_PLACE else f"{self.field[:half]}…{self.field[-half:]}"
        file = f"{self.file}:{self.line}" if self.line else self.file
        return f"{file}: {field}" if field else file

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


def causes(problems: Iterable[Problem]) -> list[str]:
    """One line a cause: the first place of each, and how many more there are; what is above the most is
    counted."""
    alike: dict[tuple[str, str], list[Problem]] = {}
    once: dict[tuple[object, ...], Problem] = {}
    for problem in problems:
        once.setdefault((problem.file, problem.line or problem.field, problem.message), problem)
    for problem in sorted(once.values(), key=lambda found: (found.file, found.line or 0)):
        alike.setdefault((problem.field.rpartition(".")[2], problem.message), []).append(problem)
    lines = [
        f"{first}{f' (and in {len(others)} more places)' if others else ''}"
        for first, *others in alike.values()
    ]
    left = len(lines) - MOST_CAUSES
    return [*lines[:MOST_CAUSES], f"… and {left} more"] if left > 0 else lines


def of_validation(error: ValidationError, file: str, text: str, top: str = "") -> Iterator[Problem]:
    """Each of pydantic's problems with its line in the TOML `text`; `top` is the key of the whole model."""
    errors = error.errors(include_url=False)
    # Where a member is wrong, pydantic says of its list that it is too short.
    above = {found["loc"][:end] for found in errors for end in range(len(found["loc"]))}
    for found in errors:
        if found["loc"] in above and found["loc"]:
            continue
        loc = (*((top,) if top else ()), *found["loc"])
        message = _PLAIN.get(found["type"], found["msg"].removeprefix("Value error, "))
        yield Problem(file, line_of(text, loc), shown(loc), message)


_PLAIN = {"extra_forbidden": "unknown key", "missing": "it is missing"}


def shown(loc: Loc) -> str:
    """A key as people say it, tables counted from 1: 'offer 2.price'."""
    parts: list[str] = []
    for part in loc:
        if isinstance(part, int) and parts:
            parts[-1] = f"{parts[-1]} {part + 1}"
        else:
            parts.append(str(part))
    return ".".join(parts)


def line_of(text: str, loc: Loc) -> int | None:
    """The line of a key in a TOML file, else that of its table; null where neither is found."""
    lines, path, at = text.splitlines(), "", 0
    for part in loc:
        if isinstance(part, int):
            heads = _matching(lines, rf"\[\[\s*{re.escape(path)}\s*\]\]")
            at = heads[part] if part < len(heads) else at
            continue
        path = f"{path}.{part}" if path else part
        head = _matching(lines, rf"\[\s*{re.escape(path)}\s*\]")
        end = next((n for n in range(at, len(lines)) if lines[n].lstrip().startswith("[")), len(lines))
        keys = _matching(lines[at:end], rf"""["']?{re.escape(part)}["']?\s*[=.]""")
        at = at + keys[0] if keys else head[0] if head else at
    return at or None


def _matching(lines: Sequence[str], pattern: str) -> list[int]:
    like = re.compile(rf"\s*{pattern}")
    return [number for number, line in enumerate(lines, 1) if like.match(line)]
