"""A bundle for a buyer who has to decide: packed with its clause, verified, and signed once more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from commands.recipient import judged, order_of, say
from commands.report import analyse_clone, own_fields
from commands.terminal import page_folder
from harness.bundle import archive, contents
from harness.bundle.judgement import Demand, Judgement, judge
from harness.bundle.statement import Envelope, Predicate, Statement, json_bytes, resources
from harness.errors import UserError
from harness.files import write_then_rename
from harness.run.assemble import this_harness
from report.analysis import Analysis
from report.buying.clause import MARGIN
from report.page import render


@dataclass(frozen=True, slots=True)
class Packing:
    """The switches of `bundle`."""

    session: str | None = None
    margin: float = MARGIN
    order: str | None = None
    out: Path | None = None
    key: Path | None = None
    stamp: Path | None = None
    statement_out: Path | None = None


def pack(root: Path, how: Packing) -> Path:
    """Write a bundle of one session, or of all sessions of the page, and print what is in it."""
    if not 0 < how.margin < 1:
        raise UserError(f"a margin of {how.margin:g} is no share of a figure", remedy="give one such as 0.05")
    now, here = datetime.now(UTC), _analysis_here(root, how)
    files, records = contents.gather(root, [how.session] if how.session else _own(here))
    session = here.leading_session
    assert session is not None
    predicate = Predicate(
        gpudyno=this_harness(root),
        machine=session.machine,
        session=session.id,
        as_of=contents.as_of(records, now),
        margin=how.margin,
        order=how.order,
        sources=resources(contents.sources(root)),
        figures=contents.figures(records),
    )
    statement = Statement(subject=resources(files), predicate=predicate)
    out = how.out or page_folder(root) / f"gpudyno-{session.id}.tar.gz"
    _say_clause(root, _written(root, out, Envelope.of(json_bytes(statement)), files, how))
    return out


def countersign(root: Path, path: Path, how: Packing, asked: Demand) -> Path:
    """Write a bundle again with one more signature or a time stamp, once it is judged as `asked`.

    Raises UserError where there is neither, and for a signature over a statement that has its time stamp.
    """
    judged(root, path, asked)
    with TemporaryDirectory() as folder:
        names = archive.unpack(path, Path(folder)).names
        files = {name: (Path(folder) / name).read_bytes() for name in names}
    envelope = Envelope.parse(files.pop(contents.STATEMENT), contents.STATEMENT)
    if how.key is None and how.stamp is None:
        raise UserError("nothing is to be added", remedy="name a key by --sign, or a time stamp by --stamp")
    if files.pop(contents.STAMP, None) is not None and how.key is not None:
        raise UserError("a time stamp is over the signatures that it found", remedy="sign first, then stamp")
    out = how.out or path
    _written(root, out, envelope, files, how)
    return out


def _analysis_here(root: Path, how: Packing) -> Analysis:
    """Return this clone's analysis; raises UserError where nothing in it is one's own to pack."""
    here = analyse_clone(root, how.session, **own_fields(root))
    if here.of_others:
        raise UserError(
            f"nothing has been measured on this machine yet: {here.of_others} sessions are of other machines",
            remedy="run `invoke build run` first, or say which is yours by `invoke report --mine SESSION`",
        )
    if here.lead is None or not here.recorded_sessions:
        raise UserError("nothing has been measured here yet", remedy="run `invoke build run` first")
    return here


def _own(here: Analysis) -> list[str]:
    """Return those of the page's sessions that are this machine's."""
    own = {one.id for one in here.evidence.results.sessions if one.machine == here.request.machine}
    return [name for name in here.recorded_sessions if name in own | here.request.own]


def _written(
    root: Path, out: Path, envelope: Envelope, files: Mapping[str, bytes], how: Packing
) -> Judgement:
    """Write an archive and print what it is; raises UserError where any recipient would refuse it."""
    if out.exists() and not out.is_file():
        raise UserError(f"'{out}' is no file that a bundle can replace", remedy="name another with --out")
    if how.key is not None:
        envelope = envelope.signed_by(how.key)
    stamp = how.stamp.read_bytes() if how.stamp else None
    with write_then_rename(out) as part:
        contents.write(envelope, files, stamp, part)
        found = replace(judge(part, root, Demand()), name=out.name)
        for problem in found.problems:
            raise UserError(f"a record cannot be packed: {problem}", remedy="fetch it again or remove it")
    if how.statement_out is not None:
        with write_then_rename(how.statement_out) as part:
            part.write_bytes(json_bytes(envelope))
    print(f"bundle: {out} ({out.stat().st_size / 1e6:.2f} MB)")
    say(root, found)
    return found


def _say_clause(root: Path, found: Judgement) -> None:
    """Print the clause for an order, or why there is none."""
    order = order_of(root, found)
    session = order.leading_session
    if order.clause is None or order.clause.unproven:
        print("no clause for an order: it needs two valid runs of a work whose speed settled")
    elif session is None or session.plan_sha256 not in found.plans:
        print("no clause for an order: the plan that `accept` would run is not in the bundle")
    else:
        print(render.terminal_text("clause.md", view=order.clause, command=f"invoke accept {found.name}"))
