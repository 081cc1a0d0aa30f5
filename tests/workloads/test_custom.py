"""A user's own model, data and loss: measured as others are, and every mistake told with its line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.record import TrialSpec
from harness.record.trial_spec import OwnFile
from tests.helpers import ROOT
from tests.helpers.workload_runner import DATA, WORKLOADS, Ended, ran, run, trial

pytestmark = pytest.mark.torch


OWN = """
import torch
from torch import nn
from parts.training.batches import InOrder, Shuffled

TITLE = "A line through points"
ABOUT = "Two weights by least squares."
EPOCHS = 2
METRIC = "loss"
OPTIONS = {"lr": 0.1}

def model(setting):
    return nn.Linear(4, 1)

def data(setting):
    inputs = torch.arange(64.0).view(16, 4) / 64
    targets = inputs.sum(1, keepdim=True)
    train = Shuffled(inputs, targets, setting.samples, seed=setting.seed, place=setting.place)
    return train, InOrder(inputs, targets, 8)

def loss(output, targets):
    return nn.functional.mse_loss(output, targets)

def metric(output, targets):
    return (output - targets).abs().mean()

def optimiser(model, setting):
    return torch.optim.SGD(model.parameters(), lr=setting.options["lr"] * setting.ranks)
"""


def own_trial(folder: Path, text: str, **told) -> TrialSpec:
    """A trial of the user's file, which lies beside it as the harness lays it."""
    asked = {"model": "line", "protocol": "line/1", "data": "synthetic", "batch_size": 4, "limit": {}}
    plain = trial("custom", **{**asked, **told})
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "line.py").write_text(text, encoding="utf-8")
    file = OwnFile(name="examples/line.py", sha256="0" * 64)
    changed = plain.asked.model_copy(update={"file": file})
    return TrialSpec.of(changed, 1, seed=plain.seed, timeout_seconds=plain.timeout_seconds)


def test_a_file_of_ones_own_is_trained_validated_and_measured_as_a_workload_is(tmp_path):
    found = run(tmp_path, own_trial(tmp_path, OWN)).measured
    assert (found.title, found.about) == ("A line through points", "Two weights by least squares.")
    assert (found.window.steps, found.window.samples, found.sample_unit) == (8, 32, "sample")
    assert (found.protocol.epochs, found.protocol.complete) == (2, True)
    assert found.quality_name == "loss"
    assert found.epochs[1].quality < found.epochs[0].quality, "the metric of the file is the quality"
    assert found.epochs[1].valid_loss != found.epochs[1].quality
    assert found.structure == {"parameters": 5}
    assert found.flops.per_sample == 2 * 2 * 4, "forward, and the gradient of the weights"


def test_two_ranks_train_one_model_and_share_a_validation(tmp_path):
    alone = run(tmp_path / "1", own_trial(tmp_path / "1", OWN, batch_size=8, options={"lr": 0.2})).measured
    both = run(tmp_path / "2", own_trial(tmp_path / "2", OWN, gpus=2)).measured
    assert (both.samples_per_step, both.window.steps, len(both.ranks)) == (8, 4, 2)
    ends = [[(epoch.train_loss, epoch.valid_loss) for epoch in found.epochs] for found in (alone, both)]
    assert ends[1] == [pytest.approx(epoch, rel=1e-5) for epoch in ends[0]]


# What stands in the file, what is there in its place, how the line begins that is told, and what is said.
MISTAKES = [
    ("nn.Linear(4, 1)", "nn.Linear(5, 1)", "def model", "RuntimeError"),
    (
        "    return nn.Linear(4, 1)",
        "    return setting.nothing",
        "    return setting",
        "AttributeError",
    ),
    ("def model(setting):", "def modell(setting):", "", "there is no 'model'; it needs model, data, loss"),
    ("def model(setting):", "def model(setting:", "def model", "SyntaxError"),
    ("nn.Linear(4, 1)", "4", "def model", "model gives int where a torch.nn.Module is needed"),
    ("return train, InOrder(inputs, targets, 8)", "return train", "def data", "data gives no pair"),
    ("setting.samples, seed", "8, seed", "def data", "8 inputs and 8 targets where setting.samples is 4"),
    (
        "(output, targets)\n\ndef metric",
        "(output, targets, reduction='none')\n\ndef metric",
        "def loss",
        "(4, 1)",
    ),
    (
        "(output, targets)\n\ndef metric",
        "(output, targets) / 0\n\ndef metric",
        "def loss",
        "loss is inf at step 1",
    ),
    ("(output - targets).abs().mean()", "torch.tensor(float('nan'))", "def metric", "a validation is nan"),
    ("(output - targets).abs().mean()", "1 / 0", "    return 1 / 0", "ZeroDivisionError"),
    ("EPOCHS = 2", "EPOCHS = 'two'", "EPOCHS", "EPOCHS is 'two' where a int is needed"),
    ('METRIC = "loss"', 'METRIC = "f1"', "METRIC", "'f1'; it is one of accuracy, perplexity, loss"),
    (
        "    return torch.optim.SGD(",
        "    return list(",
        "    return list",
        "TypeError",
    ),
    (
        "    return torch.optim.SGD(",
        "    return dict(p=",
        "def optimiser",
        "optimiser gives dict where a torch",
    ),
    (
        "OPTIONS =",
        "def schedule(optimiser):\n    pass\nOPTIONS =",
        "def schedule",
        "(optimiser, setting): define",
    ),
    ("OPTIONS =", "def schedule(one, two):\n    pass\nOPTIONS =", "def schedule", "schedule gives NoneType"),
]
RUN_ALL = """
import io, json, os, sys
from contextlib import redirect_stderr
sys.path.insert(0, sys.argv[1])
from parts.trial import TrialProcess, why
import custom

told = []
for folder in sys.argv[2:]:
    names = ("IN", "OUT", "DATA")
    trial = TrialProcess({f"GPUDYNO_{name}": os.path.join(folder, name.lower()) for name in names})
    try:
        custom.run(trial)
        told.append(["no failure", ""])
    except Exception as error:
        told.append(list(why(error)))
print(json.dumps(told))
"""


def failures(tmp_path: Path, texts: list[str]) -> list[tuple[str, str]]:
    """Reason and message of each file's failure."""
    folders = []
    for number, text in enumerate(texts):
        folder = tmp_path / str(number)
        asked = own_trial(folder, text)
        (folder / "in" / "trial.json").write_text(asked.canonical(), encoding="utf-8")
        (folder / "out").mkdir()
        folders.append(str(folder))
    done = ran("-c", RUN_ALL, WORKLOADS, *folders)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_mistake_is_told_in_one_sentence_with_the_file_and_its_line(tmp_path):
    texts, lines = [], []
    for right, wrong, blamed, _ in MISTAKES:
        assert OWN.count(right) == 1, right
        text = OWN.replace(right, wrong)
        begins = [line.startswith(blamed) for line in text.split("\n")]
        lines.append(begins.index(True) + 1 if blamed else None)
        texts.append(text)
    for (_, _, _, words), line, (reason, message) in zip(
        MISTAKES, lines, failures(tmp_path, texts), strict=True
    ):
        where = "examples/line.py" if line is None else f"examples/line.py, line {line}: "
        assert message.startswith(where), message
        assert words in message
        assert "\n" not in message
        assert reason == ("not-finite" if " is inf" in message or " is nan" in message else "error")


def gpt(folder: Path, **told) -> Ended:
    """The example on its own file, as small as it runs."""
    sizes = {"width": 16, "heads": 2, "layers": 2}
    asked = {"model": "gpt", "protocol": "gpt/1", "sequence_length": 16, "batch_size": 2}
    asked |= {"options": {**sizes, **told.pop("options", {})}, "limit": {"steps": 3, "valid_batches": 3}}
    data = told.pop("data_folder", "")
    plain = own_trial(folder, "", **{**asked, **told})
    shutil.copy(ROOT / "examples" / "gpt_wikitext.py", folder / "in" / "line.py")
    return run(folder, plain, data=data)


def test_the_example_trains_a_gpt_in_bf16_on_one_device(tmp_path):
    found = gpt(tmp_path, precision="amp-bf16", data="generated").measured
    assert (found.sample_unit, found.samples_per_step, found.quality_name) == ("token", 32, "perplexity")
    assert found.precision.output_dtypes == {"bfloat16": 9}
    assert found.epochs[0].quality == pytest.approx(33278, rel=0.2), "untrained, it guesses among all words"


@pytest.mark.data
def test_the_example_spreads_over_processes_on_real_text(tmp_path):
    found = gpt(tmp_path, gpus=2, data="real", data_folder=DATA, options={"parallel": "fsdp"}).measured
    assert (found.parallel, found.data.name, found.samples_per_step) == ("fsdp", "wikitext-2", 64)
    assert found.data.sha256
