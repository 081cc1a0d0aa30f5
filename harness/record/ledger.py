"""The ledger of a machine: a file for each of its sessions, with a line as each trial starts and as it ends.

A session's file is written by one run alone and only grows, so no two branches change the same one. It is not
hash-chained: whoever changes a line can compute a chain anew. The signature of a bundle says who answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import Field, RootModel, ValidationError

from harness.errors import RecordError
from harness.record.base import Model, Moment, first_problem
from harness.record.result import Reason, SessionId
from harness.record.trial import Name

LEDGER_BYTES = 4 * 2**20
"""More than 10,000 attempts of one session."""

MachineId = Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
TrialId = Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,80}-r[0-9]{1,6}-[0-9a-f]{12}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=1, le=1_000_000)]


class LedgerBegin(Model):
    """The first line: a session, and the plan as it was before anything ran."""

    event: Literal["session"] = "session"
    ledger: Literal[1] = 1
    session: SessionId
    machine: MachineId
    number: Count
    """Of this machine's sessions, from 1 on, over all clones: a gap is a session that is not here."""
    plan: Name
    plan_sha256: Sha256
    at: Moment


class TrialStart(Model):
    """An attempt starts. One without an end was stopped: by Ctrl-C, a kill, or a machine that went down."""

    event: Literal["start"] = "start"
    trial: TrialId
    attempt: Count
    at: Moment


class TrialEnd(Model):
    """An attempt has ended; where it was measured or failed, its record was written before this line."""

    event: Literal["end"] = "end"
    trial: TrialId
    attempt: Count
    at: Moment
    outcome: Literal["measured", "failed", "stopped"]
    reason: Reason | None = None


LedgerLine = LedgerBegin | TrialStart | TrialEnd


class AnyLine(RootModel[Annotated[LedgerLine, Field(discriminator="event")]]):
    """A line of results/ledger/<machine>/<session>.jsonl"""


Attempt = tuple[str, int]
"""A trial's id and the attempt's number. What was stopped is started again under the same number."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """One session's file. `path` is relative to the clone."""

    path: str
    begin: LedgerBegin
    starts: Counter[Attempt]
    measured: Counter[Attempt]
    failed: Counter[Attempt]
    last: Mapping[Attempt, tuple[Moment, TrialEnd | None]]
    """Of each attempt, when it last started, and how that ended."""
    cut_short: bool
    """Whether its last line is half a line, as a machine that goes down leaves it; it is not counted."""
    problems: tuple[str, ...]


def parse_ledger(text: bytes, where: str) -> Ledger:
    """Reads one file; lines that cannot be meant are problems by their number.

    Raises RecordError where the first line is none of a session's, or of another one than the path's.
    """
    whole, newline, rest = text.rpartition(b"\n")
    lines = whole.split(b"\n") if newline else []
    try:
        begin = LedgerBegin.model_validate_json(lines[0] if lines else b"")
    except ValidationError as error:
        raise RecordError(f"{where}: line 1: {first_problem(error)}", remedy="fetch it again") from None
    if PurePosixPath(where).parts[-2:] != (begin.machine, f"{begin.session}.jsonl"):
        raise RecordError(
            f"{where}: its content belongs into '{begin.machine}/{begin.session}.jsonl'",
            remedy="fetch it again",
        )
    counts: dict[str, Counter[Attempt]] = {name: Counter() for name in ("start", "measured", "failed")}
    last: dict[Attempt, tuple[Moment, TrialEnd | None]] = {}
    wrong: list[str] = []
    for number, line in enumerate(lines[1:], 2):
        try:
            event = AnyLine.model_validate_json(line).root
        except ValidationError as error:
            wrong.append(f"line {number}: {first_problem(error)}")
            continue
        if isinstance(event, LedgerBegin):
            wrong.append(f"line {number}: the session begins a second time")
        elif isinstance(event, TrialStart):
            counts["start"][event.trial, event.attempt] += 1
            last[event.trial, event.attempt] = event.at, None
        elif event.outcome != "stopped":
            counts[event.outcome][event.trial, event.attempt] += 1
            if started := last.get((event.trial, event.attempt)):
                last[event.trial, event.attempt] = started[0], event
    more = f" (and {len(wrong) - 1} more lines)" if len(wrong) > 1 else ""
    return Ledger(
        path=where,
        begin=begin,
        starts=counts["start"],
        measured=counts["measured"],
        failed=counts["failed"],
        last=last,
        cut_short=bool(rest),
        problems=(f"{where}: {wrong[0]}{more}",) if wrong else (),
    )
