"""A step of the user's own: accumulation, clipping, several optimisers, rates by step; in each precision."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.helpers import ROOT
from tests.helpers.workload_runner import DATA, WORKLOADS, ran, run
from tests.workloads.test_custom import OWN, failures, own_trial

pytestmark = pytest.mark.torch


STEP = (
    OWN
    + """
OPTIONS |= {"parts": 1, "clip": 1e9, "second_lr": 0.1}
SCHEDULE = "step"

def model(setting):
    return nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1))

def optimiser(model, setting):
    rates = (setting.options["lr"], setting.options["second_lr"])
    return [torch.optim.SGD(half.parameters(), lr=rate) for half, rate in zip(model, rates, strict=True)]

def schedule(optimisers, setting):
    return [torch.optim.lr_scheduler.LambdaLR(each, lambda step: 1 / (1 + step)) for each in optimisers]

def train_step(setting, model, batch, update):
    parts = setting.options["parts"]
    losses = []
    for inputs, targets in zip(*(half.chunk(parts) for half in batch), strict=True):
        losses.append(loss(model(inputs), targets) / parts)
        update.backward(losses[-1])
    update.clip(setting.options["clip"])
    update.step()
    return sum(losses)
"""
)
WATCHED = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from parts.trial import TrialProcess, why
from parts.training import own_file
import custom, torch

def watch(told):
    given = own_file.OwnFile.optimiser

    def optimiser(file, model, setting):
        optimisers = given(file, model, setting)
        told["model"] = model
        for each in optimisers if isinstance(optimisers, (list, tuple)) else [optimisers]:
            weights, steps = [weight for group in each.param_groups for weight in group["params"]], []
            told["optimisers"].append(steps)

            def before(one, *_, weights=weights, steps=steps):
                rates = [group["lr"] for group in one.param_groups]
                steps.append({"rates": rates, "moved": [weight.detach().clone() for weight in weights]})

            def after(one, *_, weights=weights, steps=steps):
                ways = [(weight - was).flatten() for weight, was in zip(weights, steps[-1]["moved"])]
                steps[-1]["moved"] = float(torch.cat(ways).norm())

            each.register_step_pre_hook(before)
            each.register_step_post_hook(after)
        return optimisers

    own_file.OwnFile.optimiser = optimiser
    return lambda: setattr(own_file.OwnFile, "optimiser", given)

ends = []
for folder in sys.argv[2:]:
    torch.use_deterministic_algorithms(False)
    places = {f"GPUDYNO_{name}": os.path.join(folder, name.lower()) for name in ("IN", "OUT")}
    trial = TrialProcess({**places, "GPUDYNO_DATA": os.environ["GPUDYNO_TEST_DATA"]})
    told = {"optimisers": [], "model": torch.nn.Identity()}
    end = watch(told)
    try:
        found = custom.run(trial)
        told["losses"] = [loss for _, loss in found["losses"]]
        told["counted"] = [found["window"]["steps"], found["window"]["samples"], found["samples_per_step"]]
        told["scale"] = found["precision"]["loss_scale"]
        told["quality"] = found["epochs"][-1].get("quality")
    except Exception as error:
        told["failed"] = list(why(error))
    end()
    told["weights"] = [weight.detach().double().sum().item() for weight in told.pop("model").parameters()]
    ends.append(told)
print(json.dumps(ends))
"""


def watched(tmp_path: Path, *trials: tuple[str, dict]) -> list[dict]:
    """Each file's trial: its losses, its weights' sums, and at what rates each optimiser moved how far."""
    folders = []
    for number, (text, told) in enumerate(trials):
        folder = tmp_path / str(number)
        asked = own_trial(folder, text, **told)
        (folder / "in" / "trial.json").write_text(asked.canonical(), encoding="utf-8")
        (folder / "out").mkdir()
        folders.append(str(folder))
    done = ran("-c", WATCHED, WORKLOADS, *folders, environ={"GPUDYNO_TEST_DATA": DATA})
    assert done.returncode == 0, done.stderr
    ends = json.loads(done.stdout.splitlines()[-1])
    assert not [end["failed"] for end in ends if "failed" in end], done.stderr
    return ends


def test_halves_of_a_batch_accumulate_to_the_whole(tmp_path):
    whole, halves = watched(tmp_path, (STEP, {}), (STEP, {"options": {"parts": 2}}))
    assert len(whole["losses"]) == 8
    assert halves["losses"] == pytest.approx(whole["losses"], rel=1e-5)
    assert halves["weights"] == pytest.approx(whole["weights"], rel=1e-5)
    assert halves["counted"] == whole["counted"] == [8, 32, 4], "a step is a batch, however it is taken apart"


@pytest.mark.parametrize("precision", ["fp32-ieee", "amp-bf16", "amp-fp16"])
def test_clipping_bounds_the_update_in_every_precision(precision, tmp_path):
    options = {"clip": 1e-3, "lr": 1.0, "second_lr": 1.0}
    (told,) = watched(tmp_path, (STEP, {"options": options, "precision": precision}))
    moved = [sum(each["moved"] ** 2 for each in both) for both in zip(*told["optimisers"], strict=True)]
    rates = [step["rates"][0] for step in told["optimisers"][0]]
    assert [square**0.5 for square in moved] == [pytest.approx(1e-3 * rate, rel=2e-2) for rate in rates]
    skipped = told["scale"]["skipped_steps"] if precision == "amp-fp16" else 0
    assert len(moved) + skipped == 8


def test_each_of_two_optimisers_moves_its_own_weights_alone(tmp_path):
    lrs = [{"lr": 0.0, "second_lr": 0.0}, {"second_lr": 0.0}, {"lr": 0.0}]
    still, first, second = (
        told["weights"] for told in watched(tmp_path, *((STEP, {"options": each}) for each in lrs))
    )
    assert first[2:] == still[2:] and second[:2] == still[:2]
    assert all(one != other for one, other in zip(first[:2] + second[2:], still, strict=True))


def test_a_schedule_by_step_gives_each_step_the_rate_that_it_states(tmp_path):
    (told,) = watched(tmp_path, (STEP, {}))
    stated = [pytest.approx(0.1 / (1 + step)) for step in range(8)]
    assert [[step["rates"][0] for step in each] for each in told["optimisers"]] == [stated, stated]


def test_a_metric_over_an_epoch_is_given_all_of_it_by_all_ranks(tmp_path):
    worst = OWN.replace(".abs().mean()", ".abs().max()").replace(
        "InOrder(inputs, targets, 8)", "InOrder(inputs, targets, 3)"
    )
    text = worst + """\nMETRIC_OVER = "epoch"\n"""
    still = {"options": {"lr": 0.0}}
    by_batch, by_epoch = watched(tmp_path, (worst, still), (text, still))
    both = run(tmp_path / "ranks", own_trial(tmp_path / "ranks", text, gpus=2, **still)).measured
    assert by_epoch["quality"] > by_batch["quality"], "the worst of all, not the mean of each batch's worst"
    assert both.epochs[-1].quality == pytest.approx(by_epoch["quality"])


def test_two_ranks_step_as_the_file_says_and_as_one_does(tmp_path):
    text = STEP.replace("lr=rate", "lr=rate * setting.ranks / 2")
    alone = run(
        tmp_path / "1", own_trial(tmp_path / "1", text, batch_size=8, options={"lr": 0.2, "second_lr": 0.2})
    )
    both = run(tmp_path / "2", own_trial(tmp_path / "2", text, gpus=2, options={"parts": 2}))
    ends = [
        [(epoch.train_loss, epoch.valid_loss) for epoch in each.measured.epochs] for each in (alone, both)
    ]
    assert ends[1] == [pytest.approx(epoch, rel=1e-5) for epoch in ends[0]]


# What stands in the file, what is there in its place, how the line begins that is told, and what is said.
MISTAKES = [
    ("    return sum(losses)", "    pass", "def train_step", "train_step gives NoneType where a tensor"),
    ("    return sum(losses)", "    return losses[0].item()", "def train_step", "train_step gives float"),
    ("    update.step()", "    pass", "def train_step", "calls update.step() 0 times"),
    (
        "    update.step()",
        "    update.step(); update.step()",
        "def train_step",
        "calls update.step() 2 times",
    ),
    (
        "        update.backward(losses[-1])",
        "        losses[-1].backward()",
        "def train_step",
        "update.backward(loss)",
    ),
    (
        "def train_step(setting, model, batch, update):",
        "def train_step(model, batch):",
        "def train_step",
        "train_step is called as train_step(setting, model, batch, update): define it so",
    ),
    (
        "def train_step(setting, model, batch, update):",
        "train_step = 3\ndef other(setting, model, batch, update):",
        "train_step = 3",
        "define it so",
    ),
    (
        "def schedule(optimisers, setting):",
        "def schedule(optimisers):",
        "def schedule",
        "schedule(optimiser, setting)",
    ),
    (
        "    return [torch.optim.lr_scheduler",
        "    [torch.optim.lr_scheduler",
        "def schedule",
        "schedule gives NoneType where a torch LRScheduler, or a list of them, is needed",
    ),
    (
        "    return [torch.optim.SGD(half.parameters(), lr=rate)",
        "    return [half",
        "def optimiser",
        "optimiser gives Linear where a torch Optimizer, or a list of them, is needed",
    ),
    (
        "    return sum(losses)",
        "    return sum(losses) * float('nan')",
        "def train_step",
        "the training loss is nan at step 1 (by 'train_step')",
    ),
    ('SCHEDULE = "step"', 'SCHEDULE = "steps"', "SCHEDULE", "SCHEDULE is 'steps'; it is one of epoch, step"),
    ("    update.clip(setting", "    update.clipp(setting", "    update.clipp", "AttributeError"),
]


def test_a_wrong_hook_is_told_in_one_sentence_with_the_file_and_its_line(tmp_path):
    own = STEP.replace(OWN[OWN.index("def model") : OWN.index("def data")], "")
    own = own.replace(OWN[OWN.index("def optimiser") :], "")
    texts = []
    for right, wrong, _, _ in MISTAKES:
        assert own.count(right) == 1, right
        texts.append(own.replace(right, wrong))
    ends = failures(tmp_path, texts)
    for text, (_, _, begins, words), (_, message) in zip(texts, MISTAKES, ends, strict=True):
        line = [each.startswith(begins) for each in text.split("\n")].index(True) + 1
        assert message.startswith(f"examples/line.py, line {line}: "), message
        assert words in message
        assert "\n" not in message


def test_a_step_of_ones_own_is_refused_virtual_ranks_and_half_weights_by_name(tmp_path):
    ranks = {"options": {"virtual_ranks": 2}}
    for number, (told, name) in enumerate(
        ((ranks, "virtual_ranks"), ({"precision": "fp16-master"}, "fp16-master"))
    ):
        folder = tmp_path / str(number)
        failed = run(folder, own_trial(folder, STEP, **told)).failed
        assert failed.reason == "unsupported"
        assert f"'{name}'" in failed.message


def example(name: str) -> str:
    """The text of an example, which tells where its numbers are from."""
    text = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 90
    return text


def nanogpt(**options) -> tuple[str, dict]:
    """The example as small as it runs."""
    sizes = {"width": 16, "heads": 2, "layers": 2, "dropout": 0.0, "warmup_steps": 3, "decay_steps": 9}
    told = {"model": "gpt", "sequence_length": 16, "batch_size": 4, "data": "generated"}
    return example("nanogpt"), {
        **told,
        "options": {**sizes, **options},
        "limit": {"steps": 10, "valid_batches": 2},
    }


def test_the_example_of_nanogpt_has_its_rates_and_accumulates_to_the_whole(tmp_path):
    whole, halves = watched(tmp_path, nanogpt(), nanogpt(accumulate=2))
    assert halves["losses"] == pytest.approx(whole["losses"], rel=1e-5)
    assert whole["losses"][0] == pytest.approx(math.log(65), rel=0.02), (
        "untrained, it guesses among all letters"
    )
    # Its get_lr: a rise over the first steps, then half a cosine down to the lowest rate.
    falls = [0.5 * (1 + math.cos(math.pi * (step - 3) / 6)) for step in range(3, 10)]
    stated = [1e-3 * (step + 1) / 4 for step in range(3)] + [1e-4 + 9e-4 * each for each in falls]
    assert [step["rates"] for step in whole["optimisers"][0]] == [
        pytest.approx([each] * 2) for each in stated
    ]
    assert halves["counted"] == [10, 640, 64]


def test_the_example_of_airbench_moves_by_two_optimisers_at_its_rates(tmp_path):
    told = {"model": "airbench94", "batch_size": 16, "data": "real" if DATA else "generated"}
    (found,) = watched(tmp_path, (example("airbench94"), {**told, "limit": {"steps": 3, "valid_batches": 1}}))
    sgd, muon = found["optimisers"]
    whole, whiten = 8 * 3125, 3 * 3125
    for step in range(3):
        bias, head = 16 * 0.053 * (1 - step / whole), 16 * 0.67 * (1 - step / whole)
        assert sgd[step]["rates"] == pytest.approx([16 * 0.053 * (1 - step / whiten), bias, head])
        assert muon[step]["rates"] == pytest.approx([0.24 * (1 - step / whole)])
    assert all(step["moved"] > 0 for step in sgd + muon)
    assert found["losses"][0] == pytest.approx(math.log(10), rel=0.05)


@pytest.mark.whole
def test_what_a_file_compiles_by_itself_is_compiled_before_the_window_and_never_in_it(tmp_path):
    plain = STEP.replace("DETERMINISTIC = True", "")
    compiled = plain.replace("(loss(model(inputs), targets)", "(forward(model, inputs, targets)")
    compiled += """
@torch.compile
def forward(model, inputs, targets):
    return loss(model(inputs), targets)
"""
    found = run(tmp_path / "1", own_trial(tmp_path / "1", compiled)).measured
    assert found.phases[-1].name == "compile"
    assert max(found.step_us.values()) * 1e-6 < found.phases[-1].seconds / 10
    eager = run(tmp_path / "2", own_trial(tmp_path / "2", plain)).measured
    assert dict(found.losses) == pytest.approx(dict(eager.losses), rel=1e-4)
