"""Which trials a line will run: what the device can do, what the budget holds, and how long it takes."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain

from harness.data.fetch import Resolved
from harness.engine.container import workload_file
from harness.errors import UserError
from harness.image.images import Image
from harness.plan import budget, estimate, names, order, plan_file
from harness.plan.capability import split_supported
from harness.plan.order import Planned
from harness.plan.plan_file import PlanContext
from harness.record import Against, DataSource, Gpu, LeftOut, Record, Session, TrialSpec, session_id, store
from harness.record.published.cards import load_cards
from harness.record.published.claim_set import suggest_name
from harness.run.blocks import PAUSE
from harness.run.setup import RunSetup, data_names
from harness.units import format_duration, parse_seconds

Keep = Callable[[Sequence[Planned]], frozenset[str]]
"""Returns which of a plan's trials on this device are wanted, by their ids."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The trials of a plan on this machine, what was left out of it, and how long the rest will take."""

    planned: tuple[Planned, ...]
    resumed: frozenset[str]
    """The ids that an open session may have: the plan's, and of a line that names some those alone."""
    order_seed: int
    left_out: tuple[LeftOut, ...]
    seconds: float
    budget_seconds: float | None
    speeds: estimate.Speeds
    """What records and publications gave for durations when these were chosen."""

    @property
    def time(self) -> str:
        """Return how long the trials take, in words."""
        return self.describe_time(self.planned, self.seconds)

    def describe_time(self, planned: Sequence[Planned], seconds: float | None = None) -> str:
        """Return how long some of the trials take, in words; of what nobody timed, when it is stopped."""
        unknown = [item for item in planned if estimate.is_time_out(item, self.speeds)]
        each = partial(estimate.estimate_seconds, speeds=self.speeds)
        known = (sum(map(each, planned)) if seconds is None else seconds) - sum(map(each, unknown))
        stops = ", ".join(map(format_duration, sorted({item.trial.timeout_seconds for item in unknown})))
        if not unknown:
            return f"about {format_duration(known)}"
        if len(unknown) == len(planned):
            return f"unknown, each stopped after {stops}"
        return f"about {format_duration(known)} and {len(unknown)} of unknown length, stopped after {stops}"

    @property
    def at_most(self) -> bool:
        """Return whether a trial of unknown duration counts with its time-out."""
        return any(estimate.is_time_out(item, self.speeds) for item in self.planned)


def choose_trials(
    setup: RunSetup,
    resolved: Mapping[str, Resolved] | None = None,
    *,
    keep: Keep | None = None,
) -> Chosen:
    """Return the trials of a line. Without `resolved` nothing is fetched yet, and all data is taken as real.

    With `keep` only the trials that it names are chosen. Raises UserError where the device can do none.
    """
    seed = secrets.randbelow(2**31)
    everything, able, left_out = _split_trials(setup, resolved, seed)
    if keep is not None:
        able, others = _keep_claimed(able, keep, resolved or {})
        left_out += others
    speeds = known_speeds(setup)
    seconds_each = partial(estimate.estimate_seconds, speeds=speeds)
    budget_seconds = parse_seconds(setup.settings.budget) if setup.settings.budget else None
    fitting, dropped = budget.fit_budget(
        able,
        seconds_each,
        math.inf if budget_seconds is None else budget_seconds,
        other_seconds=pause_seconds(able, seconds_each) + estimate.warm_up_seconds(able, speeds),
    )
    planned = order.order_trials(fitting, seed, setup.plan.blocks)
    seconds = sum(map(seconds_each, planned)) + pause_seconds(planned, seconds_each)
    seconds += estimate.warm_up_seconds(planned, speeds)
    named = keep or setup.settings.role or setup.settings.precision
    resumed = frozenset(item.trial.id for item in (planned if named else everything))
    return Chosen(planned, resumed, seed, (*left_out, *dropped), seconds, budget_seconds, speeds)


def require_trials(setup: RunSetup) -> None:
    """Raise UserError where the device can do none of a line's trials, as choose_trials() does."""
    _split_trials(setup, None, 0)


def _split_trials(
    setup: RunSetup, resolved: Mapping[str, Resolved] | None, seed: int
) -> tuple[tuple[Planned, ...], tuple[Planned, ...], tuple[LeftOut, ...]]:
    """Return all trials of the plan, what the line asks for and the device can do, and the others."""
    everything = plan_file.plan_trials(setup.plan, *_plan_contexts(setup, resolved, seed))
    card = setup.selection.gpus[0] if setup.selection.gpus else None
    able, left_out = split_supported(
        everything,
        setup.selection.kind,
        card,
        len(setup.selection.gpus),
        cpu=setup.machine.cpu,
        by_name=setup.settings.precision,
    )
    if precisions := setup.settings.precision:
        reason = f"{' and '.join(precisions)} was asked for"
        able, others = budget.keep_wanted(
            able, lambda item: item.trial.asked.variant.precision in precisions, "other precisions", reason
        )
        left_out += others
    if role := setup.settings.role:
        reason = f"role {role} was asked for"
        able, others = budget.keep_wanted(able, lambda item: item.role == role, "other roles", reason)
        left_out += others
    if not able:
        raise _nothing_able_error(setup, card, left_out)
    _require_files(setup, able)
    return everything, able, left_out


def _plan_contexts(
    setup: RunSetup, resolved: Mapping[str, Resolved] | None, seed: int
) -> tuple[PlanContext, int, PlanContext | None]:
    """Return what trials are named by, in both stacks where there are two, about the order's seed."""
    kind, gpus, prefix = setup.selection.kind, setup.selection.gpus, "weights-"
    sources: dict[str, DataSource] = dict.fromkeys(chain(*data_names(setup.plan, kind)), "real")
    if resolved is not None:
        sources = {name: answer.source for name, answer in resolved.items()}
    weights = {
        name.removeprefix(prefix): source == "real"
        for name, source in sources.items()
        if name.startswith(prefix)
    }
    context = PlanContext(
        kind,
        setup.image.name,
        _lock_sha256(setup, setup.image),
        sources,
        weights,
        cards=len(gpus) or 1,
        memory_gb=min((gpu.memory_bytes / 1e9 for gpu in gpus if gpu.memory_bytes), default=None),
    )
    against = session_against(setup)
    if against is None:
        return context, seed, None
    lock, variables = against.lock_sha256, against.variables
    other = replace(context, environment=against.environment, lock_sha256=lock, variables=variables)
    return context, seed, other


def _lock_sha256(setup: RunSetup, image: Image) -> str | None:
    return setup.engine.expected_environment(image).environment.lock_sha256


def session_against(setup: RunSetup) -> Against | None:
    """Return the second stack as a session holds it; null where the line has one stack."""
    second = setup.against
    if second is None:
        return None
    lock, variables = _lock_sha256(setup, second.image), dict(second.variables)
    return Against(asked=second.asked, environment=second.image.name, lock_sha256=lock, variables=variables)


def draft_session(
    setup: RunSetup,
    chosen: Chosen,
    *,
    number: int | None = None,
) -> Session:
    """Return the chosen trials as a session that begins now, its machine's `number`th."""
    now = datetime.now(UTC)
    return Session(
        session=1,
        id=session_id(now, secrets.token_hex(3)),
        plan=setup.plan.name,
        plan_sha256=setup.plan.sha256,
        machine=setup.machine.id,
        label=setup.machine.label,
        started_at=now,
        order_seed=chosen.order_seed,
        budget_seconds=chosen.budget_seconds,
        trials=tuple(item.trial for item in chosen.planned),
        left_out=chosen.left_out,
        notes=setup.notes,
        against=session_against(setup),
        blocks=tuple(item.block for item in chosen.planned),
        number=number,
        cards=units_by_place(setup, (item.trial for item in chosen.planned)),
        question=setup.settings.question or setup.plan.question,
    )


def units_by_place(setup: RunSetup, trials: Iterable[TrialSpec]) -> tuple[str, ...]:
    """Return what identifies each card, in the order in which trials name them; empty where none does."""
    if all(trial.asked.card is None for trial in trials):
        return ()
    return tuple(gpu.unit or gpu.bus or str(gpu.index) for gpu in setup.selection.gpus)


def _nothing_able_error(setup: RunSetup, card: Gpu | None, left_out: Sequence[LeftOut]) -> UserError:
    asked = [f"of role {setup.settings.role}"] if setup.settings.role else []
    asked += [f"in {' or '.join(setup.settings.precision)}"] if setup.settings.precision else []
    reasons = "; ".join(dict.fromkeys(left.reason for left in left_out))
    return UserError(
        f"plan '{setup.plan.name}' has nothing {' '.join([*asked, ''])}"
        f"that {card.name if card else 'this CPU'} can do{f' ({reasons})' if reasons else ''}",
        remedy="choose another plan",
    )


def _require_files(setup: RunSetup, able: Sequence[Planned]) -> None:
    """Raise UserError for a workload that is no file here, or a name that it has not: its trials would fail.

    A program of the image's own may need none.
    """
    for folder, workload in dict.fromkeys(
        (image.workloads, item.trial.asked.workload)
        for image in setup.images_used
        for item in able
        if item.trial.asked.environment == image.name and image.program == "python"
    ):
        file = setup.root / "workloads" / workload_file(workload, folder)
        if not file.is_file():
            ending = file.stem.removeprefix(workload)
            known = {path.stem.removesuffix(ending) for path in file.parent.glob("*.py")}
            raise UserError(
                f"plan '{setup.plan.name}': '{workload}' is no workload{suggest_name(workload, known)}",
                remedy=f"name a file of {file.parent.relative_to(setup.root)}/",
            )
    ours = setup.image.program == "python" and not setup.plan.own
    for measure in setup.plan.measure if ours else ():
        for problem in names.workload_problems(setup.root, measure):
            raise UserError(f"plan '{setup.plan.name}': {problem}", remedy="correct it in plans/")


def narrow_plan(setup: RunSetup, keep: Keep) -> RunSetup:
    """Return the setup with the plan's parts that have a wanted trial, so that no other data is fetched.

    Raises UserError where no trial is wanted.
    """
    wanted = {
        (asked.workload, asked.protocol, asked.variant.canonical())
        for asked in (item.trial.asked for item in choose_trials(setup, keep=keep).planned)
    }
    parts = tuple(
        part
        for part in setup.plan.measure
        if any(
            (part.workload, part.protocol, variant.canonical()) in wanted
            for variant in plan_file.measure_variants(part, setup.plan.name)
        )
    )
    return replace(setup, plan=setup.plan.model_copy(update={"measure": parts}))


def _keep_claimed(
    able: tuple[Planned, ...], keep: Keep, resolved: Mapping[str, Resolved]
) -> tuple[tuple[Planned, ...], tuple[LeftOut, ...]]:
    """Return the trials that are wanted, and a line for the others; raises UserError where there are none."""
    ids = {item.trial.id for item in able} & keep(able)
    generated = next((name for name, found in resolved.items() if found.source == "generated"), None)
    if not ids and generated:
        raise UserError(
            f"the claims need the real {generated}, which could not be had ({resolved[generated].why})",
            remedy=f"bring it: invoke build --only {generated} --from FOLDER, with its files",
        )
    if not ids:
        raise UserError(
            "none of the claims can be judged by this plan here", remedy="see `invoke claims --here`"
        )
    reason = "no claim asked for needs them"
    return budget.keep_wanted(able, lambda item: item.trial.id in ids, "other trials", reason)


def pause_seconds(planned: Sequence[Planned], seconds_each: Callable[[Planned], float]) -> float:
    """Return the seconds that the pauses between blocks add to the full-length trials that fill them."""
    pauses = max((item.block for item in planned), default=1) - 1
    full = sum(seconds_each(item) for item in planned if item.block == order.NO_BLOCK)
    return max(0.0, pauses * PAUSE.total_seconds() - full)


def trial_seconds(speeds: estimate.Speeds, trial: TrialSpec, records: Iterable[Record]) -> float:
    """Return a trial's estimated duration, from what was estimated before and a session's records by now."""
    planned = Planned(trial, "timing", trial.asked.variant.model)
    return estimate.estimate_seconds(planned, estimate.learn_speeds(speeds, records))


def known_speeds(setup: RunSetup) -> estimate.Speeds:
    """Return what is known of durations here: all records, and published runs scaled to this card."""
    records = (stored.record for stored in store.read_results(setup.root).records)
    cards = load_cards(setup.root) if setup.selection.gpus else ()
    device = estimate.DeviceModel.from_machine(setup.machine, setup.selection.kind, cards)
    return estimate.learn_speeds(estimate.published_speeds(setup.root, device, cards), records)
