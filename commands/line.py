"""A line of verbs: how each of them ends, and an option of the first that holds for all of them."""

from __future__ import annotations

import errno
import io
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, TextIO

from invoke.exceptions import Exit
from invoke.tasks import task

from harness.errors import GpudynoError, UserError, harmless

REFUSED = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR)
"""What a system answers about a disk or a folder; any other error of it is a defect of ours."""

NO_NAME = (errno.ENAMETOOLONG, errno.ELOOP)
"""What it answers about a name that no file can have."""

OUT_OF_MEMORY = "this machine refuses more memory; raise its limit (`ulimit -v`), or end what else runs"

LINE_OPTIONS = ("--plan", "--device", "--image", "--engine", "--python", "--base", "--wheelhouse")
"""What the whole line shares: half of it with another plan or device would be no line."""


def split(arguments: Sequence[str], verbs: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Groups a command line's words by verb: `build --plan x run` → [(build, [--plan, x]), (run, [])]."""
    names = set(verbs)
    groups: list[tuple[str, list[str]]] = []
    takes_value = False
    for word in arguments:
        if word in names and not takes_value:
            groups.append((word, []))
        elif groups:
            groups[-1][1].append(word)
        takes_value = word in LINE_OPTIONS
    return groups


def option(words: Sequence[str], name: str) -> str | None:
    """The value of `--name value` or `--name=value` among a verb's words."""
    for at, word in enumerate(words):
        if word == name and at + 1 < len(words):
            return words[at + 1]
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return None


def held(arguments: Sequence[str], verbs: Iterable[str], name: str) -> str | None:
    """The option that holds for the whole line.

    Raises UserError, with the line that was meant, where a later verb alone has it or has another value.
    """
    groups = split(arguments, verbs)
    if not groups:
        return None
    first = option(groups[0][1], name)
    for verb, words in groups[1:]:
        later = option(words, name)
        if later is not None and later != first:
            raise UserError(
                f"'{name} {later}' stands after '{verb}', so '{groups[0][0]}' would not have it",
                remedy=f"write `invoke {_mended(groups, name, later)}`",
            )
    return first


def _mended(groups: Sequence[tuple[str, list[str]]], name: str, value: str) -> str:
    words: list[str] = []
    for at, (verb, own) in enumerate(groups):
        words.append(verb)
        if at == 0:
            words += [name, value]
        words += _without(own, name)
    return shlex.join(words)


def _without(words: Sequence[str], name: str) -> list[str]:
    others: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word == name:
            skip = True
        elif not word.startswith(f"{name}="):
            others.append(word)
    return others


def _exit(error: OSError) -> Exception:
    """What ends a verb: a sentence, or the error itself where it is a defect of ours."""
    if error.errno in NO_NAME:
        wrong = UserError(
            f"'{str(error.filename)[:80]}' is no name of a file ({error.strerror})", remedy="name another one"
        )
        return Exit(f"gpudyno: {wrong}", code=wrong.exit_code)
    return Exit(f"gpudyno: {_refused(error)}", code=4) if error.errno in REFUSED else error


def _refused(error: OSError) -> str:
    """What the system refused, as a sentence."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    remedy = "free some space" if full else "look at its permissions, or choose another place"
    return f"'{error.filename or 'a file'}' cannot be read or written ({error.strerror}); {remedy}"


class _Harmless:
    """A stream on which no text of a record, a plan or a process commands the terminal."""

    def __init__(self, plain: TextIO) -> None:
        self.plain = plain

    def write(self, text: str) -> int:
        self.plain.write(harmless(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)


def plain(stream: TextIO) -> TextIO:
    """The stream itself, for bars and colours that are ours."""
    return stream.plain if isinstance(stream, _Harmless) else stream


@contextmanager
def _harmless_streams() -> Iterator[None]:
    """All that a verb prints goes through here; what a terminal has no character for is a question mark."""
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.stdout, sys.stderr = (_Harmless(plain(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def verb(**options: Any) -> Callable[[Callable[..., None]], Any]:
    """A task whose errors are one sentence on standard error and the exit code of their kind."""

    def decorate(body: Callable[..., None]) -> Any:
        @wraps(body)
        def guarded(*given: Any, **named: Any) -> None:
            try:
                with _harmless_streams():
                    body(*given, **named)
            except GpudynoError as error:
                raise Exit(f"gpudyno: {error}", code=error.exit_code) from None
            except MemoryError:
                raise Exit(f"gpudyno: {OUT_OF_MEMORY}", code=4) from None
            except BrokenPipeError:
                raise Exit(code=0) from None
            except OSError as error:
                raise _exit(error) from None
            except KeyboardInterrupt:
                raise Exit("gpudyno: stopped; the same line goes on where it was", code=130) from None

        return task(**options)(guarded)

    return decorate
