"""All that a set of records says, made once: what page, bundle, compare, accept and gate read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path

from harness.errors import UserError
from harness.record import Factor, Question, Session
from harness.record.published.cards import Card
from harness.record.published.claim_set import ClaimSet, read_claims
from harness.record.store import Results, future_problems
from report import text
from report.buying.clause import MARGIN, AcceptanceClause, clause
from report.buying.costs import Costs, costs
from report.buying.purchase import FILE, UNFILLED, Purchase, load_purchase
from report.claims.answers import Answer, Prospects, answers
from report.claims.judge import Judged, judge
from report.compare.batch_sweeps import batch_sweeps, without_sweeps
from report.compare.card_check import CheckedCard, checked_cards
from report.compare.card_units import BoxCards, cards_of_box, unit_spreads
from report.compare.cells import Cell, cells_of, own_and_other_cells
from report.compare.comparison import Comparison, compare_sides
from report.expected.expected import CardExpectation, ExpectedValue
from report.expected.published_speeds import PublishedSpeeds, load_published
from report.expected.relative import CardsOnPaper
from report.expected.software_effect import SoftwareEffect
from report.trials.account import MachineAccount, accounts
from report.trials.factors import (
    WITHIN,
    among_sessions,
    measured_loaders,
    question_among,
    question_of_session,
)
from report.trials.leading import earlier_sessions, leading_session
from report.trials.reading import cards_of, read_trials, results_of
from report.trials.trial import TrialResult

PROGRAM = "program"
"""The workload that runs a published program."""
CLASS_MACHINES = 5
"""Machines that did the same work: so many are a class, which a table sorts, and no longer pairs."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The input of an analysis, as it was read. `purchase` is the buyer's file."""

    results: Results
    claims: ClaimSet
    cards: tuple[Card, ...]
    purchase: Purchase | None = None
    published: PublishedSpeeds = field(default_factory=PublishedSpeeds)
    left_out: tuple[str, ...] = ()
    """Each file of the user's that cannot be used."""

    def without(self, *problems: UserError) -> Evidence:
        """Return the evidence with problems of files that it leaves out; the first word names each."""
        said = (*self.results.problems, *map(str, problems))
        names = (problem.problem.partition(":")[0].partition(" ")[0] for problem in problems)
        results = replace(self.results, problems=said)
        return replace(self, results=results, purchase=None, left_out=(*self.left_out, *names))


@dataclass(frozen=True, slots=True)
class AnalysisRequest:
    """What is asked of the evidence.

    The analysis leads with `session`, else with the newest one of `machine` (a Session's machine). `margin`
    is how far below its figures a delivered machine may be.
    """

    now: datetime
    session: str | None = None
    machine: str | None = None
    margin: float = MARGIN
    own: frozenset[str] = frozenset()
    """More sessions of this machine: it has another id in each new container."""
    question: Question | None = None
    """What the line asks, in place of all that would follow from the records."""
    questions: Mapping[str, Question | None] = field(default_factory=dict)
    """What each plan asks, by its name, for sessions from before they kept it."""
    named: tuple[str, ...] = ()
    """The sessions that were named together, `session` among them; empty where none or one was."""
    prospects: Prospects = field(default_factory=Prospects)
    """What would judge the claims that no record meets: the report itself knows no plans."""
    longer: str = ""
    """The line that a short plan leads to; empty where the leading session was of another."""
    asked: tuple[CardExpectation, ...] = ()
    """What is expected of a card that was named, else of the offers' cards without a record."""
    should: Mapping[str, ExpectedValue] = field(default_factory=dict)
    """By the path of a cell's first trial, what its card should do; where enough other cards did the same."""
    software: SoftwareEffect | None = None
    """What another release of the software is worth, by published pairs."""
    url: str = ""
    """Where the page will be published; empty where it is not known."""
    clone: str = "../.."
    """The way from the page to the clone."""
    note: str = ""
    """A word of the reader's own, such as a serial number: on the page alone, and in no record."""
    bundles: tuple[tuple[str, str], ...] = ()
    """The name and the SHA-256 of each bundle's file that the records are from; page one prints them."""
    logs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By a failed trial's path, the end of its log: for this machine's own HTML, and for nothing that leaves
    it."""


@dataclass(frozen=True)
class Analysis:
    """Figures and verdicts, without a word or a drawing."""

    evidence: Evidence
    request: AnalysisRequest
    on_record: tuple[TrialResult, ...]
    """Every trial, also trials that measured a device's ceilings."""
    trials: tuple[TrialResult, ...]
    """Every trial that trains."""
    lead: str | None
    of_others: int
    """How many sessions are on record where all are of other machines, and none was asked for; else 0."""
    cells: tuple[Cell, ...]
    """The cells of all sessions."""
    own_cells: tuple[Cell, ...]
    """The cells of the leading session; none where that came with the clone."""
    here: tuple[Cell, ...]
    """The cells of the leading session, then those of the same machine's earlier ones that did other work."""
    others: tuple[Cell, ...]
    """The newest cell of each other work and machine."""
    checks: tuple[CheckedCard, ...]
    """The checks of the leading session's cards, the worst first; none where they were not checked."""
    verdicts: tuple[Judged, ...]
    """A verdict for each claim that met a record."""
    costs: Costs | None
    clause: AcceptanceClause | None
    """What a machine ordered by the leading session must reach; null where no cell has two valid runs."""
    unrecorded: tuple[str, ...] = ()
    """The sessions that were named with others and hold no record."""

    def with_request(self, request: AnalysisRequest, paper: CardsOnPaper) -> Analysis:
        """Return the analysis with more that is asked, and its costs by what is known of cards on paper."""
        cards, purchase = self.evidence.cards, self.evidence.purchase
        return replace(
            self,
            request=replace(request, session=self.request.session, named=self.request.named),
            costs=costs((*self.here, *self.others), self.trials, cards, purchase, paper),
        )

    @property
    def leading_session(self) -> Session | None:
        """The session that leads."""
        return next((session for session in self.evidence.results.sessions if session.id == self.lead), None)

    @cached_property
    def question(self) -> Question:
        """What is asked.

        By the line; else a card's check or two stacks by their session; else by offers with a price, by
        several sessions that were named, or by the leading session.
        """
        request = self.request
        if request.question is not None:
            return request.question
        leading = [trial for trial in self.on_record if trial.session == self.lead]
        asked = question_of_session(self.leading_session, request.questions, leading)
        if not request.named and (asked.kind == "sound" or asked.by == "stack"):
            return asked
        if self.costs is not None and (self.costs.model.offers or not self.own):
            return Question(kind="cost")
        return question_among(self.on_record, request.named) if request.named else asked

    @cached_property
    def comparison(self) -> Comparison | None:
        """What answers the question; null where it has no factor, or one side alone."""
        return self._compare_by(self.question.by) if self.question.by else None

    @cached_property
    def beside(self) -> tuple[Comparison, ...]:
        """The comparisons by other factors in which sides differ, machines on record last."""
        factors: tuple[Factor, ...] = (*WITHIN, "machine")
        others = (self._compare_by(factor) for factor in factors if factor != self.question.by)
        return tuple(found for found in others if found and found.ratios)

    @cached_property
    def _named_trials(self) -> tuple[TrialResult, ...]:
        """The trials of the leading session and of those named with it."""
        named = self.request.named or (self.lead,)
        return () if self.of_others else tuple(trial for trial in self.trials if trial.session in named)

    def _compare_by(self, factor: Factor) -> Comparison | None:
        """Sides of the leading session and of those named with it; of machines all that did its work."""
        trials, sessions = self._named_trials, {trial.session for trial in self._named_trials}
        known = self.cells if factor != "stack" else cells_of(trials)
        usable = known if factor == "batch" else without_sweeps(known, self.lead)
        together = bool(self.request.named) and factor == self.question.by
        rule = measured_loaders(trials) if factor == "loader" else None
        rule = among_sessions(factor) if together else rule
        others = [cell for cell in usable if cell.session != self.lead]
        found = compare_sides(
            factor,
            [cell for cell in usable if cell.session in sessions],
            others if factor == "machine" and not self.request.named else (),
            failed=[trial for trial in trials if trial.failure is not None],
            software=self.request.software,
            rule=rule,
        )
        return found if len(found.sides) > 1 else None

    @cached_property
    def leading_trials(self) -> tuple[TrialResult, ...]:
        """The leading session's trials, those of ceilings among them; none where that came with the clone."""
        return () if self.of_others else tuple(t for t in self.on_record if t.session == self.lead)

    @cached_property
    def own(self) -> tuple[TrialResult, ...]:
        """Those of the leading session's trials that train."""
        return tuple(trial for trial in self.leading_trials if not trial.is_ceiling)

    @cached_property
    def box(self) -> BoxCards:
        """The cards of the leading session's machine."""
        return cards_of_box(self.leading_trials)

    @cached_property
    def page_cells(self) -> tuple[Cell, ...]:
        """The cells on the page: the leading session's, whosever it is, then those compared with them."""
        found = (self.comparison, *self.beside)
        compared = [cell for each in found if each for work in each.works for cell in work.cells if cell]
        leading = [cell for cell in self.cells if cell.session == self.lead]
        # The sides of one variant are parts of its cell.
        return tuple({cell.trials[0].path: cell for cell in reversed((*leading, *compared))}.values())[::-1]

    @cached_property
    def shown(self) -> tuple[TrialResult, ...]:
        """Return the leading session's trials, and the trials that are compared with them."""
        beside = {trial.path for cell in self.page_cells for trial in cell.trials}
        return tuple(trial for trial in self.trials if trial.session == self.lead or trial.path in beside)

    @property
    def recorded_sessions(self) -> tuple[str, ...]:
        """Return the ids of the sessions with a record in the analysis."""
        on_record = {session.id for session in self.evidence.results.sessions}
        return tuple(sorted({trial.session for trial in self.shown} & on_record))

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """The one answer of each published figure, by what this machine measured, and by its plans."""
        request, claims, cards = self.request, self.evidence.claims.claims, self.evidence.cards
        return answers(claims, self.verdicts, self.here, cards, request.prospects, request.software)

    @property
    def with_ceilings(self) -> list[TrialResult]:
        """The leading session's trials, and the ceilings that were measured on its machine at any time."""
        machines = {trial.machine for trial in self.leading_trials}
        ceilings = [trial for trial in self.on_record if trial.is_ceiling]
        return [*self.own, *(trial for trial in ceilings if trial.machine in machines)]

    @cached_property
    def accounts(self) -> tuple[MachineAccount, ...]:
        """What each machine on the page planned, and what of it is shown; the leading session's first."""
        shown = {trial.path for trial in (*self.shown, *self.with_ceilings)}
        return accounts(self.evidence.results, self.on_record, shown, self.lead)


def evidence_in(root: Path, results: Results | None = None, *, purchase: bool = True) -> Evidence:
    """The records, unless they are given, claims, cards and, with `purchase`, the buyer's file of a clone.

    A file of claims or a buyer's that cannot be used is left out, and is a problem of the results.
    """
    cards, claims, found = cards_of(root), read_claims(root), results or results_of(root)
    evidence = Evidence(found, claims, cards, None, load_published(root, cards)).without(*claims.problems)
    try:
        bought = load_purchase(root) if purchase else None
    except UserError as problem:
        return evidence.without(problem)
    unfilled = purchase and bought is None and (root / FILE).is_file()
    return evidence.without(UserError(UNFILLED)) if unfilled else replace(evidence, purchase=bought)


def analyse(evidence: Evidence, request: AnalysisRequest) -> Analysis:
    """Everything that the evidence says; reads and writes nothing.

    Raises UserError where a session that was asked for is not on record, or none of them holds a record.
    """
    ahead = (*evidence.results.problems, *future_problems(evidence.results, request.now))
    evidence = replace(evidence, results=replace(evidence.results, problems=ahead))
    sessions = evidence.results.sessions
    on_record = read_trials(evidence.results.records, evidence.cards, sessions)
    trials = tuple(trial for trial in on_record if not trial.is_ceiling)
    request, unrecorded = _split_named(request, on_record, sessions)
    own_sessions = request.own | {session.id for session in sessions if session.machine == request.machine}
    lead = request.session or leading_session(on_record, own_sessions)
    # A second stack is compared with the first in its own session, and is in no other comparison.
    seconds = {session.id: session.against.stack for session in sessions if session.against}
    first = [trial for trial in trials if trial.record.trial.asked.stack != seconds.get(trial.session)]
    cells = cells_of(first)
    foreign = request.machine is not None and request.session is None and lead not in own_sessions
    of_others = len({trial.session for trial in on_record}) if foreign else 0
    own_cells = tuple(cell for cell in cells if cell.session == lead and not of_others)
    usable = without_sweeps(cells, lead)
    failed = [trial for trial in trials if trial.session == lead and trial.failure is not None]
    earlier = earlier_sessions(trials, lead)
    here, others = own_and_other_cells(usable, lead, earlier)
    try:
        bought = costs((*here, *others), first, evidence.cards, evidence.purchase, CardsOnPaper())
    except UserError as problem:
        evidence, bought = evidence.without(problem), None
    return Analysis(
        evidence=evidence,
        request=request,
        on_record=on_record,
        trials=trials,
        lead=lead,
        of_others=of_others,
        cells=cells,
        own_cells=own_cells,
        here=here,
        others=others,
        checks=() if of_others else checked_cards(on_record, lead, evidence.cards, evidence.published),
        verdicts=judge(evidence.claims.claims, here, others, evidence.cards, batch_sweeps(own_cells, failed)),
        costs=bought,
        clause=clause(own_cells, unit_spreads(first), margin=request.margin),
        unrecorded=unrecorded,
    )


def _split_named(
    request: AnalysisRequest, on_record: Sequence[TrialResult], sessions: Sequence[Session]
) -> tuple[AnalysisRequest, tuple[str, ...]]:
    """Return the request for those of its sessions that hold a record, and the ids of the others."""
    asked = request.named or ((request.session,) if request.session else ())
    recorded = {trial.session for trial in on_record}
    empty = tuple(session for session in asked if session not in recorded)
    if unknown := set(empty) - {session.id for session in sessions}:
        said = f"there is no session '{text.clean(min(unknown), 40)}'"
        raise UserError(said, remedy="name a session in results/")
    if empty and len(empty) == len(asked):
        said = f"session '{text.clean(empty[0], 40)}' holds no record: no trial of it ended"
        raise UserError(said, remedy="name another session in results/")
    left = tuple(session for session in asked if session not in empty)
    kept = replace(request, session=left[0], named=left if len(left) > 1 else ()) if empty else request
    return kept, empty
