"""What leaves the machine names nobody: secrets made up from random pieces, set into awkward places."""

from __future__ import annotations

import json
import re
import string

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.machine import machine_from
from harness.record import differences
from harness.redact import KEPT_CHARACTERS, NOBODY, Names, leaks, redact

HOME, CLONE, DATA, TMP = "/home/maren", "/home/maren/src/gpudyno", "/srv/sets", "/var/tmp"
NAMES = Names(
    folders=((HOME, "~"), (CLONE, "<repo>"), (DATA, "<data>"), (TMP, "<tmp>")),
    users=("maren", "Maren Ødegård"),
    hosts=("brutus", "node17.lab.example"),
    serials=("1563820012345",),
)

_LETTERS = string.ascii_lowercase
_WORD = st.text(_LETTERS, min_size=3, max_size=10)
_NAME = st.one_of(_WORD, st.builds("{}-{}{}".format, _WORD, _WORD, st.integers(0, 99))).filter(
    lambda name: name not in NOBODY
)
_ADDRESS = st.one_of(
    st.ip_addresses(v=4).map(str).filter(lambda text: not text.startswith("127.") and text != "0.0.0.0"),
    st.ip_addresses(v=6).map(str).filter(lambda text: len(text) > 6),
    st.lists(st.integers(0, 255), min_size=6, max_size=6).map(
        lambda parts: ":".join(f"{n:02x}" for n in parts)
    ),
)
_PATH = st.lists(_NAME, min_size=2, max_size=5).map(lambda parts: "/" + "/".join(("vol", *parts)))
_SERIAL = st.text(string.digits, min_size=10, max_size=13)
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
    "\\n{}",
    "\x1b[31m{}\x1b[0m",
    "\\u001b[1m{}\\u001b[0m",
    'File "{}", line 3, in <module>',
    '{{"where": "{}", "n": 1}}',
    "b'{}'",
    "see {}.",
    "error:{};",
    "a\x1b[32m{}",
    "{}\r\n",
)
_PLACE = st.sampled_from(AWKWARD)


def _gone(secret: str, text: str) -> None:
    without = re.sub(r"<(path|repo|data|tmp|url|user|host|address|serial)>", "", text)
    assert not re.search(rf"(?<![^\W_]){re.escape(secret)}(?![^\W_])", without, re.IGNORECASE), text


@settings(max_examples=300)
@given(_NAME, _NAME, _ADDRESS, _PATH, _SERIAL, _UUID, st.lists(_PLACE, min_size=7, max_size=7), st.booleans())
def test_no_name_address_path_or_serial_gets_through_a_log_tail(
    host, user, address, path, serial, uuid, places, loud
):
    names = Names(folders=((f"/home/{user}", "~"),), users=(user,), hosts=(host,), serials=(serial,))
    secrets = (host.upper() if loud else host, user, address, path, serial, uuid, f"/home/{user}/x/{host}")
    cleaned = redact(
        "\n".join(place.format(secret) for place, secret in zip(places, secrets, strict=True)), names
    )
    for secret in (host, user, address, path, serial, uuid):
        _gone(secret, cleaned)
    for part in path.split("/"):
        if len(part) > 6:
            _gone(part, cleaned)
    assert redact(cleaned, names) == cleaned


@settings(max_examples=300)
@given(_NAME, _NAME, _ADDRESS, _PATH, _SERIAL, st.uuids(), st.data())
def test_no_name_address_path_or_serial_gets_through_a_fingerprint(
    host, user, address, path, serial, uuid, data
):
    names = Names(users=(user,), hosts=(host,), serials=(serial,))
    secrets = (host, user, path, serial, str(uuid), f"{user}@{host}", f"http://{user}:x@{address}/y")

    def text() -> str:
        return data.draw(_PLACE).format(data.draw(st.sampled_from(secrets)))

    card = {
        "index": 0,
        "vendor": "NVIDIA",
        "name": text(),
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
        "cpu": {"model": text(), "governor": text(), "usable": 2.0, "cores": 2},
        "gpus": [card],
    }
    machine = machine_from(fields, "0123456789ab", "bench", names)
    told = machine.gpus[0]
    cleaned = (machine.kernel, machine.distribution, machine.libc, machine.virtual, machine.cpu.model)
    cleaned += (machine.cpu.governor, told.name, told.vbios, told.mig)
    for secret in (host, user, address, path, serial, str(uuid)):
        _gone(secret, "\n".join(map(str, cleaned)))
    assert str(uuid) not in machine.canonical()
    assert leaks(machine.canonical(), names) == ()
    assert differences(machine, machine) == ()


@given(st.text(max_size=400))
def test_cleaning_twice_changes_nothing_and_any_text_is_taken(text):
    once = redact(text, NAMES)
    assert redact(once, NAMES) == once


def test_a_tail_is_cut_at_a_line_and_freed_of_what_cannot_be_printed():
    text = "first\n" + "".join(f"line {n}\x07\x1b[2K\n" for n in range(5000))
    tail = redact(text, NAMES)
    assert len(tail) <= KEPT_CHARACTERS
    assert re.fullmatch(r"(line \d{4}\n)+", tail)
    assert tail.endswith("line 4999\n")


def test_known_folders_get_their_signs_and_the_longest_wins():
    assert redact(f'File "{CLONE}/harness/run.py", line 3', NAMES) == 'File "<repo>/harness/run.py", line 3'
    assert redact(f"{HOME}/thesis/draft/a.py", NAMES) == "~/a.py"
    assert (
        redact(f"{DATA}/cifar-100-python/train {TMP}/x/y", NAMES) == "<data>/cifar-100-python/train <tmp>/x/y"
    )
    assert redact(f"{HOME}n/a.py", NAMES) == "<path>/a.py"


def test_site_packages_and_the_system_stay_readable():
    assert redact("/opt/acme/env/lib/python3.11/site-packages/torch/nn/a.py", NAMES).endswith(
        "lib/python3.11/site-packages/torch/nn/a.py"
    )
    for kept in (
        "/usr/lib/x86_64-linux-gnu/libc.so.6",
        "/dev/nvidia0",
        "/proc/meminfo",
        "/var/run/docker.sock",
    ):
        assert redact(f"cannot open {kept}: no", NAMES) == f"cannot open {kept}: no"


def test_ordinary_words_that_hold_a_name_stay():
    names = Names(hosts=("strain", "ram"), users=("fuse", "us"))
    kept = "strained program was framed; refuse us"
    assert redact(kept, names) == kept
    assert redact("log_strain_x STRAIN fuse", names) == "log_<host>_x <host> <user>"


def test_names_that_identify_nobody_stay():
    names = Names(hosts=("localhost",), users=("root", "ubuntu"))
    assert redact("root on localhost: Ubuntu 24.04", names) == "root on localhost: Ubuntu 24.04"


def test_what_only_looks_like_an_address_or_a_path_stays():
    kept = (
        "110 images/s at 12:34:56, and/or ./a/b.py ../c c10::Error at::Tensor nvidia-cudnn-cu13==9.20.0.48 "
        "127.0.0.1:29500 [::1]:80 base@sha256:0011 https://pytorch.org/docs/stable driver 535.104.05"
    )
    assert redact(kept, NAMES) == kept


def test_credentials_and_inner_hosts_in_urls_go():
    text = redact("pip https://maren:pw@nexus.acme.example/simple/x https://github.com/a/b?token=abc", NAMES)
    assert text == "pip <url> https://github.com/a/b"


def test_a_leak_is_named_by_its_field_and_kind_without_the_secret():
    record = {"machine": {"label": "brutus", "kernel": "6.6.87.2-microsoft-standard-WSL2"}, "notes": [HOME]}
    record["measurement"] = {
        "packages": {"nvidia-cudnn": "9.20.0.48"},
        "step_us": {"microseconds": "/ab/cd/ef"},
    }
    assert leaks(json.dumps(record), NAMES) == (
        "'machine.label' holds a host or user name",
        "'notes' holds a folder of this machine",
    )


def test_packed_numbers_are_no_paths_whatever_their_letters_spell():
    record = {"telemetry": {"cpu": {"mean": {"count": 1, "packed": "eJwr/home/anna/qwAAAA=="}}}}
    assert leaks(json.dumps(record), NAMES) == ()
