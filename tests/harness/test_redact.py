"""What leaves the machine names nobody: secrets made up from random pieces, set into awkward places."""

from __future__ import annotations

import json
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.machine.fingerprint import make_machine
from harness.record import machine_differences
from harness.redact import NOBODY, WITHHELD, find_leaks, redact_value

NAMES = ("maren", "Maren Ødegård", "brutus", "node17.lab.example")

_LETTERS = string.ascii_lowercase
_WORD = st.text(_LETTERS, min_size=3, max_size=10)
_NAME = st.one_of(_WORD, st.builds("{}-{}{}".format, _WORD, _WORD, st.integers(0, 99))).filter(
    lambda name: name not in NOBODY
)
_ADDRESS = st.one_of(
    st.ip_addresses(network="10.0.0.0/8").map(str),
    st.lists(st.integers(0, 255), min_size=6, max_size=6).map(
        lambda parts: ":".join(f"{n:02x}" for n in parts)
    ),
)
_PATH = st.lists(_NAME, min_size=2, max_size=5).map(lambda parts: "/" + "/".join(("vol", *parts)))
_UUID = st.uuids().map(lambda unit: f"GPU-{unit}")

AWKWARD = (
    "{}",
    "'{}'",
    '"{}"',
    "({})",
    "[{}]",
    "x={}",
    "x: {},",
    "<{}>",
    "{}\n",
    "\t{}",
    'File "{}", line 3, in <module>',
    '{{"where": "{}", "n": 1}}',
    "b'{}'",
    "see {}.",
    "error:{};",
    "{}\r\n",
)
_PLACE = st.sampled_from(AWKWARD)


def _gone(secret: str, text: str) -> None:
    without = re.sub(r"<(path|repo|data|tmp|url|user|host|address)>", "", text)
    assert not re.search(rf"(?<![^\W_]){re.escape(secret)}(?![^\W_])", without, re.IGNORECASE), text


@given(_NAME, _NAME, _ADDRESS, _PATH, _UUID, _PLACE)
def test_a_text_with_a_name_an_address_or_a_path_is_withheld(host, user, address, path, uuid, place):
    names = (user, host)
    for secret in (host, user, address, path, uuid):
        text = place.format(secret)
        assert redact_value(text, names) == WITHHELD, text
        if secret in (address, path, uuid):
            assert find_leaks(json.dumps({"message": text}))


@given(_NAME, _NAME, _ADDRESS, _PATH, st.uuids(), st.data())
def test_no_name_address_or_path_gets_through_a_fingerprint(host, user, address, path, uuid, data):
    names = (user, host)
    secrets = (host, user, path, str(uuid), f"{user}@{host}", f"http://{user}:x@{address}/y")

    def text() -> str:
        return data.draw(_PLACE).format(data.draw(st.sampled_from(secrets)))

    card = {
        "index": 0,
        "vendor": "NVIDIA",
        "name": "NVIDIA A",
        "vbios": text(),
        "uuid": f"GPU-{uuid}",
        "mig": text(),
    }
    fields = {
        "system": "Linux",
        "kernel": text(),
        "distribution": text(),
        "libc": text(),
        "architecture": "x86_64",
        "virtual": text(),
        "cpu": {"model": "AMD EPYC", "governor": text(), "usable": 2.0, "cores": 2},
        "gpus": [card],
    }
    machine = make_machine(fields, "0123456789ab", "bench", names)
    told = machine.gpus[0]
    cleaned = (machine.kernel, machine.distribution, machine.libc, machine.virtual, machine.cpu.model)
    cleaned += (machine.cpu.governor, told.name, told.vbios, told.mig)
    for secret in (host, user, address, path, str(uuid)):
        _gone(secret, "\n".join(map(str, cleaned)))
    assert str(uuid) not in machine.canonical()
    assert find_leaks(machine.canonical()) == ()
    assert machine_differences(machine, machine) == ()


@pytest.mark.parametrize(
    "fact", ["NVIDIA A100-SXM4-40GB", "AMD EPYC 7763 64-Core Processor", "Tesla V100-SXM2-16GB"]
)
def test_a_device_keeps_its_name_on_a_host_that_is_called_after_it(fact):
    names = ("a100", "epyc", "tesla")
    fields = {"system": "Linux", "kernel": "6.1.0-tesla", "architecture": "x86_64", "gpus": []}
    machine = make_machine({**fields, "cpu": {"model": fact}}, "0123456789ab", "bench", names)
    assert (machine.cpu.model, machine.kernel) == (fact, WITHHELD)


def test_what_only_looks_like_an_address_a_path_or_a_name_stays():
    for text in (
        "110 images/s at 12:34:56, and/or ./a/b.py ../c c10::Error at::Tensor nvidia-cudnn-cu13==9.20.0.48",
        "127.0.0.1:29500 [::1]:80 base@sha256:0011 driver 535.104.05",
        "cannot open /usr/lib/x86_64-linux-gnu/libc.so.6, /dev/nvidia0 or /proc/meminfo",
        "root on localhost: Ubuntu 24.04",
        "strained program was framed; refuse us",
    ):
        names = ("strain", "ram", "localhost", "fuse", "us", "root")
        assert redact_value(text, names) == text


@given(st.text(max_size=400))
def test_any_text_is_taken(text):
    assert len(redact_value(text, NAMES)) <= 200


def test_a_leak_is_named_by_its_field_and_kind_without_the_secret():
    machine = {"label": "me@brutus", "kernel": "6.6.87.2-microsoft-standard-WSL2"}
    record = {"machine": machine, "notes": ["/srv/sets/x"]}
    record["measurement"] = {
        "packages": {"nvidia-cudnn": "9.20.0.48"},
        "step_us": {"microseconds": "/ab/cd/ef"},
    }
    assert find_leaks(json.dumps(record)) == (
        "'machine.label' holds an e-mail address",
        "'notes' holds a path",
    )


def test_packed_numbers_are_no_paths_whatever_their_letters_spell():
    record = {"telemetry": {"cpu": {"mean": {"count": 1, "packed": "eJwr/home/anna/qwAAAA=="}}}}
    assert find_leaks(json.dumps(record)) == ()
