"""Who answers for a bundle: signatures, orders and time stamps. No figure here was measured."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from commands import bundle
from commands.recipient import demand, judged
from harness.bundle.judgement import Demand
from harness.bundle.statement import Envelope, signed_keys
from harness.errors import GateError, UserError
from tests.helpers import ROOT
from tests.helpers.forged_bundles import differs, forged, judgement


@pytest.fixture
def signed(clone, tmp_path, key) -> Path:
    how = bundle.Packing(out=tmp_path / "b.tar.gz", key=key, order="PO 4711", statement_out=tmp_path / "s")
    return bundle.pack(clone, how)


@pytest.fixture
def signers(tmp_path, key) -> Path:
    public = key.with_suffix(".pub").read_text().split()
    path = tmp_path / "signers"
    path.write_text(f"a-lab {public[0]} {public[1]}\n")
    return path


def refused(path: Path, **asked: object) -> str:
    with pytest.raises(GateError, match="is less than was asked for: ") as error:
        judged(ROOT, path, Demand(**asked))
    return error.value.problem.partition(": ")[2]


def test_a_bundle_has_one_of_four_levels_and_below_what_is_asked_it_is_refused(good, signed, signers):
    assert judgement(good).level == "recomputed"
    assert judgement(signed).level == "signed"
    assert judgement(signed, signers=signers).level == "known-signer"
    assert "'recomputed, signed' was asked for" in refused(good, at_least="signed")
    assert "'recomputed, signed by a key you know' was asked for" in refused(signed, at_least="known-signer")
    assert judged(ROOT, signed, Demand("known-signer", signers)).level == "known-signer"
    with pytest.raises(UserError, match="'gold' is no level"):
        demand("gold", "", (), "", "")


def test_a_signer_is_one_of_those_that_are_allowed(good, signed, signers, tmp_path):
    assert [one.signer for one in judgement(signed, signers=signers).answering.signed] == ["a-lab"]
    signers.write_text("")
    assert "none of the signers" in refused(signed, signers=signers)
    assert "none of the signers" in refused(good, signers=signers)
    with pytest.raises(UserError, match=r"there is no file '.*missing'"):
        judgement(signed, signers=tmp_path / "missing")


def test_a_file_and_an_order_are_those_that_are_asked_for(good, signed):
    sha256 = judgement(signed).sha256
    assert judged(ROOT, signed, Demand(sha256=(sha256,), order="PO 4711")).stated.order == "PO 4711"
    assert refused(signed, order="PO 4712") == "it is of order 'PO 4711', not of 'PO 4712'"
    assert refused(good, order="PO 4711") == "it states no order"
    with pytest.raises(GateError, match=f"another file: its SHA-256 is {sha256}"):
        judgement(signed, sha256=("0" * 64,))


def test_a_signature_over_another_statement_is_no_good_one(signed, key, tmp_path, capsys):
    own = Envelope.parse((tmp_path / "s").read_bytes(), "")
    other = Envelope.of(own.content.replace(b"PO 4711", b"PO 4712"))
    with pytest.raises(UserError, match="no good one"):
        signed_keys(other.model_copy(update={"signatures": own.signatures}))
    assert judgement(forged(signed, tmp_path, lambda work: None)).level == "recomputed"


def test_the_statement_alone_is_in_toto_s_in_an_envelope_of_dsse(signed, tmp_path):
    envelope = Envelope.parse((tmp_path / "s").read_bytes(), "")
    statement = json.loads(envelope.content)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert {"name", "digest"} == set(statement["subject"][0])
    assert envelope.signed_bytes.startswith(
        b"DSSEv1 28 application/vnd.in-toto+json %d {" % len(envelope.content)
    )
    assert judgement(signed).stated.order == statement["predicate"]["order"] == "PO 4711"


def test_a_bundle_is_countersigned_by_a_second_key_and_keeps_its_content(signed, signers, tmp_path):
    second = tmp_path / "second"
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "constructed", "-f", str(second)]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    how = bundle.Packing(out=tmp_path / "both.tar.gz", key=second)
    both = judgement(bundle.countersign(ROOT, signed, how, Demand()), signers=signers)
    assert [one.signer for one in both.answering.signed] == ["a-lab", None]
    assert both.stated == judgement(signed).stated
    with pytest.raises(UserError, match="nothing is to be added"):
        bundle.countersign(ROOT, signed, bundle.Packing(), Demand())
    with pytest.raises(GateError, match="is less than was asked for"):
        bundle.countersign(ROOT, signed, how, Demand(order="PO 1"))


@pytest.fixture
def stamp_of(tmp_path):
    """A time stamp over a file by a service that is made for the test, whose certificate lies beside it."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl")
    service = tmp_path / "service"
    service.mkdir()
    (service / "conf").write_text(
        "[req]\ndistinguished_name=dn\nx509_extensions=v3\nprompt=no\n[dn]\nCN=constructed\n"
        "[v3]\nextendedKeyUsage=critical,timeStamping\nbasicConstraints=CA:true\n"
        "[tsa]\ndefault_tsa=t\n[t]\nserial=serial\ndefault_policy=1.2.3\ndigests=sha256\n"
        "signer_digest=sha256\naccuracy=secs:1\n"
    )

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=service, check=True, capture_output=True)

    openssl(
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key", "-out", "ca", "-config", "conf"
    )

    def stamp(path: Path) -> Path:
        openssl("ts", "-query", "-data", str(path), "-sha256", "-cert", "-out", "query")
        signer = ("-section", "t", "-signer", "ca", "-inkey", "key")
        openssl("ts", "-reply", "-config", "conf", *signer, "-queryfile", "query", "-out", "stamp")
        return service / "stamp"

    return stamp


def test_a_time_stamp_is_checked_where_its_service_is_known_and_else_it_is_said_not_to_be(
    signed, good, stamp_of, key, tmp_path, capsys
):
    how = bundle.Packing(out=tmp_path / "stamped.tar.gz", stamp=stamp_of(tmp_path / "s"))
    stamped = bundle.countersign(ROOT, signed, how, Demand())
    assert "time: not checked" in capsys.readouterr().out
    found = judgement(stamped, stamp_ca=tmp_path / "service" / "ca")
    assert found.problems == () and found.answering.moment.endswith("GMT")
    assert refused(signed, stamp_ca=tmp_path / "service" / "ca") == "it has no time stamp"
    with pytest.raises(UserError, match="sign first, then stamp"):
        bundle.countersign(ROOT, stamped, bundle.Packing(key=key), Demand())
    with pytest.raises(UserError, match="no time stamp of the bundle's statement"):
        bundle.countersign(ROOT, good, how, Demand())
    other = tmp_path / "other"
    other.write_bytes((tmp_path / "service" / "ca").read_bytes()[:40])
    assert "the time stamp is no good one" in differs(stamped, capsys, stamp_ca=other)
