"""The end of a failed trial's log: on one's own page, and in nothing that leaves the machine."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from commands import bundle
from commands.report import LOG_LINES, ReportOptions, write_report
from harness.engine.local import LOG
from harness.record import store
from report.page import pdf
from tests.harness.bundle.conftest import clone, failed, state  # noqa: F401
from tests.helpers import bundled
from tests.helpers.checks import require

SECRET = "/srv/maren/train.py"


@pytest.fixture
def logged(clone: Path, tmp_path: Path) -> Path:  # noqa: F811
    """The clone with the log of its failed trial."""
    root, record = tmp_path / "clone", failed()
    shutil.copytree(clone, root)
    work = store.work_folder(root, bundled.LEAD, record.trial.id, record.attempt)
    work.mkdir(parents=True)
    lines = [f"line {number}" for number in range(40)] + [f"<b> {SECRET}: out of memory \x1b[31m"]
    (work / LOG).write_text("\n".join(lines))
    return root


def test_one_s_own_html_shows_a_few_lines_and_neither_markdown_nor_a_chart_does(logged, tmp_path):
    _, written = write_report(logged, tmp_path / "out", ReportOptions())
    html = written.html.read_text()
    assert f"&lt;b&gt; {SECRET}: out of memory" in html
    assert "\x1b" not in html
    assert f"line {40 - LOG_LINES + 1}\n" in html and f"line {40 - LOG_LINES}\n" not in html
    others = [path for path in (tmp_path / "out").rglob("*") if path.is_file() and path != written.html]
    assert {path.suffix for path in others} == {".md", ".svg", ".png", ".csv"}
    assert all(SECRET.encode() not in path.read_bytes() for path in others)


def test_a_page_whose_log_is_gone_is_the_same_without_it(logged, tmp_path):
    shutil.rmtree(store.clone_state_folder(logged) / "work")
    _, written = write_report(logged, tmp_path / "out", ReportOptions())
    assert 'class="log"' not in written.html.read_text()


def test_a_bundle_holds_no_log_and_a_page_of_bundles_shows_none(logged, tmp_path):
    path = bundle.pack(logged, bundle.Packing(out=tmp_path / "bundle.tar.gz"))
    with tarfile.open(path) as tar:
        files = [tar.extractfile(member) for member in tar.getmembers() if member.isfile()]
        assert files and all(file and SECRET.encode() not in file.read() for file in files)
    _, written = write_report(logged, tmp_path / "out", ReportOptions(bundle=(path,)))
    assert SECRET not in written.html.read_text()


def test_a_log_is_not_printed(logged, tmp_path):
    require("browser", any(map(shutil.which, pdf.BROWSERS)), "no Chromium is installed")
    require("browser", shutil.which("pdftotext") is not None, "no pdftotext is installed")
    _, written = write_report(logged, tmp_path / "out", ReportOptions())
    target = pdf.write(written.html, tmp_path / "page.pdf", root=True)
    said = subprocess.run(["pdftotext", str(target), "-"], capture_output=True, text=True, check=True).stdout
    assert "What ran" in said and SECRET not in said
