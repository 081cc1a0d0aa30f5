#!/bin/sh
# The steps that the Dockerfiles share:
#   steps.sh apt PACKAGE…
#   steps.sh environment FOLDER
#   steps.sh pip PYTHON REQUIREMENTS [CHANNEL]
#   steps.sh check PYTHON LOCK whole|over-base
#   steps.sh apex PYTHON SOURCES
# The build context is mounted at /context, secrets at /run/secrets.
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

step_apt() {
    apt-get update --quiet
    apt-get install --yes --quiet --no-install-recommends "$@"
    rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb /var/log/apt /var/log/dpkg.log
}

step_environment() {
    # pip stays outside, so that the environment holds the stack alone.
    python3 -m venv /opt/pip
    python3 -m venv --without-pip "$1"
}

pip_install() {
    /opt/pip/bin/python -m pip --python "$python" install --no-deps --require-hashes "$@" --requirement "$requirements"
}

step_pip() {
    python=$1 requirements=$2 channel=${3:-} wheels=
    if [ -d "$wheelhouse" ]; then
        wheels="--find-links=$wheelhouse"
        pip_install --no-index $wheels && return
        echo "The wheelhouse does not have all of it: the next source is tried."
    fi
    if [ -n "$channel" ]; then
        pip_install --index-url "$channel" --retries 1 --timeout 10 $wheels && return
        echo "The channel does not have it or does not answer: the next source is tried."
    fi
    pip_install $wheels
}

step_check() {
    "$1" - "$2" "$3" <<'PYTHON'
import re, sys
from importlib.metadata import distributions

path, extent = sys.argv[1:]
normal = lambda name: re.sub(r"[-_.]+", "-", name).lower()
found = {normal(d.metadata["Name"]): d.version for d in distributions()}
lines = re.findall(r"^([A-Za-z0-9][\w.-]*)==([^\s;\\]+)", open(path).read(), re.M)
locked = {normal(name): version for name, version in lines}
wrong = [
    f"{name} {version} is locked, {found.get(name)} installed"
    for name, version in locked.items()
    if found.get(name) != version and ("+" in version or found.get(name, "").split("+")[0] != version)
]
if extent == "whole":
    wrong += [f"{name} {found[name]} is not in the lock" for name in found.keys() - locked.keys()]
sys.exit("\n".join(wrong) or None)
PYTHON
}

step_apex() {
    python=$1 sources=$2
    source=$APEX_REPOSITORY
    [ -f "$wheelhouse/apex.bundle" ] && source=$wheelhouse/apex.bundle
    git init --quiet "$sources"
    git -C "$sources" fetch --quiet --depth 1 "$source" "$APEX_COMMIT"
    git -C "$sources" checkout --quiet FETCH_HEAD
    [ "$(git -C "$sources" rev-parse HEAD)" = "$APEX_COMMIT" ]
    packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    if [ "$APEX_EXTENSIONS" = yes ]; then
        apex_extensions
    else
        # Its setup.py wants a CUDA compiler even for the Python part, so the package is copied.
        cp -R "$sources/apex" "$packages/apex"
    fi
}

apex_extensions() {
    for home in /toolkit/usr/local/cuda-*; do export CUDA_HOME="$home"; done
    export TORCH_CUDA_ARCH_LIST="$(echo "$APEX_ARCHITECTURES" | sed -E 's/sm_([0-9]+)([0-9])/\1.\2/g')"
    export PATH="$CUDA_HOME/bin:$PATH"
    /opt/pip/bin/python -m pip --python "$python" install --no-deps --no-build-isolation \
        --config-settings=--build-option=--cpp_ext --config-settings=--build-option=--cuda_ext "$sources"
}

name=$1
shift
"step_$name" "$@"
