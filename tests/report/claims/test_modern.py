"""The figures of today's work and of seeds' own programs: each can be judged. All records are constructed."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from commands.judging_plan import TargetDevice, can_answer, is_own_card, judging_trials, variants_of
from harness.plan import own_file, plan_file
from harness.plan.plan_file import PlanContext
from harness.record.published.claim_set import claim_sides
from report.claims.claimed_work import asked_key
from report.claims.judge import judge
from report.compare import cells as stats
from report.compare.cells import own_and_other_cells
from report.trials.key import PartialKey, key_of_asked
from tests.helpers import ROOT
from tests.helpers import records_builder as build
from tests.helpers.claims_builder import CARDS, SESSION
from tests.helpers.here import claims_here
from tests.helpers.trial_tables import trials_of

SOURCES = (
    "KellerJordan/cifar10-airbench@f1c599c",
    "karpathy/nanoGPT@3adf61e",
    "huggingface/pytorch-image-models@aa4b585",
    "stas00/ml-engineering@744d01e",
    "pytorch/torchtune@bd2a0fc",
    "odissei-benchmarks/torchtune-gpu-benchmark@3a62560",
    "pytorch/torchtitan@b5bcd76",
    "leolui2004/tensorcore@b98a4ac",
    "NVIDIA/apex@28bdc04",
)
CLAIMS = [
    claim
    for claim in claims_here().claims
    if claim.workload in ("program", "llm_step")
    and claim.study != "000-stand-in"
    and claim.source.startswith("github:")
]
PROGRAMS = {
    program.name: program
    for path in sorted((ROOT / "workloads" / "programs").glob("*.toml"))
    for program in [own_file.read_program(path.read_bytes(), path.name)]
}
DRIVERS_NAMES = {
    "A100": "NVIDIA A100-PCIE-40GB",
    "A100 SXM4": "NVIDIA A100-SXM4-80GB",
    "B200 SXM": "NVIDIA B200",
    "H100": "NVIDIA H100 80GB HBM3",
    "T4": "Tesla T4",
}
"""What a driver calls a board that a publication may have meant."""


def records_of(claim, side, order, seconds):
    """Three constructed runs of what the side names, on its card and stack."""
    card = DRIVERS_NAMES.get(side.card or "", f"NVIDIA {side.card or 'A100-SXM4-80GB'}")
    kind = {
        "workload": claim.workload,
        "protocol": claim.protocol,
        "model": side.model,
        "image_size": side.image_size,
        "sequence_length": side.sequence_length,
        "quality": "loss" if claim.metric == "best_loss" else "perplexity",
        "unit": claim.unit.removesuffix("s/s") if claim.unit.endswith("s/s") else "token",
        "steps_per_epoch": 1 if claim.metric == "protocol_seconds" else 100,
        "epochs": claim.epochs or 1,
        "valid_batches": 0,
    }
    on = build.machine(card, label="modern")
    driver = re.search(r"driver ([\d.]+)", claim.stack or "")
    gpus = tuple(gpu.model_copy(update={"driver": driver[1]}) for gpu in on.gpus) if driver else on.gpus
    found = build.series_of(
        kind,
        side.precision or "pure-bf16",
        seconds,
        on=on.model_copy(update={"gpus": gpus}),
        card=card,
        session=SESSION,
        first_order=order,
        spread=0.002,
        batch_size=side.batch_size or 1,
        gpus=side.gpus,
        options=side.options,
    )
    versions = {"python": "3.11.7", "torch": "2.13.0", "cuda": "13.0"}
    names = {"PyTorch": "torch", "CUDA": "cuda"}
    for name, version in re.findall(r"(PyTorch|CUDA) ([\d.]+)", claim.stack or ""):
        versions[names[name]] = version
    changes = {"measurement__versions": versions, "measurement__test_quality": claim.value}
    if claim.card_class:
        changes["measurement__device__capability"] = "8.0"
    return [build.changed(each, **changes) for each in found]


def judged(claim, times=1.0):
    """The claim's verdict where its figure was met, or `times` that."""
    seconds = claim.value if claim.unit == "s" else (claim.of.batch_size or 1) / claim.value
    if claim.kind == "ratio":
        other = claim.value if claim.metric == "step_seconds" else 1 / claim.value
        records = [*records_of(claim, claim.of, 0, 1.0), *records_of(claim, claim.over, 10, times * other)]
    else:
        records = records_of(claim, claim.of, 0, times * seconds)
    cells = stats.cells_of(trials_of(records))
    (found,) = judge([claim], *own_and_other_cells(cells, SESSION, ()), CARDS)
    return found


def test_the_figures_are_of_nine_sources():
    found = Counter(
        source for claim in CLAIMS for source in SOURCES if claim.source.startswith(f"github:{source}, ")
    )
    assert [found[source] for source in SOURCES] == [8, 3, 32, 4, 4, 18, 3, 5, 3]
    assert found.total() == len(CLAIMS)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_record_of_an_equal_key_judges_the_figure(claim):
    found = judged(claim)
    if claim.metric in ("step_seconds", "throughput"):
        assert found.verdict.state in ("holds", "open")
        assert found.measured == pytest.approx(claim.value, rel=0.01)
        assert judged(claim, times=2.0).verdict.state == "fails"


def test_a_figure_on_a_program_names_one_that_is_here_and_options_that_it_has():
    for claim in CLAIMS:
        if claim.workload == "program":
            program = PROGRAMS[claim.protocol.removesuffix("/1")]
            for side in claim_sides(claim):
                assert set(side.options) <= set(program.options), claim.id
                assert side.precision == "program", claim.id


def test_what_contradicts_itself_says_so_beside_each_of_its_figures():
    contradictory = [claim.study for claim in CLAIMS if any("Contradictory" in one for one in claim.caveats)]
    assert contradictory == ["torchtune"] * 4


@pytest.fixture(scope="module")
def trials():
    """What plan modern has on a card."""
    asked = plan_file.load_plan(ROOT, "modern")
    sources = dict.fromkeys(plan_file.plan_datasets(asked, "cuda"), "real")
    context = PlanContext("cuda", "cuda", None, sources, {})
    return [item.trial for item in plan_file.plan_trials(asked, context, 1)]


@pytest.mark.parametrize(
    ("card", "judged_there"),
    [
        ("NVIDIA A100-SXM4-80GB", {"airbench": 8, "nanogpt": 2, "odissei": 9, "timm": 10}),
        ("NVIDIA GeForce RTX 4090", {"airbench": 2, "nanogpt": 1, "timm": 10, "torchtune": 2}),
    ],
)
def test_plan_modern_holds_what_a_card_can_be_judged_by_on_whatever_stack(trials, card, judged_there):
    device, variants = TargetDevice("cuda", card, "8.0"), variants_of(trials)
    able = [claim for claim in CLAIMS if "modern" in claim.plans and can_answer(device, claim, CARDS)]
    of_found = [claim for claim in able if judging_trials(claim, variants)]
    assert Counter(claim.study for claim in of_found if is_own_card(claim, device, CARDS)) == judged_there


def test_plan_modern_holds_a_side_of_each_figure_on_one_card_that_it_has_a_program_for(trials):
    """What is left out is of two or more cards, or more of the same table."""
    keys = [PartialKey.of(key_of_asked(trial.asked)) for trial in trials]
    held = [c for c in CLAIMS if any(not asked_key(c, c.of).differences(key) for key in keys)]
    assert Counter(claim.study for claim in held) == {
        "airbench": 8,
        "nanogpt": 2,
        "timm": 32,
        "ml-engineering": 4,
        "torchtune": 4,
        "odissei": 18,
        "torchtitan": 3,
    }
