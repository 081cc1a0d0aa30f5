"""One thing that a publication says and its own data do not, and how figures and their sources are said."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from harness.record import Claim
from report import text
from report.trials.key import PARALLEL

_RELEASE = re.compile(
    r"\b(NGC|PyTorch|TensorFlow|Keras|MXNet|Chainer|CNTK|fastai|ROCm) (\d[\w.]*(?:/\d[\w.]*)*)"
)
_ROW = re.compile(r"^(.*), row '(.*)'$")


@dataclass(frozen=True, slots=True)
class Inconsistency:
    """What a publication says, and what its own data say instead.

    `factor` is how many times one is the other, 1 or more; null where they do not differ in size. `caveats`
    are those of the first claim: what may explain it.
    """

    study: str
    said: str
    own: str
    factor: float | None
    sources: tuple[str, ...]
    caveats: tuple[str, ...]


def inconsistency(claims: Iterable[Claim], said: str, own: str, factor: float | None = None) -> Inconsistency:
    """Of these claims, the first of which is the one in doubt."""
    first, *others = claims
    sources = tuple(dict.fromkeys(claim.source for claim in (first, *others)))
    explain = tuple(caveat for caveat in first.caveats if caveat != first.why)
    return Inconsistency(first.study, said, own, factor, sources, explain)


def value(figure: Claim) -> str:
    """A figure as it was printed, in its unit."""
    printed = figure.value or 0.0
    if figure.unit == "fraction":
        return f"{printed * 100:.4g} %"
    number = f"{printed:,.0f}" if printed.is_integer() else f"{printed:,.10g}"
    return f"{number} {figure.unit}"


def side(figure: Claim) -> str:
    """What was measured: model, whatever else has a name, precision, batch, and the card."""
    of = figure.of
    named = [str(each) for name, each in of.options.items() if isinstance(each, str) and name != PARALLEL]
    batch = f"batch {of.batch_size:,}" if of.batch_size else ""
    parts = (text.model_name(of.model), *named, of.precision, batch, text.short_card(of.card or ""))
    return " ".join(part for part in parts if part)


def place(of: Claim, over: Claim) -> str:
    """The devices that both figures were measured on, with a colon; empty where these differ."""
    if not of.of.card or (of.of.card, of.of.gpus) != (over.of.card, over.of.gpus):
        return ""
    count = f"{of.of.gpus} × " if of.of.gpus > 1 else ""
    return f"{count}{text.short_card(of.of.card)}: "


def both(of: Claim, over: Claim) -> str:
    """Two figures, each after what it alone has."""
    return f"{_apart(of, over)}{value(of)} against {_apart(over, of)}{value(over)}"


def _apart(one: Claim, other: Claim) -> str:
    fields = [
        (text.short_card(one.of.card or ""), text.short_card(other.of.card or "")),
        (text.model_name(one.of.model), text.model_name(other.of.model)),
        (one.of.precision, other.of.precision),
        *((str(each), str(other.of.options.get(name))) for name, each in one.of.options.items()),
    ]
    own = [mine for mine, theirs in fields if mine and mine != theirs]
    return "".join(f"{each} " for each in own)


def releases(figure: Claim) -> dict[str, tuple[str, ...]]:
    """The software that a figure's stack names, each with its releases."""
    return {name: tuple(found.split("/")) for name, found in _RELEASE.findall(figure.stack or "")}


def row(figure: Claim) -> str:
    """What the published table calls the row; empty where the source names none."""
    found = _ROW.match(figure.source)
    return found[2] if found else ""


def table(figure: Claim) -> str:
    """The source without the row."""
    found = _ROW.match(figure.source)
    return found[1] if found else figure.source


def where(figure: Claim) -> str:
    """The part of a source after the repository: the file, the table, the row."""
    return figure.source.partition(", ")[2] or figure.source
