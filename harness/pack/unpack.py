"""Unpacks an archive of `invoke build --pack FILE`, after every file of it was checked.

    python3 unpack.py ARCHIVE [FOLDER]

Needs Python 3.6 or newer, tar and sha256sum, and nothing else. What is checked lies beside FOLDER until it is
whole.

Exit codes: 0 done, 2 the archive or the line is wrong, 4 the machine lacks something.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from typing import Any, Dict, List, Optional, Sequence

SUMS = "SHA256SUMS"
COPY = "copy the archive again"


class Refused(Exception):
    """One sentence on what is wrong, and what to do; leaves with its exit code."""

    def __init__(self, problem: str, remedy: str, code: int = 2) -> None:
        Exception.__init__(self, "%s; %s" % (problem, remedy))
        self.code = code


def said(
    command: List[str],
    problem: str,
    folder: Optional[str] = None,
    remedy: str = COPY,
    code: int = 2,
    **variables: str,
) -> str:
    """What a command prints; raises Refused with its last line where it fails."""
    done = subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        env=dict(os.environ, LC_ALL="C", **variables),
    )
    if done.returncode:
        last = ((done.stdout + done.stderr).strip().splitlines() or ["no output"])[-1]
        full = "No space left" in done.stderr
        raise Refused("%s (%s)" % (problem, last), "make room" if full else remedy, 4 if full else code)
    return done.stdout


def top_of(archive: str) -> str:
    """The folder that all of the archive lies in; raises Refused where the archive cannot be read whole."""
    names = said(["tar", "-tf", archive], "the archive is damaged or cut short").splitlines()
    tops = {name.split("/")[0] for name in names}
    if len(tops) != 1 or tops & {"", ".", ".."}:
        raise Refused("the archive is not of one folder", "make it with `invoke build --pack FILE`")
    return tops.pop()


def check(folder: str) -> None:
    """Raises Refused where a file that SHA256SUMS lists is missing or is another."""
    said(["sha256sum", "--check", "--quiet", "--strict", SUMS], "a file is not what %s says" % SUMS, folder)


def check_nothing_else(folder: str) -> None:
    """Raises Refused for a link, a device or a pipe, and for a file that SHA256SUMS does not list."""
    with open(os.path.join(folder, SUMS), errors="replace") as file:
        listed = {line.rstrip("\n").partition("  ")[2] for line in file}
    for where, folders, files in os.walk(folder):
        for path in (os.path.join(where, name) for name in folders + files):
            name = os.path.relpath(path, folder)
            if os.path.islink(path):
                raise Refused("the archive's '%s' is a link" % name, "do not use it")
            if not (os.path.isdir(path) or os.path.isfile(path)):
                raise Refused("the archive's '%s' is no plain file" % name, "do not use it")
            if not os.path.isdir(path) and name != SUMS and name not in listed:
                raise Refused(
                    "the archive holds '%s', which %s does not list" % (name, SUMS), "do not use it"
                )


def unpack(archive: str, folder: str) -> None:
    """Makes `folder` of the archive; where that was done before, checks it once more."""
    top = top_of(archive)
    if os.path.isdir(folder) and os.listdir(folder):
        sums = said(["tar", "-xOf", archive, "%s/%s" % (top, SUMS)], "the archive has no %s" % SUMS)
        path = os.path.join(folder, SUMS)
        if not os.path.isfile(path) or open(path).read() != sums:
            raise Refused("'%s' is there and is not of this archive" % folder, "name another FOLDER")
        check(folder)
        return
    staging = folder.rstrip("/") + ".unpacking"
    shutil.rmtree(staging, ignore_errors=True)
    os.makedirs(staging)
    try:
        line = ["tar", "-xf", archive, "-C", staging, "--strip-components=1", "--no-same-owner"]
        said(line, "the archive cannot be unpacked")
        if not os.path.isfile(os.path.join(staging, SUMS)):
            raise Refused("the archive has no %s" % SUMS, "make it with `invoke build --pack FILE`")
        # First, for whoever reads a pipe waits for ever.
        check_nothing_else(staging)
        check(staging)
        if os.path.isdir(folder):
            os.rmdir(folder)
        os.rename(staging, folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


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
    problem = "gpudyno could not be installed into '%s'" % venv
    for command in ([python, "-m", "venv", "--clear", venv], pip + packages, pip + own):
        # A user's own list of package indexes is of no use here.
        said(command, problem, None, "mend that", 4, PIP_CONFIG_FILE=os.devnull, PIP_NO_INPUT="1")


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
    return ["cd %s" % shlex.quote(folder), *lines]


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
    parser.add_argument(
        "--sha256", help="what `invoke build --pack FILE` printed: the whole archive has to have it"
    )
    parser.add_argument("--only-unpack", action="store_true", help="install nothing")
    chosen = parser.parse_args(argv)
    try:
        if chosen.sha256 and not said(["sha256sum", chosen.archive], "no archive").startswith(
            chosen.sha256.lower()
        ):
            raise Refused("the archive's SHA-256 is not the one that was given", COPY)
        folder = os.path.abspath(chosen.folder or top_of(chosen.archive))
        unpack(chosen.archive, folder)
        print("unpacked, each file checked, in %s" % folder)
        if not chosen.only_unpack:
            prepare(folder)
    except Refused as refusal:
        print("unpack.py: %s" % refusal, file=sys.stderr)
        return refusal.code
    except OSError as error:
        what = "'%s': %s" % (error.filename or chosen.archive, error.strerror)
        print("unpack.py: %s; mend that" % what, file=sys.stderr)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
