"""A statement in DSSE's envelope, signed by `ssh-keygen -Y`: with the key that a person has already."""

from __future__ import annotations

import re
import subprocess
from base64 import b64decode, b64encode
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from pydantic import Field

from harness.errors import MachineError, UserError
from harness.files import last_line
from harness.record import Model

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
        done = _keygen("-Y", "sign", "-n", NAMESPACE, "-f", str(key), stdin=self.signed_bytes)
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
    good = _keygen("-Y", "check-novalidate", *common, stdin=envelope.signed_bytes)
    key = re.search(rb"\b[\w-]+ key SHA256:[A-Za-z0-9+/]{43}", good.stdout)
    if good.returncode or key is None:
        raise UserError(
            f"a signature is no good one ({last_line(good.stderr or good.stdout)})", remedy="do not trust it"
        )
    whose = b""
    if signers is not None:
        whose = _keygen("-Y", "find-principals", "-f", str(signers), "-s", str(path)).stdout
    for signer in filter(None, whose.decode(errors="replace").split("\n")):
        words = ("-Y", "verify", "-f", str(signers), "-I", signer, *common)
        if not _keygen(*words, stdin=envelope.signed_bytes).returncode:
            return Signed(key[0].decode(), signer)
    return Signed(key[0].decode())


def _keygen(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["ssh-keygen", *words], input=stdin, capture_output=True, check=False)
    except FileNotFoundError:
        raise MachineError("there is no ssh-keygen", remedy="install OpenSSH's client") from None
