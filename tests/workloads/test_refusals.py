"""What a workload cannot do is refused by name, each trial a process of the cpu image's stack."""

from __future__ import annotations

import pytest

from tests.helpers.workload_runner import (
    card,
    run,
    tiny_ceiling,
    tiny_classifier,
    tiny_decoder,
    tiny_language_model,
    tiny_mnist,
    tiny_resnet44,
)

pytestmark = pytest.mark.torch

UNSUPPORTED = [
    (tiny_language_model, {"precision": "fp32-tf32"}, "a CPU has no TF32"),
    (tiny_language_model, {"protocol": "fair/1"}, "'fair/1' is not known; there are: published/1"),
    (tiny_language_model, {"model": "GRU"}, "model 'GRU' is not known; there are: LSTM"),
    (tiny_language_model, {"gpus": 2}, "2 GPUs are asked"),
    (tiny_resnet44, {"gpus": 2, "options": {"virtual_ranks": 2}}, "2 virtual ranks on 2 devices"),
    (tiny_resnet44, {"gpus": 2, "options": {"parallel": "dp"}}, "DataParallel, which needs GPUs; take 'ddp'"),
    (tiny_resnet44, {"gpus": 2, "options": {"sync_batchnorm": True}}, "needs one process a GPU"),
    (tiny_resnet44, {"batch_size": 64, "options": {"train_images": 32}}, "an epoch has no whole batch"),
    (tiny_classifier, {"model": "resnet19"}, "neither torchvision nor timm has a classifier 'resnet19'"),
    (tiny_classifier, {"gpus": 2, "options": {"parallel": "dp"}}, "DataParallel, which needs GPUs"),
    (tiny_classifier, {"data_mode": "host"}, "data mode 'host' is not known; there are: cached"),
    (tiny_mnist, {"precision": "fp16-master"}, "precision 'fp16-master' is not known"),
    (tiny_mnist, {"model": "LeNet"}, "model 'LeNet' is not known; there are: cnn"),
    (tiny_mnist, {"options": {"workers": 2}}, "option 'workers' is not known; there are: none"),
    (tiny_decoder, {"model": "gpt2-124m", "sequence_length": 2048}, "has 1024 positions; 2048 are asked"),
    (tiny_decoder, {"sequence_length": 9, "batch_size": 1, "options": {"fp8": True}}, "that 16 divides"),
    (tiny_decoder, {"options": {"lora_rank": -1}}, "must be 0 or more"),
    (tiny_decoder, {"model": "llama-2b"}, "there are: gpt2-124m, llama-1b, llama-8b, tiny"),
    (tiny_ceiling, {"precision": "fp32-tf32"}, "a CPU has no TF32"),
    (tiny_ceiling, {"precision": "amp-bf16"}, "precision 'amp-bf16' is not known"),
    (tiny_ceiling, {"model": "all-reduce"}, "one device has nothing to sum"),
    (tiny_ceiling, {"model": "all-reduce", "gpus": 2, "precision": "pure-bf16"}, "'pure-bf16' is not known"),
    (tiny_ceiling, {"gpus": 2}, "2 GPUs are asked; this workload runs on one"),
    (card, {"precision": "fp32-tf32"}, "a CPU has no TF32"),
    (card, {"precision": "amp-bf16"}, "precision 'amp-bf16' is not known"),
    (card, {"gpus": 2}, "2 GPUs are asked"),
]
OTHER = [
    (tiny_language_model, {"device": "cuda"}, "no-device", "a 'cuda' device is asked; torch"),
    (tiny_language_model, {"device": "rocm"}, "no-device", "a 'rocm' device is asked; torch"),
    (tiny_classifier, {"device": "cuda", "gpus": 2}, "no-device", "a 'cuda' device is asked"),
    (tiny_language_model, {"data": "real"}, "bad-data", "'wikitext-2/wiki.train.tokens' is not in the data"),
]


@pytest.mark.parametrize(
    ("make", "told", "reason", "words"),
    [*((make, told, "unsupported", words) for make, told, words in UNSUPPORTED), *OTHER],
)
def test_what_a_workload_cannot_measure_fails_by_name(make, told, reason, words, tmp_path):
    ended = run(tmp_path, make(**told))
    assert (ended.exit_code, ended.measurement, ended.failed.reason) == (1, None, reason)
    assert words in ended.failed.message
