"""The published figures at a terminal: all of them, what can be judged where, and the trials for it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from commands import measure
from commands.plans.matrix import wrapped
from commands.plans.ways import OfferedPlan, device_of, offers, quickest
from harness.errors import UserError
from harness.machine.fingerprint import machine_id, state_folder
from harness.record import CardClass, Claim, Question, TrialSpec
from harness.record.published.cards import load_cards
from harness.record.published.claim_set import load_claims, nearest, same_card
from harness.run import on_paper
from harness.run import setup as run_setup
from harness.run.choice import speeds_of
from harness.run.setup import RunSetup
from harness.settings import Settings
from harness.units import duration, seconds_of
from report import text
from report.analysis import AnalysisRequest, analyse, evidence_in
from report.claims.answers import Answer, Obstacle, answers
from report.claims.judgeable import JudgingPlan, judgeable
from report.claims.judged import not_compared
from report.expected.figures import read_tables
from report.expected.sizes import read_pairs, sizes
from report.expected.specs import FOLDER


def listed(root: Path, study: str = "") -> None:
    """Prints the claims of all studies, or of one by its name or id; raises UserError for an unknown one."""
    every = load_claims(root)
    claims = every.of(study) if study else every.claims
    print("figure: what was published, on which card; below it in words")
    for claim in sorted(claims, key=lambda claim: (claim.study, claim.workload)):
        _print_figure(claim, _what(claim))
    print(f"{text.count(len(claims), 'claim')}; `--here` and `--card` say which a machine can judge")


def _what(claim: Claim) -> str:
    target = "" if claim.target is None else f" {claim.target:g}"
    return claim.words or claim.metric.replace("_", " ") + target


def here(root: Path, settings: Settings, card: str = "", study: str = "", rows: int = 20) -> None:
    """Prints a table of the figures that this machine or that card can answer: its own card's first."""
    setup = on_paper.prepare(root, settings, card)
    every = load_claims(root)
    claims = every.of(study) if study else every.claims
    found = [answer for answer in _answers(setup, claims, alone=bool(card)) if answer.way or answer.cell]
    device, cards = device_of(setup.machine, setup.selection), load_cards(root)

    def order(answer: Answer) -> tuple[int, int, float, str]:
        claim, way, card = answer.claim, answer.way, answer.claim.of.card
        # Of this card, of a class that it is of, of another.
        other = 0 if card and same_card(card, device.name, cards) else 1 + int(claim.kind == "absolute")
        differs = int(claim.kind == "absolute" and claim.stack is not None) + len(answer.differs)
        return other, differs, way.seconds if way else 0.0, claim.id

    shown = sorted(found, key=order)[: max(rows, 0)]
    print("figure: what was published, on which card; below it the minutes here, and the answer")
    for answer in shown:
        claim, way = answer.claim, answer.way
        minutes = f"{way.seconds / 60:.0f} min, " if way and way.seconds >= 60 else "<1 min, " if way else ""
        minutes = f"≤{minutes}" if way and way.at_most else minutes
        _print_figure(claim, minutes + _answer(answer))
    left = len(found) - len(shown)
    more = f"; {left} more with `--rows {len(found)}`" if left else ""
    others = sum(bool(answer.claim.of.card) and order(answer)[0] > 0 for answer in found)
    of_others = f", {others} of them beside another card's" if others else ""
    print(f"{text.count(len(found), 'figure')} of {len(claims)} can be answered here{of_others}{more}")
    print("`invoke claims ID` gives one figure's answer, `invoke run --claim ID` what it needs")


def _print_figure(claim: Claim, said: str) -> None:
    """Prints a figure's id and what was published, and below it what is said of it."""
    print(f"{claim.id}: {_value(claim)}, {claim.of.card or CLASSES[claim.card_class or 'any']}")
    print(*wrapped(said, "    ", "    "), sep="\n")


def _value(claim: Claim) -> str:
    if claim.value is None:
        return claim.relation
    sign = {"equal": "", "less": "<", "greater": ">"}[claim.relation]
    value = f"{claim.value:.4g}" if claim.value < 1e4 else f"{claim.value:,.0f}"
    return f"{sign}{value} {claim.unit}"


def _answer(answer: Answer) -> str:
    """Return the answer's column of a row; where the loader differs, that is said before the ratio."""
    if answer.times is None or answer.way:
        return answer.state
    speed = "times as fast" if answer.claim.metric != "peak_bytes" else "times as much"
    loader = "other loader, " if "loader" in answer.differs else ""
    return f"{answer.state}: {loader}{answer.times:.3g} {speed}{_range(answer)}"


def _range(answer: Answer) -> str:
    if answer.low is not None:
        return f" ({answer.low:.3g} to {answer.high:.3g})"
    return " (a first look, no range)" if answer.first_look else ""


def _answers(setup: RunSetup, claims: Sequence[Claim], *, alone: bool) -> tuple[Answer, ...]:
    """The answers by this machine's records and the plans that fit; by plans `alone` for a card on paper."""
    root, device, cards = setup.root, device_of(setup.machine, setup.selection), load_cards(setup.root)
    found = quickest(claims, _offered(setup, claims), device, cards)
    if alone:
        unmet = [not_compared(claim) for claim in claims]
        return answers(unmet, (), cards, found.ways, found.barred)
    evidence, machine = evidence_in(root), machine_id(state_folder())
    # The sessions of other machines answer nothing here.
    others = frozenset(session.id for session in evidence.results.sessions if session.machine != machine)
    request = AnalysisRequest(
        datetime.now(UTC), machine=machine, ways=found.ways, barred=found.barred, committed=others
    )
    if (root / FOLDER).is_dir():
        published = [row for table in read_tables(root).values() for row in table]
        request = replace(request, sizes=sizes(read_pairs(root, published)))
    wanted = {claim.id for claim in claims}
    return tuple(answer for answer in analyse(evidence, request).answers if answer.claim.id in wanted)


def one(root: Path, settings: Settings, name: str, card: str = "") -> None:
    """Prints one figure's answer with every term there and here; raises UserError for an id that is not."""
    setup = on_paper.prepare(root, settings, card)
    claim = _known(load_claims(root).claims, [name])[0]
    (answer,) = _answers(setup, [claim], alone=bool(card))
    print("\n".join(answered(answer, load_claims(root).name_of(claim.study))))


def answered(answer: Answer, study: str) -> list[str]:
    """The lines of one answer: the figure, what it came to, and each term of the work."""
    claim, cell = answer.claim, answer.cell
    out = [f"{claim.id}: {answer.state}", *wrapped(f"{study}: {_what(claim)}", "  ", "  ")]
    if answer.times is not None:
        if "loader" in answer.differs:
            out.append("  the loader differs: this is of the systems, and not of the cards alone")
        word = "times the memory" if claim.metric == "peak_bytes" else "times as fast as published"
        out.append(f"  {answer.times:.3g} {word}{_range(answer)}")
    if answer.software is not None:
        size, reach = answer.software, "within" if answer.within_software else "beyond"
        years = f" of {size.years[0]} to {size.years[1]}" if size.years else ""
        out.append(
            f"  {reach} what software alone is known to change: {100 * size.low:.0f} to "
            f"{100 * size.high:.0f} % in nine of ten of {size.pairs} pairs{years}"
        )
    if answer.way:
        takes = f"{'at most' if answer.way.at_most else 'about'} {duration(answer.way.seconds)}"
        out.append(f"  `invoke run --claim {claim.id}`, {takes}, plan {answer.way.line}")
    if answer.obstacle:
        out.append(f"  {reason(answer.obstacle)}")
    if answer.nearest:
        each_term = ((each.field.replace("_", " "), each.here, each.wanted) for each in answer.nearest)
        near = ", ".join(
            f"{name} {'not given' if ours is None else ours} for {'not given' if theirs is None else theirs}"
            for name, ours, theirs in each_term
        )
        out += wrapped(f"nearest here: {near}", "    ", "  ")
    out.append(f"  {'':<16} {'published':<28} here")
    side, key = claim.of, cell.key if cell else None
    versions = [f"{name} {value}" for name, value in cell.stack.versions if value] if cell else []
    software = ", ".join(versions[:3]) or None
    rows: list[tuple[str, object, object]] = [
        ("figure", _value(claim), "" if answer.here is None else f"{answer.here:.4g}"),
        ("card", side.card or claim.card_class, cell.card if cell else None),
        ("software", claim.stack, software),
        ("loader", side.data_mode, key and key.data_mode),
        ("runs", claim.runs, cell.throughput.n if cell else None),
        *((name.replace("_", " "), getattr(side, name), key and getattr(key, name)) for name in WORK),
    ]
    for term, there, ours in rows:
        if there is not None or ours is not None:
            out.append(f"  {term:<16} {_cut(there):<28} {_cut(ours) if cell else ''}".rstrip())
    return [*out, *wrapped(f"source: {claim.source}", "    ", "  ")]


CLASSES: Mapping[CardClass, str] = {
    "any": "any device",
    "gpu": "any GPU",
    "matrix-units": "a GPU with matrix units",
    "no-matrix-units": "a GPU without matrix units",
}
WORK = ("model", "precision", "batch_size", "image_size", "sequence_length", "gpus")


def _cut(value: object) -> str:
    return "not said" if value is None else text.clean(str(value), 28)


REASONS: Mapping[str, str] = {
    "figure": "it has no figure",
    "trend": "a trend is published, and not judged",
    "metric": "nothing here measures it",
    "gpu": "it needs a GPU",
    "devices": "it needs {need} GPUs",
    "card": "it is claimed for {need} alone",
    "cards": "it needs two cards: {need}",
    "framework": "no image has {need} for this kind of device",
    "plan": "no plan has its {names}",
}


def reason(obstacle: Obstacle) -> str:
    """Why a figure cannot be measured here, as a clause."""
    names = ", ".join(name.replace("_", " ") for name in obstacle.names) or "work"
    return REASONS[obstacle.kind].format(need=obstacle.need, names=names)


def _offered(setup: RunSetup, claims: Sequence[Claim]) -> Iterator[OfferedPlan]:
    """What each plan can judge here, in the image of the line, or in all where it names none."""
    device, cards = device_of(setup.machine, setup.selection), load_cards(setup.root)
    image = setup.settings.image
    return offers(setup.root, claims, device, setup.machine.cpu, cards, speeds_of(setup), image)


def _known(claims: Sequence[Claim], ids: Collection[str]) -> list[Claim]:
    """The claims of those ids; raises UserError for one that there is not."""
    known = {claim.id: claim for claim in claims}
    for name in sorted(set(ids) - known.keys()):
        problem = f"there is no claim '{text.clean(name, 64)}'{nearest(name, known)}"
        raise UserError(problem, remedy="`invoke claims` lists them")
    return [claim for claim in claims if claim.id in ids]


def run(root: Path, settings: Settings, ids: Sequence[str], where: str, how: measure.RunOptions) -> None:
    """Runs the trials that some claims need, each in the plan that takes the least time for it.

    With 'here' in place of ids as many claims as the settings' budget holds, those first that cost the least
    more; without both the whole plan. Raises UserError for an id that there is not, and for a claim that no
    shipped plan can judge here.
    """
    if not ids and not where:
        measure.run(root, settings, how)
        return
    if (ids and where) or where not in ("", "here"):
        problem = f"'--claims {where}' is not known, or --claim was given too"
        raise UserError(problem, remedy="write `--claims here`, or `--claim ID`")
    claims = load_claims(root).claims
    _known(claims, ids)
    setup = run_setup.prepare(root, settings)
    asked = [claim for claim in claims if claim.id in ids] if ids else list(claims)
    offered = [offer for offer, _ in _offered(setup, asked) if offer]
    budget = seconds_of(settings.budget) if settings.budget else None
    chosen = cheapest(offered, budget)
    beyond = sorted(set(ids) - {claim for taken in chosen.values() for claim in taken})
    if beyond:
        raise UserError(
            f"no shipped plan can judge '{beyond[0]}' here{' within the budget' if budget else ''}",
            remedy="`invoke claims --here` lists what can be judged",
        )
    if not chosen:
        raise UserError("no claim can be judged here", remedy="`invoke claims --here` says what can")
    for offer in offered:
        way = next(iter(offer.values()))
        taken = chosen.get(way.line, ())
        if not taken:
            continue
        print(f"plan {way.line}: for {text.count(len(taken), 'claim')}")
        image = way.image or settings.image
        question = settings.question or Question(kind="holds")
        changes = {"plan": way.plan, "image": image, "budget": None, "question": question}
        of_plan = settings.model_copy(update=changes)
        keep = partial(_needed, claims=[claim for claim in claims if claim.id in taken], setup=setup)
        measure.run(root, of_plan, replace(how, keep=keep, at_most_seconds=budget))


def _needed(trials: Sequence[TrialSpec], claims: Sequence[Claim], setup: RunSetup) -> frozenset[str]:
    found = judgeable(claims, trials, device_of(setup.machine, setup.selection), load_cards(setup.root))
    return frozenset[str]().union(*found.values())


def cheapest(
    offers: Sequence[Mapping[str, JudgingPlan]], budget_seconds: float | None
) -> dict[str, tuple[str, ...]]:
    """The claims of each offer's line: always the one next that takes the least time more, while it fits."""
    taken: dict[str, list[str]] = {}
    trials: dict[str, set[str]] = {way.line: set() for offer in offers for way in offer.values()}
    left = {claim for offer in offers for claim in offer}
    spent = 0.0
    while left:
        more, line, claim, way = min(
            (
                (_more(way, trials[way.line]), way.line, claim, way)
                for offer in offers
                for claim, way in offer.items()
                if claim in left
            ),
            key=lambda choice: choice[:3],
        )
        if budget_seconds is not None and spent + more > budget_seconds:
            break
        spent += more
        trials[line] |= way.seconds_by_trial.keys()
        taken.setdefault(line, []).append(claim)
        left.remove(claim)
    return {name: tuple(claims) for name, claims in taken.items()}


def _more(way: JudgingPlan, run: Collection[str]) -> float:
    """Return the seconds of the plan's trials that are not run anyway."""
    return sum(seconds for trial, seconds in way.seconds_by_trial.items() if trial not in run)
