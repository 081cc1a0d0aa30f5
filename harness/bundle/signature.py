"""Signatures over a file by `ssh-keygen -Y`: with the key that a person has already, and no web of trust."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness.errors import MachineError, UserError
from harness.files import last_line

NAMESPACE = "gpudyno"


@dataclass(frozen=True, slots=True)
class Signed:
    """By which key, and by whom where a file of allowed signers names the key."""

    key: str
    signer: str | None = None


def sign(path: Path, key: Path) -> None:
    """Signs a file with a private key, or a public one whose private half an agent holds, into `path`.sig.

    Raises UserError where ssh-keygen refuses, MachineError where there is none.
    """
    done = _keygen("-Y", "sign", "-n", NAMESPACE, "-f", str(key), str(path))
    if done.returncode:
        raise UserError(
            f"'{key}' does not sign ({last_line(done.stderr or done.stdout)})",
            remedy="name a key that ssh-keygen can use",
        )


def check(path: Path, signature: Path, signers: Path | None = None) -> Signed:
    """The key of a good signature. Raises UserError where it is not, or is of none of the allowed signers."""
    common = ("-n", NAMESPACE, "-s", str(signature))
    good = _keygen("-Y", "check-novalidate", *common, stdin=path)
    key = re.search(r"\b[\w-]+ key SHA256:[A-Za-z0-9+/]{43}", good.stdout)
    if good.returncode or key is None:
        raise UserError(
            f"'{signature.name}' is no good signature ({last_line(good.stderr or good.stdout)})",
            remedy="do not trust it",
        )
    if signers is None:
        return Signed(key[0])
    whose = _keygen("-Y", "find-principals", "-f", str(signers), "-s", str(signature))
    for signer in whose.stdout.split("\n"):
        if (
            signer
            and not _keygen("-Y", "verify", "-f", str(signers), "-I", signer, *common, stdin=path).returncode
        ):
            return Signed(key[0], signer)
    raise UserError(
        f"the signature's {key[0]} is of none of the signers in '{signers}'", remedy="ask whose key it is"
    )


def _keygen(*words: str, stdin: Path = Path(os.devnull)) -> subprocess.CompletedProcess[str]:
    with stdin.open("rb") as given:
        try:
            return subprocess.run(
                ["ssh-keygen", *words], stdin=given, capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            raise MachineError("there is no ssh-keygen", remedy="install OpenSSH's client") from None
