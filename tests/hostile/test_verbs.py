"""The verbs as a person calls them, each in a fresh process of a clone in which one thing is wrong."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import copied, without_settings
from tests.helpers.purchase_builder import FILE
from tests.hostile.judging import DOCUMENTED, LONG, MOST_SECONDS, attacked, drawn
from tests.hostile.strategies import MARK, damaged, json_files, texts, toml_files
from tests.hostile.test_files import SETTINGS
from tests.hostile.test_records import bundle, lay_out

pytestmark = LONG

PARTS = ("commands", "harness", "report", "tasks.py", "docker", "plans", "workloads", "results/claims")
CPU = ("--device", "cpu", "--engine", "venv")
X = "\N{WHITE SQUARE}"
"""In a line, a word that nobody means."""
LINES = (
    *(("plan", "--plan", "quick", *CPU), ("plan", "--plan", X, *CPU), ("plan", "--budget", X, *CPU)),
    *(("plan", "--claim", X, *CPU), ("plan", "--image", X, *CPU), ("claims",), ("claims", "--here", *CPU)),
    *(("compare", "cb7a72", "e09923"), ("compare", X, "e09923"), ("report",), ("report", "--question", X)),
    *(("compare", "cb7a72", "e09923", "--fail-below", X), ("bundle", "--verify", "offer.tar.gz")),
    *(("accept", "offer.tar.gz", "--records", X, *CPU), ("report", "--bundle", "offer.tar.gz")),
    *(("bundle", "--out", "new.tar.gz"), ("bundle", "--out", "new.tar.gz", "--session", X), ("jobs",)),
    *(("gate", "--mine"), ("gate", "--base", X)),
)
CHANGES = {
    **dict.fromkeys(("results/cards.toml", "results/claims/*.toml", "docker/images.toml"), toml_files),
    **dict.fromkeys(("plans/quick.toml", "gpudyno.toml", "purchase.toml"), toml_files),
    "results/2*/*/*.json": json_files,
    "offer.tar.gz": damaged,
}


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A clone with two sessions, whose modules are compiled once."""
    root = copied(tmp_path_factory.mktemp("template"), *PARTS, compiled=True)
    lay_out(root)
    (root / "gpudyno.toml").write_bytes(SETTINGS)
    (root / "purchase.toml").write_text(FILE)
    (root / "offer.tar.gz").write_bytes(bundle())
    subprocess.run([sys.executable, "-m", "compileall", "-q", *PARTS[:4]], cwd=root, check=True)
    return root


def records(root):
    return {path: path.read_bytes() for path in root.glob("results/2*/*/*")}


def called(root, line, given):
    environ = without_settings()
    for variable, name in (("HOME", "home"), ("GPUDYNO_STATE", "state"), ("GPUDYNO_CACHE", "cache")):
        (root.parent / name).mkdir()
        environ[variable] = str(root.parent / name)
    return subprocess.run(
        [sys.executable, "-m", "invoke", *line],
        cwd=root,
        env=environ,
        input=given,
        capture_output=True,
        timeout=MOST_SECONDS,
        check=False,
    )


@drawn(15, shrunk=False)
@given(line=st.sampled_from(LINES), word=texts, given=texts, data=st.data())
def test_a_verb_ends_with_a_documented_code_and_one_sentence_and_changes_no_record(
    template, line, word, given, data
):
    with attacked(seconds=2 * MOST_SECONDS) as folder:
        root, own_words = folder / "clone", X in line
        shutil.copytree(template, root)
        line = tuple(word.replace("\0", "") if each == X else each for each in line)
        if not own_words:
            pattern = data.draw(st.sampled_from(sorted(CHANGES)))
            path = data.draw(st.sampled_from(sorted(root.glob(pattern))))
            path.write_bytes(data.draw(CHANGES[pattern](path.read_bytes())))
        before = records(root)
        done = called(root, line, given.encode())
        said, code = done.stderr.decode(errors="replace"), done.returncode
        assert "Traceback" not in said, said[-400:]
        sentence = any(each.startswith("gpudyno: ") for each in said.splitlines())
        assert code == 0 or (code == 1 and own_words) or (code in DOCUMENTED and sentence), said[-400:]
        assert records(root) == before
        for page in (root / "report" / "out").rglob("*"):
            if page.suffix in (".html", ".md", ".svg"):
                assert f"<{MARK}" not in page.read_text(encoding="utf-8")
