"""Bundles of constructed sessions: packed, damaged, forged, merged. No figure here was measured."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import offer, report
from harness.bundle import archive, bundle
from harness.bundle.ro_crate import FILE as CRATE
from harness.bundle.validate import folder_problems
from harness.errors import GateError, UserError
from harness.record import Record, store
from tests.helpers import bundled
from tests.helpers import records_builder as build

PURCHASE = """
currency = "EUR"

[[quote]]
card = "Constructed Card A"
price_per_hour = 1.5
currency = "EUR"
date = 2026-01-02
source = "constructed for a test"
"""
NO_RANK = "so no price can be set against it"
"""What the page says of prices where nothing may be ranked."""


def failed(session: str = bundled.LEAD) -> Record:
    on = build.machine("Constructed Card A", label="card-a", digits="a")
    asked = build.trial(build.CIFAR, "fp32-ieee", 1, batch_size=256, lock_sha256=bundled.lock_sha256())
    within = build.environment(
        lock_sha256=bundled.lock_sha256(), passed_variables={"CUDA_LAUNCH_BLOCKING": "1"}
    )
    return build.record(
        asked, None, on=on, within=within, session=session, order=50, failure=build.out_of_memory()
    )


@pytest.fixture(scope="session")
def clone(tmp_path_factory) -> Path:
    other = bundled.one_card(bundled.OTHER, digits="b", seconds=0.009, card="Constructed Card B")
    return bundled.write(tmp_path_factory.mktemp("clone"), [*bundled.one_card(), *other, failed()])


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path / "state"))


@pytest.fixture(scope="session")
def good(clone, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("good")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUDYNO_STATE", str(folder / "state"))
        return offer.pack(clone, offer.Packing(out=folder / "good.tar.gz"))


def opened(path: Path, folder: Path) -> bundle.Opened:
    folder.mkdir()
    return bundle.open_bundle(path, folder)


def differs(path: Path, capsys, signers: Path | None = None) -> str:
    """What `verify` says of a bundle that is not as it was packed."""
    with pytest.raises(GateError, match="not as they were packed"):
        offer.verify(path, signers)
    return capsys.readouterr().err


def forged(good: Path, folder: Path, change: Callable[[Path], object], *, sums: bool = True) -> Path:
    """The bundle with something changed and, as a forger would, with fitting checksums."""
    work = folder / "forged"
    work.mkdir(parents=True)
    archive.unpack(good, work)
    change(work)
    out = folder / "forged.tar.gz"
    if sums:
        names = bundle.names_in(work)
        lines = [f"{bundle.sha256_of(work / name)}  {name}\n" for name in names]
        (work / bundle.SUMS).write_text("".join(lines))
    first = [name for name in (bundle.SUMS, bundle.SIGNATURE) if (work / name).is_file()]
    with out.open("wb") as file:
        archive.pack([(name, work / name) for name in (*first, *bundle.names_in(work))], file)
    return out


def replaced(name: str, old: str, new: str) -> Callable[[Path], object]:
    def change(work: Path) -> None:
        (path,) = work.glob(name)
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return change


def test_a_bundle_holds_records_locks_plans_page_and_what_describes_them(good, tmp_path):
    found = opened(good, tmp_path / "b")
    assert found.problems == ()
    assert {"bundle.json", CRATE, bundle.SUMS, "page/index.html", "page/report.md"} <= set(found.names)
    assert {"docker/cuda/lock.txt", "plans/constructed.toml", "results/cards.toml"} <= set(found.names)
    assert found.manifest and found.manifest.session == bundled.LEAD
    assert found.manifest.sessions == (bundled.OTHER, bundled.LEAD)
    assert len([name for name in found.names if name.startswith("results/2026")]) == 9


def test_packing_twice_gives_the_same_bytes(clone, good, tmp_path):
    again = offer.pack(clone, offer.Packing(out=tmp_path / "again.tar.gz"))
    assert again.read_bytes() == good.read_bytes()


def test_a_bundle_that_still_has_a_seal_in_its_gzip_header_opens_and_verifies(good, tmp_path):
    """As bundles were made at first: an extra field with the SHA-256 of all that follows it."""
    body = gzip.compress(gzip.decompress(good.read_bytes()), mtime=0)[10:]
    head = b"\x1f\x8b\x08\x04\0\0\0\0\x02\xff" + struct.pack("<H2sH", 36, b"GD", 32)
    path = tmp_path / "sealed.tar.gz"
    path.write_bytes(head + hashlib.sha256(body).digest() + body)
    assert opened(path, tmp_path / "b").problems == ()
    offer.verify(path, None)


def test_a_good_bundle_verifies_without_this_machine_s_results_and_counts_its_figures(good, capsys):
    offer.verify(good, None)
    said = capsys.readouterr()
    assert "every byte, record and figure is as it was packed" in said.out
    assert "figures made again from raw samples" in said.out
    assert said.err == ""


def test_the_crate_is_a_process_run_crate_with_an_action_for_each_trial_and_no_person(good, tmp_path):
    opened(good, tmp_path / "b")
    text = (tmp_path / "b" / CRATE).read_text()
    graph = {entity["@id"]: entity for entity in json.loads(text)["@graph"]}
    root = graph["./"]
    assert {"@id": "https://w3id.org/ro/wfrun/process/0.5"} in root["conformsTo"]
    actions = [entity for entity in graph.values() if entity["@type"] == "CreateAction"]
    assert len(actions) == 7 == len(root["mentions"])
    bad = [one for one in actions if one["actionStatus"]["@id"].endswith("/FailedActionStatus")]
    assert len(bad) == 1 and "out-of-memory" in bad[0]["error"]
    image = graph[actions[0]["containerImage"]["@id"]]
    assert (image["@type"], image["sha256"]) == ("ContainerImage", "1" * 64)
    assert graph[bad[0]["environment"][0]["@id"]]["value"] == "1"
    assert not {"Person", "Organization"} & {entity["@type"] for entity in graph.values()}
    assert "agent" not in text and "author" not in text


def test_everything_that_the_crate_refers_to_is_in_it(good, tmp_path):
    opened(good, tmp_path / "b")
    graph = json.loads((tmp_path / "b" / CRATE).read_text())["@graph"]
    known = {entity["@id"] for entity in graph}

    def refers(value):
        if isinstance(value, dict):
            return {value["@id"]} if set(value) == {"@id"} else set().union(*map(refers, value.values()))
        return set().union(*map(refers, value)) if isinstance(value, list) else set()

    outside = {one for one in refers(graph) - known if not one.startswith(("http://schema.org/", "https://"))}
    assert outside == set()
    for part in (entity for entity in graph if entity["@type"] == "File"):
        assert (tmp_path / "b" / part["@id"]).stat().st_size == int(part["contentSize"])


def test_a_changed_file_a_missing_one_and_an_added_one_are_each_named(good, tmp_path, capsys):
    def change(work: Path) -> None:
        (work / "page" / "report.md").write_text("another page")
        (work / "results" / "cards.toml").unlink()
        (work / "results" / "more.json").write_text("{}")

    said = differs(forged(good, tmp_path, change, sums=False), capsys)
    assert "page/report.md: its content was changed" in said
    assert "results/cards.toml: is missing" in said
    assert "results/more.json: was added" in said


@settings(max_examples=25)
@given(st.data())
def test_a_changed_byte_in_any_file_is_found_and_the_file_is_named(good, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("flip")
    source = folder / "source"
    source.mkdir()
    archive.unpack(good, source)
    name = data.draw(st.sampled_from(bundle.names_in(source)))
    content = bytearray((source / name).read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))

    def change(work: Path) -> None:
        (work / name).write_bytes(content)

    path = forged(good, folder, change, sums=False)
    assert f"{name}: its content was changed" in opened(path, folder / "b").problems


@settings(max_examples=25)
@given(st.data())
def test_a_changed_byte_of_the_file_on_disk_is_found_or_changes_nothing_that_is_read(
    good, tmp_path_factory, data
):
    folder = tmp_path_factory.mktemp("bytes")
    content = bytearray(good.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path = folder / "changed.tar.gz"
    path.write_bytes(content)
    opened(good, folder / "good")
    try:
        sums, of_good = folder / "b" / bundle.SUMS, folder / "good" / bundle.SUMS
        assert opened(path, folder / "b").problems or sums.read_bytes() == of_good.read_bytes()
    except UserError as error:
        assert "archive" in str(error)


@pytest.mark.parametrize("name", ["page/index.html", "page/report.md"])
def test_a_retouched_figure_of_the_page_is_found_with_what_the_records_give(good, tmp_path, capsys, name):
    opened(good, tmp_path / "b")
    text = (tmp_path / "b" / name).read_text()
    shown = next(figure for figure in ("1,670", "2,227") if figure in text)
    said = differs(forged(good, tmp_path, replaced(name, shown, "9,999")), capsys)
    assert said.count("DIFFERS") == 1
    assert f"{name}:" in said and "9,999" in said and shown in said


def test_a_chart_that_is_described_otherwise_is_found(good, tmp_path, capsys):
    chart = next(name for name in opened(good, tmp_path / "b").names if name.endswith("-seconds.svg"))
    said = differs(forged(good, tmp_path, replaced(chart, "3 runs", "9 runs")), capsys)
    assert f"{chart}: under 'Seconds' it says" in said


def test_a_forged_summary_is_packed_by_no_one_and_found_though_checksums_fit(clone, good, tmp_path, capsys):
    other = tmp_path / "clone"
    shutil.copytree(clone, other)
    path = next(other.glob("results/*/*-a-*/word_lm-r1*.json"))
    raw = json.loads(path.read_text())
    raw["summary"]["throughput"] *= 1.1
    path.write_text(json.dumps(raw))
    named = f"{path.relative_to(other)}: its raw samples do not give its summary's 'throughput'"
    with pytest.raises(UserError, match=re.escape(named)):
        offer.pack(other, offer.Packing(out=tmp_path / "forged.tar.gz"))

    def change(work: Path) -> None:
        (work / path.relative_to(other)).write_text(json.dumps(raw))

    assert named in differs(forged(good, tmp_path, change), capsys)


def test_samples_that_were_made_faster_change_the_page(clone, good, tmp_path, capsys):
    path = next(clone.glob("results/*/*-a-*/word_lm-r1*.json"))

    def change(work: Path) -> None:
        name = path.relative_to(clone)
        raw = json.loads((work / name).read_text())
        raw["measurement"]["window"]["seconds"] *= 0.9
        raw["summary"] = None
        (work / name).write_text(json.dumps(raw))

    assert "page/index.html" in differs(forged(good, tmp_path, change), capsys)


def test_a_lock_that_is_not_its_records_is_named(good, tmp_path, capsys):
    change = replaced("docker/cuda/lock.txt", "==", "==9")
    assert "docker/cuda/lock.txt: is not the lock" in differs(forged(good, tmp_path, change), capsys)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda work: (work / "ro-crate-metadata.json").write_text("{}"), "json: describes something else"),
        (
            lambda work: (work / "CERTIFICATE.html").write_text("gold"),
            "CERTIFICATE.html: is no file of a bundle",
        ),
        (
            lambda work: (work / "results" / "GOLD.html").write_text("gold"),
            "GOLD.html: is no file of a bundle",
        ),
        (replaced("plans/constructed.toml", "repeats = 3", "repeats = 9"), "is not the plan that session"),
        (lambda work: (work / "plans" / "constructed.toml").unlink(), "is missing, and nothing says why"),
    ],
)
def test_what_was_resealed_with_something_else_in_it_is_named(good, tmp_path, capsys, change, said):
    assert said in differs(forged(good, tmp_path, change), capsys)


def test_locks_that_are_left_out_without_a_word_are_named(good, tmp_path, capsys):
    def change(work: Path) -> None:
        manifest = json.loads((work / bundle.MANIFEST).read_text())
        (work / bundle.MANIFEST).write_text(json.dumps(manifest | {"locks": {}}))

    said = differs(forged(good, tmp_path, change), capsys)
    assert f"does not say where the lock {bundled.lock_sha256()[:12]} of its records is" in said


def test_a_session_whose_label_names_another_folder_packs_nothing_in_silence(clone, tmp_path):
    other = tmp_path / "clone"
    shutil.copytree(clone, other)
    path = next(other.glob("results/*/*-a-*/session.json"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"label": "elsewhere"}))
    with pytest.raises(UserError, match="has no record in the folder that its label names"):
        offer.pack(other, offer.Packing(out=tmp_path / "b.tar.gz", session=bundled.LEAD))


def test_a_record_from_elsewhere_is_refused_as_the_gate_would(good, tmp_path, capsys):
    def change(work: Path) -> None:
        path = next(work.glob("results/*/*-a-*/word_lm-r1*.json"))
        path.rename(path.with_name("best.json"))

    assert "best.json: its content belongs into" in differs(forged(good, tmp_path, change), capsys)


def test_a_manifest_with_an_unknown_key_is_a_finding_and_no_crash(good, tmp_path, capsys):
    change = replaced("bundle.json", '"bundle": 2', '"bundle": 1, "more": 2')
    assert "bundle.json: 'more': unknown key" in differs(forged(good, tmp_path, change), capsys)


def test_a_record_of_this_clone_that_cannot_be_read_is_not_packed_over(clone, tmp_path):
    other = tmp_path / "clone"
    shutil.copytree(clone, other)
    next(other.glob("results/*/*-a-*/word_lm-r1*.json")).write_text("{")
    with pytest.raises(UserError, match=r"a record cannot be packed: .*cut short"):
        offer.pack(other, offer.Packing(out=tmp_path / "b.tar.gz"))


def test_a_bundle_replaces_no_device_and_no_folder(clone, tmp_path):
    for out in (Path("/dev/null"), tmp_path):
        with pytest.raises(UserError, match="is no file that a bundle can replace"):
            offer.pack(clone, offer.Packing(out=out))
    assert Path("/dev/null").is_char_device()


def test_one_session_alone_is_packed_where_it_is_named(clone, tmp_path):
    path = offer.pack(clone, offer.Packing(out=tmp_path / "b.tar.gz", session=bundled.OTHER))
    found = opened(path, tmp_path / "b")
    assert found.manifest and found.manifest.sessions == (bundled.OTHER,)
    offer.verify(path, None)


def test_a_buyer_s_prices_are_packed_and_shown_only_where_that_is_asked_for(clone, tmp_path, capsys):
    other = tmp_path / "clone"
    shutil.copytree(clone, other)
    (other / "purchase.toml").write_text(PURCHASE)
    path = offer.pack(other, offer.Packing(out=tmp_path / "b.tar.gz"))
    assert "not in it: purchase.toml, and no price of yours" in capsys.readouterr().out
    found = opened(path, tmp_path / "b")
    assert "purchase.toml" not in found.names
    assert NO_RANK not in (found.folder / "page" / "report.md").read_text()
    path = offer.pack(other, offer.Packing(out=tmp_path / "c.tar.gz", with_prices=True))
    assert "purchase.toml is in it, with your prices" in capsys.readouterr().out
    found = opened(path, tmp_path / "c")
    assert "purchase.toml" in found.names
    assert NO_RANK in (found.folder / "page" / "report.md").read_text()
    offer.verify(path, None)


@pytest.fixture
def key(tmp_path) -> Path:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("there is no ssh-keygen")
    path = tmp_path / "key"
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "constructed", "-f", str(path)]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    return path


def test_a_signed_bundle_says_which_key_signed_and_whose_it_is_where_that_is_known(
    clone, tmp_path, capsys, key
):
    path = offer.pack(clone, offer.Packing(out=tmp_path / "b.tar.gz", key=key))
    offer.verify(path, None)
    said = capsys.readouterr().out
    assert "signature: good, ED25519 key SHA256:" in said and "is not known" in said
    public = key.with_suffix(".pub").read_text().split()
    signers = tmp_path / "signers"
    signers.write_text(f"a-lab {public[0]} {public[1]}\n")
    offer.verify(path, signers)
    assert "of a-lab" in capsys.readouterr().out
    signers.write_text("")
    assert "is of none of the signers" in differs(path, capsys, signers)


def test_a_signature_over_other_sums_is_no_good_one(clone, tmp_path, capsys, key):
    path = offer.pack(clone, offer.Packing(out=tmp_path / "b.tar.gz", key=key))
    change = replaced("page/report.md", "gpudyno report", "gpudyno Report")
    assert "SHA256SUMS.sig: 'SHA256SUMS.sig' is no good signature" in differs(
        forged(path, tmp_path, change), capsys
    )


def test_an_unsigned_bundle_is_refused_where_a_signer_is_asked_for(good, tmp_path, capsys):
    signers = tmp_path / "signers"
    signers.write_text("")
    assert "there is no signature" in differs(good, capsys, signers)


def test_bundles_of_two_sites_make_one_report_with_equal_work_side_by_side(clone, tmp_path):
    paths = [
        offer.pack(clone, offer.Packing(out=tmp_path / f"{name}.tar.gz", session=name))
        for name in (bundled.LEAD, bundled.OTHER)
    ]
    empty = tmp_path / "empty"
    (empty / "results").mkdir(parents=True)
    report.report_on(empty, tmp_path / "out", paths, baseline=None, session="", csv=True)
    text = (tmp_path / "out" / "report.md").read_text()
    assert "Constructed Card A" in text and "Constructed Card B" in text
    with report.merged(empty, paths) as (merged, lead):
        assert lead == bundled.LEAD
        assert len(store.read_all(merged).sessions) == 2
        header, *trials = (tmp_path / "out" / "trials.csv").read_text().splitlines()
        assert header.startswith("path,session,plan,")
        assert len(trials) == len(store.read_all(merged).records)


def test_two_bundles_that_hold_one_record_with_other_content_are_refused(clone, good, tmp_path):
    other = tmp_path / "clone"
    shutil.copytree(clone, other)
    path = next(other.glob("results/*/*-a-*/word_lm-r1*.json"))
    path.write_text(path.read_text().replace('"wall_seconds": 60.0', '"wall_seconds": 61.0'))
    second = offer.pack(other, offer.Packing(out=tmp_path / "second.tar.gz"))
    with pytest.raises(UserError, match="with other content"), report.merged(other, [good, second]):
        pass


def test_a_quote_that_is_newer_than_the_newest_trial_dates_the_page(clone, tmp_path):
    other = tmp_path / "clone"
    shutil.copytree(clone, other)
    (other / "purchase.toml").write_text(PURCHASE.replace("2026-01-02", "2026-02-20"))
    path = offer.pack(other, offer.Packing(out=tmp_path / "b.tar.gz", with_prices=True))
    found = opened(path, tmp_path / "b")
    assert found.manifest and f"{found.manifest.as_of:%Y-%m-%d}" == "2026-02-20"
    assert "dated after this page" not in (tmp_path / "b" / "page" / "report.md").read_text()
    offer.verify(path, None)


def test_a_damaged_bundle_is_in_no_report(good, tmp_path):
    path = tmp_path / "b.tar.gz"
    path.write_bytes(good.read_bytes()[:-40])
    with pytest.raises(GateError, match="is not as it was packed"), report.merged(tmp_path, [path]):
        pass


def test_a_pinned_environment_with_other_packages_than_its_lock_is_named(tmp_path):
    root = bundled.write(tmp_path, bundled.one_card(repeats=1))
    assert list(folder_problems(root)) == []
    (stored,) = store.read_all(root).records
    measured = stored.record.measurement
    packages = {**measured.packages, "torch": "2.0.0"}
    other = measured.model_copy(update={"packages": packages})
    (root / stored.path).write_text(store.dump(stored.record.model_copy(update={"measurement": other})))
    (problem,) = folder_problems(root)
    assert problem.startswith(f"{stored.path}: it says 'pinned', and torch is 2.0.0 where ")
    unpinned = stored.record.environment.model_copy(
        update={"pinned": False, "unpinned_because": ("constructed",)}
    )
    record = stored.record.model_copy(update={"measurement": other, "environment": unpinned})
    (root / stored.path).write_text(store.dump(record))
    assert list(folder_problems(root)) == []
