"""Steps of a decoder's training: shapes as published, operations by formula, and what each option changes."""

from __future__ import annotations

import json

import pytest

from tests.helpers.workload_runner import printed, run, tiny_decoder

pytestmark = pytest.mark.torch

PLAIN_LOOP = """
import json, sys
import torch
from parts.networks.decoder import SHAPES, Decoder
from parts.numerics.precision import switch
shape, (rows, length, seed, steps) = SHAPES["tiny"], map(int, sys.argv[1:])
switch("fp32-ieee", torch.device("cpu"))
torch.manual_seed(seed)
model = Decoder(shape)
drawn = torch.Generator().manual_seed(seed * 1_000_003)
batches = torch.randint(shape.words, (4, rows, length + 1), generator=drawn)
optimiser = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1)
losses = []
for step in range(steps):
    batch = batches[step % 4]
    scores = model(batch[:, :-1])
    loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    losses.append(loss.item())
print(json.dumps(losses))
"""

PUBLISHED = """
import json
import torch
from parts.networks.decoder import SHAPES, Decoder
with torch.device("meta"):
    print(json.dumps({name: sum(w.numel() for w in Decoder(s).parameters()) for name, s in SHAPES.items()}))
"""


def test_the_shapes_have_as_many_parameters_as_their_publications_say():
    assert json.loads(printed(PUBLISHED)[-1]) == {
        "tiny": 115_008,
        "gpt2-124m": 124_439_808,
        "llama-1b": 1_235_814_400,
        "llama-8b": 8_030_261_248,
    }


def test_fifty_losses_in_fp32_are_those_of_a_plain_loop(tmp_path):
    asked = tiny_decoder(limit={"steps": 50})
    found = run(tmp_path, asked).measured
    plain = json.loads(printed(PLAIN_LOOP, "2", "32", str(asked.seed), "50")[-1])
    assert len(found.losses) == 50
    assert [loss for _, loss in found.losses] == pytest.approx(plain, rel=1e-6)


def test_a_token_s_operations_are_six_times_the_weights_and_attention_s_share(tmp_path):
    found = run(tmp_path, tiny_decoder()).measured
    assert (found.sample_unit, found.samples_per_step, found.window.samples) == ("token", 64, 256)
    projections = 2 * (64 * 64 + 2 * 64 * 32 + 64 * 64 + 3 * 64 * 192)
    assert found.flops.per_sample == 6 * (projections + 64 * 256) + 12 * 2 * 64 * 32
    assert found.structure["trained_parameters"] == found.structure["parameters"] == 115_008


def test_a_low_rank_trains_alone_and_begins_where_the_whole_does(tmp_path):
    whole = run(tmp_path, tiny_decoder()).measured
    low = run(tmp_path, tiny_decoder(options={"lora_rank": 4})).measured
    assert low.structure["trained_parameters"] == 2 * 4 * (4 * 64 + 2 * (64 + 32) + 3 * (64 + 192))
    assert low.flops.per_sample < whole.flops.per_sample
    assert low.losses[0][1] == pytest.approx(whole.losses[0][1], rel=1e-6)


@pytest.mark.parametrize(
    ("told", "most"),
    [
        ({"options": {"checkpointing": True}}, 1e-6),
        ({"options": {"fp8": True}}, 5e-3),
        ({"precision": "pure-bf16"}, 5e-3),
        ({"gpus": 2, "batch_size": 1, "options": {"parallel": "fsdp"}}, 5e-2),
    ],
)
def test_what_saves_memory_or_time_learns_what_the_plain_step_does(told, most, tmp_path):
    plain, other = run(tmp_path, tiny_decoder()).measured, run(tmp_path, tiny_decoder(**told)).measured
    assert [loss for _, loss in other.losses] == pytest.approx([loss for _, loss in plain.losses], rel=most)


@pytest.mark.whole
def test_a_compiled_step_learns_what_the_plain_one_does_and_is_compiled_before_the_window(tmp_path):
    plain = run(tmp_path, tiny_decoder()).measured
    found = run(tmp_path, tiny_decoder(options={"compile": True}, timeout_seconds=300.0)).measured
    assert [loss for _, loss in found.losses] == pytest.approx([loss for _, loss in plain.losses], rel=1e-5)
    (compiling,) = (phase.seconds for phase in found.phases if phase.name == "compile")
    assert max(found.step_us.values()) / 1e6 < 0.1 * compiling
