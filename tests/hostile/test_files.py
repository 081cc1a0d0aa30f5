"""Files that a person writes, names that a person gives, and what a trial leaves behind."""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import settings
from harness.engine.interface import Exit
from harness.engine.slurm.site import Site, load_site
from harness.image.images import ImageFile, load_images
from harness.image.lock import lock_disagreements, lock_packages
from harness.plan import plan_file
from harness.record import Measurement, store
from harness.record.events import Follower, read_segments
from harness.record.published.cards import load_cards
from harness.record.published.claim import ClaimFile
from harness.record.result import Reported
from harness.run import assemble, runner, session
from harness.summary.statistics import judge_trial
from harness.telemetry import reader, recorder
from harness.units import parse_seconds
from report.buying.purchase import Purchase, load_purchase
from tests.helpers import ROOT
from tests.helpers.card_traces import TRACES
from tests.helpers.fake_clock import replay
from tests.helpers.fake_workload import measurement
from tests.helpers.here import load_claims
from tests.helpers.purchase_builder import FILE
from tests.helpers.records_builder import two_cards
from tests.hostile.judging import LONG, attacked, drawn, is_sentence
from tests.hostile.strategies import damaged, json_files, json_lines, texts, toml_files

pytestmark = LONG

SETTINGS = b"""plan = "quick"
device = "cpu"
budget = "30m"
blocks = 3
data_seconds = 90.0
memory_bytes = 8589934592
declared = ["power-limit"]
"""
SITE = b'partition = "gpu"\naccount = "project"\ntime_limit = "2h"\nnodes = 1\n'
FAILURE = b'{"stage": "train", "reason": "out-of-memory", "message": "it does not fit"}'
EVENTS = b"""{"event": "phase", "name": "import", "seconds": 1.5, "begin": 8.5, "end": 10.0}
{"event": "stage", "stage": "train", "at": 10.0}
{"event": "progress", "done": 1, "total": 20, "unit": "step"}
{"event": "segment", "begin": 10.5, "end": 12.75}
{"event": "stage", "stage": "valid", "at": 12.75}
{"event": "stage", "stage": "collect", "at": 13.0}
"""


def content(name: str) -> bytes:
    return (ROOT / name).read_bytes()


def planned(root: Path) -> None:
    loaded = plan_file.load_plan(root, "x")
    device = "cuda" if any("cuda" in measure.devices for measure in loaded.measure) else "cpu"
    sources: Any = dict.fromkeys(plan_file.plan_datasets(loaded, device), "synthetic")
    asked = [image for measure in loaded.measure if device in measure.devices for image in measure.images]
    context = plan_file.PlanContext(device, asked[0] if asked else "cuda", None, sources, {})
    plan_file.plan_trials(loaded, context, seed=1)


def plan_named_x() -> bytes:
    return re.sub(rb"^name = .*$", b'name = "x"', content("plans/quick.toml"), count=1, flags=re.MULTILINE)


def with_images(root: Path) -> None:
    for image in load_images(root).images.values():
        lock_disagreements(image, ROOT)


@cache
def started() -> assemble.Started:
    record = next(record for record in two_cards() if record.measurement)
    names = assemble.Started.model_fields.keys() & type(record).model_fields.keys()
    return assemble.Started(**{name: getattr(record, name) for name in names})


def measured() -> bytes:
    return json.dumps(measurement(started().trial.asked.model_dump(mode="json"), 20)).encode()


def telemetry() -> bytes:
    with tempfile.TemporaryDirectory() as name:
        replay(TRACES["clean"], Path(name, recorder.FILE))
        return Path(name, recorder.FILE).read_bytes()


def assembled(output: Path) -> None:
    """A record reads back as it was written."""
    done = Exit(code=0 if (output / assemble.MEASUREMENT).exists() else 1)
    made = assemble.assemble_record(started(), done, output, wall_seconds=5.0, locked=({}, False))
    text = store.dump_json(made.model_copy(update={"summary": judge_trial(made)}))
    (output / "record.json").write_text(text, encoding="utf-8")
    assert store.dump_json(store.read_record(output / "record.json", "record.json")) == text


def note_of_a_start(root: Path) -> None:
    work = store.work_folder(root, "20260131-aaaaaa", "x-r1-0", 1)
    work.mkdir(parents=True)
    (root / "started.json").rename(work / assemble.STARTED)
    assert all(begun.started.name for begun, _ in runner.read_attempts(root, "*"))


SEGMENTS = ((1010.5, 1020.5),), 100


def follow(root: Path) -> None:
    Follower(root / "events.jsonl").look()
    read_segments(root / "events.jsonl")


class HostileFile(NamedTuple):
    """A file's path, its content as it should be, how it is changed, by which model, and what reads it."""

    path: str
    good: bytes
    change: Callable[..., st.SearchStrategy[bytes]]
    model: tuple[type, ...]
    read: Callable[[Path], object]


@cache
def files() -> dict[str, HostileFile]:
    claims = min((ROOT / "results/claims").glob("*.toml")).read_bytes()
    begun = runner.InFlight(started=started(), monotonic_seconds=1.0)
    note, pointer = begun.model_dump_json().encode(), b"2026-01-31/x-20260131-aaaaaa\n"
    images, cards, lock = map(content, ("docker/images.toml", "results/cards.toml", "docker/cpu/lock.txt"))
    every = (
        ("plans/x.toml", plan_named_x(), toml_files, (), planned),
        (
            "gpudyno.toml",
            SETTINGS,
            toml_files,
            (settings.Settings,),
            lambda at: settings.load_settings(at, {}, {}),
        ),
        ("purchase.toml", FILE.encode(), toml_files, (Purchase,), load_purchase),
        ("results/claims/x.toml", claims, toml_files, (ClaimFile,), load_claims),
        ("results/cards.toml", cards, toml_files, (), load_cards),
        ("docker/images.toml", images, toml_files, (ImageFile,), with_images),
        ("site.toml", SITE, toml_files, (Site,), lambda root: load_site(root, None)),
        ("lock.txt", lock, damaged, (), lambda root: lock_packages(root / "lock.txt")),
        (
            "results/.state/open/mine.txt",
            pointer,
            damaged,
            (),
            lambda root: session.find_open_session(root, "mine"),
        ),
        (assemble.MEASUREMENT, measured(), json_files, (Measurement,), assembled),
        (assemble.FAILURE, FAILURE, json_files, (Reported,), assembled),
        ("events.jsonl", EVENTS, json_lines, (), follow),
        (
            recorder.FILE,
            telemetry(),
            json_lines,
            (),
            lambda root: reader.read_telemetry(root / recorder.FILE, *SEGMENTS),
        ),
        ("started.json", note, json_files, (runner.InFlight,), note_of_a_start),
    )
    return {path: HostileFile(path, *more) for path, *more in every}


def read(file: HostileFile, root: Path, made: bytes) -> None:
    (root / file.path).parent.mkdir(parents=True, exist_ok=True)
    (root / file.path).write_bytes(made)
    file.read(root)


@pytest.mark.parametrize("kind", files())
def test_a_file_is_read_or_refused_in_one_sentence_and_a_good_one_is_read(kind, tmp_path):
    file = files()[kind]
    read(file, tmp_path, file.good)

    @drawn(150)
    @given(made=file.change(file.good, *file.model))
    def attack(made):
        with attacked() as root:
            read(file, root, made)

    attack()


NAMES: dict[str, Callable[[Path, str], object]] = {
    "plan": plan_file.load_plan,
    "site": load_site,
    "label": lambda root, text: settings.load_settings(root, {}, {"label": text}),
    "path": lambda root, text: settings.expand_path(text),
    "length": lambda root, text: parse_seconds(text),
    "image": lambda root, text: load_images(ROOT).image(text),
    **{
        f"GPUDYNO_{name.upper()}": lambda root, text, name=name: settings.load_settings(
            root, {f"GPUDYNO_{name.upper()}": text}, {}
        )
        for name in settings.Settings.model_fields
    },
}


@drawn(800)
@given(kind=st.sampled_from(sorted(NAMES)), text=texts)
def test_a_name_is_taken_or_refused_in_one_sentence(kind, text):
    with attacked() as root:
        NAMES[kind](root, text)


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        (lambda root: int("x"), ValueError),
        (lambda root: (root.parent / "outside").touch(), AssertionError),
        (lambda root: time.sleep(5), pytest.fail.Exception),
    ],
)
def test_a_crash_a_file_elsewhere_and_a_wait_without_end_are_found(wrong, found):
    with pytest.raises(found), attacked(seconds=1) as root:
        wrong(root)


def test_what_is_no_sentence_is_found():
    is_sentence("it is wrong; mend it", 2)
    for said, code in (("two\nlines", 2), ("\x1b[31mred", 2), ("", 3), ("a defect", 1)):
        with pytest.raises(AssertionError):
            is_sentence(said, code)
