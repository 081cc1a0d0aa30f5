"""Everything gpudyno refuses, with the exit code it leaves; 1 is a defect of ours."""

from __future__ import annotations

import re
import sys
import unicodedata

_LIST = re.compile(r"\n(?=  \S)")
"""Between the items of a list below a sentence."""


def _clean_text(text: str) -> str:
    """Return a text that commands no terminal and begin no line of its own, whatever it quotes."""
    return "\n".join("".join(map(_escape_letter, part)) for part in _LIST.split(text))


def escape_controls(text: str) -> str:
    """Return lines as they are, but for what commands a terminal or turn the direction of writing."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(letter if letter in "\n\t" else _escape_letter(letter) for letter in text)


def _escape_letter(letter: str) -> str:
    if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return letter.encode("unicode_escape").decode()
    return letter


_LINE = re.compile(r"\binvoke(?= -?-?[a-z]|`)")


def as_typed(text: str) -> str:
    """Return a text whose lines begin with the word that started this process, the wheel's or Invoke's."""
    return _LINE.sub("gpudyno", text) if sys.argv[0] == "gpudyno" else text


class GpudynoError(Exception):
    """One sentence: what is wrong, where, and why; then what to do about it."""

    exit_code = 1

    def __init__(self, problem: str, *, remedy: str = "") -> None:
        self.problem = _clean_text(problem)
        self.remedy = _clean_text(remedy)
        super().__init__(f"{self.problem}; {self.remedy}" if remedy else self.problem)


class UserError(GpudynoError):
    """The input is wrong."""

    exit_code = 2


class PlanError(UserError):
    """A plan, image list or settings file that cannot be meant."""


class RecordError(UserError):
    """A record or measurement that cannot be read."""


class DataError(UserError):
    """Data that is not what its hash says."""


class NotBuilt(UserError):
    """An environment that is asked for and not there."""


class GateError(GpudynoError):
    """A trial failed under --strict, or a gate said no."""

    exit_code = 3


class MachineError(GpudynoError):
    """The machine lacks something."""

    exit_code = 4


class CardError(GpudynoError):
    """A card is slow, flips between two speeds or computes otherwise than it should, under --strict."""

    exit_code = 5


class NoEngine(MachineError):
    """No container engine answers."""


class NoDevice(MachineError):
    """No such device."""


class NoSpace(MachineError):
    """The disk is full."""


class NoNetwork(MachineError):
    """Nothing could be fetched."""


class Busy(MachineError):
    """Another run holds this machine."""
