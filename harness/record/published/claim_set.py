"""The published figures of results/claims/*.toml, read strictly.

A file may hold `[defaults]`, which every claim and curve has that does not say otherwise; `[caveats]`,
sentences that claims name by their keys, as `caveats` or as `why`; and `[cards]`, what is known of published
cards that results/cards.toml does not have. A `[[studies]]` says who published a study and when, once in all
files; a `[[tables]]` is many claims in few lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.record import Claim, Curve, DeviceKind, Model, Side, Study
from harness.record.published.cards import FILE as CARDS
from harness.record.published.cards import (
    Card,
    card_family,
    find_card,
    is_in_class,
    load_cards,
    plain_name,
    sold_with_memory,
)
from harness.record.published.claim import UNITS, ClaimTable, expand_table

FOLDER = Path("results") / "claims"
REMEDY = "correct it; docs/data.md shows a whole study"


@dataclass(frozen=True, slots=True)
class ClaimSet:
    """All claims, curves and studies, in the order of their files."""

    claims: tuple[Claim, ...] = ()
    curves: tuple[Curve, ...] = ()
    studies: tuple[Study, ...] = ()
    problems: tuple[UserError, ...] = ()
    """Why each file that is left out cannot be read."""

    def study(self, name: str) -> Study | None:
        """Return the study of that id or name; null where no file says who published it."""
        return next((study for study in self.studies if name in (study.id, study.name)), None)

    def of(self, name: str) -> tuple[Claim, ...]:
        """Return the claims of one study, by its id or name; raises UserError where it has none."""
        found = self.study(name)
        study = found.id if found else name
        claims = tuple(claim for claim in self.claims if claim.study == study)
        if not claims:
            named = ", ".join(dict.fromkeys(self.study_name(claim.study) for claim in self.claims))
            raise UserError(f"there is no study '{name}'", remedy=f"name one of {named}")
        return claims

    def study_name(self, study_id: str) -> str:
        """Return what people call a study: who published it and when, else its id."""
        study = self.study(study_id)
        return study.name if study else study_id

    def workload_curves(self, workload: str) -> tuple[Curve, ...]:
        """Return the curves of whole protocols of one workload; lead-in runs are left out."""
        return tuple(
            curve for curve in self.curves if curve.workload == workload and curve.part == "protocol"
        )


def read_claims(root: Path) -> ClaimSet:
    """Return the claims below `root`, none where there is no folder, without those of a file in doubt.

    A file's problem names the file, the claim and the first thing that is wrong: nothing is made of a part of
    it. Cards are checked where `root` has a table.
    """
    known = {card.name: card for card in load_cards(root)} if (root / CARDS).exists() else None
    claims: list[Claim] = []
    curves: list[Curve] = []
    studies: list[Study] = []
    problems: list[UserError] = []
    seen: dict[tuple[object, ...], str] = {}
    for path in sorted((root / FOLDER).glob("*.toml")):
        where = path.relative_to(root).as_posix()
        try:
            own, drawn, made_by = _file_claims(path, where, known)
            seen = _refuse_twins(own, made_by, seen)
        except UserError as problem:
            said = problem.problem.removeprefix(f"{where}: ")
            problems.append(UserError(f"{where}: {said}", remedy=problem.remedy))
            continue
        claims, curves, studies = [*claims, *own], [*curves, *drawn], [*studies, *made_by]
    return ClaimSet(tuple(claims), tuple(curves), tuple(studies), tuple(problems))


def _file_claims(
    path: Path, where: str, known: Mapping[str, Card] | None
) -> tuple[list[Claim], list[Curve], Sequence[Study]]:
    """Return the claims, curves and studies of one file; raises UserError for the first that is wrong."""
    shape = _Shape.parse_toml(path.read_bytes(), where, REMEDY, UserError)
    cards = None if known is None else {**dict.fromkeys(shape.cards), **known}
    written = (claim for table in shape.tables for claim in expand_table(table, shape.defaults))
    claims = [
        _claim(f"{where}: claim '{str(given.get('id'))[:80]}'", given, shape, cards)
        for given in (*shape.claims, *written)
    ]
    shared = {key: value for key, value in shape.defaults.items() if key in Curve.model_fields}
    curves = [
        _curve(f"{where}: curve {number}", shared | table, cards)
        for number, table in enumerate(shape.curves, 1)
    ]
    return claims, curves, shape.studies


def _refuse_twins(
    claims: Sequence[Claim], studies: Sequence[Study], before: Mapping[tuple[object, ...], str]
) -> dict[tuple[object, ...], str]:
    """Return what was seen `before` with these; raises UserError for an id or figure of two claims."""
    seen = dict(before)
    for claim in claims:
        figure = (
            *(claim.study, claim.kind, claim.workload, claim.protocol, claim.metric, claim.target),
            *(claim.epochs, claim.relation, claim.card_class, claim.words, claim.source),
            *(claim.of.canonical(), claim.over and claim.over.canonical()),
            tuple(point.canonical() for point in claim.points),
        )
        if ("id", claim.id) in seen:
            raise UserError(f"two claims have the id '{claim.id}'", remedy="give each its own")
        if (there := seen.setdefault(figure, claim.id)) != claim.id:
            problem = f"claim '{claim.id}' is the same figure as '{there}': the same source, metric and sides"
            raise UserError(problem, remedy="leave one out")
        seen["id", claim.id] = claim.id
    for study in studies:
        for name in {study.id, study.name}:
            if ("study", name) in seen:
                raise UserError(f"two studies are called '{name}'", remedy="say once who published it")
            seen["study", name] = name
    return seen


class _Shape(Model):
    defaults: dict[str, Any] = {}
    caveats: dict[str, str] = {}
    cards: dict[str, str] = {}
    studies: tuple[Study, ...] = ()
    claims: tuple[dict[str, Any], ...] = ()
    tables: tuple[ClaimTable, ...] = ()
    curves: tuple[dict[str, Any], ...] = ()


def _claim(
    where: str, table: dict[str, Any], shape: _Shape, cards: Mapping[str, Card | None] | None
) -> Claim:
    """Return a claim of a file with its caveats written out; raises UserError for the first mistake."""
    given = shape.defaults | table
    named, why = given.get("caveats", ()), given.get("why")
    keys = [*(named if isinstance(named, list | tuple) else [named]), *([] if why is None else [why])]
    for key in keys:
        if not isinstance(key, str) or key not in shape.caveats:
            raise UserError(f"{where}: '{str(key)[:80]}' is not in [caveats]", remedy=REMEDY)
    spoken = {"caveats": [shape.caveats[key] for key in keys], "why": why and shape.caveats[why]}
    claim = Claim.parse(given | spoken, where, REMEDY, UserError)
    _refuse(where, _faults(claim, cards))
    return claim


def _curve(where: str, table: dict[str, Any], cards: Mapping[str, Card | None] | None) -> Curve:
    curve = Curve.parse(table, where, REMEDY, UserError)
    _refuse(where, _curve_faults(curve, cards))
    return curve


def _refuse(where: str, faults: Iterator[tuple[str, str]]) -> None:
    for field, fault in faults:
        raise UserError(f"{where}: '{field}': {fault}", remedy=REMEDY)


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return what may have been meant, as a clause; empty where nothing is near."""
    found = get_close_matches(name.casefold(), {one.casefold(): one for one in known}, n=1, cutoff=0.75)
    meant = next((one for one in known if found and one.casefold() == found[0]), None)
    return f"; is '{meant}' meant?" if meant else ""


def claim_sides(claim: Claim) -> tuple[Side, ...]:
    """Return all sides that a claim compares, those of a trend's points too."""
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
        yield "unit", f"'{claim.unit}' is no unit of it; it is given in {' or '.join(units)}"
    if not claim.source.strip():
        yield "source", "is empty"
    for card in sorted({side.card for side in claim_sides(claim) if side.card}):
        if cards is not None and card not in cards and not card_family(card, cards):
            yield "of.card", f"'{card}' is neither in {CARDS} nor in [cards]{suggest_name(card, cards)}"


def _form_faults(claim: Claim) -> Iterator[tuple[str, str]]:
    compares = claim.compares
    if claim.kind != "trend" and compares != (claim.over is not None):
        yield "over", f"a claim of kind '{claim.kind}' {'needs a' if compares else 'has no'} second side"
    if claim.kind in ("order", "trend") and (claim.relation == "equal" or claim.value is not None):
        yield "relation", f"{'an order' if compares else 'a trend'} is less or greater, and has no value"
    places = {point.at for point in claim.points}
    if len(places) < 2 if claim.kind == "trend" else places:
        yield "points", "a trend has two or more at different places, and no other kind has any"
    if len({point.over is None for point in claim.points}) > 1:
        yield "points", "all have a second side, or none has"


def _class_faults(claim: Claim) -> Iterator[tuple[str, str]]:
    measured_on = any(side.card for side in claim_sides(claim))
    if claim.kind == "absolute" and claim.of.card is None:
        yield "of.card", "an absolute figure is for one card"
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


def applies_to(
    claim: Claim,
    kind: DeviceKind,
    name: str,
    capability: str | None,
    cards: Sequence[Card],
    memory_bytes: int | None = None,
) -> bool | None:
    """Return whether a claim may be judged on a device of that name and memory; null if its class is unknown.

    A ratio between two cards speaks of the card of either side.
    """
    if claim.card_class is not None:
        return is_in_class(claim.card_class, kind, name, capability, cards)
    named = {side.card for side in (claim.of, claim.over) if side and side.card}
    return not named or any(is_same_card(card, name, cards, memory_bytes) for card in named)


def is_same_card(published: str, name: str, cards: Sequence[Card], memory_bytes: int | None = None) -> bool:
    """Return whether a device is the card or processor that a publication names, its maker aside.

    A name that was sold with two memories means the first of them, unless the device's is not known. One that
    says neither form nor memory means any card of it.
    """
    if not sold_with_memory(published, memory_bytes):
        return False
    card = find_card(name, cards)
    if card is None:
        return plain_name(published) == plain_name(name)
    return card.name in (published, *card_family(published, [each.name for each in cards]))
