"""What a bundle is to its recipient: the same by `bundle --verify`, `accept` and `report --bundle`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from harness.bundle.judgement import LEVELS, Demand, Judgement, judge, shortfall
from harness.errors import GateError, UserError
from harness.plan.plan_file import plan_questions
from harness.record.store import Results
from harness.run.assemble import this_harness
from harness.summary.contradictions import changes_over_pauses
from report import text
from report.analysis import Analysis, AnalysisRequest, analyse, evidence_in
from report.page import render

PATTERN = "*.tar.gz"
"""What bundles in a folder are called."""


def demand(
    at_least: str = "",
    signers: str = "",
    sha256: Sequence[str] | None = None,
    order: str = "",
    stamp_ca: str = "",
) -> Demand:
    """Return what a line asks of a bundle; raises UserError for a level that there is not."""
    for level in LEVELS:
        if at_least in ("", level):
            return Demand(
                level if at_least else Demand().at_least,
                Path(signers) if signers else None,
                tuple(digest.lower() for digest in sha256 or ()),
                order or None,
                Path(stamp_ca) if stamp_ca else None,
            )
    raise UserError(f"--at-least '{at_least[:40]}' is no level", remedy=f"name one of {', '.join(LEVELS)}")


def bundle_files(given: Sequence[str | Path]) -> tuple[Path, ...]:
    """Return the files that are named, that lie in a folder, or that a pattern fits; UserError where none."""
    found: dict[Path, None] = {}
    for path in map(Path, given):
        if path.is_file():
            paths = [path]
        elif path.is_dir():
            paths = sorted(path.glob(PATTERN))
        else:
            paths = sorted(path.parent.glob(path.name))
        if not paths:
            raise UserError(f"no bundle is called '{path}'", remedy=f"name files, or a folder of {PATTERN}")
        found |= dict.fromkeys(paths)
    return tuple(found)


def judged(root: Path, path: Path, asked: Demand, *, older: bool = False) -> Judgement:
    """Judge a bundle and print what it is; raises GateError where it is refused, or less than was asked."""
    found = judge(path, root, asked, older=older)
    say(root, found)
    for problem in found.problems:
        print(f"  DIFFERS: {text.clean(problem, 500)}", file=sys.stderr)
    if found.problems:
        number = text.count(len(found.problems), "thing")
        raise GateError(f"'{path.name}' is not as it was packed: {number}", remedy="ask for it again")
    if below := shortfall(found, asked):
        raise GateError(f"'{path.name}' is less than was asked for: {text.clean(below, 300)}")
    return found


def say(root: Path, found: Judgement) -> None:
    """Print what a bundle is, who answers for it, and how far it is checked."""
    here, level = this_harness(root), LEVELS[found.level]
    changes, ours = changes_over_pauses(found.results), (here.version, here.revision)
    print(render.terminal_text("bundle.md", it=found, level=level, here=ours, changes=changes))


def order_of(root: Path, found: Judgement) -> Analysis:
    """Return what a bundle's records say, by the claims and cards of this clone."""
    stated = found.stated
    request = AnalysisRequest(
        stated.as_of, session=stated.session, margin=stated.margin, questions=plan_questions(root)
    )
    return analyse(evidence_in(root, found.results, purchase=False), request)


def together(bundles: Sequence[Judgement]) -> Results:
    """Return the records of several bundles; raises UserError where two hold one otherwise."""
    records = {stored.path: stored for found in bundles for stored in found.results.records}
    sessions = {session.id: session for found in bundles for session in found.results.sessions}
    for found in bundles:
        other = [stored.path for stored in found.results.records if stored != records[stored.path]]
        other += [session.id for session in found.results.sessions if session != sessions[session.id]]
        if other:
            raise UserError(
                f"'{found.name}' and another bundle hold '{other[0]}' with other content", remedy="ask why"
            )
    return Results(tuple(records.values()), tuple(sessions.values()), ())
