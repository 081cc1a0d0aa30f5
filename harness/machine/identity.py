"""A random id for this machine, kept in the user's state folder; it is derived from nothing."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

import platformdirs

from harness.errors import MachineError

_ID = re.compile(r"[0-9a-f]{12}")


def state_folder() -> Path:
    """The folder of this user's state: GPUDYNO_STATE, else the platform's. It may not exist yet."""
    return Path(os.environ.get("GPUDYNO_STATE") or platformdirs.user_state_path("gpudyno"))


def machine_id(folder: Path) -> str:
    """The id in `folder`, made at the first call; raises MachineError where it cannot be kept."""
    path = folder / "machine-id"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _make(path)
        found = path.read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        raise MachineError(
            f"the machine's id cannot be kept in '{folder}' ({error.strerror})",
            remedy="set GPUDYNO_STATE to a folder that can be written",
        ) from None
    if not _ID.fullmatch(found):
        raise MachineError(f"'{path}' holds no machine id", remedy="remove it, and a new one is made")
    return found


def _make(path: Path) -> None:
    """Several first calls at once agree: the link of only one of them succeeds."""
    if path.exists():
        return
    own = path.with_name(f"machine-id.{secrets.token_hex(6)}")
    own.write_text(secrets.token_hex(6) + "\n", encoding="ascii")
    try:
        os.link(own, path)
    except FileExistsError:
        pass
    except OSError:
        own.replace(path)
        return
    own.unlink(missing_ok=True)
