"""What docs/support.md says of cards, engines and images is what records, pins and tests say."""

from __future__ import annotations

import os
import re

import pytest

from harness.record.store import read_all
from tests.helpers import ROOT
from tests.helpers.support import PAGE, Cell, Replay, page, replays

WRITTEN = ROOT / PAGE


def test_the_page_is_made_of_the_pins_the_records_and_the_tests():
    """Whoever adds the first record of a card need not write the page: it is taken in the next time."""
    records = read_all(ROOT).records
    if os.environ.get("GPUDYNO_ACCEPT") == "1":
        WRITTEN.write_text(page(ROOT, records), encoding="utf-8")
    text = WRITTEN.read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(\.\./(results/[^)]+)\)", text))
    known = [stored for stored in records if stored.path.rpartition("/")[0] in linked]
    assert linked and page(ROOT, known) == text, "GPUDYNO_ACCEPT=1 writes it anew"


def test_a_replay_is_read_from_the_mark_of_its_test_and_is_gone_with_it(tmp_path):
    mark = '@pytest.mark.replays(family="AMD CDNA", engine="docker", image="rocm")\n'
    (tmp_path / "test_one.py").write_text(f"{mark}def test_it():\n    pass\n")
    assert replays(tmp_path) == (Replay(Cell("AMD CDNA", "docker", "rocm"), "test_it"),)
    (tmp_path / "test_one.py").write_text("")
    assert replays(tmp_path) == ()


@pytest.mark.parametrize("engine", ["docker, rootless", "slurm"])
def test_a_mark_of_a_cell_that_cannot_be_or_is_none_is_refused(tmp_path, engine):
    (tmp_path / "docker").symlink_to(ROOT / "docker")
    (tmp_path / "tests").mkdir()
    mark = f'@pytest.mark.replays(family="AMD CDNA", engine="{engine}", image="rocm")\n'
    (tmp_path / "tests" / "test_one.py").write_text(f"{mark}def test_it():\n    pass\n")
    with pytest.raises(KeyError, match="no such cell"):
        page(tmp_path, ())
