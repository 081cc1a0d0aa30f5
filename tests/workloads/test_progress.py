"""The progress that trainers print: which lines count steps, how fast they are, and what interrupts them."""

from __future__ import annotations

import pytest

from tests.helpers.workload_runner import module

progress = module("parts.program.progress")

# {n} is the line's number, {k} a digit that changes; what each has: its lines, rows and steps a row.
TRAINERS = {
    # As tqdm 4.70, Keras 3.15 and the Trainer of transformers 5.24 printed them.
    "tqdm": ["epoch 0:  {n}%|██▌   | {n}/300 [00:0{k}<00:12, 48.{k}it/s]", 30, 29, 1],
    "keras": [" {n}/169 ━━━━━━━━━━━━━━━━ 2:4{k} 46{k}ms/step - accuracy: 0.0{n} - loss: 2.3", 30, 29, 1],
    "keras, slow": ["{n}/169 ━━━━━━━━━━━━━━━━ 2{k}s 1s/step - accuracy: 0.1{n} - loss: 2.3", 30, 29, 1],
    "hf-trainer": [" {n}%|▏     | {n}/375 [00:0{k}<05:32,  1.{k}it/s]", 30, 29, 1],
    # As nanoGPT's train.py prints them.
    "nanogpt": ["iter {n}: loss 3.{n}, time 9{k}.12ms, mfu 1.{k}%", 30, 29, 1],
    # As timm's train.py, Lightning 2.6 in a terminal and fastai 2.8 printed them.
    "timm": [
        "Train: 0 [  {n}5/60 ( 10%)]  Loss: 1.39 (1.45)  Time: 3.107s,    2.5{k}/s  (1.986s,    4.03/s)"
        "  LR: 1.000e-05  Data: 0.089 (0.078)",
        20,
        19,
        10,
    ],
    "lightning": ["Epoch 0/49 ╸━━━━━━━━━ {n}/313 0:00:0{k} • 0:01:53 2.7{k}it/s train_loss: 2.3", 30, 29, 1],
    "fastai without a bar": ["[{n}, 2.3551334{k}, 2.10741{k}, '01:1{k}']", 12, 11, 1],
    # By their documentation and code.
    "lightning-tqdm": [
        "Epoch 0:  {n}%|██▌  | {n}/195 [00:0{k}<00:30,  4.5{k}it/s, train_loss=2.{k}]",
        30,
        29,
        1,
    ],
    "torchtune": ["1|{n}|Loss: 1.{k}:  {n}%|█▎     | {n}/808 [01:03<07:01,  1.6{k}s/it]", 30, 29, 1],
    "fastai": ["Epoch 1/5 : |███-----| {n}.00% [{n}/100 00:10<00:12 2.34{k}]", 30, 29, 1],
    "imagenet": [
        "Epoch: [0][ {n}0/391]\tTime  0.10{k} ( 0.120)\tData  0.0\tLoss 2.3e+00",
        12,
        11,
        10,
    ],
    "a script": ["step {n},000 loss 2.3{k} 1.2k tok/s", 20, 19, 1000],
    "an unending bar": ["{n}it [00:0{k}, 30.{k}it/s]", 20, 19, 1],
}


def read(lines, *, apart=0.5, **how):
    reader = progress.ProgressReader(**how)
    for at, line in enumerate(lines):
        reader.hear(line, at * apart)
    return reader


@pytest.mark.parametrize("name", TRAINERS)
def test_a_trainers_own_lines_are_its_steps(name):
    template, lines, rows, together = TRAINERS[name]
    training = read([template.format(n=n, k=n * 7 % 10) for n in range(lines)]).training
    found = progress.progress_of(training)
    assert (len(training.rows), found.together) == (rows, together)
    assert found.blocks == pytest.approx([0.5] * len(found.blocks))


def test_a_rate_that_turns_into_its_inverse_and_a_dictionary_beside_a_bar_change_nothing():
    bars = [f" {n}%|▏  | {n}/375 [00:01<05:32,  1.{n}{'it/s' if n % 3 else 's/it'}]" for n in range(30)]
    logs = [f"{{'loss': '2.{n}', 'grad_norm': '1.3', 'epoch': '0.{n}'}}" for n in range(30)]
    both = [line for n in range(30) for line in (bars[n], *logs[n : n + (n % 10 == 9)])]
    assert len(read(bars).training.rows) == len(read(both).training.rows) == 29


def test_an_evaluation_and_a_new_epoch_interrupt_training():
    lines = [f"iter {n}: loss 3.{n}" for n in (0, 1, 2, 3)]
    lines += ["step 3: train loss 4.2, val loss 4.3"] + [f"iter {n}: loss 3.{n}" for n in (4, 5, 0, 1)]
    assert [row.begin for row in read(lines).training.rows] == [0.0, 0.5, 1.0, 2.5, 3.5]


def test_validation_downloads_and_their_bars_are_no_training_and_the_row_across_them_is_left_out():
    train = [f"train: {n}/50 loss 2.{n}" for n in range(10)]
    aside = [f"Validation: {n}/900 acc 0.{n}" for n in range(40)]
    lines = [
        *(f"Downloading data: {n}%| | {n}/100 MB" for n in range(60)),
        *train,
        *aside,
        "train: 10/50 loss 2.1",
        "train: 11/50 loss 2.1",
    ]
    reader = read(lines)
    assert [row.steps for row in reader.training.rows] == [1] * 10
    assert sum(row.end - row.begin for row in reader.training.rows) == pytest.approx(5.0)


def test_rows_of_unequal_steps_count_by_their_own_numbers():
    counts = [0, 1, 4, 5, 9, 10, 12, 16, 17, 20]
    reader = progress.ProgressReader()
    for count in counts:
        reader.hear(f"step {count} loss 2", count * 0.25)
    found = progress.progress_of(reader.training)
    assert sum(found.blocks) / len(found.blocks) / found.together == pytest.approx(0.25)


def test_lines_that_are_read_at_once_after_a_pause_count_no_steps_without_time():
    reader = progress.ProgressReader()
    for count, at in enumerate([0.0, 1.0, 2.0, 9.0, 9.0, 9.0, 10.0, 11.0, 11.0, 13.0]):
        if at == 9.0 and count == 3:
            reader.interrupt()
        reader.hear(f"step {count} loss 2", at)
    rows = reader.training.rows
    assert sum(row.steps for row in rows) == sum(row.end - row.begin for row in rows) == 6


def test_two_counts_that_are_alike_are_both_shown_and_none_is_taken():
    lines = [line for n in range(10) for line in (f"D step {n} loss 1.{n}", f"G step {n + 500} loss 2.{n}")]
    reader = read(lines)
    assert reader.training is None
    assert {each.example[:1] for each in reader.alike} == {"D", "G"}
    assert len(read(lines, match=r"G step (?P<step>\d+)").training.rows) == 9


@pytest.mark.parametrize(
    ("line", "value", "unit"),
    [
        ("step 100 loss 2.3 1234 tok/s", 1234, "token"),
        ("850.25 images/sec", 850.25, "image"),
        ("1.2k samples/s", 1200, "sample"),
        ("1,234.5 tokens/s at 3.2 it/s", 1234.5, "token"),
        ("0.30s, 850.2/s", 850.2, "sample"),
        ("4.50it/s", 4.5, "step"),
        ("2.0s/it", 0.5, "step"),
        ("466ms/step - accuracy: 0.1", 1 / 0.466, "step"),
        ("loss 2.3 in 3 of 4", None, None),
    ],
)
def test_a_printed_rate_is_read_with_its_unit(line, value, unit):
    found = progress.printed_rate(line)
    assert (found and found.unit) == unit
    assert (found and found.value) == (value and pytest.approx(value))


def test_a_printed_rate_is_a_witness_and_no_figure():
    lines = [f"step {n * 10} loss 2.3 {4096 if n < 15 else 2048} tok/s" for n in range(20)]
    found = progress.progress_of(read(lines).training)
    assert found.printed == (4096, "token")
    assert sum(found.blocks) == pytest.approx(9.5), "our clock's, whatever is printed"


def test_a_quality_is_kept_by_the_users_pattern():
    lines = [line for n in range(5) for line in (f"step {n} loss 2", f"eval val_loss 1.{n}")]
    assert read(lines, metric=r"val_loss (\S+)").metric == 1.4
