"""One way to the network, an office's proxy that signs anew: for data, programs, pip, builds, the doctor."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.line import _load_settings
from harness import network
from harness.data.datasets import DATASETS
from harness.data.fetch import DataFolders, fetch_dataset, resolve_datasets
from harness.engine.image_build import build_settings
from harness.engine.venv import run_alternatives
from harness.errors import MachineError, NoNetwork, NoSpace
from harness.image.images import load_images
from harness.record.published.program import Program
from harness.run import source_tree
from harness.settings import Settings
from tests.helpers import ROOT
from tests.helpers.mirror import TARBALL, toy
from tests.helpers.office_proxy import Office, office
from tests.helpers.programs import fields, git, repository
from tests.helpers.wheels import wheel

ADDRESS = "https://mirror.example/toy.tar.gz"


@pytest.fixture
def behind(tmp_path, monkeypatch) -> Iterator[Office]:
    """A machine whose only way leads by that proxy; nobody has named its authority."""
    for name in (*network.AUTHORITY_VARIABLES, *network.PROXY_VARIABLES, "CURL_CA_BUNDLE", "PIP_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", "")
    with office(tmp_path / "office") as made:
        monkeypatch.setenv("HTTPS_PROXY", made.url)
        made.files["mirror.example/toy.tar.gz"] = TARBALL
        monkeypatch.setitem(DATASETS, "toy", toy(ADDRESS))
        yield made


def data(folder: Path) -> None:
    fetch_dataset(toy(ADDRESS), folder / "data")


def program(folder: Path) -> None:
    there = repository(folder / "office" / "r")
    git(folder / "office", "clone", "--quiet", "--bare", str(there), "a.git")
    asked = Program.model_validate(fields(there, forge="https://forge.example/a.git"))
    source_tree.bring_source(asked, None, folder / "programs")


def packages(folder: Path) -> None:
    index = ("--index-url", "https://index.example/simple/", "--no-cache-dir", "--retries", "1")
    argv = (sys.executable, "-m", "pip", "install", *index, "--target", str(folder / "site"), "tiny")
    run_alternatives("packages", (argv,), folder / "log", lambda *_, **__: None)


WAYS = pytest.mark.parametrize("way", [data, program, packages])


@pytest.fixture
def served(behind, tmp_path) -> Office:
    """The same with a package index that has one package."""
    behind.files["index.example/simple/tiny/"] = b'<a href="../../tiny-1-py3-none-any.whl">tiny</a>'
    behind.files["index.example/tiny-1-py3-none-any.whl"] = wheel(tmp_path, "tiny", "1").read_bytes()
    return behind


SYSTEM = "the system's"


@pytest.mark.parametrize(
    ("way", "named"),
    [
        *((data, name) for name in ("ca", *network.AUTHORITY_VARIABLES, SYSTEM)),
        *((program, name) for name in ("ca", "PIP_CERT")),
        *((packages, name) for name in ("ca", SYSTEM)),
    ],
)
def test_data_programs_and_packages_come_by_the_proxy_and_its_authority(
    served, tmp_path, monkeypatch, way, named
):
    if named == "ca":
        _load_settings(tmp_path, {"ca": str(served.authority)})
    elif named == SYSTEM:
        monkeypatch.setattr(network, "SYSTEMS", (str(served.authority),))
    else:
        monkeypatch.setenv(named, str(served.authority))
    way(tmp_path)
    assert served.asked


@WAYS
@pytest.mark.parametrize(
    ("met", "words", "remedy"),
    [
        ("authority", "signed by an authority unknown here", "SSL_CERT_FILE"),
        (407, "name and a password", "HTTPS_PROXY"),
        (403, "refuses it (403)", "NO_PROXY"),
        ("gone", "gives no connection", "HTTPS_PROXY"),
    ],
)
def test_what_stands_in_the_way_is_named_with_its_remedy_and_nothing_stands_in(
    served, tmp_path, monkeypatch, way, met, words, remedy
):
    if met != "authority":
        monkeypatch.setenv("SSL_CERT_FILE", str(served.authority))
    if met == "gone":
        monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    served.refuses = met if isinstance(met, int) else None
    with pytest.raises(MachineError) as refused:
        way(tmp_path)
    assert words in refused.value.problem and remedy in refused.value.remedy
    assert not isinstance(refused.value, NoNetwork)
    if way is data:
        with pytest.raises(MachineError, match=re.escape(words)):
            resolve_datasets(["toy"], folders=DataFolders(None, tmp_path / "d"), allow_generated=True)


def test_a_page_of_the_proxy_s_own_is_no_data(served, tmp_path, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(served.authority))
    served.page = True
    with pytest.raises(MachineError, match="page of its own"):
        resolve_datasets(["toy"], folders=DataFolders(None, tmp_path / "d"), allow_generated=True)


def test_generated_data_stands_in_for_a_dead_line_and_a_name_that_is_not_known(behind, tmp_path, monkeypatch):
    monkeypatch.delenv("HTTPS_PROXY")
    folders = DataFolders(None, tmp_path / "d")
    for url, words in (
        ("https://127.0.0.1:9/toy.tar.gz", "127.0.0.1 cannot be reached"),
        ("https://nobody.invalid/toy.tar.gz", "the name of nobody.invalid is not known here"),
    ):
        monkeypatch.setitem(DATASETS, "toy", toy(url))
        found = resolve_datasets(["toy"], folders=folders, allow_generated=True)["toy"]
        assert found.source == "generated" and words in found.why
        with pytest.raises(NoNetwork, match=words):
            resolve_datasets(["toy"], folders=folders)


def test_a_socks_proxy_and_a_missing_file_of_authorities_are_sentences(behind, tmp_path, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "socks5://127.0.0.1:9")
    with pytest.raises(MachineError, match=r"SOCKS, which is not supported.*; set HTTPS_PROXY to"):
        data(tmp_path)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "none.pem"))
    for way in (data, packages):
        with pytest.raises(MachineError, match=r"no file of authorities '.*none.pem'.*; correct REQUESTS_CA"):
            way(tmp_path)


def test_an_image_gets_the_same_way_and_its_tag_does_not_depend_on_it(behind, monkeypatch):
    image = load_images(ROOT).image("cpu")
    monkeypatch.setattr(network, "SYSTEMS", ())
    without = build_settings(Settings(), root=ROOT, environ={})
    environ = {"PIP_CERT": str(behind.authority), "all_proxy": behind.url}
    by = build_settings(Settings(), root=ROOT, environ=environ)
    assert (without.secrets, by.secrets) == ({}, {"ca": behind.authority})
    assert by.proxy == {"all_proxy": behind.url}
    assert by.spec(image).tag == without.spec(image).tag


@pytest.mark.parametrize(
    ("line", "words", "kind"),
    [
        ("[Errno -2] Name or service not known: /cpu/torch/", "the name of the index is not", NoNetwork),
        (
            "lookup a.example.org on 10.0.0.1:53: no such host",
            "the name of a.example.org",
            NoNetwork,
        ),
        ("failed with status code [manifests 1]: 429 Too Many Requests", "the index gives no", MachineError),
        ('Head "https://me:word@a.example.org/v2": connection refused', "a.example.org cannot", NoNetwork),
        ("HTTPSConnectionPool(host='a.example.org'): Read timed out.", "a.example.org cannot", NoNetwork),
        (
            'Get "https://a.example.org/v2/": proxyconnect tcp: refused',
            "the proxy on the way to a.ex",
            MachineError,
        ),
        (
            'Get "https://a.example.org/v2/": x509: certificate signed by unknown authority',
            "the certificate of a.exa",
            MachineError,
        ),
        ("toomanyrequests: You have reached your pull rate limit", "the index gives no more", MachineError),
        ("ERROR: failed to resolve source metadata for x: a: not found", "there is no image", MachineError),
        ("source metadata for x: a: unexpected status: 401 Unauthorized", "its last word", MachineError),
        ("source metadata for x: a: unexpected status: 403 Forbidden", "its last word", MachineError),
        ("pull access denied, repository does not exist", "there is no image", MachineError),
        ("error getting credentials - err: exit status 1", "the credential helper", MachineError),
        (
            "E: Release file for http://a/ is not valid yet (another 3h)",
            "the certificate of a is",
            MachineError,
        ),
        ("invalid peer certificate: Expired", "the certificate of the index is not", MachineError),
        ("invalid peer certificate: NotValidForName", "the certificate that", MachineError),
        ("certificate verify failed: IP address mismatch, certificate", "the certificate that", MachineError),
        ("certificate verify failed: a reason that is new", "its last word", MachineError),
        ("ERROR: x requires a different Python: 3.14.0 not in '<3.14'", "this Python is none", MachineError),
        ("error getting credentials - err: exec: not found", "the credential helper", MachineError),
        (
            "x509: certificate has expired or is not yet valid: current time",
            "the certificate of the index is not",
            MachineError,
        ),
        ("x509: certificate is valid for a.example.org, not b", "the certificate that", MachineError),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "a package's hash", MachineError),
        ("ERROR: these package versions have conflicting dependencies.", "a constraint", MachineError),
        ("write /var/x: no space left on device", "the disk is full", NoSpace),
        ("something that nobody knows", "its last word", MachineError),
    ],
)
def test_the_cause_of_a_failed_environment_is_read_from_what_it_printed(line, words, kind):
    found = network.failure_cause(["$ a command", line], "its last word", "the index")
    assert found.problem.startswith(words) and isinstance(found, kind)
    assert isinstance(found, NoNetwork) == (kind is NoNetwork)


def test_a_network_that_answered_again_is_no_cause_and_each_way_is_judged_by_its_own_log(tmp_path):
    retried = "WARNING: Retrying after connection broken by 'NewConnectionError: Name or service not known'"
    lines = [retried, "  Downloading torch.whl (1 MB)", "ERROR: a wheel is broken"]
    assert network.failure_cause(lines, lines[-1], "the index").problem == "ERROR: a wheel is broken"
    ways = (
        f"echo {retried!r}; exit 1",
        "echo '  Downloading x'; echo 'ERROR: its wheel is broken'; echo '[notice] a new pip'; exit 1",
    )
    alternatives = tuple(("sh", "-c", way) for way in ways)
    with pytest.raises(MachineError) as refused:
        run_alternatives("packages", alternatives, tmp_path / "log", lambda *words: None)
    assert refused.value.problem == (
        "packages could not be installed: the name of the package index is not known here; then: "
        "ERROR: its wheel is broken"
    )
    assert not isinstance(refused.value, NoNetwork)
