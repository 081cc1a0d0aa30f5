"""Bundles of constructed sessions: packed, damaged, forged, merged. No figure here was measured."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from commands import bundle, report
from harness.bundle import contents
from harness.bundle.validate import folder_problems
from harness.errors import GateError, UserError
from harness.files import sha256_of
from harness.record import store
from tests.helpers import bundled
from tests.helpers import records_builder as build
from tests.helpers.forged_bundles import PURCHASE, forged, opened, replaced
from tests.helpers.programs import git

PRICE = "EUR/h"
"""What the page says of prices where nothing may be ranked."""


def test_a_bundle_holds_records_locks_plans_page_and_what_describes_them(good, tmp_path):
    found = opened(good, tmp_path / "b")
    assert found.problems == ()
    assert {"bundle.json", contents.SUMS, "page/index.html", "page/report.md"} <= set(found.names)
    assert {"docker/cuda/lock.txt", "plans/constructed.toml", "results/cards.toml"} <= set(found.names)
    assert found.manifest and found.manifest.session == bundled.LEAD
    assert found.manifest.sessions == (bundled.OTHER, bundled.LEAD)
    assert len([name for name in found.names if name.startswith("results/2026")]) == 9


def test_packing_twice_gives_the_same_bytes(clone, good, tmp_path):
    again = bundle.pack(clone, bundle.Packing(out=tmp_path / "again.tar.gz"))
    assert again.read_bytes() == good.read_bytes()


def test_a_good_bundle_verifies_without_this_machine_s_results_and_counts_its_figures(good, capsys):
    bundle.verify(good, None)
    said = capsys.readouterr()
    assert "every byte, record and figure is as it was packed" in said.out
    assert "figures made again from raw samples" in said.out
    assert said.err == ""


def test_a_session_whose_label_names_another_folder_packs_nothing_in_silence(own_clone, tmp_path):
    path = next(own_clone.glob("results/*/*-a-*/session.json"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"label": "elsewhere"}))
    with pytest.raises(UserError, match="has no record in the folder that its label names"):
        bundle.pack(own_clone, bundle.Packing(out=tmp_path / "b.tar.gz", session=bundled.LEAD))


def test_a_record_of_this_clone_that_cannot_be_read_is_not_packed_over(own_clone, tmp_path):
    next(own_clone.glob("results/*/*-a-*/word_lm-r1*.json")).write_text("{")
    with pytest.raises(UserError, match=r"a record cannot be packed: .*cut short"):
        bundle.pack(own_clone, bundle.Packing(out=tmp_path / "b.tar.gz"))


def test_a_bundle_replaces_no_device_and_no_folder(clone, tmp_path):
    for out in (Path("/dev/null"), tmp_path):
        with pytest.raises(UserError, match="is no file that a bundle can replace"):
            bundle.pack(clone, bundle.Packing(out=out))
    assert Path("/dev/null").is_char_device()


def test_one_session_alone_is_packed_where_it_is_named(clone, tmp_path):
    path = bundle.pack(clone, bundle.Packing(out=tmp_path / "b.tar.gz", session=bundled.OTHER))
    found = opened(path, tmp_path / "b")
    assert found.manifest and found.manifest.sessions == (bundled.OTHER,)
    bundle.verify(path, None)


def test_a_buyer_s_prices_are_packed_and_shown_only_where_that_is_asked_for(own_clone, tmp_path, capsys):
    (own_clone / "purchase.toml").write_text(PURCHASE)
    path = bundle.pack(own_clone, bundle.Packing(out=tmp_path / "b.tar.gz"))
    assert "not in it: purchase.toml, and no price of yours" in capsys.readouterr().out
    found = opened(path, tmp_path / "b")
    assert "purchase.toml" not in found.names
    assert PRICE not in (found.folder / "page" / "report.md").read_text()
    path = bundle.pack(own_clone, bundle.Packing(out=tmp_path / "c.tar.gz", with_prices=True))
    assert "purchase.toml is in it, with your prices" in capsys.readouterr().out
    found = opened(path, tmp_path / "c")
    assert "purchase.toml" in found.names
    assert PRICE in (found.folder / "page" / "report.md").read_text()
    bundle.verify(path, None)


def test_bundles_of_two_sites_make_one_report_with_equal_work_side_by_side_and_their_hashes(
    clone, tmp_path, capsys
):
    paths = [
        bundle.pack(clone, bundle.Packing(out=tmp_path / f"{name}.tar.gz", session=name))
        for name in (bundled.LEAD, bundled.OTHER)
    ]
    empty = tmp_path / "empty"
    (empty / "results").mkdir(parents=True)
    report.report_on(empty, tmp_path / "out", report.ReportOptions(bundles=tuple(paths)))
    text = (tmp_path / "out" / "report.md").read_text()
    assert "Constructed Card A" in text and "Constructed Card B" in text
    page_one, said = text.partition("\n## ")[0], capsys.readouterr().out
    for path in paths:
        assert f"From {path.name}, SHA-256 `{sha256_of(path)}`" in page_one.replace("\\", "")
        assert f"SHA-256: {sha256_of(path)}" in said
    with report.merged(empty, paths) as (merged, leads):
        assert leads == (bundled.LEAD, bundled.OTHER)
        assert len(store.read_all(merged).sessions) == 2
        header, *trials = (tmp_path / "out" / "trials.csv").read_text().splitlines()
        assert header.startswith("path,session,plan,")
        assert len(trials) == len(store.read_all(merged).records)


def test_two_bundles_that_hold_one_record_with_other_content_are_refused(own_clone, good, tmp_path):
    path = next(own_clone.glob("results/*/*-a-*/word_lm-r1*.json"))
    path.write_text(path.read_text().replace('"wall_seconds": 60.0', '"wall_seconds": 61.0'))
    second = bundle.pack(own_clone, bundle.Packing(out=tmp_path / "second.tar.gz"))
    with pytest.raises(UserError, match="with other content"), report.merged(own_clone, [good, second]):
        pass


def test_a_quote_that_is_newer_than_the_newest_trial_dates_the_page(own_clone, tmp_path):
    (own_clone / "purchase.toml").write_text(PURCHASE.replace("2026-01-02", "2026-02-20"))
    path = bundle.pack(own_clone, bundle.Packing(out=tmp_path / "b.tar.gz", with_prices=True))
    found = opened(path, tmp_path / "b")
    assert found.manifest and f"{found.manifest.as_of:%Y-%m-%d}" == "2026-02-20"
    bundle.verify(path, None)


def test_a_damaged_bundle_is_in_no_report(good, tmp_path):
    path = tmp_path / "b.tar.gz"
    path.write_bytes(good.read_bytes()[:-40])
    with pytest.raises(GateError, match="is not as it was packed"), report.merged(tmp_path, [path]):
        pass


def test_a_pinned_environment_with_other_packages_than_its_lock_is_named(tmp_path):
    root = bundled.write(tmp_path, bundled.one_card(repeats=1))
    assert list(folder_problems(root)) == []
    (stored,) = store.read_all(root).records
    packages = {**stored.record.measurement.packages, "torch": "2.0.0"}
    other = build.changed(stored.record, measurement__packages=packages)
    (root / stored.path).write_text(store.dump(other))
    (problem,) = folder_problems(root)
    assert problem.startswith(f"{stored.path}: it says 'pinned', and torch is 2.0.0 where ")
    unpinned = build.changed(other, environment__pinned=False, environment__unpinned_because=("constructed",))
    (root / stored.path).write_text(store.dump(unpinned))
    assert list(folder_problems(root)) == []


def test_a_record_of_a_simulated_device_goes_into_no_bundle_and_through_no_gate(tmp_path):
    root = bundled.write(tmp_path, bundled.one_card(repeats=1))
    (stored,) = store.read_all(root).records
    record = build.changed(stored.record, measurement__device__simulated=True)
    (root / stored.path).write_text(store.dump(record))
    assert list(folder_problems(root)) == [
        f"{stored.path}: its device is simulated, so nothing in it was measured"
    ]


def of_another_gpudyno(work: Path) -> None:
    manifest = work / "bundle.json"
    said = json.loads(manifest.read_text())
    said["gpudyno"] |= {"version": "0.0.9", "revision": "ab" * 20}
    manifest.write_text(json.dumps(said))


def test_a_bundle_of_another_version_is_whole_where_its_page_is_the_one_that_is_made_again(
    good, tmp_path, capsys
):
    path = forged(good, tmp_path, of_another_gpudyno)
    assert opened(path, tmp_path / "b").problems == ()
    bundle.verify(path, None)
    assert "every byte, record and figure is as it was packed" in capsys.readouterr().out


def times_ten(work: Path) -> None:
    """A page with ten times the speed, of which no file of figures is left."""
    page = work / "page" / "report.md"
    rate = re.search(r"\b(\d,\d{3})\b", page.read_text())
    assert rate
    page.write_text(page.read_text().replace(rate[1], rate[1].replace(",", "") + "0"))
    (work / "analysis.json").unlink()


@pytest.mark.parametrize("layout", [1, 3, 4, 5])
def test_a_page_is_compared_whatever_the_bundle_says_of_its_layout_and_version(
    good, tmp_path, capsys, layout
):
    def older(work: Path) -> None:
        of_another_gpudyno(work)
        replaced("bundle.json", '"bundle": 4', f'"bundle": {layout}')(work)
        times_ten(work)

    with pytest.raises(GateError, match=f"verify it there: gpudyno 0.0.9, commit {'ab' * 20}"):
        bundle.verify(forged(good, tmp_path, older), None)
    said = capsys.readouterr().err
    assert "page/report.md: " in said and "analysis.json: is missing" in said
    assert ("says layout" in said) == (layout != 4)


def test_records_that_came_with_the_clone_are_packed_only_where_their_session_is_named(own_clone, tmp_path):
    for words in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "-m", "constructed")):
        git(own_clone, *words)
    out = tmp_path / "b.tar.gz"
    with pytest.raises(UserError, match="came with this clone"):
        bundle.pack(own_clone, bundle.Packing(out=out))
    assert not out.exists()
    assert bundle.pack(own_clone, bundle.Packing(out=out, session=bundled.LEAD)) == out


def test_another_machine_s_records_that_came_with_the_clone_are_not_packed_with_one_s_own(
    own_clone, tmp_path
):
    other = next(own_clone.glob(f"results/*/*{bundled.OTHER}"))
    for words in (("init", "--quiet"), ("add", str(other)), ("commit", "--quiet", "-m", "constructed")):
        git(own_clone, *words)
    path = bundle.pack(own_clone, bundle.Packing(out=tmp_path / "b.tar.gz"))
    manifest = opened(path, tmp_path / "opened").manifest
    assert manifest and manifest.sessions == (bundled.LEAD,)
