"""Files that nobody means: each is refused in one sentence, soon, by whichever reader meets it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import settings
from harness.engine.slurm.site import load_site
from harness.errors import PlanError, RecordError, UserError
from harness.image.images import load_images
from harness.image.lock import lock_packages
from harness.plan import plan_file
from harness.record import Load, Session, store
from harness.record.events import Follower, json_objects, read_segments
from harness.record.published.cards import load_cards
from harness.record.series import STEPS_KEPT_SINGLE, Series
from harness.redact import find_leaks
from harness.run import session
from harness.run.jobs import submission
from report.buying.purchase import load_purchase
from tests.helpers import ROOT
from tests.helpers import records_builder as build
from tests.helpers.here import load_claims

READERS: dict[str, Callable[[Path], object]] = {
    "gpudyno.toml": lambda root: settings.load_settings(root, {}, {}),
    "plans/x.toml": lambda root: plan_file.load_plan(root, "x"),
    "docker/images.toml": load_images,
    "results/cards.toml": load_cards,
    "results/claims/x.toml": load_claims,
    "purchase.toml": load_purchase,
    "site.toml": lambda root: load_site(root, None),
}
MEANT_BY_NOBODY = {
    "nested": b"x = " + b"[" * 100_000,
    "dotted": b"a." * 30_000 + b"a = 1",
    "quoted": b'"a" . ' * 30_000 + b"a = 1",
    "not UTF-8": b"x = '\xe9'",
    "cut": b"x = [",
    "large": b"# " + b"a" * 3_000_000,
}


@pytest.mark.parametrize("content", MEANT_BY_NOBODY.values(), ids=MEANT_BY_NOBODY)
@pytest.mark.parametrize("name", READERS)
def test_every_reader_of_toml_answers_in_a_sentence_and_soon(tmp_path, name, content):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    begun = time.monotonic()
    with pytest.raises(UserError, match=path.name):
        READERS[name](tmp_path)
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*", "A{1,9}", "x" * 201])
def test_a_card_s_pattern_has_nothing_that_repeats(tmp_path, pattern):
    text = (ROOT / "results" / "cards.toml").read_text()
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "cards.toml").write_text(
        text.replace('name_regex = "GTX 1080 Ti"', f"name_regex = '{pattern}'")
    )
    with pytest.raises(UserError, match="name_regex': is no name with optional parts"):
        load_cards(tmp_path)


def written(root: Path) -> Path:
    build.write(root, build.two_cards()[:2])
    return next(path for path in sorted(root.glob("results/*/*/*.json")) if path.name != "session.json")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-32"])
def test_a_record_in_another_encoding_is_refused_and_the_others_are_read(tmp_path, encoding):
    path = written(tmp_path)
    path.write_bytes(path.read_text().encode(encoding))
    found = store.read_results(tmp_path)
    assert len(found.records) == 1 and path.name in found.problems[0]


def test_a_folder_a_pipe_and_a_file_without_end_are_no_records_and_stop_no_reader(tmp_path):
    path = written(tmp_path)
    (path.parent / "a.json").mkdir()
    os.mkfifo(path.parent / "b.json")
    with (path.parent / "c.json").open("wb") as file:
        file.truncate(store.MOST_BYTES + 1)
    found = store.read_results(tmp_path)
    assert len(found.records) == 2
    assert [problem.partition(": ")[2][:20] for problem in found.problems] == [
        "is no file; remove i",
        "is no file; remove i",
        "16777217 bytes, wher",
    ]


def test_a_date_at_the_calendar_s_end_is_none_of_a_record_s(tmp_path):
    path = written(tmp_path)
    raw = json.loads(path.read_text()) | {"started_at": "9999-12-31T23:59:59Z"}
    path.write_text(json.dumps(raw))
    with pytest.raises(RecordError, match="the year 9999 is none of a record's"):
        store.read_record(path, "x")


def test_a_session_s_label_leads_to_no_other_folder(tmp_path):
    written(tmp_path)
    (session,) = store.read_sessions(tmp_path)
    with pytest.raises(RecordError, match="'label'"):
        Session.parse(json.dumps(session.model_dump(mode="json") | {"label": "../../x"}), "x")


def test_a_series_of_more_values_than_any_record_keeps_is_refused():
    assert Series.from_microseconds([1] * 1_000_000).count == STEPS_KEPT_SINGLE
    with pytest.raises(ValueError, match="less than or equal to 20000"):
        Series(count=STEPS_KEPT_SINGLE + 1, microseconds="")


def test_lines_without_end_in_events_and_telemetry_are_passed_over(tmp_path):
    lines = tmp_path / "lines.jsonl"
    deep = "[" * 100_000
    endless = f'{{"event": "segment", "begin": {"9" * 400}, "end": 3}}'
    lines.write_text(f'{{"segment": {deep}\n{endless}\n{{"event": "segment", "begin": 1, "end": 2}}\n')
    assert read_segments(lines) == ((1.0, 2.0),)
    assert Follower(lines).look().stage == "start"
    assert [line["end"] for line in json_objects(lines.read_bytes().splitlines())] == [3, 2]


@pytest.mark.parametrize("piece", ["a.", "a-", "a1.", "\\n/"])
def test_a_long_line_of_anything_is_searched_soon(piece):
    begun = time.monotonic()
    find_leaks(json.dumps({"warnings": [piece * 60_000]}))
    assert time.monotonic() - begun < 60


def test_a_lock_that_is_no_text_or_not_there_is_refused_by_its_name(tmp_path):
    (tmp_path / "lock.txt").write_bytes(b"a==1\xff\n")
    with pytest.raises(PlanError, match=r"'lock\.txt' is not UTF-8"):
        lock_packages(tmp_path / "lock.txt")
    with pytest.raises(PlanError, match=r"'gone\.txt' is not there"):
        lock_packages(tmp_path / "gone.txt")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"a\0b", b"../../x", b"/etc", b"x" * 5000, b"a\nb"])
def test_a_pointer_that_no_run_wrote_points_at_no_session_and_no_submission(tmp_path, content):
    for folder in ("open", "jobs/open"):
        pointer = store.clone_state_folder(tmp_path) / folder / "mine.txt"
        pointer.parent.mkdir(parents=True)
        pointer.write_bytes(content)
    assert session.find_open_session(tmp_path, "mine") is None
    with pytest.raises(RecordError):
        submission.open_submissions(tmp_path)


def test_what_an_error_quotes_commands_no_terminal_and_begins_no_line():
    said = str(UserError("'\x1b[31m\u202ered\ngpudyno: fine' is no plan", remedy="name\ranother"))
    assert said == r"'\x1b[31m\u202ered\ngpudyno: fine' is no plan; name\ranother"
    assert str(UserError("2 problems\n  a: b\n  c: d")).splitlines()[1:] == ["  a: b", "  c: d"]


def test_a_mistyped_key_is_named_before_the_one_that_it_leaves_missing():
    with pytest.raises(RecordError, match=r"'boost': unknown key \(and \d more\)"):
        Load.parse(b'{"boost": 1, "average": "x"}', "load.json")


@pytest.mark.parametrize("caveats", ["[[]]", "3", '"one"'])
def test_a_claim_whose_caveats_are_no_names_is_refused_in_one_sentence(caveats, tmp_path):
    claim = f'[[claims]]\nid = "x"\nstudy = "s"\ncaveats = {caveats}\n'
    (tmp_path / "results" / "claims").mkdir(parents=True)
    (tmp_path / "results" / "claims" / "x.toml").write_text(claim)
    with pytest.raises(UserError, match=r"is not in \[caveats\]"):
        load_claims(tmp_path)
