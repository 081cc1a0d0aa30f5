"""Bundles of constructed sessions: packed, judged, merged. No figure here was measured."""

from __future__ import annotations

import errno
import json
import re
import shutil
from pathlib import Path

import pytest

from commands import bundle, report
from commands.recipient import bundle_files, judged, together
from harness.bundle import archive, contents
from harness.bundle.judgement import Demand, judge
from harness.bundle.validate import folder_problems
from harness.errors import GateError, UserError
from harness.files import hash_file
from harness.record import store
from tests.helpers import ROOT, bundled
from tests.helpers import records_builder as build
from tests.helpers.forged_bundles import files_of, forged, judgement


def test_a_bundle_holds_records_locks_plans_and_a_statement_over_them_and_nothing_else(good, tmp_path):
    files, found = files_of(good, tmp_path / "b"), judgement(good)
    others = {name for name in files if not name.startswith("results/")}
    assert others == {"statement.json", "docker/cuda/lock.txt", "plans/constructed.toml"}
    assert found.problems == found.missing == found.other_figures == ()
    assert (found.stated.session, found.stated.order, found.stated.margin) == (bundled.LEAD, None, 0.05)
    assert {session.id for session in found.results.sessions} == {bundled.OTHER, bundled.LEAD}
    assert len(found.results.records) == 7 and len(found.stated.figures) == 6


def test_packing_twice_gives_the_same_bytes(clone, good, key, tmp_path):
    again = bundle.pack(clone, bundle.Packing(out=tmp_path / "again.tar.gz"))
    assert again.read_bytes() == good.read_bytes()
    one, two = (
        bundle.pack(clone, bundle.Packing(out=tmp_path / f"{name}.tar.gz", key=key))
        for name in ("one", "two")
    )
    assert one.read_bytes() == two.read_bytes() != good.read_bytes()


def test_the_sources_that_are_others_here_are_named_and_refuse_nothing(clone, good, own_clone):
    assert judge(good, clone, Demand()).other_sources == ()
    (own_clone / "results" / "claims").mkdir()
    (own_clone / "results" / "claims" / "mine.toml").write_text("")
    cards = own_clone / "results" / "cards.toml"
    cards.write_text(cards.read_text() + "\n")
    found = judged(own_clone, good, Demand())
    assert found.other_sources == ("results/cards.toml", "results/claims/mine.toml")


@pytest.mark.parametrize("part", ["plan", "lock"])
def test_a_plan_or_a_lock_that_is_not_in_it_is_named_and_nothing_is_pinned_or_ordered_by_it(
    own_clone, tmp_path, capsys, part
):
    if part == "plan":
        (own_clone / "plans" / "constructed.toml").write_text(
            bundled.PLAN.replace("repeats = 3", "repeats = 9")
        )
    else:
        shutil.rmtree(own_clone / "docker")
    path = bundle.pack(own_clone, bundle.Packing(out=tmp_path / "b.tar.gz", session=bundled.OTHER))
    found, said = judgement(path), capsys.readouterr().out
    assert [part in missing for missing in found.missing] == [True]
    assert f"not in it: {found.missing[0]}" in said
    assert {stored.record.environment.pinned for stored in found.results.records} == {part == "plan"}


def test_a_clause_is_printed_only_where_its_plan_is_packed(tmp_path, capsys):
    root = bundled.write(tmp_path / "clone", bundled.two_cards())
    bundle.pack(root, bundle.Packing(out=tmp_path / "b.tar.gz"))
    assert "For an order: each speed" in capsys.readouterr().out
    (root / "plans" / "constructed.toml").unlink()
    bundle.pack(root, bundle.Packing(out=tmp_path / "b.tar.gz"))
    said = capsys.readouterr().out
    assert "For an order" not in said and "the plan that `accept` would run is not in the bundle" in said


def test_a_session_whose_label_names_another_folder_packs_nothing_in_silence(own_clone, tmp_path):
    path = next(own_clone.glob("results/*/*-a-*/session.json"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"label": "elsewhere"}))
    with pytest.raises(UserError, match="has no record in the folder that its label names"):
        bundle.pack(own_clone, bundle.Packing(out=tmp_path / "b.tar.gz", session=bundled.LEAD))


def test_a_record_of_this_clone_that_cannot_be_read_is_not_packed_over(own_clone, tmp_path):
    next(own_clone.glob("results/*/*-a-*/word_lm-r1*.json")).write_text("{")
    with pytest.raises(UserError, match=r"word_lm-r1.*cut short"):
        bundle.pack(own_clone, bundle.Packing(out=tmp_path / "b.tar.gz"))


def test_a_bundle_replaces_no_device_and_no_folder(clone, tmp_path):
    for out in (Path("/dev/null"), tmp_path):
        with pytest.raises(UserError, match="is no file that a bundle can replace"):
            bundle.pack(clone, bundle.Packing(out=out))
    assert Path("/dev/null").is_char_device()


def two_bundles(clone: Path, folder: Path) -> list[Path]:
    folder.mkdir()
    return [
        bundle.pack(clone, bundle.Packing(out=folder / f"{name}.tar.gz", session=name))
        for name in (bundled.LEAD, bundled.OTHER)
    ]


def test_bundles_of_two_sites_make_one_report_with_equal_work_side_by_side_and_their_hashes(
    clone, tmp_path, capsys
):
    paths = two_bundles(clone, tmp_path / "sent")
    empty = tmp_path / "empty"
    (empty / "results").mkdir(parents=True)
    how = report.ReportOptions(bundle=(tmp_path / "sent",))
    analysis, written = report.write_report(empty, tmp_path / "out", how)
    page = written.markdown.read_text()
    assert "Constructed Card A" in page and "Constructed Card B" in page
    page_one, said = page.partition("\n## ")[0], capsys.readouterr().out
    for path in paths:
        assert f"From {path.name}, SHA-256 `{hash_file(path)}`" in page_one.replace("\\", "")
        assert f"SHA-256: {hash_file(path)}" in said
    assert {analysis.lead, *analysis.request.named} == {bundled.LEAD, bundled.OTHER}
    header, *trials = (tmp_path / "out" / "trials.csv").read_text().splitlines()
    assert header.startswith("path,session,plan,")
    assert len(trials) == 7


def test_bundles_are_named_by_file_folder_or_pattern(clone, tmp_path):
    paths = sorted(two_bundles(clone, tmp_path / "sent"))
    for given in ((tmp_path / "sent",), (tmp_path / "sent" / "*.tar.gz",), (*paths, paths[0])):
        assert bundle_files(given) == tuple(paths)
    for nothing in (tmp_path, tmp_path / "*.tar.gz", tmp_path / "b.tar.gz"):
        with pytest.raises(UserError, match="no bundle is called"):
            bundle_files((nothing,))


def test_two_bundles_that_hold_one_record_or_session_otherwise_are_refused(own_clone, good, tmp_path):
    path = next(own_clone.glob("results/*/*-a-*/word_lm-r1*.json"))
    path.write_text(path.read_text().replace('"wall_seconds": 60.0', '"wall_seconds": 61.0'))
    second = bundle.pack(own_clone, bundle.Packing(out=tmp_path / "second.tar.gz"))
    with pytest.raises(UserError, match=r"hold 'results/.*word_lm-r1.*' with other content"):
        together([judgement(good), judgement(second)])
    on = build.machine("Constructed Card A", label="elsewhere", digits="a")
    records = [one.model_copy(update={"machine": on}) for one in bundled.one_card()]
    root = bundled.write(tmp_path / "elsewhere", records)
    third = bundle.pack(root, bundle.Packing(out=tmp_path / "third.tar.gz"))
    with pytest.raises(UserError, match=f"hold '{bundled.LEAD}' with other content"):
        together([judgement(good), judgement(third)])


def test_a_damaged_bundle_is_in_no_report(good, tmp_path):
    path = tmp_path / "b.tar.gz"
    path.write_bytes(good.read_bytes()[:-40])
    with pytest.raises(GateError, match="is not as it was packed"):
        report.write_report(tmp_path, tmp_path / "out", report.ReportOptions(bundle=(path,)))


def test_a_pinned_environment_with_other_packages_than_its_lock_is_named(tmp_path):
    root = bundled.write(tmp_path, bundled.one_card(repeats=1))
    assert list(folder_problems(root, root)) == []
    (stored,) = store.read_results(root).records
    packages = {**stored.record.measurement.packages, "torch": "2.0.0"}
    other = build.changed(stored.record, measurement__packages=packages)
    (root / stored.path).write_text(store.dump_json(other))
    (problem,) = folder_problems(root, root)
    assert problem.startswith(f"{stored.path}: it says 'pinned', and torch is 2.0.0 where ")
    unpinned = build.changed(other, environment__pinned=False, environment__unpinned_because=("constructed",))
    (root / stored.path).write_text(store.dump_json(unpinned))
    assert list(folder_problems(root, root)) == []


def test_a_record_of_a_simulated_device_goes_into_no_bundle_and_through_no_gate(tmp_path):
    root = bundled.write(tmp_path, bundled.one_card(repeats=1))
    (stored,) = store.read_results(root).records
    record = build.changed(stored.record, measurement__device__simulated=True)
    (root / stored.path).write_text(store.dump_json(record))
    simulated = f"{stored.path}: its device is simulated, so nothing in it was measured"
    assert list(folder_problems(root, root)) == [simulated]
    with pytest.raises(UserError, match="its device is simulated"):
        bundle.pack(root, bundle.Packing(out=tmp_path / "b.tar.gz"))
    assert not (tmp_path / "b.tar.gz").exists()


def older(good: Path, folder: Path, layout: int) -> Path:
    """The records as a bundle before statements had them, with a page."""
    files = files_of(good, folder / "files")
    del files[contents.STATEMENT]
    manifest = {
        "bundle": layout,
        "session": bundled.LEAD,
        "gpudyno": {"version": "0.0.9", "revision": "ab" * 20},
    }
    files |= {"bundle.json": json.dumps(manifest).encode(), "page/index.html": b"10 times as fast"}
    path = folder / "older.tar.gz"
    with path.open("wb") as file:
        archive.pack(files, file)
    return path


@pytest.mark.parametrize("layout", [1, 4, 6])
def test_an_older_bundle_is_judged_by_what_packed_it_and_a_report_reads_its_records_alone(
    clone, good, tmp_path, layout
):
    path, packer = older(good, tmp_path, layout), f"gpudyno 0.0.9, commit {'ab' * 20}, packed it"
    with pytest.raises(UserError, match=f"has layout {layout}, not 5: {packer}"):
        judged(ROOT, path, Demand())
    how = report.ReportOptions(bundle=(path,))
    if layout != 4:
        with pytest.raises(UserError, match=packer):
            report.write_report(clone, tmp_path / "out", how)
        return
    _, written = report.write_report(clone, tmp_path / "out", how)
    assert "10 times as fast" not in written.html.read_text()
    with pytest.raises(GateError, match="'recomputed, signed' was asked for"):
        judged(ROOT, path, Demand("signed"), older=True)
    with pytest.raises(GateError, match="it states no order"):
        judged(ROOT, path, Demand(order="PO 4711"), older=True)


def test_figures_that_another_version_gave_are_named_and_not_taken_for_recomputed(good, tmp_path, capsys):
    figures = judgement(good).stated.figures
    path, summary = next(iter(figures.items()))
    faster = {**figures, path: summary.model_copy(update={"throughput": 1.1 * summary.throughput})}
    found = forged(good, tmp_path, lambda work: None, figures=faster)
    assert judgement(found).level == "not-recomputed"
    with pytest.raises(GateError, match="it is not recomputed, and 'recomputed' was asked for"):
        judged(ROOT, found, Demand())
    assert f"{path}: its raw samples do not give the 'throughput' that is stated" in capsys.readouterr().out
    assert judged(ROOT, found, Demand("not-recomputed")).problems == ()


def test_other_machines_records_are_packed_only_where_their_session_is_named(own_clone, tmp_path):
    (own_clone / "results" / ".state" / "own-sessions.txt").unlink()
    out = tmp_path / "b.tar.gz"
    with pytest.raises(UserError, match="are of other machines"):
        bundle.pack(own_clone, bundle.Packing(out=out))
    assert not out.exists()
    assert bundle.pack(own_clone, bundle.Packing(out=out, session=bundled.LEAD)) == out


def test_another_machine_s_records_are_not_packed_with_one_s_own(own_clone, tmp_path):
    (own_clone / "results" / ".state" / "own-sessions.txt").write_text(f"{bundled.LEAD}\n")
    path = bundle.pack(own_clone, bundle.Packing(out=tmp_path / "b.tar.gz"))
    assert [session.id for session in judgement(path).results.sessions] == [bundled.LEAD]


def test_a_full_disk_names_the_file_that_was_not_written(clone, tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(archive, "pack", full)
    with pytest.raises(OSError, match=r"b\.tar\.gz"):
        bundle.pack(clone, bundle.Packing(out=tmp_path / "b.tar.gz"))
    assert not list(tmp_path.glob("*b.tar.gz*"))


def test_what_a_record_says_is_text_in_markdown_as_in_html(tmp_path):
    label, about = "![p](http://x.example/i.png)|b", "# gold\n# 10 times as fast"
    on = build.machine("Constructed Card A", label="card-a", digits="a")
    named = on.model_copy(update={"cpu": on.cpu.model_copy(update={"model": label})})
    records = [
        build.changed(one.model_copy(update={"machine": named}), measurement__about=about)
        for one in bundled.one_card()
    ]
    root = bundled.write(tmp_path, records)
    _, written = report.write_report(root, tmp_path / "out", report.ReportOptions(session=(bundled.LEAD,)))
    page = written.markdown.read_text()
    assert "\\!\\[p\\](http" in page or "!\\[p\\](http" in page
    assert "![p]" not in page and not re.search("^# gold|^# 10 times", page, re.M)
    assert "<img" not in written.html.read_text()
