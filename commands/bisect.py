"""Which version of a package made a plan slower or quicker: the ends first, then halves between them."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.version import Version

from commands import run
from commands.report import analyse_clone
from harness.engine.choose import wheel_folder
from harness.errors import MachineError, UserError
from harness.files import command_output
from harness.image.lock import find_uv
from harness.image.second_lock import moved_image
from harness.record import Question, Session, store
from harness.run import setup as run_setup
from harness.run.choice import choose_trials, session_against
from harness.settings import Settings
from harness.units import count_noun, format_duration
from report import text
from report.compare.ratio import WorkRatio
from report.trials.key import Key

_ASKED = re.compile(r"([A-Za-z0-9][\w.-]*)==(\d+(?:\.\d+)*)\.\.(\d+(?:\.\d+)*)")


@dataclass(frozen=True, slots=True)
class Bisection:
    """What is asked: the newest version is the first stack of each session, an older one its second."""

    root: Path
    settings: Settings
    how: run.RunOptions
    package: str
    newest: str

    def ratio(self, version: str, work: Key | None = None) -> WorkRatio | None:
        """Return how many times as fast the newest is as a version, measured now unless it was before.

        Without a `work` the one that differs most is taken; null where none has a range.
        """
        pin = (f"{self.package}=={version}",)
        settings = self.settings.model_copy(update={"against": pin})
        how = replace(self.how, answers=False, first=(f"{self.package}=={self.newest}",))
        session = None if how.new_session else self._earlier_session(settings, how)
        if session is None:
            outcome = run.run_plan(self.root, settings, how)
            session = outcome.session.id if outcome.complete else None
        if session is None:
            raise UserError("the bisection was ended early", remedy="the same line goes on with it")
        question = Question(kind="faster", by="stack")
        comparison = analyse_clone(self.root, session, question=question).comparison
        ratios = map(self._newest_over_older, comparison.ratios if comparison else ())
        found = [each for each in ratios if each.interval and work in (None, each.of.key)]
        return max(found, key=lambda each: abs(math.log(each.estimate)), default=None)

    def _newest_over_older(self, ratio: WorkRatio) -> WorkRatio:
        """Return the ratio of the first stack, which has the newest version, over the second."""
        sessions = {session.id: session for session in store.read_sessions(self.root)}
        against = sessions[ratio.of.session].against
        is_second = against is not None and ratio.of.trials[0].record.trial.asked.stack == against.stack
        return ratio.inverse if is_second else ratio

    def _earlier_session(self, settings: Settings, how: run.RunOptions) -> str | None:
        """Return the newest whole session of these two stacks, this plan and this machine."""
        setup = run.prepare_with_pins(self.root, settings, how)
        chosen = {item.trial.id for item in choose_trials(setup).planned}
        alike = [
            session
            for session in store.read_sessions(self.root)
            if session.against == session_against(setup)
            and session.machine == setup.machine.id
            and session.plan_sha256 == setup.plan.sha256
            and chosen <= {trial.id for trial in session.trials}
            and self._is_whole(session)
        ]
        return max(alike, key=lambda session: session.started_at).id if alike else None

    def _is_whole(self, session: Session) -> bool:
        recorded = {stored.record.trial.id for stored in store.session_records(self.root, session)}
        return {trial.id for trial in session.trials} <= recorded


def bisect_versions(root: Path, settings: Settings, asked: str, how: run.RunOptions) -> None:
    """Say what it will take, measure, and print the first version that differs, with its range."""
    match = _ASKED.fullmatch(asked)
    if match is None or settings.against:
        raise UserError(f"--bisect '{asked}' is no range of versions", remedy="write it as torch==2.9..2.13")
    package, first, last = match.groups()
    find_uv()
    versions = _versions_between(released_versions(package, wheel_folder(root, settings)), first, last)
    versions = _lockable_versions(root, settings, package, versions)
    if len(versions) < 2:
        raise UserError(f"{package} has no two versions from {first} to {last}", remedy="take a wider range")
    steps = 1 + math.ceil(math.log2(len(versions) - 1))
    bisection = Bisection(root, settings, how, package, versions[-1])
    pins = settings.model_copy(update={"against": (f"{package}=={versions[0]}",)})
    each = choose_trials(
        run.prepare_with_pins(root, pins, replace(how, first=(f"{package}=={versions[-1]}",)))
    )
    many, most = count_noun(len(versions), "version"), count_noun(steps, "session")
    print(f"{many} of {package}, {versions[0]} to {versions[-1]}, halved in at most {most}")
    print(f"of {count_noun(len(each.planned), 'trial')}: {format_duration(steps * each.seconds)} in all")
    print(_find_change(bisection, versions))


def _find_change(bisection: Bisection, versions: Sequence[str]) -> str:
    package, newest = bisection.package, bisection.newest
    whole = bisection.ratio(versions[0])
    if whole is None or whole.order == "counts-only":
        return f"{package} {versions[0]} and {newest}: too few pairs finished to compare them"
    work = whole.of.key
    name = f"{text.model_name(work.model)} in {work.precision}"
    if whole.order == "equal":
        return f"{package} {versions[0]} and {newest} are equal within 5 % for {name}: {_range_words(whole)}"
    if whole.order == "not-shown":
        none = f"no difference between {package} {versions[0]} and {newest} is shown for {name}"
        return f"{none}: {_range_words(whole)}"
    half, (low, high), last = math.log(whole.estimate) / 2, (0, len(versions) - 1), whole
    while high - low > 1:
        middle = (low + high) // 2
        middle_ratio = bisection.ratio(versions[middle], work)
        ends = middle_ratio.interval if middle_ratio else None
        if middle_ratio is None or ends is None or math.log(ends.low) <= half <= math.log(ends.high):
            between = f"between {package} {versions[low]} and {versions[high]}"
            return f"{name} changed {between}; {versions[middle]} may be like either: more repeats decide"
        # Nearer to the oldest than to the newest: what changed it came later.
        if abs(math.log(middle_ratio.estimate)) > abs(half):
            low, last = middle, middle_ratio
        else:
            high = middle
    return (
        f"{package} {versions[high]} is the first that is {whole.order} for {name}: "
        f"{newest} is {_range_words(last)} times as fast as {versions[low]}"
    )


def _range_words(ratio: WorkRatio) -> str:
    ends = ratio.interval
    return f"{ratio.estimate:.3f}" + (f" ({ends.low:.3f} to {ends.high:.3f})" if ends else "")


def released_versions(package: str, wheelhouse: Path | None) -> list[str]:
    """Return a package's versions in the folder of wheels and the package index, without pre-releases."""
    pattern = f"{package.replace('-', '_')}-*.whl"
    versions = {path.name.split("-")[1] for path in (wheelhouse.glob(pattern) if wheelhouse else ())}
    index = command_output(sys.executable, "-m", "pip", "index", "versions", package) or ""
    if listed := re.search(r"Available versions: (.+)", index):
        versions |= {version.strip() for version in listed[1].split(",")}
    public = {version.partition("+")[0] for version in versions}
    return sorted((version for version in public if re.fullmatch(r"[\d.]+", version)), key=Version)


def _versions_between(versions: Sequence[str], first: str, last: str) -> list[str]:
    """Return the versions from the first to the last, with its further releases: 2.13 includes 2.13.1."""
    low, high = Version(first), Version(last).release
    known = ((version, Version(version)) for version in versions)
    return [version for version, known in known if low <= known and known.release[: len(high)] <= high]


def _lockable_versions(root: Path, settings: Settings, package: str, versions: Sequence[str]) -> list[str]:
    """Return the versions that the image's Python has wheels for; print why another is skipped."""
    image, kept = run_setup.prepare_run(root, settings).image, []
    for version in versions:
        try:
            moved_image(image, root, [f"{package}=={version}"], wheelhouse=wheel_folder(root, settings))
            kept.append(version)
        except (UserError, MachineError) as error:
            print(f"{package} {version} is skipped: {error.problem}")
    return kept
