"""Unpacks an archive of `invoke build --pack FILE`, after it has checked every byte of it.

    python3 unpack.py ARCHIVE [FOLDER]

Needs Python 3.6 or newer and nothing else. What is checked is written beside FOLDER, and becomes FOLDER when
all of it is whole: given again after an interruption, the same line goes on.

Exit codes: 0 done, 2 the archive or the line is wrong, 4 the machine lacks something.
"""

import argparse
import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from typing import Any, BinaryIO, Dict, List, NamedTuple, Optional, Sequence, Tuple

SUMS = "SHA256SUMS"
PIECE_BYTES = 1 << 20
BLOCK_BYTES = 512
RECORD_BYTES = 20 * BLOCK_BYTES
SPARE_BYTES = 16 << 20
PART = r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,180}"
NAME = re.compile(r"(?:%s)(?:/(?:%s)){1,8}" % (PART, PART))
LINE = re.compile(r"([0-9a-f]{64})  (\S+)")
ANEW = "copy the archive again"
NOT_OURS = "do not unpack it"


class Entry(NamedTuple):
    """One file of the archive: its name below the top folder, and where its bytes lie."""

    name: str
    offset: int
    size: int


class Refused(Exception):
    """One sentence on what is wrong, and what to do; leaves with its exit code."""

    def __init__(self, problem: str, remedy: str, code: int = 2) -> None:
        Exception.__init__(self, "%s; %s" % (problem, remedy))
        self.code = code


def listed(path: str) -> Tuple[str, Dict[str, Entry]]:
    """The top folder, and the archive's files by their names below it, in their order; raises Refused."""
    entries = {}  # type: Dict[str, Entry]
    top = ""
    with open(path, "rb") as file:
        try:
            with tarfile.open(fileobj=file, mode="r:") as tar:
                for info in tar:
                    top = top or info.name.split("/")[0]
                    name = safe_name(info, top)
                    if name in entries:
                        raise Refused("the archive holds '%s' twice" % name, NOT_OURS)
                    entries[name] = Entry(name, info.offset_data, info.size)
                end = tar.offset
        except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
            after = "after '%s'" % list(entries)[-1] if entries else "at its beginning"
            raise Refused("the archive is damaged or cut short %s (%s)" % (after, error), ANEW) from None
        check_ends(file, list(entries.values()), end)
    folders = {name[:at] for name in entries for at, letter in enumerate(name) if letter == "/"}
    for name in sorted(folders & set(entries)):
        raise Refused("the archive holds '%s' twice, as a file and as a folder" % name, NOT_OURS)
    return top, entries


def safe_name(info: tarfile.TarInfo, top: str) -> str:
    """A file's name below the top folder; raises Refused for whatever is no plain file in it."""
    shown = info.name[:200].encode("unicode_escape").decode()
    if info.issym() or info.islnk():
        raise Refused("the archive's '%s' is a link" % shown, NOT_OURS)
    if not info.isreg() or info.issparse():
        raise Refused("the archive's '%s' is no plain file" % shown, NOT_OURS)
    if not NAME.fullmatch(info.name) or not info.name.startswith(top + "/"):
        raise Refused("the archive's '%s' would lie outside of its folder" % shown, NOT_OURS)
    return info.name[len(top) + 1 :]


def check_ends(file: BinaryIO, entries: List[Entry], end: int) -> None:
    """Nothing but zeros may fill up a file's last block and follow the last file."""
    last_byte = file.seek(0, os.SEEK_END)
    for entry in entries:
        file.seek(entry.offset + entry.size)
        if file.read(-entry.size % BLOCK_BYTES).strip(b"\0"):
            raise Refused("the archive is damaged after '%s'" % entry.name, ANEW)
    last = entries[-1] if entries else Entry("its beginning", 0, 0)
    end = min(end, last_byte)
    if last_byte % RECORD_BYTES or last_byte < last.offset + last.size + 2 * BLOCK_BYTES:
        raise Refused("the archive is cut short after or in '%s'" % last.name, ANEW)
    file.seek(end - end % BLOCK_BYTES)
    for piece in iter(lambda: file.read(PIECE_BYTES), b""):
        if piece.strip(b"\0"):
            raise Refused("the archive is damaged after '%s'" % last.name, ANEW)


def sums_of(path: str, entries: Dict[str, Entry]) -> Dict[str, str]:
    """The SHA-256 of each file, as the archive lists it; raises Refused where one is missing or unlisted."""
    if SUMS not in entries:
        raise Refused("the archive has no %s" % SUMS, "make it with `invoke build --pack FILE`")
    with open(path, "rb") as file:
        file.seek(entries[SUMS].offset)
        lines = file.read(entries[SUMS].size).decode("utf-8", "replace").splitlines()
    sums = {}
    for number, line in enumerate(lines, 1):
        match = LINE.fullmatch(line)
        if match is None:
            raise Refused("line %d of %s is damaged" % (number, SUMS), ANEW)
        sums[match.group(2)] = match.group(1)
    held = set(entries) - {SUMS}
    for name in sorted(set(sums) - held):
        raise Refused("the archive lacks '%s', which %s lists" % (name, SUMS), ANEW)
    for name in sorted(held - set(sums)):
        raise Refused("the archive holds '%s', which %s does not list" % (name, SUMS), NOT_OURS)
    return sums


def sha256_of(path: str) -> str:
    """The SHA-256 of a file in hex."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(PIECE_BYTES), b""):
            digest.update(piece)
    return digest.hexdigest()


def is_whole(path: str, entry: Entry, sha256: str) -> bool:
    """Whether a file was written before, to its last byte."""
    return os.path.isfile(path) and os.path.getsize(path) == entry.size and sha256_of(path) == sha256


def write(archive: BinaryIO, entry: Entry, sha256: str, path: str) -> None:
    """Copies one file out under a temporary name, and renames it where it is what its hash says."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    digest, left = hashlib.sha256(), entry.size
    archive.seek(entry.offset)
    with open(path + ".part", "wb") as file:
        while left:
            piece = archive.read(min(left, PIECE_BYTES))
            if not piece:
                raise Refused("the archive is cut short in '%s'" % entry.name, ANEW)
            digest.update(piece)
            file.write(piece)
            left -= len(piece)
        file.flush()
        os.fsync(file.fileno())
    if digest.hexdigest() != sha256:
        os.remove(path + ".part")
        raise Refused("'%s' is not what %s says: a byte in it is wrong" % (entry.name, SUMS), ANEW)
    os.rename(path + ".part", path)


def staged(path: str, entries: Dict[str, Entry], sums: Dict[str, str], staging: str) -> None:
    """Writes all files into the staging folder, those that lie there whole already aside."""
    missing = [e for e in entries.values() if e.name != SUMS]
    if os.path.isdir(staging):
        missing = [e for e in missing if not is_whole(os.path.join(staging, e.name), e, sums[e.name])]
    os.makedirs(staging, exist_ok=True)
    needed = sum(entry.size for entry in missing) + SPARE_BYTES
    free = shutil.disk_usage(staging).free
    if free < needed:
        full = "%d MiB are needed at '%s' and %d MiB are free" % (needed >> 20, staging, free >> 20)
        raise Refused(full, "make room, or name a FOLDER on another disk", 4)
    with open(path, "rb") as archive:
        for entry in missing:
            write(archive, entry, sums[entry.name], os.path.join(staging, entry.name))
    with open(os.path.join(staging, SUMS), "w") as file:
        file.write("".join("%s  %s\n" % (sums[name], name) for name in sorted(sums)))


def unpack(path: str, folder: str) -> Tuple[int, int]:
    """Makes `folder` of the archive; finds it made, each byte checked, where that was done before."""
    _, entries = listed(path)
    sums = sums_of(path, entries)
    if os.path.isdir(folder) and os.listdir(folder):
        for name in sums:
            if not is_whole(os.path.join(folder, name), entries[name], sums[name]):
                raise Refused(
                    "'%s' is there and is not what this archive holds" % folder, "name another FOLDER"
                )
        return len(entries), sum(entry.size for entry in entries.values())
    staging = folder.rstrip("/") + ".unpacking"
    if os.path.islink(staging) or os.path.islink(folder):
        raise Refused(
            "'%s' is a link" % (staging if os.path.islink(staging) else folder), "name another FOLDER"
        )
    staged(path, entries, sums, staging)
    if os.path.isdir(folder):
        os.rmdir(folder)
    os.rename(staging, folder)
    return len(entries), sum(entry.size for entry in entries.values())


def found_python(versions: Sequence[str]) -> Optional[str]:
    """The first interpreter on PATH of one of these versions that can make an environment; else None."""
    for version in versions:
        for name in (sys.executable, "python" + version, "python3"):
            python = shutil.which(name) if name else None
            code = (
                "import sys, venv, ensurepip; sys.exit('%%d.%%d' %% sys.version_info[:2] != '%s')" % version
            )
            if python and subprocess.call([python, "-c", code], stderr=subprocess.DEVNULL) == 0:
                return python
    return None


def install(folder: str, python: str) -> None:
    """Makes the environment that gpudyno itself runs in, of the archive's wheels alone."""
    venv, wheels = os.path.join(folder, ".venv"), os.path.join(folder, "wheels")
    pip = [os.path.join(venv, "bin", "python"), "-m", "pip", "--disable-pip-version-check", "install"]
    pip += ["--quiet", "--no-index", "--no-deps"]
    packages = ["--require-hashes", "--find-links", wheels, "-r", os.path.join(wheels, "requirements.txt")]
    own = ["--no-build-isolation", "--editable", folder]
    for command in ([python, "-m", "venv", "--clear", venv], pip + packages, pip + own):
        # A user's own list of package indexes is of no use here.
        environment = dict(os.environ, PIP_CONFIG_FILE=os.devnull, PIP_NO_INPUT="1")
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            universal_newlines=True,
            env=environment,
        )
        if done.returncode:
            last = ([line for line in done.stdout.splitlines() if line.strip()] or ["no output"])[-1]
            raise Refused(
                "gpudyno could not be installed into '%s': %s" % (venv, last.strip()), "mend that", 4
            )


def spread(folder: str) -> None:
    """Unpacks the wheels as they are, for the Python inside the image."""
    site = os.path.join(folder, "site")
    for name in sorted(os.listdir(os.path.join(folder, "wheels"))):
        if name.endswith(".whl"):
            with zipfile.ZipFile(os.path.join(folder, "wheels", name)) as wheel:
                wheel.extractall(site)


OPTIONS = {
    "cpu": ("", ""),
    "cuda": ("--gpus all ", "--nv "),
    "rocm": ("--device /dev/kfd --device /dev/dri ", "--rocm "),
}
"""What gives a container the cards, of Docker and of Apptainer."""


def next_lines(folder: str, about: Dict[str, Any], python: Optional[str]) -> List[str]:
    """What a person types now."""
    docker, apptainer = OPTIONS[about["device"]]
    inside = "python -m invoke run --engine here"
    if python:
        lines = [".venv/bin/invoke doctor", ".venv/bin/invoke run"]
    elif about["sif"]:
        lines = [
            'apptainer exec %s--bind "$PWD" --pwd "$PWD" --env PYTHONPATH="$PWD/site" %s %s'
            % (apptainer, about["sif"], inside)
        ]
    else:
        lines = [
            "docker load --input %s" % about["image_archive"],
            'docker run --rm --network none %s--user "$(id -u):$(id -g)" --env HOME=/tmp '
            '--volume "$PWD:$PWD" --workdir "$PWD" --env PYTHONPATH="$PWD/site" %s %s'
            % (docker, about["tag"], inside),
        ]
    return ["cd %s" % quoted(folder), *lines]


def quoted(path: str) -> str:
    """A path as a shell takes it."""
    return path if re.match(r"[\w./+-]+$", path) else "'%s'" % path.replace("'", "'\\''")


def prepare(folder: str) -> None:
    """Makes gpudyno itself ready, and prints how to go on."""
    with open(os.path.join(folder, "pack.json")) as file:
        about = json.load(file)
    python = found_python(about["pythons"])
    if python:
        install(folder, python)
        print("gpudyno is installed in %s, for %s" % (os.path.join(folder, ".venv"), python))
    elif about["sif"] or about["image_archive"]:
        spread(folder)
        print("no Python %s with venv is here: gpudyno runs in the image" % " or ".join(about["pythons"]))
    else:
        versions = " or ".join(about["pythons"])
        raise Refused(
            "no Python %s with venv is here" % versions, "install one, then give the same line again", 4
        )
    print("next:")
    for line in next_lines(folder, about, python):
        print("  " + line)


def main(argv: List[str]) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(
        description="Checks and unpacks an archive of `invoke build --pack FILE`."
    )
    parser.add_argument("archive")
    parser.add_argument("folder", nargs="?", help="default: the archive's own folder, here")
    parser.add_argument("--sha256", help="the archive's hash, as `invoke build --pack FILE` printed it")
    parser.add_argument("--only-unpack", action="store_true", help="install nothing")
    chosen = parser.parse_args(argv)
    try:
        if chosen.sha256 and sha256_of(chosen.archive) != chosen.sha256.lower():
            raise Refused("the archive's SHA-256 is not the one that was given", ANEW)
        folder = os.path.abspath(chosen.folder or listed(chosen.archive)[0])
        files, size = unpack(chosen.archive, folder)
        print("unpacked: %d files, %d MB, each byte checked, in %s" % (files, size // 10**6, folder))
        if not chosen.only_unpack:
            prepare(folder)
    except Refused as refusal:
        print("unpack.py: %s" % refusal, file=sys.stderr)
        return refusal.code
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        what = "the disk is full" if full else "'%s': %s" % (error.filename or chosen.archive, error.strerror)
        after = "make room and give the same line again: it goes on where it was" if full else "mend that"
        print("unpack.py: %s; %s" % (what, after), file=sys.stderr)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
