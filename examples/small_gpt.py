"""A small GPT on random words, as a script that prints its steps: `invoke try` measures it unchanged."""

import argparse
import time

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--length", type=int, default=64)
parser.add_argument("--width", type=int, default=128)
parser.add_argument("--steps", type=int, default=10_000)
asked = parser.parse_args()

device = "cuda" if torch.cuda.is_available() else "cpu"
layer = nn.TransformerEncoderLayer(asked.width, 4, 4 * asked.width, batch_first=True)
encoder = nn.TransformerEncoder(layer, 2)
model = nn.Sequential(nn.Embedding(1000, asked.width), encoder, nn.Linear(asked.width, 1000)).to(device)
optimiser = torch.optim.AdamW(model.parameters(), lr=3e-4)

began = time.perf_counter()
for step in range(1, asked.steps + 1):
    words = torch.randint(0, 1000, (asked.batch, asked.length + 1), device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        output = model(words[:, :-1])
        loss = nn.functional.cross_entropy(output.flatten(0, 1), words[:, 1:].flatten())
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if step % 10 == 0:
        rate = 10 * asked.batch * asked.length / (time.perf_counter() - began)
        print(f"step {step} loss {loss.item():.3f} {rate:.0f} tok/s", flush=True)
        began = time.perf_counter()
