#!/bin/bash -l
# convnet resnet50 amp-bf16, batch 64, 2 devices: 3 trials of plan 'mine'
# Written by `invoke submit`, which sends it by sbatch. To change the jobs of a site, edit its profile; to change all
# jobs, edit the template harness/engine/slurm/job.sh; to change these alone, edit this file and send it yourself.
#SBATCH --job-name=gpudyno-20261122-0a1b2c-1
#SBATCH --output=/home/me/gpudyno/results/.state/jobs/20261122-0a1b2c/log-%A_%a.txt
#SBATCH --array=0-2%1
#SBATCH --partition=gpu
#SBATCH --account=a-project
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --mem=200G
#SBATCH --gres=gpu:a100:2
#SBATCH --time=30
#SBATCH --open-mode=append
#SBATCH --requeue

root=/home/me/gpudyno
jobs=/home/me/gpudyno/results/.state/jobs/20261122-0a1b2c
cache=/home/me/gpudyno/results/.state/jobs/20261122-0a1b2c/cache/cuda
python=/home/me/gpudyno/.venv/bin/python
trials=(
    convnet-r1-0123456789ab
    convnet-r2-0123456789ab
    convnet-r3-0123456789ab
)
attempts=(1 1 2)
module load gcc/13.2

# As in any other trial: what a module or a site preloads is not in the lock.
unset LD_PRELOAD PYTHONPATH PYTHONHOME
# One task on each node. On the first it says which process is the trial's, so that the telemetry knows its own.
task='
mkdir -p "$TMPDIR"
[ "${SLURM_NODEID:-0}" != 0 ] || echo $$ >>"$GPUDYNO_PIDS"
export GPUDYNO_NODE=${SLURM_NODEID:-0}
"$@"
code=$?
rm -rf "$TMPDIR"
exit "$code"
'

# The trial itself, in the work folder that is given.
run() (
    work=$1
    mkdir -p "$work/data" && ln -sfn '/scratch/my data/cifar-10' "$work/data/"cifar-10
    export CUDA_CACHE_PATH="$cache"/cuda
    export CUDA_DEVICE_ORDER=PCI_BUS_ID
    export FASTAI_HOME="$work"/home/fastai
    export GLOO_SOCKET_IFNAME=lo
    export GPUDYNO_CACHE="$cache"
    export GPUDYNO_DATA="$work"/data
    export GPUDYNO_IN="$work"/in
    export GPUDYNO_OUT="$work"/out
    export GPUDYNO_PIDS="$work"/out/pids
    export HOME="$work"/home
    export LC_ALL=C.UTF-8
    export MIOPEN_CUSTOM_CACHE_DIR="$cache"/miopen
    export MIOPEN_USER_DB_PATH="$cache"/miopen
    export MPLCONFIGDIR="$work"/home/matplotlib
    export NCCL_ALGO=Ring
    export PYTHONDONTWRITEBYTECODE=1
    export PYTHONNOUSERSITE=1
    export PYTHONUNBUFFERED=1
    export TORCHINDUCTOR_CACHE_DIR="$cache"/inductor
    export TORCH_HOME="$cache"/torch
    export TRITON_CACHE_DIR="$cache"/triton
    export XDG_CACHE_HOME="$cache"/xdg
    export TMPDIR=/tmp/gpudyno-$SLURM_JOB_ID
    exec srun \
        --nodes=1 \
        --ntasks=1 \
        --ntasks-per-node=1 \
        --kill-on-bad-exit=1 \
        --export=ALL \
        ${SLURM_CPUS_PER_TASK:+--cpus-per-task="$SLURM_CPUS_PER_TASK"} \
        bash -c "$task" trial \
        /home/me/gpudyno/.venvs/cuda/bin/python \
        "$root"/workloads/convnet.py
)

# This node as it is before the trial, and what of it the trial takes.
look() {
    "$python" -m harness.run.jobs.node "$jobs" "$name" "$attempt" || return
    meet=$(<"$work/meet")
}

# One trial from its first look at this node to its end. What is told of the end lies beside what was measured.
measure() {
    name=$1 attempt=$(($2 + ${SLURM_RESTART_COUNT:-0}))
    work=$jobs/work/$name.a$attempt
    mkdir -p "$work/in" "$work/out" "$work/home"
    echo "gpudyno: $name.a$attempt begins"
    echo "${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}" >"$work/job"
    if look; then
        # Compilers fill their caches first, by a short trial that no record has.
        warm=$jobs/work/$name.warm
        if [ ! -e "$warm/done" ]; then
            mkdir -p "$warm/out" "$warm/home" && run "$warm" >"$warm/log.txt" 2>&1
            touch "$warm/done"
            look
        fi
        "$python" -m harness.telemetry.sampler "$work/telemetry.jsonl" --kind cuda --cards "$(<"$work/cards")" \
            --pids-file "$work/out/pids" --stop-file "$work/telemetry.stop" --parent $$ >/dev/null 2>&1 &
        sampler=$!
        run "$work" >"$work/log.txt" 2>&1 &
        trial=$!
        wait "$trial"
        code=$?
        while kill -0 "$trial" 2>/dev/null; do
            wait "$trial"
            code=$?
        done
        touch "$work/telemetry.stop"
        wait "$sampler"
    else
        code=$?
    fi
    echo "code $code $(date +%s.%N)" >>"$work/ended"
    return "$code"
}

trap '[ -z "${work:-}" ] || echo "signal TERM $(date +%s.%N)" >>"$work/ended"' TERM
cd -- "$root" || exit 1
at=${SLURM_ARRAY_TASK_ID:-0}
measure "${trials[$at]}" "${attempts[$at]}"
exit $?
