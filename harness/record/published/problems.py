"""What is wrong in a file that people write: file, line, key and reason, one line a cause."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pydantic import ValidationError

MOST_CAUSES = 20
MOST_TOLD = 200
"""Characters of a name, and of a reason, that are repeated."""

Loc = Sequence[str | int]


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
        file = f"{self.file}:{self.line}" if self.line else self.file
        return f"{file}: {self.field}" if self.field else file

    def of(self, field: str, message: str) -> Problem:
        """A problem at this place, of a field below it."""
        name = ".".join(filter(None, (self.field, field)))
        return replace(self, field=name, message=message)

    def __str__(self) -> str:
        return f"{self.place}: {told(self.message)}"


def told(words: str) -> str:
    """Whole, but for what has no end; what is left out is the end."""
    return words if len(words) <= MOST_TOLD else f"{words[:MOST_TOLD]}…"


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


def of_validation(error: ValidationError, file: str, lines: TomlLines, *top: str | int) -> Iterator[Problem]:
    """Each of pydantic's problems with its line; `top` leads to the model within the file."""
    errors = error.errors(include_url=False)
    # Where a member is wrong, pydantic says of its list that it is too short.
    above = {found["loc"][:end] for found in errors for end in range(1, len(found["loc"]))}
    for found in errors:
        if found["loc"] not in above:
            loc = (*top, *found["loc"])
            message = _PLAIN.get(found["type"], found["msg"].removeprefix("Value error, "))
            yield Problem(file, lines.at(loc), shown(loc), message)


_PLAIN = {
    "extra_forbidden": "unknown key",
    "missing": "it is missing",
    "string_too_short": "it is empty: write it between the quotation marks",
}


def shown(loc: Loc) -> str:
    """A key as people say it, tables counted from 1: 'offer 2.price'."""
    parts: list[str] = []
    for part in loc:
        if isinstance(part, int) and parts:
            parts[-1] = f"{parts[-1]} {part + 1}"
        else:
            parts.append(told(str(part)))
    return ".".join(parts)


class TomlLines:
    """The lines on which a TOML file's tables, keys, and members of lists begin."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._heads: dict[str, list[int]] = {}
        for number, line in enumerate(self._lines, 1):
            if match := _HEAD.match(line):
                self._heads.setdefault(match[1], []).append(number)
        self._all_heads = sorted(number for numbers in self._heads.values() for number in numbers)
        self._members: dict[int, list[int]] = {}

    def at(self, loc: Loc) -> int | None:
        """The line of a key, else that of its table; null where neither is found."""
        path, at = "", 0
        for part in loc:
            if isinstance(part, int):
                places = self._heads.get(path) or (self._members_of(at) if at else [])
                at = places[part] if part < len(places) else at
                continue
            path = f"{path}.{part}" if path else part
            heads = self._heads.get(path)
            at = self._key(at, part) or (heads[0] if heads and len(heads) == 1 else at)
        return at or None

    def _key(self, table: int, key: str) -> int | None:
        """The line of a key in the table that begins on a line, or before all tables."""
        after = bisect_right(self._all_heads, table)
        end = self._all_heads[after] - 1 if after < len(self._all_heads) else len(self._lines)
        like = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*[=.]""")
        return next((at + 1 for at in range(table, end) if like.match(self._lines[at])), None)

    def _members_of(self, start: int) -> list[int]:
        """The lines on which the lists begin that stand in the list of the key of a line."""
        if start not in self._members:
            self._members[start], depth = [], 0
            for number in range(start, len(self._lines) + 1):
                bare = _QUOTED.sub("", self._lines[number - 1])
                for sign in re.findall(r"[\[\]]", bare.partition("=")[2] if number == start else bare):
                    depth += 1 if sign == "[" else -1
                    if sign == "[" and depth == 2:
                        self._members[start].append(number)
                if depth <= 0:
                    break
        return self._members[start]


_HEAD = re.compile(r"\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_QUOTED = re.compile(r""""(?:\\.|[^"\\])*"|'[^']*'|#.*""")
