"""The published figures at a terminal: all of them, what can be judged where, and the trials for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from commands import run as running
from commands.judging_plan import judging_trials, variants_of
from commands.plan import wrap_words
from commands.prospects import device_prospects, target_device
from commands.report import analyse_clone, own_fields
from harness.errors import UserError
from harness.plan.order import Planned
from harness.record import Claim
from harness.record.published.cards import load_cards
from harness.record.published.claim_set import ClaimSet, is_same_card, read_claims, suggest_name
from harness.run.choice import known_speeds
from harness.run.setup import RunSetup, prepare_for_cards, prepare_run
from harness.settings import Settings
from harness.units import format_duration, parse_seconds
from report import text
from report.claims.answers import Answer, JudgingPlan, Prospects, answers
from report.expected.software_effect import read_software_effect
from report.page import render
from report.trials.key import grouped_by


def list_claims(root: Path, study: str = "") -> None:
    """Print the claims of all studies, or of one by its name or id; raises UserError for an unknown one."""
    every = read_claims(root)
    claims = every.of(study) if study else every.claims
    print("figure: what was published, on which card; below it in words")
    ordered = sorted(claims, key=lambda claim: (claim.study, claim.workload))
    print(render.terminal_text("figures.md", claims=ordered))
    print(f"{text.count(len(claims), 'claim')}; `--here` and `--card` say which a machine can judge")


def list_answers(root: Path, settings: Settings, card: str = "", study: str = "") -> None:
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

    where = f"on {len(setup.selection.gpus)} × {device.name}" if card else "here"
    print(f"figure: what was published, on which card; below it the minutes {where}, and the answer")
    if answered:
        print(render.terminal_text("figures.md", answers=sorted(answered, key=order)))
    others = sum(bool(answer.claim.of.card) and order(answer)[0] > 0 for answer in answered)
    of_others = f", {others} of them beside another card's" if others else ""
    print(f"{text.count(len(answered), 'figure')} of {len(claims)} can be answered here{of_others}")
    for note in () if answered else setup.notes:
        print(*wrap_words(note, "  "), sep="\n")
    print("`invoke claims ID` gives one figure's answer, `invoke run --claim ID` what it needs")


def _claim_answers(setup: RunSetup, claims: Sequence[Claim], *, alone: bool) -> tuple[Answer, ...]:
    """Return the answers by this machine's records and plans; by plans `alone` for a card by name."""
    root, cards = setup.root, load_cards(setup.root)
    prospects = _claim_prospects(setup, claims)
    if alone:
        return answers(claims, (), (), cards, prospects)
    wanted = {claim.id for claim in claims}
    analysis = analyse_clone(
        root, software=read_software_effect(root), prospects=prospects, **own_fields(root)
    )
    return tuple(answer for answer in analysis.answers if answer.claim.id in wanted)


def show_answer(root: Path, settings: Settings, name: str, card: str = "") -> None:
    """Print one figure's answer with every term there and here; raises UserError for an id that is not."""
    setup = prepare_for_cards(root, settings, card)
    claim = _find_claims(read_claims(root), [name])[0]
    (answer,) = _claim_answers(setup, [claim], alone=bool(card))
    study = read_claims(root).study_name(claim.study)
    print(render.terminal_text("figures.md", one=answer, study=study, duration=format_duration))


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
