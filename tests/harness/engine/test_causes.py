from __future__ import annotations

import pytest

from harness.engine.causes import image_cause, install_cause
from harness.errors import MachineError, NoNetwork, NoSpace

CHANNEL = "$ python -m pip install --index-url https://wheels.example.org/cpu --requirement channel.txt"
INDEX = "$ python -m pip install --requirement channel.txt"
UNNAMED = (
    "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError('<HTTPSConnection>: "
    "Failed to establish a new connection: [Errno -2] Name or service not known')': /cpu/torch/"
)


def test_a_failed_installation_names_what_each_source_lacked_and_not_pips_last_line():
    lines = [
        CHANNEL,
        UNNAMED,
        "ERROR: No matching distribution found for torch==2.13.0+cpu",
        INDEX,
        "ERROR: Cannot install torch==2.13.0+cpu because these package versions conflict.",
        "ERROR: ResolutionImpossible: for help visit https://pip.example.org/",
    ]
    cause = install_cause("\n".join(["$ an earlier step", "no space left on device", *lines]), 2)
    assert cause.words == (
        "the name of wheels.example.org was not found; "
        "the package index has no torch==2.13.0+cpu for this Python"
    )
    assert cause.kind is NoNetwork


@pytest.mark.parametrize(
    ("line", "words", "kind"),
    [
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM", "another hash", MachineError),
        ("ERROR: Could not install: [Errno 28] No space left on device", "the disk is full", NoSpace),
        (
            "ReadTimeoutError(\"HTTPSConnectionPool(host='a.example.org'): Read timed out.\")",
            "a.ex",
            NoNetwork,
        ),
        ("ERROR: something that nobody knows", "something that nobody knows", MachineError),
    ],
)
def test_the_cause_of_a_failed_installation_has_the_error_of_its_kind(line, words, kind):
    cause = install_cause(f"{INDEX}\n{line}\n", 1)
    assert words in cause.words
    assert cause.kind is kind


@pytest.mark.parametrize(
    ("line", "words", "kind"),
    [
        # The first two are BuildKit's own, of Docker Engine 20.10 at a loopback registry.
        (
            "failed to create LLB definition: pulling from host localhost:5123 failed with status code "
            "[manifests 1]: 429 Too Many Requests",
            "rate limit",
            NoNetwork,
        ),
        (
            "failed to create LLB definition: localhost:5123/gone:1: not found",
            "does not have it any more",
            MachineError,
        ),
        (
            'failed to do request: Head "https://registry.example.org/v2/debian/manifests/1": '
            "dial tcp: lookup registry.example.org on 10.0.0.1:53: no such host",
            "the name of registry.example.org was not found",
            NoNetwork,
        ),
        (
            'failed to do request: Head "http://localhost:5199/v2/x/manifests/1": dial tcp 127.0.0.1:5199: '
            "connect: connection refused",
            "localhost cannot be reached",
            NoNetwork,
        ),
        ("write /var/lib/docker/tmp/layer: no space left on device", "the disk is full", NoSpace),
    ],
)
def test_the_cause_of_a_failed_image_is_read_from_the_builders_output(line, words, kind):
    cause = image_cause(["#3 ERROR", line], telling=line)
    assert words in cause.words
    assert cause.kind is kind
