"""What a bundle states, in an envelope that OpenSSH's keys sign, and when: a time stamp that OpenSSL checks.

in-toto's Statement, version 1, over each of its files, in DSSE's envelope: with the key that a person has
already. A time stamp is that of RFC 3161.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

from pydantic import Field

from harness.errors import MachineError, UserError
from harness.files import last_line
from harness.record import Harness, Model, Summary
from harness.record.result import SessionId
from harness.record.strict_model import Moment

LAYOUT = 5
"""The number of the layout: which files a bundle has, and what they hold."""


class FileDigest(Model):
    """The SHA-256 of a file, in hex."""

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Resource(Model):
    """A file by its name in a clone."""

    name: str
    digest: FileDigest


class Predicate(Model):
    """What is stated of the files."""

    gpudyno: Harness
    """Which version and commit packed them."""
    machine: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
    """The machine of the leading session."""
    session: SessionId
    """The session whose figures a delivered machine must reach."""
    as_of: Moment
    """The end of the newest trial."""
    margin: Annotated[float, Field(gt=0, lt=1)]
    """How far below a figure of the leading session a delivered machine may be."""
    order: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """The buyer's own word for the order."""
    sources: tuple[Resource, ...]
    """The claims, cards and tables of the clone that packed it; each clone reads its own."""
    figures: dict[str, Summary]
    """By the path of each record with a measurement, what its raw samples give."""


class Statement(Model):
    """https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md"""

    form: Annotated[Literal["https://in-toto.io/Statement/v1"], Field(alias="_type")] = (
        "https://in-toto.io/Statement/v1"
    )
    subject: tuple[Resource, ...]
    """Every file of the bundle but the statement and its time stamp."""
    predicate_type: Annotated[Literal["urn:gpudyno:bundle:5"], Field(alias="predicateType")] = (
        "urn:gpudyno:bundle:5"
    )
    predicate: Predicate


def resources(files: Mapping[str, bytes]) -> tuple[Resource, ...]:
    """Return each file's name and digest, in the order of the names."""
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}
    return tuple(Resource(name=name, digest=FileDigest(sha256=sha256)) for name, sha256 in digests.items())


def json_bytes(model: Model) -> bytes:
    """Return the one way in which a statement and its envelope are written."""
    fields = model.model_dump(mode="json", by_alias=True)
    return (json.dumps(fields, indent=1, ensure_ascii=False) + "\n").encode()


TYPE = "application/vnd.in-toto+json"
NAMESPACE = "gpudyno"
_ARMOUR = ("-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----")

Base64 = Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]+={0,2}$")]


class Seal(Model):
    """One signature as OpenSSH writes it, without its armour."""

    sig: Base64


class Envelope(Model):
    """https://github.com/secure-systems-lab/dsse, version 1; without a seal where nobody signed."""

    payload_type: Annotated[str, Field(alias="payloadType", pattern=f"^{re.escape(TYPE)}$")] = TYPE
    payload: Base64
    signatures: Annotated[tuple[Seal, ...], Field(max_length=16)] = ()

    @classmethod
    def of(cls, payload: bytes) -> Envelope:
        """Return an envelope that nobody has signed yet."""
        return cls(payload=b64encode(payload).decode())

    @property
    def content(self) -> bytes:
        """Return the payload's bytes."""
        return b64decode(self.payload)

    @property
    def signed_bytes(self) -> bytes:
        """Return what a signature is over: DSSE's pre-authentication encoding."""
        return b"DSSEv1 %d %s %d %s" % (len(TYPE), TYPE.encode(), len(self.content), self.content)

    def signed_by(self, key: Path) -> Envelope:
        """Return it with one more signature, by a private key, or a public one whose half an agent holds.

        Raises UserError where ssh-keygen refuses, MachineError where there is none.
        """
        done = _run_tool("ssh-keygen", "-Y", "sign", "-n", NAMESPACE, "-f", str(key), stdin=self.signed_bytes)
        if done.returncode:
            raise UserError(
                f"'{key}' does not sign ({last_line(done.stderr)})",
                remedy="name a key that ssh-keygen can use",
            )
        seal = Seal(sig="".join(line for line in done.stdout.decode().splitlines() if line not in _ARMOUR))
        return self.model_copy(update={"signatures": (*self.signatures, seal)})


@dataclass(frozen=True, slots=True)
class Signed:
    """By which key, and by whom where a file of allowed signers names the key."""

    key: str
    signer: str | None = None


def signed_keys(envelope: Envelope, signers: Path | None = None) -> tuple[Signed, ...]:
    """Return the key of each signature; raises UserError where one is not good."""
    with TemporaryDirectory() as folder:
        return tuple(_signed(envelope, seal, Path(folder) / "sig", signers) for seal in envelope.signatures)


def _signed(envelope: Envelope, seal: Seal, path: Path, signers: Path | None) -> Signed:
    path.write_text("\n".join((_ARMOUR[0], *re.findall(".{1,70}", seal.sig), _ARMOUR[1], "")))
    common = ("-n", NAMESPACE, "-s", str(path))
    good = _run_tool("ssh-keygen", "-Y", "check-novalidate", *common, stdin=envelope.signed_bytes)
    key = re.search(rb"\b[\w-]+ key SHA256:[A-Za-z0-9+/]{43}", good.stdout)
    if good.returncode or key is None:
        raise UserError(
            f"a signature is no good one ({last_line(good.stderr or good.stdout)})", remedy="do not trust it"
        )
    whose = b""
    if signers is not None:
        whose = _run_tool("ssh-keygen", "-Y", "find-principals", "-f", str(signers), "-s", str(path)).stdout
    for signer in filter(None, whose.decode(errors="replace").split("\n")):
        words = ("-Y", "verify", "-f", str(signers), "-I", signer, *common)
        if not _run_tool("ssh-keygen", *words, stdin=envelope.signed_bytes).returncode:
            return Signed(key[0].decode(), signer)
    return Signed(key[0].decode())


def stamped_at(statement: bytes, stamp: bytes, authority: Path) -> str:
    """Return the moment that a time stamp gives, in OpenSSL's words; `authority` holds its service's root.

    Raises UserError where it is over other bytes or by another service, MachineError without OpenSSL.
    """
    with TemporaryDirectory() as folder:
        data, reply = Path(folder) / "statement", Path(folder) / "stamp"
        data.write_bytes(statement)
        reply.write_bytes(stamp)
        checked = _run_tool(
            "openssl", "ts", "-verify", "-data", str(data), "-in", str(reply), "-CAfile", str(authority)
        )
        said = _run_tool("openssl", "ts", "-reply", "-in", str(reply), "-text")
    moment = re.search(r"^Time stamp: ([\w :.]+)$", said.stdout.decode(errors="replace"), re.M)
    if checked.returncode or moment is None:
        raise UserError(
            f"the time stamp is no good one by '{authority.name}' ({last_line(checked.stderr)})",
            remedy="ask the service for its certificate, or for another stamp of this statement",
        )
    return moment[1]


def is_stamp_of(statement: bytes, stamp: bytes) -> bool:
    """Return whether a time stamp holds a digest of the statement; its signature is not looked at."""
    return any(hashlib.new(name, statement).digest() in stamp for name in ("sha256", "sha384", "sha512"))


def _run_tool(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(words, input=stdin, capture_output=True, check=False)
    except FileNotFoundError:
        brings = "OpenSSH's client" if words[0] == "ssh-keygen" else "OpenSSL"
        raise MachineError(f"there is no {words[0]}", remedy=f"install {brings}") from None
