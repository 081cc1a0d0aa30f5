"""A line of verbs: what each takes, where its options may be, and how each of them ends."""

from __future__ import annotations

import atexit
import errno
import gc
import inspect
import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, TextIO

from invoke.context import Context
from invoke.exceptions import Exit
from invoke.main import program
from invoke.tasks import task

from harness.errors import GpudynoError, UserError, as_typed, escape_controls

GARBAGE = (50_000, 50, 50)
"""How seldom cycles are looked for: a report has few among many objects, and looking took a tenth of it."""


@dataclass(frozen=True, slots=True)
class Verb:
    """The arguments that a verb takes."""

    positionals: int
    options: frozenset[str]
    """All of them, as `--name`."""
    flags: frozenset[str]
    """The options without a value."""
    settings: frozenset[str]
    """The options that are settings, which the whole line shares."""
    word: str = ""
    """The option that a word without a name is the value of."""


Option = tuple[str, str | None]
"""A name and its value, where it has one."""


@dataclass(frozen=True, slots=True)
class Given:
    """One verb of a line: the words that are its alone, and its options with their values."""

    verb: str
    words: list[str] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Line:
    """The verbs of this project: declared by `verb`, and put in order by `settle`."""

    root: Path
    settings: Mapping[str, str]
    """What each setting that is an option means, by its name."""
    verbs: dict[str, Verb] = field(default_factory=dict)

    def verb(
        self, takes: str = "", word: str = "", flags: str = "", **options: Any
    ) -> Callable[[Callable[..., None]], Any]:
        """Return a task whose errors are one sentence on standard error and the exit code of their kind.

        `takes` are the settings that are its options; where there are any, its body gets the Settings first.
        A word without a name is the value of the option `word`. A body with `**` gets by their names those
        given of the options that `help` has and it does not name, of which `flags` have no value.
        """
        names = takes.split()

        def decorate(body: Callable[..., None]) -> Any:
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            own = list(inspect.signature(body).parameters.values())[bool(names) :]
            parameters_of_body = [each for each in own if each.kind is kind]
            about, repeated = options.pop("help", {}), options.get("iterable", ())
            others = about.keys() - {each.name for each in parameters_of_body}
            more: dict[str, Any] = {
                name: None if name in repeated else "" for name in about if name in others
            }
            more |= dict.fromkeys(flags.split(), False)
            defaults = {**more, **dict.fromkeys(names, "")}
            asked = [inspect.Parameter(name, kind, default=each) for name, each in defaults.items()]
            words = {name: self.settings[name] for name in names} | about

            @wraps(body)
            def guarded(c: Context, **named: Any) -> None:
                chosen = {name: named.pop(name) for name in names}
                given = {name: tuple(named[name] or ()) if name in repeated else named[name] for name in more}
                named = {name: value for name, value in (named | given).items() if value or name not in more}
                gc.set_threshold(*GARBAGE)
                # What ends with the process is not looked through for cycles once more.
                atexit.register(gc.freeze)
                with _translate_errors(), _harmless_streams():
                    body(*([_load_settings(self.root, chosen)] if names else []), **named)

            # A line may have them in any order; parameters without a default come first.
            parameters = sorted(
                [*parameters_of_body, *asked], key=lambda one: one.default is not inspect.Parameter.empty
            )
            context = inspect.Parameter("c", kind)
            guarded.__signature__ = inspect.Signature([context, *parameters])  # type: ignore[attr-defined]
            made = task(**options, help=words, auto_shortflags=False)(guarded)
            self.verbs[made.name] = _make_verb(parameters, names, word)
            return made

        return decorate

    def settle(self) -> None:
        """Put each option of the line behind the verbs that take it; an empty line lists the verbs.

        A line with `--help` in any place explains its first verb.
        """
        core = getattr(program, "core", None)
        if core is None:
            return
        if not (core.unparsed or core[0].args.complete.value):
            core[0].args["list"].set_value(True, cast=False)
        explained = next((word for word in core.unparsed if word in self.verbs), None)
        if explained and {"--help", "-h"} & {*core.unparsed}:
            core[0].args["help"].set_value(explained, cast=False)
            core.unparsed.clear()
        with _translate_errors():
            core.unparsed[:] = place_options(core.unparsed, self.verbs)


def _make_verb(parameters: Sequence[inspect.Parameter], settings: Sequence[str], word: str) -> Verb:
    return Verb(
        positionals=sum(one.default is inspect.Parameter.empty for one in parameters),
        options=frozenset(_option_name(one.name) for one in parameters),
        flags=frozenset(_option_name(one.name) for one in parameters if isinstance(one.default, bool)),
        settings=frozenset(map(_option_name, settings)),
        word=_option_name(word) if word else "",
    )


def _option_name(name: str) -> str:
    return f"--{name.strip('_').replace('_', '-')}"


def _load_settings(root: Path, chosen: Mapping[str, Any]) -> Any:
    # Loads pydantic, which listing the verbs does not need.
    from harness import settings

    loaded = settings.load_settings(root, os.environ, chosen)
    if loaded.ca:
        # By this name all that reaches for the network finds it.
        os.environ["SSL_CERT_FILE"] = str(settings.expand_path(loaded.ca).absolute())
    return loaded


def parse_line(words: Sequence[str], verbs: Mapping[str, Verb]) -> tuple[list[str], list[Given]]:
    """Return a line by its verbs, and the words before the first of them."""
    before: list[str] = []
    line: list[Given] = []
    rest = list(words)
    first_with = {option: verb for verb in reversed([*verbs.values()]) for option in verb.options}
    while rest:
        word = rest.pop(0)
        known = verbs[line[-1].verb] if line else None
        name, _, value = word.partition("=")
        if known is not None and name in first_with and word.startswith("--"):
            whose = known if name in known.options else first_with[name]
            line[-1].options.append((name, value if "=" in word else _take_value(name, whose, rest)))
        elif known is not None and not word.startswith("-") and len(line[-1].words) < known.positionals:
            line[-1].words.append(word)
        elif word in verbs:
            line.append(Given(word))
        elif known is not None and known.positionals and len(line[-1].words) == known.positionals:
            raise UserError(
                f"'{word}' is one word more than '{line[-1].verb}' takes",
                remedy='put a command in quotes, as invoke try "python train.py --batch 16"',
            )
        elif known is not None and known.word and not word.startswith("-"):
            line[-1].options.append((known.word, word))
        else:
            (line[-1].words if line else before).append(word)
    return before, line


def _take_value(name: str, verb: Verb, rest: list[str]) -> str | None:
    """Take an option's value off the rest of the line, where it has one."""
    if not rest or name in verb.flags:
        return None
    return rest.pop(0)


def place_options(words: Sequence[str], verbs: Mapping[str, Verb]) -> list[str]:
    """Return the same line with each option behind the verbs that take it: settings behind all that do.

    An option that no verb of the line takes stays where it is, and Invoke refuses it. Raises UserError where
    one setting has two values, and for words without a verb.
    """
    before, line = parse_line(words, verbs)
    if before and not line:
        raise UserError(f"'{before[0]}' is no verb", remedy="`invoke` alone lists them")
    placed: list[dict[Option, None]] = [{} for _ in line]
    shared: dict[str, str | None] = {}
    for place, given in enumerate(line):
        for name, value in given.options:
            takers = [at for at, other in enumerate(line) if name in verbs[other.verb].options]
            if any(name in verbs[other.verb].settings for other in line):
                if shared.setdefault(name, value) != value:
                    said = f"{name} is given as '{shared[name]}' and '{value}' in one line"
                    raise UserError(said, remedy="write two lines")
            elif place in takers or not takers:
                takers = [place]
            for at in takers:
                placed[at][name, value] = None
    out = list(before)
    for given, options in zip(line, placed, strict=True):
        written = (name if value is None else f"{name}={value}" for name, value in options)
        out += [given.verb, *written, *given.words]
    return out


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Exit with what went wrong as one sentence on standard error, and the exit code of its kind."""
    try:
        yield
    except GpudynoError as error:
        raise Exit(as_typed(f"gpudyno: {error}"), code=error.exit_code) from None
    except ModuleNotFoundError as error:
        lacks = f"the Python of this `invoke` has no package '{error.name}'"
        raise Exit(f"gpudyno: {lacks}; type .venv/bin/invoke, as README.md has it", code=4) from None
    except MemoryError:
        raise Exit("gpudyno: this machine refuses more memory; end what else runs", code=4) from None
    except BrokenPipeError:
        raise Exit(code=0) from None
    except OSError as error:
        # Errors of libraries, such as of a server's answer, have no number.
        if error.errno is None:
            raise
        where = f"'{str(error.filename)[:200]}'" if error.filename else "a file"
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "free some space there" if full else "look at its name, permissions and disk"
        wrong = f"{where} cannot be read or written ({error.strerror}); {remedy}"
        raise Exit(f"gpudyno: {escape_controls(wrong)}", code=4) from None
    except KeyboardInterrupt:
        raise Exit("gpudyno: stopped; the same line goes on where it was", code=130) from None


class _Harmless:
    """A stream on which no text of a record, a plan or a process commands the terminal."""

    def __init__(self, plain: TextIO) -> None:
        self.plain = plain

    def write(self, text: str) -> int:
        self.plain.write(as_typed(escape_controls(text)))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)


def plain_stream(stream: TextIO) -> TextIO:
    """Return the stream itself, for bars and colours that are ours."""
    return stream.plain if isinstance(stream, _Harmless) else stream


@contextmanager
def _harmless_streams() -> Iterator[None]:
    """Hold all that a verb prints harmless; what a terminal has no character for is a question mark."""
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.stdout, sys.stderr = (_Harmless(plain_stream(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
