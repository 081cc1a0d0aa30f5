"""The published figures of results/claims/*.toml: read strictly, with all problems reported at once.

A file may hold `[defaults]`, which stand in every claim and curve that does not say otherwise; `[caveats]`,
sentences that claims name by their keys, as `caveats` or as `why`; and `[cards]`, what is known of published
cards that results/cards.toml does not have. A `[[studies]]` says who published a study and when, once in all
files; a `[[tables]]` is many claims in few lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from harness.errors import UserError
from harness.record import Claim, Curve, DeviceKind, Model, Side, Study, parse_toml
from harness.record.published.cards import FILE as CARDS
from harness.record.published.cards import Card, find, in_class, load_cards, plain_name, sold_with
from harness.record.published.claim import ClaimTable, written_out

FOLDER = Path("results") / "claims"
MOST_PLACE = 120
"""Characters of a claim's name that a problem repeats."""
MOST_PROBLEMS, MOST_OF_ONE = 20, 300
"""What one message lists: the first problems, and so many characters of each."""

UNITS = {
    "protocol_seconds": ("s",),
    "epoch_seconds": ("s",),
    "throughput": ("images/s", "tokens/s", "samples/s"),
    "accuracy": ("fraction",),
    "perplexity": ("perplexity",),
    "test_perplexity": ("perplexity",),
    "valid_loss": ("loss",),
    "smoothed_train_loss": ("loss",),
    "peak_bytes": ("B",),
    "parameters": ("parameters",),
    "batch_ratio": ("x",),
    "train_items": ("images", "tokens"),
    "valid_items": ("images", "tokens"),
    "test_items": ("images", "tokens"),
    "data_items": ("images", "tokens"),
    "train_loss": ("loss",),
    "auc": ("AUC",),
    "step_seconds": ("s",),
    "inference_seconds": ("s",),
    "device_utilization": ("%",),
    "device_memory_share": ("%",),
    "best_accuracy": ("fraction",),
    "early_fall": ("fraction",),
    "epochs_to_target": ("epochs",),
    "seconds_to_target": ("s",),
}
"""What a metric may be told in; a ratio of any is told as "x"."""
MOST_OF_UNIT = {"fraction": 1, "AUC": 1, "%": 100}
"""The largest figure of a unit that is a share."""


@dataclass(frozen=True, slots=True)
class ClaimSet:
    """All claims, curves and studies, in the order of their files."""

    claims: tuple[Claim, ...] = ()
    curves: tuple[Curve, ...] = ()
    studies: tuple[Study, ...] = ()

    def study(self, name: str) -> Study | None:
        """The study of that id or name; null where no file says who published it."""
        return next((study for study in self.studies if name in (study.id, study.name)), None)

    def of(self, name: str) -> ClaimSet:
        """The claims and curves of one study, by its id or name; raises UserError where it has none."""
        found = self.study(name)
        study = found.id if found else name
        claims = tuple(claim for claim in self.claims if claim.study == study)
        if not claims:
            named = ", ".join(dict.fromkeys(self.name_of(claim.study) for claim in self.claims))
            raise UserError(f"there is no study '{name}'", remedy=f"name one of {named}")
        curves = tuple(curve for curve in self.curves if curve.study == study)
        return replace(self, claims=claims, curves=curves)

    def name_of(self, study_id: str) -> str:
        """What people call a study: who published it and when, else its id."""
        study = self.study(study_id)
        return study.name if study else study_id

    def curves_for(self, workload: str) -> tuple[Curve, ...]:
        """The curves of whole protocols of one workload; lead-in runs are left out."""
        return tuple(
            curve for curve in self.curves if curve.workload == workload and curve.part == "protocol"
        )


def load_claims(root: Path) -> ClaimSet:
    """The claims below `root`; none where there is no folder.

    Raises UserError that lists the first problems of all files, each as `path:line: field: message`, and
    counts the rest, so that nothing is made of a part of them. Cards are checked where `root` has a table.
    """
    known = {card.name for card in load_cards(root)} if (root / CARDS).exists() else None
    files = [
        _ClaimReader(path, str(path.relative_to(root)), known)
        for path in sorted((root / FOLDER).glob("*.toml"))
    ]
    problems = [problem for file in files for problem in file.problems]
    problems += _stated_twice([(claim, place) for file in files for claim, place in file.claims])
    problems += _named_twice([(study, place) for file in files for study, place in file.studies])
    if problems:
        listed = "\n  ".join(problem[:MOST_OF_ONE] for problem in problems[:MOST_PROBLEMS])
        if len(problems) > MOST_PROBLEMS:
            listed += f"\n  … and {len(problems) - MOST_PROBLEMS} more"
        noun = "problem" if len(problems) == 1 else "problems"
        raise UserError(
            f"{len(problems)} {noun} in the claims\n  {listed}", remedy="correct the fields named"
        )
    claims = tuple(claim for file in files for claim, _ in file.claims)
    curves = tuple(curve for file in files for curve in file.curves)
    return ClaimSet(claims, curves, tuple(study for file in files for study, _ in file.studies))


def _stated_twice(claims: Sequence[tuple[Claim, str]]) -> Iterator[str]:
    """Ids that stand twice, and figures of the same source, metric and sides under two ids."""
    by_id: dict[str, str] = {}
    by_figure: dict[tuple[object, ...], str] = {}
    for claim, place in claims:
        figure = (
            (claim.study, claim.kind, claim.workload, claim.protocol),
            (claim.metric, claim.target, claim.epochs),
            (claim.of.canonical(), claim.over.canonical() if claim.over else None),
            tuple(point.canonical() for point in claim.points),
            (claim.relation, claim.card_class, claim.words, claim.source),
        )
        if claim.id in by_id:
            yield f"{place}.id: stands in {by_id[claim.id]} too"
        elif figure in by_figure:
            yield f"{place}: is the same figure as {by_figure[figure]}: the same source, metric and sides"
        by_id.setdefault(claim.id, place)
        by_figure.setdefault(figure, place)


def _named_twice(studies: Sequence[tuple[Study, str]]) -> Iterator[str]:
    """Ids and names that two studies have."""
    for field in ("id", "name"):
        known: dict[str, str] = {}
        for study, place in studies:
            value = getattr(study, field)
            if value in known:
                yield f"{place}.{field}: stands in {known[value]} too"
            known.setdefault(value, place)


class _Shape(Model):
    defaults: dict[str, Any] = {}
    caveats: dict[str, str] = {}
    cards: dict[str, str] = {}
    studies: tuple[dict[str, Any], ...] = ()
    claims: tuple[dict[str, Any], ...] = ()
    tables: tuple[dict[str, Any], ...] = ()
    curves: tuple[dict[str, Any], ...] = ()


M = TypeVar("M", bound=Model)


class _ClaimReader:
    """One file's claims, each with its place, its curves, and what is wrong in it."""

    def __init__(self, path: Path, shown: str, known: set[str] | None) -> None:
        self.problems: list[str] = []
        self.claims: list[tuple[Claim, str]] = []
        self.curves: list[Curve] = []
        self.studies: list[tuple[Study, str]] = []
        self._shown = shown
        self._used: set[str] = set()
        self._matched: dict[str, list[int]] = {}
        try:
            text = path.read_bytes()
            content = parse_toml(text)
        except (OSError, ValueError) as error:
            self.problems.append(f"{shown}: the whole: is not readable TOML ({error})")
            return
        self._lines = text.decode().splitlines()
        self._read(content, known)

    def _problem(self, field: str, message: str) -> None:
        self.problems.append(f"{self._place(field)}: {message}")

    def _place(self, field: str) -> str:
        """The file, the line of the field's table or key where it can be found, and the field."""
        table, _, rest = field.partition(".")
        line = self._line_of_entry(table, rest) or self._line_matching(rf"\[+{re.escape(table)}\]+", 0)
        half = MOST_PLACE // 2
        told = field if len(field) <= MOST_PLACE else f"{field[:half]}…{field[-half:]}"
        return f"{self._shown}:{line}: {told}" if line else f"{self._shown}: {told}"

    def _line_of_entry(self, table: str, rest: str) -> int | None:
        name = rest.partition(".")[0]
        if table in ("claims", "curves", "tables", "studies") and name.isdecimal():
            return self._line_matching(rf"\[\[{table}\]\]", int(name))
        if table == "claims":
            ids = (claim_id for claim_id in self._ids if rest.startswith(f"{claim_id}."))
            return self._lines_of_ids.get(rest if rest in self._ids else max(ids, key=len, default=""))
        return self._line_matching(rf'["\']?{re.escape(rest)}["\']?\s*=', 0) if rest else None

    def _line_matching(self, pattern: str, skip: int) -> int | None:
        # A file has hundreds of claims, and asks for one place of each.
        if pattern not in self._matched:
            like = re.compile(rf"\s*{pattern}")
            self._matched[pattern] = [at for at, line in enumerate(self._lines, 1) if like.match(line)]
        found = self._matched[pattern]
        return found[skip] if len(found) > skip else None

    @cached_property
    def _lines_of_ids(self) -> dict[str, int]:
        like = re.compile(r"""\s*id\s*=\s*["']([^"']*)["']""")
        found = [(match[1], at) for at, line in enumerate(self._lines, 1) if (match := like.match(line))]
        return dict(reversed(found))

    def _read(self, content: Mapping[str, Any], known: set[str] | None) -> None:
        given = content.get("claims")
        tables = given if isinstance(given, list) else []
        self._ids = {str(table.get("id")) for table in tables if isinstance(table, dict)}
        shape = self._model(_Shape, "", content)
        if shape is None:
            return
        for key in sorted(shape.defaults.keys() - Claim.model_fields.keys()):
            self._problem(f"defaults.{key}", "unknown key")
        self._read_studies(shape)
        cards = None if known is None else known | shape.cards.keys()
        for where, table in self._entries(shape):
            claim = self._model(Claim, where, self._spoken(where, shape.defaults | table, shape.caveats))
            if claim:
                self.claims.append((claim, self._place(where)))
                self.problems += [self._place(f"{where}.{fault}") for fault in _faults(claim, cards)]
        shared = {key: value for key, value in shape.defaults.items() if key in Curve.model_fields}
        for number, table in enumerate(shape.curves):
            curve = self._model(Curve, f"curves.{number}", shared | table)
            if curve:
                self.curves.append(curve)
                faults = _curve_faults(curve, cards)
                self.problems += [self._place(f"curves.{number}.{fault}") for fault in faults]
        for key in sorted(shape.caveats.keys() - self._used):
            self._problem(f"caveats.{key}", "no claim names it")
        named = {side.card for claim, _ in self.claims for side in sides(claim)}
        for card in sorted(shape.cards.keys() - named):
            self._problem(f"cards.{card}", "no claim names it")

    def _read_studies(self, shape: _Shape) -> None:
        for number, table in enumerate(shape.studies):
            study = self._model(Study, f"studies.{number}", table)
            if study:
                self.studies.append((study, self._place(f"studies.{number}")))

    def _entries(self, shape: _Shape) -> Iterator[tuple[str, dict[str, Any]]]:
        """The place of each claim, and what the file has of it: those of its own, then those of tables."""
        for number, table in enumerate(shape.claims):
            yield f"claims.{table.get('id', number)}", table
        for number, given in enumerate(shape.tables):
            made = self._model(ClaimTable, f"tables.{number}", given)
            for claim in written_out(made, shape.defaults) if made else ():
                yield f"tables.{number}.{claim['id']}", claim

    def _spoken(self, where: str, table: dict[str, Any], sentences: Mapping[str, str]) -> dict[str, Any]:
        keys, why = table.get("caveats", []), table.get("why")
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            return table
        if isinstance(why, str):
            keys = [*keys, why]
        for key in keys:
            if key not in sentences:
                field = "why" if key == why else "caveats"
                self._problem(f"{where}.{field}", f"'{key}' is not in [caveats]")
        self._used.update(keys)
        spoken = {"caveats": [sentences[key] for key in keys if key in sentences]}
        return table | spoken | ({"why": sentences.get(why, why)} if isinstance(why, str) else {})

    def _model(self, model: type[M], where: str, table: Mapping[str, Any]) -> M | None:
        try:
            return model.model_validate(table)
        except ValidationError as error:
            for problem in error.errors(include_url=False):
                field = ".".join(str(part) for part in (where, *problem["loc"]) if part != "")
                unknown = problem["type"] == "extra_forbidden"
                self._problem(
                    field, "unknown key" if unknown else problem["msg"].removeprefix("Value error, ")
                )
            return None


def nearest(name: str, known: Iterable[str]) -> str:
    """What may have been meant, as a clause; empty where nothing is near."""
    found = get_close_matches(name.casefold(), {one.casefold(): one for one in known}, n=1, cutoff=0.75)
    meant = next((one for one in known if found and one.casefold() == found[0]), None)
    return f"; is '{meant}' meant?" if meant else ""


def sides(claim: Claim) -> tuple[Side, ...]:
    """All that a claim speaks of, those of a trend's points too."""
    own = [(claim.of, claim.over)] if not claim.points else [(at.of, at.over) for at in claim.points]
    return tuple(side for pair in own for side in pair if side is not None)


def _faults(claim: Claim, cards: set[str] | None) -> Iterator[str]:
    yield from _form_faults(claim)
    yield from _class_faults(claim)
    if claim.metric.endswith("_to_target") != (claim.target is not None):
        yield "target: the time to a target names it, and no other metric has one"
    if claim.value is None and claim.words is None:
        yield "value: a claim without a value is a claim in words"
    if claim.value is not None and claim.value <= 0:
        yield f"value: {claim.value:g} is not above 0, as every ratio and every figure is"
    if claim.value is not None and claim.value > (most := MOST_OF_UNIT.get(claim.unit, inf)):
        yield f"value: {claim.value:g} is above {most}, the most of its unit"
    units = ("x",) if claim.kind == "ratio" else (*UNITS[claim.metric], *(["x"] * (claim.kind == "trend")))
    if claim.unit not in units:
        yield f"unit: '{claim.unit}' is no unit of it; it is told in {' or '.join(units)}"
    if not claim.source.strip():
        yield "source: is empty"
    for card in sorted({side.card for side in sides(claim) if side.card}):
        if cards is not None and card not in cards:
            yield f"of.card: '{card}' is neither in {CARDS} nor in [cards]{nearest(card, cards)}"


def _form_faults(claim: Claim) -> Iterator[str]:
    compares = claim.kind in ("ratio", "order")
    if claim.kind != "trend" and compares != (claim.over is not None):
        yield f"over: a claim of kind '{claim.kind}' {'needs a' if compares else 'has no'} second side"
    if claim.is_direction and (claim.relation == "equal" or claim.value is not None):
        yield f"relation: {'an order' if compares else 'a trend'} is less or greater, and has no value"
    places = {point.at for point in claim.points}
    if len(places) < 2 if claim.kind == "trend" else places:
        yield "points: a trend has two or more at different places, and no other kind has any"
    if len({point.over is None for point in claim.points}) > 1:
        yield "points: all have a second side, or none has"


def _class_faults(claim: Claim) -> Iterator[str]:
    measured_on = any(side.card for side in sides(claim))
    if claim.kind == "absolute" and claim.of.card is None:
        yield "of.card: an absolute figure stands for one card"
    if claim.kind == "absolute" and claim.reconstructed:
        yield "reconstructed: an absolute figure needs the published protocol itself"
    if claim.kind == "absolute" and claim.card_class is not None:
        yield "card_class: an absolute figure is claimed for its own card alone"
    if claim.card_class is not None and measured_on and claim.why is None:
        yield "why: a claim that was measured on one card says why it is claimed for a class"


def _curve_faults(curve: Curve, cards: set[str] | None) -> Iterator[str]:
    for name in ("train_loss", "valid_loss", "quality"):
        count = len(getattr(curve, name))
        if count != len(curve.epochs):
            yield f"{name}: has {count} values for {len(curve.epochs)} epochs"
    if list(curve.epochs) != list(range(1, len(curve.epochs) + 1)):
        yield "epochs: do not count from 1"
    if curve.side.card and cards is not None and curve.side.card not in cards:
        yield f"side.card: '{curve.side.card}' is neither in {CARDS} nor in [cards]"


def speaks_of(
    claim: Claim,
    kind: DeviceKind,
    name: str,
    capability: str | None,
    cards: Sequence[Card],
    memory_bytes: int | None = None,
) -> bool | None:
    """Whether a claim may be judged on a device of that name and memory; null where its class is not told.

    A ratio between two cards speaks of the card of either side.
    """
    if claim.card_class is not None:
        return in_class(claim.card_class, kind, name, capability, cards)
    named = {side.card for side in (claim.of, claim.over) if side and side.card}
    return not named or any(same_card(card, name, cards, memory_bytes) for card in named)


def same_card(published: str, name: str, cards: Sequence[Card], memory_bytes: int | None = None) -> bool:
    """Whether a device is the card or processor that a publication names, its maker aside.

    A name that was sold with two memories means the first of them, unless the device's is not known.
    """
    if not sold_with(published, memory_bytes):
        return False
    card = find(name, cards)
    return published == card.name if card else plain_name(published) == plain_name(name)
