#!/bin/bash -l
# convnet resnet50 amp-bf16, batch 64, 16 devices: 3 trials of plan 'mine'
# Written by `invoke submit`, which sends it by sbatch. To change the jobs of a site, edit its profile; to change all
# jobs, edit the template harness/engine/slurm/job.sh; to change these alone, edit this file and send it yourself.
#SBATCH --job-name=gpudyno-20261122-0a1b2c-1
#SBATCH --output=/home/me/gpudyno/results/.state/jobs/20261122-0a1b2c/log-%A_%a.txt
#SBATCH --array=0-2
#SBATCH --partition=gpu
#SBATCH --account=a-project
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --mem=200G
#SBATCH --gpus-per-node=a100:4
#SBATCH --time=30
#SBATCH --dependency=afterok:17
#SBATCH --kill-on-invalid-dep=yes
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
module load apptainer/1.3

# One task on each node. On the first it says which process is the trial's, so that the telemetry knows its own.
task='
[ "${SLURM_NODEID:-0}" != 0 ] || echo $$ >>"$GPUDYNO_PIDS"
export APPTAINERENV_GPUDYNO_NODE=${SLURM_NODEID:-0}
for name in CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES; do
    [ -z "${!name:-}" ] || export "APPTAINERENV_$name=${!name}"
done
"$@"
'

# The trial itself, in the work folder that is given.
run() (
    work=$1
    export APPTAINERENV_CUDA_CACHE_PATH=/cache/cuda
    export APPTAINERENV_CUDA_DEVICE_ORDER=PCI_BUS_ID
    export APPTAINERENV_FASTAI_HOME=/tmp/fastai
    export APPTAINERENV_GLOO_SOCKET_IFNAME=ib0
    export APPTAINERENV_GPUDYNO_CACHE=/cache
    export APPTAINERENV_GPUDYNO_DATA=/data
    export APPTAINERENV_GPUDYNO_IN=/in
    export APPTAINERENV_GPUDYNO_MEET="$meet"
    export APPTAINERENV_GPUDYNO_NODES=4
    export APPTAINERENV_GPUDYNO_OUT=/out
    export APPTAINERENV_LC_ALL=C.UTF-8
    export APPTAINERENV_MIOPEN_CUSTOM_CACHE_DIR=/cache/miopen
    export APPTAINERENV_MIOPEN_USER_DB_PATH=/cache/miopen
    export APPTAINERENV_MPLCONFIGDIR=/tmp/matplotlib
    export APPTAINERENV_NCCL_ALGO=Ring
    export APPTAINERENV_NCCL_SOCKET_IFNAME=ib0
    export APPTAINERENV_PYTHONDONTWRITEBYTECODE=1
    export APPTAINERENV_PYTHONNOUSERSITE=1
    export APPTAINERENV_PYTHONUNBUFFERED=1
    export APPTAINERENV_TMPDIR=/tmp
    export APPTAINERENV_TORCHINDUCTOR_CACHE_DIR=/cache/inductor
    export APPTAINERENV_TORCH_HOME=/cache/torch
    export APPTAINERENV_TRITON_CACHE_DIR=/cache/triton
    export APPTAINERENV_XDG_CACHE_HOME=/cache/xdg
    export GPUDYNO_PIDS="$work"/out/pids
    launch=(srun \
        --nodes=4 \
        --ntasks=4 \
        --ntasks-per-node=1 \
        --kill-on-bad-exit=1 \
        --export=ALL \
        ${SLURM_CPUS_PER_TASK:+--cpus-per-task="$SLURM_CPUS_PER_TASK"})
    # Another scheduler than SLURM starts this script as it is.
    [ -n "${SLURM_JOB_ID:-}" ] || launch=()
    exec "${launch[@]}" bash -c "$task" trial \
        apptainer \
        exec \
        --containall \
        --no-eval \
        --pwd \
        /tmp \
        --home \
        "$work"/home:/home/gpudyno \
        --workdir \
        "$work"/tmp \
        --nv \
        --mount \
        type=bind,source="$work"/in,destination=/in,ro \
        --mount \
        type=bind,source="$work"/out,destination=/out \
        --mount \
        'type=bind,source=/scratch/my data/cifar-10,destination=/data/cifar-10,ro' \
        --mount \
        type=bind,source="$cache",destination=/cache \
        --mount \
        type=bind,source="$root"/workloads,destination=/workloads,ro \
        /images/cuda.sif \
        python \
        /workloads/convnet.py
)

# This node as it is before the trial, and what of it the trial takes.
look() {
    "$python" -m harness.run.jobs.node "$jobs" "$name" "$attempt" $place || return
    card=$(<"$work/card") meet=$(<"$work/meet")
}

# One trial from its first look at this node to its end. What is told of the end lies beside what was measured.
measure() {
    name=$1 attempt=$(($2 + ${SLURM_RESTART_COUNT:-0})) place=$3
    work=$jobs/work/$name.a$attempt
    mkdir -p "$work/in" "$work/out" "$work/home" "$work/tmp"
    echo "gpudyno: $name.a$attempt begins"
    echo "${SLURM_ARRAY_JOB_ID:-${SLURM_JOB_ID:-}}" >"$work/job"
    if look; then
        # Compilers fill their caches first, by a short trial that no record has.
        warm=$jobs/work/$name.warm
        if [ ! -e "$warm/done" ]; then
            "$python" -m harness.run.jobs.node --warm "$jobs" "$name" && run "$warm" >"$warm/log.txt" 2>&1
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
at=${1:-${SLURM_ARRAY_TASK_ID:-0}}
measure "${trials[$at]}" "${attempts[$at]}" ""
exit $?
