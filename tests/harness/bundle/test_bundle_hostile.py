"""Bundles as an enemy would write them: every one is refused by name, and none is a crash."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import offer as offers
from commands import report
from harness.bundle import archive, bundle
from harness.errors import GpudynoError, UserError
from tests.helpers import bundled
from tests.helpers import forged_bundles as bundles
from tests.helpers import records_builder as build
from tests.helpers.cases import published

TOKENS = (
    b"",
    b"\0",
    b"\xff\xfe",
    b"NaN",
    b"1e999",
    b"-1e999",
    b"9" * 5000,
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'"\\ud800"',
    b"\n\n= [[",
    b"<script>alert(1)</script>",
    "\u202e\u2067".encode(),
    b"2099-12-31T23:59:59Z",
    b"0000-00-00",
)


@pytest.fixture(scope="module")
def offer(tmp_path_factory) -> Path:
    """A bundle of two cards' sessions with claims and a buyer's file."""
    folder = tmp_path_factory.mktemp("offer")
    other = bundled.one_card(bundled.OTHER, digits="b", seconds=0.009, card="Constructed Card B")
    clone = bundled.write(folder / "clone", [*bundled.one_card(), *other])
    published(clone, "s004")
    (clone / "purchase.toml").write_text(bundles.PURCHASE)
    return bundles.packed(clone, folder, with_prices=True)


def test_two_bundles_that_hold_one_session_under_two_names_are_refused(tmp_path):
    paths = []
    for site in ("one", "two"):
        on = build.machine("Constructed Card A", label=f"card-{site}", digits="a")
        records = [one.model_copy(update={"machine": on}) for one in bundled.one_card()]
        root = bundled.write(tmp_path / site, records)
        paths.append(offers.pack(root, offers.Packing(out=tmp_path / f"{site}.tar.gz")))
    with (
        pytest.raises(UserError, match=f"session '{bundled.LEAD}' is in '.*' already"),
        report.merged(tmp_path / "one", paths),
    ):
        pass


def test_a_bundle_whose_list_of_sessions_is_not_what_it_holds_is_named(offer, tmp_path, capsys):
    change = bundles.replaced("bundle.json", f'"{bundled.OTHER}",', '"20990101-ffffff",')
    said = bundles.differs(bundles.forged(offer, tmp_path, change), capsys)
    assert "bundle.json: session 20990101-ffffff is not in it" in said
    assert f"bundle.json: does not name session {bundled.OTHER}" in said


def test_what_a_hostile_bundle_says_reaches_the_terminal_as_text(offer, tmp_path, capsys):
    change = bundles.replaced("results/*/*-a-*/session.json", '"label": "', '"label": "\\u001b[2J\\u202e')
    assert not {"\x1b", "\u202e"} & set(bundles.differs(bundles.forged(offer, tmp_path, change), capsys))


@settings(max_examples=20)
@given(st.data())
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_whatever_stands_in_a_file_of_a_bundle_is_a_finding_and_no_crash(offer, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("hostile")
    source = folder / "source"
    source.mkdir()
    archive.unpack(offer, source)
    read = [name for name in bundle.names_in(source) if not name.startswith(("docker/", "plans/"))]
    name = data.draw(st.sampled_from(read))
    content = (source / name).read_bytes()
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 40)))
    changed = content[:start] + data.draw(st.sampled_from(TOKENS)) + content[end:]

    def change(work: Path) -> None:
        (work / name).write_bytes(changed)

    path = bundles.forged(offer, folder, change)
    try:
        offers.verify(path, None)
    except GpudynoError as error:
        assert str(error)
