from __future__ import annotations

import pytest

from harness.engine.causes import cause
from harness.errors import MachineError, NoNetwork, NoSpace


@pytest.mark.parametrize(
    ("lines", "words", "kind"),
    [
        (
            ["[Errno -2] Name or service not known: /cpu/torch/", "gone"],
            "the index cannot be reached",
            NoNetwork,
        ),
        (
            ["dial tcp: lookup a.example.org on 10.0.0.1:53: no such host"],
            "a.example.org cannot be",
            NoNetwork,
        ),
        (
            ["pulling failed with status code [manifests 1]: 429 Too Many Requests"],
            "the index cannot",
            NoNetwork,
        ),
        (['Head "https://me:word@a.example.org/v2": connection refused'], "a.example.org cannot", NoNetwork),
        (["HTTPSConnectionPool(host='a.example.org'): Read timed out."], "a.example.org cannot", NoNetwork),
        (["connection refused", "write /var/x: no space left on device"], "the disk is full", NoSpace),
        (["something that nobody knows"], "its last word", MachineError),
    ],
)
def test_the_cause_of_a_failed_environment_is_a_clause_and_an_error(lines, words, kind):
    said, found = cause(["$ a command", *lines], "its last word", "the index")
    assert said.startswith(words)
    assert found is kind
