"""A table of published figures becomes claims and a plan, whatever its columns are called."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from commands.own_study import write_study
from harness.errors import UserError
from harness.plan.plan_file import load_plan
from report.claims.answers import Answer
from report.page import render
from tests.helpers import ROOT
from tests.helpers.here import load_claims

TABLE = """\
GPU;Network;Batch;AMP?;img/s
RTX 4090;ResNet-50;256;amp;1183.5
RTX4090;resnet50;256;fp32;611
A100-SXM4-80GB;ViT-B/16;128;amp;1,402
A100-SXM4-80GB;GPT-2;8;bf16;152000
Xeon Platinum 8480;resnet50;64;fp32;35.20
"""
SETTLED = ("amp=amp-fp16", "bf16=amp-bf16")
URL = "https://example.org/figures"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("results/cards.toml", "workloads/models.txt", "workloads/parts/networks/decoder.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    for folder in ("results/claims", "plans"):
        (tmp_path / folder).mkdir()
    return tmp_path


def table(root: Path, text: str = TABLE) -> Path:
    (root / "My Figures.csv").write_text(text)
    return root / "My Figures.csv"


def test_five_figures_become_claims_that_their_own_plan_judges(root):
    write_study(root, table(root), URL, SETTLED)
    claims, plan = load_claims(root).claims, load_plan(root, "my-figures")
    said = [(c.of.card, c.of.model, c.of.precision, c.of.batch_size, c.value, c.half_digit) for c in claims]
    assert said == [
        ("RTX 4090", "resnet50", "amp-fp16", 256, 1183.5, 0.05),
        ("RTX 4090", "resnet50", "fp32-default", 256, 611, 0.5),
        ("A100 SXM4 80GB", "vit_b_16", "amp-fp16", 128, 1402, 0.5),
        ("A100 SXM4 80GB", "gpt2-124m", "amp-bf16", 8, 152000, 0.5),
        ("Xeon Platinum 8480", "resnet50", "fp32-default", 64, 35.2, 0.005),
    ]
    assert {(claim.source, *claim.plans) for claim in claims} == {(URL, "my-figures")}
    works = {(measure.model, measure.precision, measure.batch_size) for measure in plan.measure}
    assert works == {(of.model, of.precision, of.batch_size) for of in (claim.of for claim in claims)}


@pytest.mark.parametrize(
    ("head", "metric", "value", "half_digit"),
    [
        ("ms/step", "step_seconds", 0.0125, 5e-5),
        ("min/epoch", "epoch_seconds", 750, 3),
        ("Epoch time (min)", "epoch_seconds", 750, 3),
        ("s/epoch", "epoch_seconds", 12.5, 0.05),
        ("Training time (min)", "protocol_seconds", 750, 3),
        ("Training time (hours)", "protocol_seconds", 45000, 180),
        ("Top-1 accuracy", "accuracy", 0.125, 0.0005),
    ],
)
def test_times_and_accuracies_are_of_a_training_that_is_here(root, head, metric, value, half_digit):
    text = f"Card,Model,Precision,Batch,Epochs,{head}\nRTX 4090,resnet50,fp32,64,30,12.5\n"
    settings = () if metric == "step_seconds" else ("workload=cifar_fastai",)
    write_study(root, table(root, text), URL, settings)
    (claim,), (measure,) = load_claims(root).claims, load_plan(root, "my-figures").measure
    assert (claim.metric, claim.value, claim.half_digit) == (metric, value, pytest.approx(half_digit))
    assert (claim.workload, claim.protocol) == (measure.workload, measure.protocol)
    epochs = {"step_seconds": None, "epoch_seconds": 2}.get(metric, 30)
    assert (measure.data, measure.limit.epochs) == ("cifar-100" if settings else None, epochs)


def test_all_that_is_ambiguous_is_listed_once_with_what_settles_it_and_nothing_is_written(root):
    text = TABLE.replace("ViT-B/16", "ViT-B/61").replace("RTX 4090", "RTX 4099")
    with pytest.raises(UserError) as refused:
        write_study(root, table(root, text), URL, ())
    listed = refused.value.problem.splitlines()[1:]
    assert [line.strip().partition(":")[0] for line in listed] == ["card", "precision", "model", "precision"]
    assert all("--set '" in line for line in listed)
    assert "is 'RTX 4090' meant?" in listed[0] and "--set 'amp=amp-fp16'" in listed[1]
    assert not [*root.glob("results/claims/*"), *root.glob("plans/*")]


@pytest.mark.parametrize(
    ("text", "source", "settings", "words"),
    [
        (TABLE, "", (), "place of publication"),
        (TABLE, URL, ("amp",), "no COLUMN=VALUE"),
        ("GPU,Network\nRTX 4090,resnet50\n", URL, (), "no column of figures"),
        ("", URL, (), "no column of figures"),
    ],
)
def test_a_line_that_cannot_be_meant_is_refused_in_one_sentence(root, text, source, settings, words):
    with pytest.raises(UserError, match=words):
        write_study(root, table(root, text), source, settings)


@pytest.mark.parametrize("column", ["precision", "amp?", "AMP?"])
def test_one_word_settles_what_a_column_leaves_open(root, column):
    write_study(root, table(root, TABLE.replace("bf16", "amp")), URL, (f"{column}=amp-bf16",))
    labels = [claim.of.precision for claim in load_claims(root).claims]
    assert labels == ["amp-bf16", "fp32-default", "amp-bf16", "amp-bf16", "fp32-default"]


def test_a_cell_that_is_no_number_is_listed(root):
    text = TABLE.replace(";611", ";about 600").replace(";64;", ";many;")
    with pytest.raises(UserError, match=r"(?s)value: 'about 600' is not known.*batch_size: 'many' is not"):
        write_study(root, table(root, text), URL, SETTLED)


def test_what_a_table_leaves_out_is_set_for_all_of_it_and_no_file_is_written_over(root):
    text = "card,img/s\nRTX 4090,100\n"
    settings = ("model=resnet50", "precision=amp-fp16", "batch_size=32", "layout=channels_last")
    write_study(root, table(root, text), URL, settings)
    (claim,) = load_claims(root).claims
    assert (claim.of.model, claim.of.batch_size, claim.of.layout) == ("resnet50", 32, "channels_last")
    with pytest.raises(UserError, match=r"my-figures\.toml' is there already"):
        write_study(root, table(root, text), URL, settings)


def test_a_term_of_an_answer_stands_whole():
    stack = "libc glibc 2.36, python 3.12, and Linux"
    answer = Answer(load_claims(ROOT).claims[0].model_copy(update={"stack": stack}), "not-measured")
    assert stack in render.terminal_text("figures.md", one=answer, study="a study")
