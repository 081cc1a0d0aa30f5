"""The study that CONTRIBUTING shows, taken from there as it stands and judged as a stranger's would be."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime

import pytest

from harness.record.claims import FOLDER, load_claims
from report.analysis import Question, analyse, evidence_in
from report.claims.self_consistency.rules import inconsistencies
from report.page.build import look
from tests.helpers import ROOT
from tests.helpers import records_builder as build
from tests.helpers.records_devices import CONVNET, TIMED

NOW = datetime(2026, 2, 1, 12, 0, tzinfo=UTC)
CARD = "NVIDIA GeForce RTX 4090"
PRINTED = {"fp32-tf32": 611.0, "amp-fp16": 1183.0}


def measured(precision, rate):
    """Constructed runs of 64 images a step at that rate, on the card and stack of the example."""
    made = build.series_of(
        CONVNET,
        precision,
        64 / rate,
        on=build.machine(CARD, label="stranger"),
        card=CARD,
        repeats=5,
        spread=0.001,
        complete=False,
        first_order=10 * len(precision),
        batch_size=64,
        data="synthetic",
        limit=TIMED,
    )
    versions = {"python": "3.11.7", "torch": "2.9.0", "cuda": "12.8"}
    return [
        each.model_copy(update={"measurement": each.measurement.model_copy(update={"versions": versions})})
        for each in made
    ]


@pytest.fixture
def root(tmp_path):
    example = re.search(r"^```toml\n(.*?)^```", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.S | re.M)
    assert example, "CONTRIBUTING.md shows no claim file"
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / FOLDER / "my-bench.toml").write_text(example[1], encoding="utf-8")
    shutil.copy(ROOT / "results" / "cards.toml", tmp_path / "results")
    return tmp_path


def test_the_example_is_a_whole_file_and_each_of_its_figures_a_claim(root):
    found = {claim.id: claim for claim in load_claims(root).claims}
    assert list(found) == [
        "my-bench-resnet50-amp-gain",
        "my-bench-rtx-4090-resnet50-fp32-tf32",
        "my-bench-h200-sxm-141gb-resnet50-fp32-tf32",
        "my-bench-rtx-4090-resnet50-amp-fp16",
        "my-bench-h200-sxm-141gb-resnet50-amp-fp16",
        "my-bench-rtx-4090-efficientnet-b0-amp-fp16",
    ]
    h200 = found["my-bench-h200-sxm-141gb-resnet50-amp-fp16"]
    assert (h200.value, h200.half_digit, h200.of.batch_size) == (2651.5, 0.05, 64)
    assert h200.caveats == ("One run of each, so its spread is unknown.",)
    assert inconsistencies(tuple(found.values())) == {}


def test_the_example_is_judged_on_records_of_its_card_and_the_rest_says_what_keeps_it_away(root):
    build.write(root, [record for pair in PRINTED.items() for record in measured(*pair)])
    analysis = analyse(evidence_in(root), Question(NOW))
    verdicts = {judged.claim.id: judged.verdict for judged in analysis.verdicts}
    words = {name: verdict.word for name, verdict in verdicts.items()}
    assert words == {
        "my-bench-resnet50-amp-gain": "holds here",
        "my-bench-rtx-4090-resnet50-fp32-tf32": "reproduced",
        "my-bench-rtx-4090-resnet50-amp-fp16": "reproduced",
        "my-bench-h200-sxm-141gb-resnet50-fp32-tf32": "not comparable",
        "my-bench-h200-sxm-141gb-resnet50-amp-fp16": "not comparable",
        "my-bench-rtx-4090-efficientnet-b0-amp-fp16": "not comparable",
    }
    elsewhere = verdicts["my-bench-h200-sxm-141gb-resnet50-amp-fp16"]
    assert elsewhere.because == (f"card: {CARD} instead of H200 SXM 141GB",)


def test_the_example_stands_on_the_page_before_anything_was_measured(root):
    view = look(analyse(evidence_in(root), Question(NOW)))
    (study,) = view.claims
    assert study.heading == "Study my-bench"
    assert study.apart and len(study.apart.rows) == 6
    assert any("RTX 4090" in row[0] and row[1].startswith("1,183") for row in study.apart.rows)
