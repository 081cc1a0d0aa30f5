"""The published figures of results/claims/*.toml: read strictly, with all problems reported at once.

A file may hold `[defaults]`, which stand in every claim and curve that does not say otherwise; `[caveats]`,
sentences that claims name by their keys, as `caveats` or as `why`; and `[cards]`, what is known of published
cards that results/cards.toml does not have. A `[[studies]]` says who published a study and when, once in all
files; a `[[tables]]` is many claims in few lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from harness.errors import UserError
from harness.record import Claim, Curve, DeviceKind, Model, Side, Study, parse_toml, utf8
from harness.record.published.cards import FILE as CARDS
from harness.record.published.cards import Card, family, find, in_class, load_cards, plain_name, sold_with
from harness.record.published.claim import UNITS, ClaimTable, written_out
from harness.record.published.problems import Problem, TomlLines, causes, of_validation, told

FOLDER = Path("results") / "claims"


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

    Raises UserError with a line for each cause in all files, as `path:line: field: message`, so that
    nothing is made of a part of them. Cards are checked where `root` has a table.
    """
    known = {card.name: card for card in load_cards(root)} if (root / CARDS).exists() else None
    files = [
        _ClaimReader(path, str(path.relative_to(root)), known)
        for path in sorted((root / FOLDER).glob("*.toml"))
    ]
    problems = [problem for file in files for problem in file.problems]
    problems += _stated_twice([(claim, place) for file in files for claim, place in file.claims])
    problems += _named_twice([(study, place) for file in files for study, place in file.studies])
    if problems:
        noun = "problem" if len(problems) == 1 else "problems"
        listed = "\n  ".join(causes(problems))
        raise UserError(
            f"{len(problems)} {noun} in the claims\n  {listed}", remedy="correct the fields named"
        )
    claims = tuple(claim for file in files for claim, _ in file.claims)
    curves = tuple(curve for file in files for curve in file.curves)
    return ClaimSet(claims, curves, tuple(study for file in files for study, _ in file.studies))


def _stated_twice(claims: Sequence[tuple[Claim, Problem]]) -> Iterator[Problem]:
    """Ids that stand twice, and figures of the same source, metric and sides under two ids."""
    by_id: dict[str, Problem] = {}
    by_figure: dict[tuple[object, ...], Problem] = {}
    for claim, place in claims:
        figure = (
            (claim.study, claim.kind, claim.workload, claim.protocol),
            (claim.metric, claim.target, claim.epochs),
            (claim.of.canonical(), claim.over.canonical() if claim.over else None),
            tuple(point.canonical() for point in claim.points),
            (claim.relation, claim.card_class, claim.words, claim.source),
        )
        if claim.id in by_id:
            yield place.of("id", f"stands in {by_id[claim.id].place} too")
        elif figure in by_figure:
            there = by_figure[figure].place
            yield place.of("", f"is the same figure as {there}: the same source, metric and sides")
        by_id.setdefault(claim.id, place)
        by_figure.setdefault(figure, place)


def _named_twice(studies: Sequence[tuple[Study, Problem]]) -> Iterator[Problem]:
    """Ids and names that two studies have."""
    for field in ("id", "name"):
        known: dict[str, Problem] = {}
        for study, place in studies:
            value = getattr(study, field)
            if value in known:
                yield place.of(field, f"stands in {known[value].place} too")
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

    def __init__(self, path: Path, shown: str, known: Mapping[str, Card] | None) -> None:
        self.problems: list[Problem] = []
        self.claims: list[tuple[Claim, Problem]] = []
        self.curves: list[Curve] = []
        self.studies: list[tuple[Study, Problem]] = []
        self._shown = shown
        self._used: set[str] = set()
        try:
            text = path.read_bytes()
            content = parse_toml(text)
        except (OSError, ValueError) as error:
            self.problems.append(Problem(shown, None, "the whole", f"is not readable TOML ({error})"))
            return
        self._lines = TomlLines(utf8(text))
        self._read(content, known)

    def _place(self, *loc: str | int, name: str = "") -> Problem:
        """Where a table stands, without a problem yet; `name` is what it is told by."""
        told = name or ".".join(map(str, loc))
        return Problem(self._shown, self._lines.at(loc), told, "")

    def _read(self, content: Mapping[str, Any], known: Mapping[str, Card] | None) -> None:
        shape = self._model(_Shape, Problem(self._shown, None, "", ""), content)
        if shape is None:
            return
        for key in sorted(shape.defaults.keys() - Claim.model_fields.keys()):
            self.problems.append(self._place("defaults", key).of("", "unknown key"))
        self._read_studies(shape)
        cards = None if known is None else {**dict.fromkeys(shape.cards), **known}
        for place, table in self._entries(shape):
            claim = self._model(Claim, place, self._spoken(place, shape.defaults | table, shape.caveats))
            if claim:
                self.claims.append((claim, place))
                self.problems += [place.of(field, fault) for field, fault in _faults(claim, cards)]
        shared = {key: value for key, value in shape.defaults.items() if key in Curve.model_fields}
        for number, table in enumerate(shape.curves):
            place = self._place("curves", number)
            curve = self._model(Curve, place, shared | table)
            if curve:
                self.curves.append(curve)
                self.problems += [place.of(field, fault) for field, fault in _curve_faults(curve, cards)]
        for key in sorted(shape.caveats.keys() - self._used):
            self.problems.append(self._place("caveats", key).of("", "no claim names it"))
        named = {side.card for claim, _ in self.claims for side in sides(claim)}
        for card in sorted(shape.cards.keys() - named):
            self.problems.append(self._place("cards", card).of("", "no claim names it"))

    def _read_studies(self, shape: _Shape) -> None:
        for number, table in enumerate(shape.studies):
            place = self._place("studies", number)
            study = self._model(Study, place, table)
            if study:
                self.studies.append((study, place))

    def _entries(self, shape: _Shape) -> Iterator[tuple[Problem, dict[str, Any]]]:
        """The place of each claim, and what the file has of it: those of its own, then those of tables."""
        for number, table in enumerate(shape.claims):
            yield self._place("claims", number, name=f"claims.{told(str(table.get('id', number)))}"), table
        for number, given in enumerate(shape.tables):
            made = self._model(ClaimTable, self._place("tables", number), given)
            if made is None:
                continue
            rows = [self._place("tables", number, "rows", row) for row in range(len(made.rows))]
            for place, row in zip(rows, made.rows, strict=True):
                if fault := made.row_fault(row):
                    self.problems.append(place.of("", fault))
            for at, claim in written_out(made, shape.defaults):
                yield replace(rows[at], field=f"tables.{number}.{told(claim['id'])}"), claim

    def _spoken(self, place: Problem, table: dict[str, Any], sentences: Mapping[str, str]) -> dict[str, Any]:
        keys, why = table.get("caveats", []), table.get("why")
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            return table
        if isinstance(why, str):
            keys = [*keys, why]
        for key in keys:
            if key not in sentences:
                field = "why" if key == why else "caveats"
                self.problems.append(place.of(field, f"'{key}' is not in [caveats]"))
        self._used.update(keys)
        spoken = {"caveats": [sentences[key] for key in keys if key in sentences]}
        return table | spoken | ({"why": sentences.get(why, why)} if isinstance(why, str) else {})

    def _model(self, model: type[M], place: Problem, table: Mapping[str, Any]) -> M | None:
        try:
            return model.model_validate(table)
        except ValidationError as error:
            for found in of_validation(error, self._shown, self._lines):
                where = replace(place, line=place.line or found.line)
                self.problems.append(where.of(found.field, found.message))
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


def _faults(claim: Claim, cards: Mapping[str, Card | None] | None) -> Iterator[tuple[str, str]]:
    yield from _form_faults(claim)
    yield from _class_faults(claim)
    if claim.metric.endswith("_to_target") != (claim.target is not None):
        yield "target", "the time to a target names it, and no other metric has one"
    if claim.value is None and claim.words is None:
        yield "value", "a claim without a value is a claim in words"
    if claim.value is not None and claim.value <= 0:
        yield "value", f"{claim.value:g} is not above 0, as every ratio and every figure is"
    units = ("x",) if claim.kind == "ratio" else (*UNITS[claim.metric], *(["x"] * (claim.kind == "trend")))
    if claim.unit not in units:
        yield "unit", f"'{claim.unit}' is no unit of it; it is told in {' or '.join(units)}"
    if not claim.source.strip():
        yield "source", "is empty"
    for card in sorted({side.card for side in sides(claim) if side.card}):
        if cards is not None and card not in cards and not family(card, cards):
            yield "of.card", f"'{card}' is neither in {CARDS} nor in [cards]{nearest(card, cards)}"


def _form_faults(claim: Claim) -> Iterator[tuple[str, str]]:
    compares = claim.compares
    if claim.kind != "trend" and compares != (claim.over is not None):
        yield "over", f"a claim of kind '{claim.kind}' {'needs a' if compares else 'has no'} second side"
    if claim.is_direction and (claim.relation == "equal" or claim.value is not None):
        yield "relation", f"{'an order' if compares else 'a trend'} is less or greater, and has no value"
    places = {point.at for point in claim.points}
    if len(places) < 2 if claim.kind == "trend" else places:
        yield "points", "a trend has two or more at different places, and no other kind has any"
    if len({point.over is None for point in claim.points}) > 1:
        yield "points", "all have a second side, or none has"


def _class_faults(claim: Claim) -> Iterator[tuple[str, str]]:
    measured_on = any(side.card for side in sides(claim))
    if claim.kind == "absolute" and claim.of.card is None:
        yield "of.card", "an absolute figure stands for one card"
    if claim.kind == "absolute" and claim.reconstructed:
        yield "reconstructed", "an absolute figure needs the published protocol itself"
    if claim.kind == "absolute" and claim.card_class is not None:
        yield "card_class", "an absolute figure is claimed for its own card alone"
    if claim.card_class is not None and measured_on and claim.why is None:
        yield "why", "a claim that was measured on one card says why it is claimed for a class"


def _curve_faults(curve: Curve, cards: Mapping[str, Card | None] | None) -> Iterator[tuple[str, str]]:
    for name in ("train_loss", "valid_loss", "quality"):
        count = len(getattr(curve, name))
        if count != len(curve.epochs):
            yield name, f"has {count} values for {len(curve.epochs)} epochs"
    if list(curve.epochs) != list(range(1, len(curve.epochs) + 1)):
        yield "epochs", "do not count from 1"
    if curve.side.card and cards is not None and curve.side.card not in cards:
        yield "side.card", f"'{curve.side.card}' is neither in {CARDS} nor in [cards]"


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

    A name that was sold with two memories means the first of them, unless the device's is not known. One that
    says neither form nor memory means any card of it.
    """
    if not sold_with(published, memory_bytes):
        return False
    card = find(name, cards)
    if card is None:
        return plain_name(published) == plain_name(name)
    return card.name in (published, *family(published, [each.name for each in cards]))
