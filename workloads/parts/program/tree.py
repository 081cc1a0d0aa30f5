"""A folder by git's own ids, without git: is a copy what was published, and did a program change it?

Standard library and Python 3.7 syntax only.
"""

from __future__ import annotations

import hashlib
import os
import stat

Blobs = dict
"""By path, with "/" between its parts: a file's mode as git writes it, and its blob's id."""


def blobs(folder: str, paths: object = None) -> Blobs:
    """Return all files and links of a folder, or those of some paths that are there."""
    found = {}
    for path in _walked(folder) if paths is None else paths:
        place = os.path.join(folder, path)
        if os.path.lexists(place) and not (os.path.isdir(place) and not os.path.islink(place)):
            found[path] = _blob(place)
    return found


def tree_id(files: Blobs) -> str:
    """Return the id that git gives a tree of these files."""
    entries = []
    folders = {}
    for path, (mode, blob) in files.items():
        name, _, rest = path.partition("/")
        if rest:
            folders.setdefault(name, {})[rest] = (mode, blob)
        else:
            entries.append((name.encode(), mode, blob))
    below = [(name.encode() + b"/", "40000", tree_id(inner)) for name, inner in folders.items()]
    body = b"".join(
        b"%s %s\0%s" % (mode.encode(), name.rstrip(b"/"), bytes.fromhex(blob))
        for name, mode, blob in sorted(entries + below)
    )
    return _object("tree", body)


def _walked(folder: str) -> list:
    paths = []
    for place, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        for name in files + links:
            paths.append(os.path.relpath(os.path.join(place, name), folder).replace(os.sep, "/"))
    return paths


def _blob(path: str) -> tuple:
    if os.path.islink(path):
        return "120000", _object("blob", os.fsencode(os.readlink(path)))
    with open(path, "rb") as file:
        blob = _object("blob", file.read())
        runs = os.fstat(file.fileno()).st_mode & stat.S_IXUSR
    return "100755" if runs else "100644", blob


def _object(kind: str, body: bytes) -> str:
    return hashlib.sha1(b"%s %d\0" % (kind.encode(), len(body)) + body).hexdigest()
