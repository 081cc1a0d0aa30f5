"""Who owns the folders of a trial on the host, so that the user inside can use them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from harness.container import Folders
from harness.errors import MachineError


def hand_over(folders: Folders, uid: int, gid: int) -> None:
    """Gives a trial's own folders to the user inside, where the caller is root and that user is not.

    Raises MachineError for a data or workload folder that the user inside could not read.
    """
    if os.geteuid() != 0 or uid == 0:
        return
    for folder in (folders.input, folders.output, folders.cache):
        _own(folder, uid, gid)
    for folder in (folders.workloads, *(folder for _, folder in folders.data)):
        closed = _closed(folder, uid)
        if closed is not None:
            raise MachineError(
                f"'{closed}' is closed to user {uid}, as whom trials run where the caller is root",
                remedy=f"open it with `chmod -R a+rX {folder}`",
            )


def _own(folder: Path, uid: int, gid: int) -> None:
    if folder.stat().st_uid != uid:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, uid, gid, follow_symlinks=False)
        return
    for path in folder.iterdir():
        if path.lstat().st_uid != uid:
            os.chown(path, uid, gid, follow_symlinks=False)


def _closed(folder: Path, uid: int) -> Path | None:
    """The first of a folder and what lies directly in it that others may not read."""
    for path in (folder, *sorted(folder.iterdir())):
        if not path.exists():
            continue
        found = path.stat()
        needed = stat.S_IROTH | stat.S_IXOTH if stat.S_ISDIR(found.st_mode) else stat.S_IROTH
        if found.st_uid != uid and found.st_mode & needed != needed:
            return path
    return None
