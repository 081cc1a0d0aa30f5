#!/bin/sh
# The steps that the Dockerfiles share:
#   steps.sh apt PACKAGE…
#   steps.sh environment FOLDER
#   steps.sh pip PYTHON REQUIREMENTS [CHANNEL]
#   steps.sh disown PYTHON LOCK
#   steps.sh check PYTHON LOCK whole
#   steps.sh check PYTHON LOCK over-base NAME==VERSION…
#   steps.sh torchvision PYTHON
#   steps.sh sources cuda|rocm
#   steps.sh apex PYTHON
# The build context is mounted at /context, secrets at /run/secrets, Apex's sources at /sources.
set -eu
secrets=/run/secrets
wheelhouse=/context/wheelhouse

if [ -s "$secrets/proxy" ]; then
    set -a
    . "$secrets/proxy"
    set +a
fi
if [ -s "$secrets/ca" ]; then
    export PIP_CERT="$secrets/ca" SSL_CERT_FILE="$secrets/ca" GIT_SSL_CAINFO="$secrets/ca"
fi
if [ -s "$secrets/pipconf" ]; then
    export PIP_CONFIG_FILE="$secrets/pipconf"
fi
if [ -s "$secrets/aptconf" ]; then
    export APT_CONFIG="$secrets/aptconf"
fi
export DEBIAN_FRONTEND=noninteractive PIP_NO_INPUT=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
# A base whose torch is in the system's own Python marks that as the distribution's.
export PIP_BREAK_SYSTEM_PACKAGES=1

# A base of Debian's names the snapshot of the archive that it was made of: what is installed over it is of that date, too,
# where the archive of snapshots answers.
step_apt() {
    sources=/etc/apt/sources.list.d/debian.sources
    if [ -f "$sources" ] && [ ! -s "$secrets/aptconf" ] && ! grep -q ^Check-Valid-Until "$sources"; then
        cp "$sources" /tmp/debian.sources
        awk '/^# https?:\/\/snapshot\.debian\.org/ {snapshot = $2}
            /^URIs:/ && snapshot {print "URIs: " snapshot "\nCheck-Valid-Until: no"; snapshot = ""; next}
            {print}' /tmp/debian.sources >"$sources"
        if ! apt-get update --quiet --error-on=any -o Acquire::Retries=1 -o Acquire::http::Timeout=20; then
            echo "The archive of snapshots does not answer: packages are those of today."
            mv /tmp/debian.sources "$sources"
        fi
    fi
    apt-get update --quiet
    apt-get install --yes --quiet --no-install-recommends "$@"
    rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb /var/log/apt /var/log/dpkg.log
}

step_environment() {
    # pip stays outside, so that the environment holds the stack alone.
    python3 -m venv /opt/pip
    python3 -m venv --without-pip "$1"
}

run_pip() {
    if /opt/pip/bin/python -m pip --python "$python" --version >/dev/null 2>&1; then
        /opt/pip/bin/python -m pip --python "$python" "$@"
    elif [ -d /opt/pip ]; then
        # pips before 22.3, as Python 3.7 has one, are run by the environment's own interpreter where they lie.
        "$python" /opt/pip/lib/python3.*/site-packages/pip "$@"
    else
        "$python" -m pip "$@"
    fi
}

install_locked() {
    # What the index has as sources alone is built with the tools that the lock pins, and with nothing fetched unasked.
    run_pip install --no-deps --require-hashes --no-build-isolation "$@" --requirement "$requirements"
}

step_pip() {
    python=$1 requirements=$2 channel=${3:-} wheels=
    if [ -d "$wheelhouse" ]; then
        wheels="--find-links=$wheelhouse"
        install_locked --no-index $wheels && return
        echo "The wheelhouse does not have all of it: the next source is tried."
    fi
    if [ -n "$channel" ]; then
        install_locked --index-url "$channel" --retries 1 --timeout 10 $wheels && return
        echo "The channel does not have it or does not answer: the next source is tried."
    fi
    install_locked $wheels
}

# What a distribution put into its Python has no list of its files, and pip refuses to replace it. What pip installs is
# found before it; so that pip does, it forgets that these are there.
step_disown() {
    "$1" - "$2" <<'PYTHON'
import re
import shutil
import sys
from importlib.metadata import distributions
from pathlib import Path


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


locked = set(map(normal, re.findall(r"^([A-Za-z0-9][\w.-]*)==", Path(sys.argv[1]).read_text(), re.MULTILINE)))
for each in list(distributions()):
    listed = each.read_text("RECORD") or each.read_text("installed-files.txt")
    if normal(each.metadata["Name"]) in locked and not listed:
        (shutil.rmtree if each._path.is_dir() else Path.unlink)(each._path)
PYTHON
}

step_check() {
    python=$1
    shift
    "$python" - "$@" <<'PYTHON'
import re
import shutil
import sys
import sysconfig
from pathlib import Path

lock, extent, *from_base = sys.argv[1:]


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


try:
    from importlib.metadata import distributions

    installed = [(each.metadata["Name"], each.version) for each in distributions()]
except ImportError:  # before Python 3.8
    folders = [folder for place in sys.path for folder in Path(place).glob("*.dist-info")]
    installed = [folder.stem.split("-") for folder in folders]
found = {}
for name, version in installed:
    found.setdefault(normal(name), version)
pinned = re.findall(r"^([A-Za-z0-9][\w.-]*)==([^\s;\\]+)", Path(lock).read_text(), re.MULTILINE)
pinned += [each.split("==") for each in from_base]
locked = {normal(name): version for name, version in pinned}
wrong = [
    f"{name} {version} is locked, and {found.get(name)} is installed"
    for name, version in locked.items()
    if found.get(name) != version and ("+" in version or found.get(name, "").split("+")[0] != version)
]
if extent == "whole":
    wrong += [f"{name} {found[name]} is installed, and not locked" for name in found.keys() - locked.keys()]
compiles = "torch" in locked and not locked["torch"].startswith("1.")
if compiles and not Path(sysconfig.get_paths()["include"], "Python.h").exists():
    wrong.append("Python.h is missing, which torch.compile needs")
if compiles and shutil.which("c++") is None:
    wrong.append("a C++ compiler is missing, which torch.compile needs")
sys.exit("\n".join(wrong) or None)
PYTHON
}

# An index without the channel's CPU build of torchvision gives the CUDA build. Its compiled operators cannot load beside a
# CPU torch, and then two of them are missing. They are declared after a first attempt, for where they exist a second
# declaration would end the process.
step_torchvision() {
    python=$1
    "$python" -c 'import torchvision' 2>/dev/null && return
    packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    cat >"$packages/gpudyno_torchvision.py" <<'PYTHON'
"""Lets torchvision's CUDA build be imported beside a CPU-only torch."""

import sys
from importlib.machinery import PathFinder


class Loader:
    def __init__(self, loader):
        self.loader = loader

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def exec_module(self, module):
        try:
            self.loader.exec_module(module)
            return
        except RuntimeError as error:
            if not ("torchvision::" in str(error) and "does not exist" in str(error)):
                raise
        import torch

        for name in [name for name in sys.modules if name.startswith("torchvision.")]:
            del sys.modules[name]
        for operator in ("nms", "qnms"):
            schema = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            torch.library.define(f"torchvision::{operator}", schema)
        self.loader.exec_module(module)


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "torchvision":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = Loader(spec.loader)
        return spec


sys.meta_path.insert(0, Finder)
PYTHON
    echo 'import gpudyno_torchvision' >"$packages/gpudyno_torchvision.pth"
    "$python" -c 'import timm, torchvision'
}

step_sources() {
    if [ "$APEX" = none ]; then
        mkdir /apex
        return
    fi
    source=$APEX_REPOSITORY
    if [ -d "$wheelhouse/apex-$1.git" ]; then
        source=$wheelhouse/apex-$1.git
        # It belongs to the user who builds, and git reads no stranger's repository unasked.
        git config --global safe.directory '*'
    fi
    git init --quiet /apex
    git -C /apex fetch --quiet --depth 1 "$source" "$APEX_COMMIT"
    git -C /apex checkout --quiet "$APEX_COMMIT"
}

# Its setup.py wants a compiler for the card even for the Python part, so the package is copied. ROCm's has stand-ins
# for its extensions, and its import needs one of them.
step_apex() {
    [ "$APEX" = python ] || return 0
    python=$1
    packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    run_pip uninstall --yes --quiet apex
    rm -rf "$packages/apex"
    cp -RL /sources/apex "$packages/apex"
    rope=/sources/compatibility/fused_rotary_positional_embedding.py
    if [ -f "$rope" ]; then
        cp "$rope" "$packages"
    fi
    "$python" -W ignore -c 'from apex.fp16_utils import FP16_Optimizer'
}

name=$1
shift
"step_$name" "$@"
