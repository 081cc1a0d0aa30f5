# shellcheck shell=bash
# Real container engines of one's own on a bare Debian machine, as root; to be sourced.
#
#   start_docker DIR    Docker Engine with its files in DIR; sets DOCKER_HOST, DOCKER_CLIENT
#   stop_docker DIR
#   in_image NAME       whether an image that is built has what workloads need, by in_image here (needs DOCKER_CLIENT)
#   make_base DIR       a stand-in for debian:bookworm-slim, imported under that name (needs start_docker)
#   start_podman DIR    Podman's Docker-compatible socket; sets CONTAINERS_CONF, CONTAINERS_STORAGE_CONF, PODMAN_HOST
#   stop_podman DIR
#   start_rootless DIR  the same for a user without rights, whose home DIR is; sets as_user, a command's first words
#   stop_rootless DIR
#
# CI_ROOTFS names a root file system's tar to keep and use again for make_base.

need_packages() {
    local missing=() package
    for package in "$@"; do
        dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
    done
    if [ ${#missing[@]} -gt 0 ]; then
        apt-get update --quiet --quiet
        DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --quiet --no-install-recommends "${missing[@]}"
    fi
}

answers() {
    local tries=60
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.5
    done
}

stop_by_pid_file() {
    local pid tries=60
    pid=$(cat "$1" 2>/dev/null) || return 0
    kill "$pid" 2>/dev/null || return 0
    while kill -0 "$pid" 2>/dev/null && [ "$tries" -gt 0 ]; do
        tries=$((tries - 1))
        sleep 0.5
    done
}

start_docker() {
    local dir=$1
    need_packages docker.io
    mkdir -p "$dir"
    # No bridge: two engines on one machine would share docker0. Builds take the host's network, trials have none.
    setsid dockerd --data-root "$dir/data" --exec-root "$dir/exec" --pidfile "$dir/pid" \
        --bridge none --iptables=false --host "unix://$dir/docker.sock" >"$dir/log" 2>&1 &
    export DOCKER_HOST=unix://$dir/docker.sock
    # Debian's client: one from elsewhere may lack buildx and then cannot use BuildKit.
    export DOCKER_CLIENT=/usr/bin/docker DOCKER_BUILDKIT=1
    answers "$DOCKER_CLIENT" version || { tail -20 "$dir/log" >&2; return 1; }
}

stop_docker() {
    stop_by_pid_file "$1/pid"
}

# No registry is needed: the base is made of Debian's own packages. It is not the published image, and records that
# stand on it say that their base was substituted.
make_base() {
    local dir=$1 rootfs=${CI_ROOTFS:-$1/rootfs.tar}
    if [ ! -f "$rootfs" ]; then
        need_packages debootstrap
        debootstrap --variant=minbase --include=ca-certificates bookworm "$dir/rootfs" >"$dir/debootstrap.log" 2>&1 ||
            { tail -20 "$dir/debootstrap.log" >&2; return 1; }
        tar -C "$dir/rootfs" -cf "$rootfs.part" . && mv "$rootfs.part" "$rootfs"
        rm -rf "$dir/rootfs"
    fi
    "$DOCKER_CLIENT" import "$rootfs" debian:bookworm-slim >/dev/null
}

# In a container like a trial's, as its user; no card is needed.
in_image() {
    local folder image
    folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
    image=$("$DOCKER_CLIENT" images --quiet --filter "label=dev.gpudyno.image=$1" | head -1)
    "$DOCKER_CLIENT" image inspect --format "$1: {{.Size}} bytes" "$image"
    "$DOCKER_CLIENT" run --rm --network none --read-only --tmpfs /tmp:rw,exec --user 10001:10001 --cap-drop ALL \
        --security-opt no-new-privileges --env HOME=/tmp --volume "$folder/in_image:/in_image:ro" "$image" python /in_image
}

# Small machines: no right to raise limits, mixed cgroup versions, no systemd.
podman_settings() {
    cat <<CONF
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=$1:$1"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
CONF
}

start_podman() {
    local dir=$1
    need_packages podman runc netavark aardvark-dns
    mkdir -p "$dir"
    podman_settings 4096 >"$dir/containers.conf"
    cat >"$dir/storage.conf" <<CONF
[storage]
driver = "overlay"
graphroot = "$dir/root"
runroot = "$dir/runroot"
CONF
    export CONTAINERS_CONF=$dir/containers.conf CONTAINERS_STORAGE_CONF=$dir/storage.conf
    export PODMAN_HOST=unix://$dir/podman.sock
    # Its monitors leave files where it runs.
    env --chdir="$dir" setsid podman system service --time 0 "$PODMAN_HOST" >"$dir/log" 2>&1 &
    echo $! >"$dir/pid"
    answers curl --silent --fail --unix-socket "$dir/podman.sock" http://d/_ping || { tail -20 "$dir/log" >&2; return 1; }
}

stop_podman() {
    stop_by_pid_file "$1/pid"
    # Its storage stays mounted on itself.
    umount "$1/root/overlay" 2>/dev/null || true
}

# As Debian's packages set it up: a range of ids by useradd, storage in the home, the socket where Podman looks for it.
start_rootless() {
    local dir=$1 user=gpudyno-ci
    need_packages podman runc uidmap slirp4netns
    id "$user" >/dev/null 2>&1 || useradd --home-dir "$dir" --shell /bin/bash "$user"
    mkdir -p "$dir/run/podman" "$dir/.config/containers"
    podman_settings 1024 >"$dir/.config/containers/containers.conf"
    # Without a driver of its own it may copy the whole image at every step of a build.
    printf '[storage]\ndriver = "overlay"\n' >"$dir/.config/containers/storage.conf"
    chown -R "$user:" "$dir"
    as_user=(setpriv --reuid "$user" --regid "$user" --clear-groups env --chdir="$dir"
        -u DOCKER_HOST -u CONTAINER_HOST -u CONTAINERS_CONF -u CONTAINERS_STORAGE_CONF -u GPUDYNO_STATE -u GPUDYNO_CACHE
        "HOME=$dir" "XDG_RUNTIME_DIR=$dir/run" PATH=/usr/sbin:/usr/bin:/sbin:/bin)
    "${as_user[@]}" setsid podman system service --time 0 "unix://$dir/run/podman/podman.sock" >"$dir/log" 2>&1 &
    echo $! >"$dir/pid"
    answers curl --silent --fail --unix-socket "$dir/run/podman/podman.sock" http://d/_ping || { tail -20 "$dir/log" >&2; return 1; }
}

stop_rootless() {
    # It goes on as a child in a user namespace.
    kill -- "-$(cat "$1/pid" 2>/dev/null)" 2>/dev/null || true
    stop_by_pid_file "$1/pid"
    # The process that holds its user namespace.
    stop_by_pid_file "$1/run/libpod/tmp/pause.pid"
}
