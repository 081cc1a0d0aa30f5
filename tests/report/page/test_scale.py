"""A report's time and memory grow in proportion to its records."""

from __future__ import annotations

import re
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path

import pytest

from report.analysis import AnalysisRequest, analyse, evidence_in
from report.page.whole_page import write
from tests.helpers import records_builder as build
from tests.helpers.many_records import write_records

FEW, MANY = 300, 3_000


def page_costs(root: Path) -> tuple[float, float]:
    """The seconds of a processor that a page takes, and the most bytes of memory."""
    begun = time.process_time()
    write(analyse(evidence_in(root), AnalysisRequest(build.STARTED + timedelta(days=30))), root / "page")
    (peak,) = re.findall(r"^VmHWM:\s*(\d+) kB$", Path("/proc/self/status").read_text(), re.M)
    return time.process_time() - begun, 1024 * float(peak)


@pytest.mark.whole
def test_ten_times_the_records_take_twelve_times_the_time_and_50_kb_each_at_most(tmp_path):
    costs = []
    for records in (FEW, MANY):
        write_records(tmp_path / str(records), records)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
            costs.append(fresh.submit(page_costs, tmp_path / str(records)).result())
    (few_seconds, few_bytes), (many_seconds, many_bytes) = costs
    assert many_seconds < 12 * few_seconds
    assert many_bytes - few_bytes < 50_000 * (MANY - FEW)
