"""The published figures at a terminal: all of them, what can be judged where, and the trials for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from commands import run as running
from commands.plan import wrap_words
from commands.prospects import Prospects, device_prospects, target_device
from commands.report import analyse_clone, own_fields
from harness.errors import UserError
from harness.plan.order import Planned
from harness.record import CardClass, Claim
from harness.record.published.cards import load_cards
from harness.record.published.claim_set import ClaimSet, is_same_card, read_claims, suggest_name
from harness.run.choice import known_speeds
from harness.run.setup import RunSetup, prepare_for_cards, prepare_run
from harness.settings import Settings
from harness.units import format_duration, parse_seconds
from report import text
from report.claims.answers import Answer, Obstacle, answers
from report.claims.judge import not_compared
from report.claims.judging_plan import JudgingPlan, judging_trials, variants_of
from report.expected.software_effect import read_software_effect
from report.trials.key import grouped_by


def list_claims(root: Path, study: str = "") -> None:
    """Print the claims of all studies, or of one by its name or id; raises UserError for an unknown one."""
    every = read_claims(root)
    claims = every.of(study) if study else every.claims
    print("figure: what was published, on which card; below it in words")
    for claim in sorted(claims, key=lambda claim: (claim.study, claim.workload)):
        _print_figure(claim, _claim_words(claim))
    print(f"{text.count(len(claims), 'claim')}; `--here` and `--card` say which a machine can judge")


def _claim_words(claim: Claim) -> str:
    target = "" if claim.target is None else f" {claim.target:g}"
    return claim.words or claim.metric.replace("_", " ") + target


def list_answers(root: Path, settings: Settings, card: str = "", study: str = "", rows: int = 20) -> None:
    """Print a table of the figures that this machine or that card can answer: its own card's first."""
    setup = prepare_for_cards(root, settings, card)
    every = read_claims(root)
    claims = every.of(study) if study else every.claims
    answered = [
        answer for answer in _claim_answers(setup, claims, alone=bool(card)) if answer.way or answer.cell
    ]
    device, cards = target_device(setup.machine, setup.selection), load_cards(root)

    def order(answer: Answer) -> tuple[int, int, float, str]:
        claim, way, card = answer.claim, answer.way, answer.claim.of.card
        # Of this card, of a class that it is of, of another.
        other = 0 if card and is_same_card(card, device.name, cards) else 1 + int(claim.kind == "absolute")
        differs = int(claim.kind == "absolute" and claim.stack is not None) + len(answer.differs)
        return other, differs, way.seconds if way else 0.0, claim.id

    shown = sorted(answered, key=order)[: max(rows, 0)]
    where = f"on {len(setup.selection.gpus)} × {device.name}" if card else "here"
    print(f"figure: what was published, on which card; below it the minutes {where}, and the answer")
    for answer in shown:
        claim, way = answer.claim, answer.way
        minutes = f"{way.seconds / 60:.0f} min, " if way and way.seconds >= 60 else "<1 min, " if way else ""
        minutes = "? min, " if way and way.at_most else minutes
        _print_figure(claim, minutes + _answer_words(answer))
    left = len(answered) - len(shown)
    more = f"; {left} more with `--rows {len(answered)}`" if left else ""
    others = sum(bool(answer.claim.of.card) and order(answer)[0] > 0 for answer in answered)
    of_others = f", {others} of them beside another card's" if others else ""
    print(f"{text.count(len(answered), 'figure')} of {len(claims)} can be answered here{of_others}{more}")
    for note in () if answered else setup.notes:
        print(*wrap_words(note, "  "), sep="\n")
    print("`invoke claims ID` gives one figure's answer, `invoke run --claim ID` what it needs")


def _print_figure(claim: Claim, said: str) -> None:
    """Print a figure's id and what was published, and below it what is said of it."""
    print(f"{claim.id}: {_value_words(claim)}, {claim.of.card or CLASSES[claim.card_class or 'any']}")
    print(*wrap_words(said, "    ", "    "), sep="\n")


def _value_words(claim: Claim) -> str:
    if claim.value is None:
        return claim.relation
    sign = {"equal": "", "less": "<", "greater": ">"}[claim.relation]
    value = f"{claim.value:.4g}" if claim.value < 1e4 else f"{claim.value:,.0f}"
    return f"{sign}{value} {claim.unit}"


def _answer_words(answer: Answer) -> str:
    """Return the answer's column of a row; where the loader differs, that is said before the ratio."""
    if answer.times is None or answer.way:
        return answer.state
    speed = "times as fast" if answer.claim.metric != "peak_bytes" else "times as much"
    loader = "other loader, " if "loader" in answer.differs else ""
    return f"{answer.state}: {loader}{answer.times:.3g} {speed}{_range_words(answer)}"


def _range_words(answer: Answer) -> str:
    if answer.low is not None:
        return f" ({answer.low:.3g} to {answer.high:.3g})"
    return " (no range)" if answer.without_range else ""


def _claim_answers(setup: RunSetup, claims: Sequence[Claim], *, alone: bool) -> tuple[Answer, ...]:
    """Return the answers by this machine's records and plans; by plans `alone` for a card by name."""
    root, cards = setup.root, load_cards(setup.root)
    prospects = _claim_prospects(setup, claims)
    if alone:
        unmet = [not_compared(claim) for claim in claims]
        return answers(unmet, (), cards, prospects.ways, prospects.barred)
    ahead = own_fields(root) | {"ways": prospects.ways, "barred": prospects.barred}
    wanted = {claim.id for claim in claims}
    analysis = analyse_clone(root, software=read_software_effect(root), **ahead)
    return tuple(answer for answer in analysis.answers if answer.claim.id in wanted)


def show_answer(root: Path, settings: Settings, name: str, card: str = "") -> None:
    """Print one figure's answer with every term there and here; raises UserError for an id that is not."""
    setup = prepare_for_cards(root, settings, card)
    claim = _find_claims(read_claims(root), [name])[0]
    (answer,) = _claim_answers(setup, [claim], alone=bool(card))
    print("\n".join(answer_lines(answer, read_claims(root).study_name(claim.study))))


def answer_lines(answer: Answer, study: str) -> list[str]:
    """Return the lines of one answer: the figure, what it came to, and each term of the work."""
    claim, cell = answer.claim, answer.cell
    out = [f"{claim.id}: {answer.state}", *wrap_words(f"{study}: {_claim_words(claim)}", "  ", "  ")]
    if answer.times is not None:
        if "loader" in answer.differs:
            out.append("  the loader differs: this is of the systems, and not of the cards alone")
        word = "times the memory" if claim.metric == "peak_bytes" else "times as fast as published"
        out.append(f"  {answer.times:.3g} {word}{_range_words(answer)}")
    if answer.software is not None:
        size, reach = answer.software, "within" if answer.within_software else "beyond"
        years = f" of {size.years[0]} to {size.years[1]}" if size.years else ""
        out.append(
            f"  {reach} what software alone is known to change: {100 * size.low:.0f} to "
            f"{100 * size.high:.0f} % in nine of ten of {size.pairs} pairs{years}"
        )
    if answer.way:
        how_long = format_duration(answer.way.seconds)
        takes = f"unknown, stopped after {how_long}" if answer.way.at_most else f"about {how_long}"
        out.append(f"  `invoke run --claim {claim.id}`, {takes}, plan {answer.way.line}")
    if answer.obstacle:
        out.append(f"  {obstacle_reason(answer.obstacle)}")
    if answer.nearest:
        each_term = ((each.field.replace("_", " "), each.of, each.over) for each in answer.nearest)
        near = ", ".join(
            f"{name} {'not given' if ours is None else ours} for {'not given' if theirs is None else theirs}"
            for name, ours, theirs in each_term
        )
        out += wrap_words(f"nearest here: {near}", "    ", "  ")
    terms = list[tuple[str, str, str]]([("", "published", "here")])
    side, key = claim.of, cell.key if cell else None
    versions = (
        [f"{name} {value}" for name, value in cell.stack.versions if value and name not in SURROUNDINGS]
        if cell
        else []
    )
    software = ", ".join(versions) or None
    rows: list[tuple[str, object, object]] = [
        ("figure", _value_words(claim), "" if answer.here is None else f"{answer.here:.4g}"),
        ("card", side.card or claim.card_class, cell.card if cell else None),
        ("software", claim.stack, software),
        ("loader", side.data_mode, key and key.data_mode),
        ("runs", claim.runs, cell.throughput.n if cell else None),
        *((name.replace("_", " "), getattr(side, name), key and getattr(key, name)) for name in WORK),
    ]
    for term, there, ours in rows:
        if there is not None or ours is not None:
            terms.append((term, _term_words(there), _term_words(ours) if cell else ""))
    width = max(len(there) for _, there, _ in terms)
    for term, there, here in terms:
        out.append(f"  {term:<16} {there:<{width}} {here}".rstrip())
    return [*out, *wrap_words(f"source: {claim.source}", "    ", "  ")]


CLASSES: Mapping[CardClass, str] = {
    "any": "any device",
    "gpu": "any GPU",
    "matrix-units": "a GPU with matrix units",
    "no-matrix-units": "a GPU without matrix units",
}
SURROUNDINGS = ("libc", "python", "system")
"""Versions that no publication names beside its framework's."""
WORK = ("model", "precision", "batch_size", "image_size", "sequence_length", "gpus")


def _term_words(value: object) -> str:
    return "not said" if value is None else text.clean(str(value), 200)


REASONS: Mapping[str, str] = {
    "figure": "it has no figure",
    "trend": "a trend is published, and not judged",
    "metric": "nothing here measures it",
    "gpu": "it needs a GPU",
    "devices": "it needs {need} GPUs",
    "card": "it is claimed for {need} alone",
    "cards": "it needs two cards: {need}",
    "framework": "no image has {need} for this kind of device",
    "plan": "no plan has its work",
}


def obstacle_reason(obstacle: Obstacle) -> str:
    """Return why a figure cannot be measured here, as a clause."""
    return REASONS[obstacle.kind].format(need=obstacle.need)


def _claim_prospects(setup: RunSetup, claims: Sequence[Claim]) -> Prospects:
    """Return what claims' plans can do here, in the image of the line, or in all where it names none."""
    device, cards = target_device(setup.machine, setup.selection), load_cards(setup.root)
    image, cpu = setup.settings.image, setup.machine.cpu
    return device_prospects(device, setup.root, claims, cpu, cards, known_speeds(setup), image)


def _find_claims(every: ClaimSet, ids: Collection[str]) -> list[Claim]:
    """Return the claims of those ids; raises UserError for one that there is not."""
    known = {claim.id: claim for claim in every.claims}
    for name in sorted(set(ids) - known.keys()):
        if every.problems:
            raise every.problems[0]
        problem = f"there is no claim '{text.clean(name, 64)}'{suggest_name(name, known)}"
        raise UserError(problem, remedy="`invoke claims` lists them")
    return [claim for claim in every.claims if claim.id in ids]


def run_claims(
    root: Path, settings: Settings, ids: Sequence[str], where: str, how: running.RunOptions
) -> None:
    """Run the trials that some claims need, each in the plan that takes the least time for it.

    With 'here' in place of ids as many claims as the settings' budget holds, those first that cost the least
    more; without both the whole plan. Raises UserError for an id that there is not, and for a claim that no
    plan that it names can judge here.
    """
    if not ids and not where:
        running.run_plan(root, settings, how)
        return
    if (ids and where) or where not in ("", "here"):
        problem = f"'--claims {where}' is not known, or --claim was given too"
        raise UserError(problem, remedy="write `--claims here`, or `--claim ID`")
    every = read_claims(root)
    claims = every.claims
    _find_claims(every, ids)
    setup = prepare_run(root, settings)
    asked = [claim for claim in claims if claim.id in ids] if ids else claims
    budget = parse_seconds(settings.budget) if settings.budget else None
    chosen = choose_cheapest(_claim_prospects(setup, asked).ways, budget)
    if beyond := sorted(set(ids) - chosen.keys()):
        raise UserError(
            f"no plan that '{beyond[0]}' names can judge it here{' within the budget' if budget else ''}",
            remedy="`invoke claims --here` lists what can be judged",
        )
    if not chosen:
        raise UserError("no claim can be judged here", remedy="`invoke claims --here` says what can")
    for line, taken in grouped_by(chosen, lambda claim: chosen[claim].line).items():
        print(f"plan {line}: for {text.count(len(taken), 'claim')}")
        way = chosen[taken[0]]
        image = way.image or settings.image
        of_plan = settings.model_copy(update={"plan": way.plan, "image": image, "budget": None})
        keep = partial(_needed_trials, claims=[claim for claim in asked if claim.id in taken], plan=way.plan)
        running.run_plan(root, of_plan, replace(how, keep=keep, at_most_seconds=budget))


def _needed_trials(planned: Sequence[Planned], claims: Sequence[Claim], plan: str) -> frozenset[str]:
    """Return the ids of the trials of a plan that claims need."""
    of_roles = grouped_by(planned, lambda item: item.role)
    variants = {role: variants_of(item.trial for item in items) for role, items in of_roles.items()}
    needed = (judging_trials(claim, variants.get(claim.plans[plan], {})) for claim in claims)
    return frozenset(trial.id for trials in needed for trial in trials)


def choose_cheapest(ways: Mapping[str, JudgingPlan], budget_seconds: float | None) -> dict[str, JudgingPlan]:
    """Return the ways that a budget holds: always the one next that takes the least time more."""
    taken: dict[str, JudgingPlan] = {}
    left, spent, run = dict(ways), 0.0, set[tuple[str, str]]()

    def more_seconds(way: JudgingPlan) -> float:
        return sum(each for trial, each in way.seconds_by_trial.items() if (way.line, trial) not in run)

    while left:
        claim = min(left, key=lambda one: (more_seconds(left[one]), left[one].line, one))
        way = left.pop(claim)
        spent += more_seconds(way)
        if budget_seconds is not None and spent > budget_seconds:
            break
        run |= {(way.line, trial) for trial in way.seconds_by_trial}
        taken[claim] = way
    return taken
