"""The study that docs/data.md shows, taken from there as it stands and judged as a stranger's would be."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from datetime import UTC, datetime
from itertools import islice, product

import pytest

from harness.record.published.claim_set import FOLDER
from report.analysis import AnalysisRequest, analyse, evidence_in
from report.page.parts.published import view
from report.page.values import systems_of
from tests.helpers import ROOT
from tests.helpers import records_builder as build
from tests.helpers.here import load_claims
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
    return [build.changed(each, measurement__versions=versions) for each in made]


@pytest.fixture
def root(tmp_path):
    example = re.search(r"^```toml\n(.*?)^```", (ROOT / "docs/data.md").read_text("utf-8"), re.S | re.M)
    assert example, "docs/data.md shows no claim file"
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


def test_the_example_is_judged_on_records_of_its_card_and_the_rest_is_not(root):
    build.write(root, [record for pair in PRINTED.items() for record in measured(*pair)])
    analysis = analyse(evidence_in(root), AnalysisRequest(NOW))
    assert {judged.claim.id: judged.verdict.state for judged in analysis.verdicts} == {
        "my-bench-resnet50-amp-gain": "holds",
        "my-bench-rtx-4090-resnet50-fp32-tf32": "holds",
        "my-bench-rtx-4090-resnet50-amp-fp16": "holds",
    }


CARDS = ("RTX 4090", "H200 SXM 141GB", "RTX 3090")
MODELS = (
    *("resnet50", "resnet101", "inception_v3", "efficientnet_b0"),
    *("timm/vit_base_patch16_224", "timm/convnext_tiny", "timm/mixnet_l"),
)
GENERATED = """
[defaults]
study = "generated-bench"
workload = "convnet"
protocol = "synthetic/1"
source = "generated for a test: nobody measured it"

[[tables]]
id = "generated-{{of.card}}-{{of.model}}-{{of.precision}}-{{of.gpus}}-{{of.data_mode}}-{{of.image_size}}"
kind = "absolute"
metric = "throughput"
unit = "images/s"
runs = 1
stack = "PyTorch 2.9, CUDA 12.8"
of = {{ batch_size = 64 }}
columns = ["of.card", "of.model", "of.precision", "of.gpus", "of.data_mode", "of.image_size", "value"]
rows = [
{rows}
]
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A clone with a table of 483 generated rows, and records of its first rows' card."""
    cells = product(CARDS, MODELS, ("fp32-tf32", "amp-fp16", "amp-bf16"), (1, 2, 4, 8), ("cached", "host"))
    odd = {5: "11031.109", 8: "1183"}
    rows = [
        [*cell, 224 if n % 3 else 288, odd.get(n, f"{100 + n * 1.37:.3f}")]
        for n, cell in enumerate(islice(cells, 483))
    ]
    root = tmp_path_factory.mktemp("large")
    (root / FOLDER).mkdir(parents=True)
    text = GENERATED.format(rows="".join(f"  {json.dumps(row)},\n" for row in rows))
    (root / FOLDER / "generated-bench.toml").write_text(text, encoding="utf-8")
    shutil.copy(ROOT / "results" / "cards.toml", root / "results")
    build.write(root, measured("amp-fp16", PRINTED["amp-fp16"]))
    return root


def test_each_of_483_rows_has_an_id_of_its_own_and_its_figure_as_printed(large):
    found = load_claims(large).claims
    assert len(found) == len({claim.id for claim in found}) == 483
    assert max(len(claim.id) for claim in found) <= 64
    assert (found[1].value, found[1].half_digit) == (101.37, 0.0005)
    assert found[5].value == 11031.109


def test_of_483_rows_one_is_judged_and_the_nearest_are_drawn_with_this_machine_s_records(large):
    analysis = analyse(evidence_in(large), AnalysisRequest(NOW))
    words = Counter(judged.verdict.state for judged in analysis.verdicts)
    assert words == {"holds": 1}
    found = view(analysis, systems_of(analysis))
    assert [row.state for row in found.rows] == ["holds"]
    (study,) = found.studies
    (drawn,) = study.pictures
    bars = [bar for group in drawn.picture.chart.groups for bar in group.rows]
    assert sum(bar.firm for bar in bars) == 1
    assert sum(not bar.firm for bar in bars) + drawn.figure.left_out == 322
    assert dict(drawn.figure.apart)["image_size"]


def test_the_example_stands_on_the_page_before_anything_was_measured(root):
    analysis = analyse(evidence_in(root), AnalysisRequest(NOW))
    found = view(analysis, systems_of(analysis))
    (study,) = found.studies
    assert found.alone and study.name == "My Bench 2026"
    (drawn,) = study.pictures
    bars = [bar for group in drawn.picture.chart.groups for bar in group.rows]
    assert len(bars) + drawn.figure.left_out == 5
    assert any(bar.label == "RTX 4090" and "1,18" in bar.text for bar in bars)
