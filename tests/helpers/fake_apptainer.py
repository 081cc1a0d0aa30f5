#!/usr/bin/env python3
"""Stands in for Apptainer's program: makes a root file system of an archive, and really starts trials in it.

It knows the options that gpudyno gives and refuses all others. Its "SIF" is a tar file of the merged layers.
"""

import argparse
import csv
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PREFIX = "APPTAINERENV_"


def build(out, source):
    kind, _, archive = source.partition(":")
    if kind != "docker-archive":
        sys.exit(f"FATAL: {kind} is not stood in for")
    with tempfile.TemporaryDirectory() as folder:
        merged = Path(folder) / "root"
        with tarfile.open(archive) as tar:
            (entry,) = json.load(tar.extractfile("manifest.json"))
            for layer in entry["Layers"]:
                with tarfile.open(fileobj=tar.extractfile(layer)) as files:
                    files.extractall(merged, filter="fully_trusted")
        with tarfile.open(out, "w") as made:
            made.add(merged, arcname="")


def options():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("--containall", "--no-eval", "--net", "--no-privs", "--nv", "--rocm"):
        parser.add_argument(name, action="store_true")
    for name in ("--network", "--pwd", "--home", "--workdir", "--memory"):
        parser.add_argument(name)
    for name in ("--mount", "--security"):
        parser.add_argument(name, action="append", default=[])
    parser.add_argument("sif")
    parser.add_argument("words", nargs=argparse.REMAINDER)
    return parser


def mounted(text):
    (fields,) = csv.reader([text])
    values = dict(field.partition("=")[::2] for field in fields)
    assert values["type"] == "bind"
    return values["source"], values["destination"], "ro" in values


def script(chosen, root):
    """The shell's lines that mount and start, in namespaces of their own."""
    user = dict(word.split(":") for word in chosen.security)
    home, _, inside = chosen.home.partition(":")
    work = Path(chosen.workdir) / "tmp"
    work.mkdir(exist_ok=True)
    if user:
        os.chown(work, int(user["uid"]), int(user["gid"]))
    binds = [*map(mounted, chosen.mount), (home, inside, False), (str(work), "/tmp", False)]
    yield f"mount --bind {root} {root}"
    for source, target, read_only in binds:
        place = f"{root}{target}"
        Path(place).mkdir(parents=True, exist_ok=True)
        yield f"mount --bind {shlex.quote(source)} {shlex.quote(place)}"
        if read_only:
            yield f"mount -o remount,bind,ro {shlex.quote(place)}"
    yield f"mount --rbind /dev {root}/dev"
    yield f"mount -t proc proc {root}/proc"
    yield f"mount -t sysfs sysfs {root}/sys"
    yield f"mount -o remount,bind,ro {root}"
    yield "ip link set lo up 2>/dev/null || true"
    who = f"--userspec={user['uid']}:{user['gid']} --groups= " if user else ""
    yield f"exec chroot {who}{root} {shlex.join(chosen.words)}"


def execute(words):
    chosen = options().parse_args(words)
    assert chosen.containall and chosen.network == "none" and not chosen.nv and not chosen.rocm
    root = tempfile.mkdtemp(prefix="stand-in-sif-")
    with tarfile.open(chosen.sif) as tar:
        tar.extractall(root, filter="fully_trusted")
    Path(root).chmod(0o755)
    given = {name[len(PREFIX) :]: value for name, value in os.environ.items() if name.startswith(PREFIX)}
    environment = {**given, "HOME": chosen.home.partition(":")[2], "PATH": os.environ["PATH"]}
    own = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    line = [
        "unshare",
        "--mount",
        "--net",
        "--pid",
        "--fork",
        *own,
        "sh",
        "-ec",
        "\n".join(script(chosen, root)),
    ]
    try:
        sys.exit(subprocess.run(line, env=environment, check=False).returncode)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def main():
    verb, *words = sys.argv[1:]
    if verb == "--version":
        print("apptainer version 0-stand-in")
    elif verb == "build":
        build(*words)
    elif verb == "exec":
        execute(words)
    else:
        sys.exit(f"FATAL: {verb} is not stood in for")


main()
