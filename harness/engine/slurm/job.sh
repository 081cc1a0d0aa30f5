#!/bin/bash{{ " -l" if site.modules or site.commands }}
# {{ batch.title }}
# Written by `invoke submit`, which sends it by sbatch. To change the jobs of a site, edit its profile; to change all
# jobs, edit the template harness/engine/slurm/job.sh; to change these alone, edit this file and send it yourself.
{% for option in options -%}
#SBATCH {{ option }}
{% endfor %}
root={{ batch.root | quoted }}
jobs={{ batch.jobs | quoted }}
cache={{ batch.cache | quoted }}
python={{ (site.python or batch.python) | quoted }}
trials=(
{%- for trial in batch.job.trials %}
    {{ trial | quoted }}
{%- endfor %}
)
attempts=({{ batch.job.attempts | join(" ") }})
{% for line in site.modules -%}
module load {{ line | quoted }}
{% endfor -%}
{% for line in site.commands -%}
{{ line }}
{% endfor %}
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
{%- for name, folder in batch.spec.folders.data %}
    mkdir -p "$work/data" && ln -sfn {{ folder | quoted }} "$work/data/"{{ name | quoted }}
{%- endfor %}
{%- for name, value in variables | dictsort(case_sensitive=true) %}
    export {{ name }}={{ value | quoted }}
{%- endfor %}
    export TMPDIR={{ site.scratch | quoted }}/gpudyno-$SLURM_JOB_ID
    exec {{ srun | join(" \\\n        ") }} \
        bash -c "$task" trial \
        {{ command | map("quoted") | join(" \\\n        ") }}
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
{%- if batch.warm %}
        # Compilers fill their caches first, by a short trial that no record has.
        warm=$jobs/work/$name.warm
        if [ ! -e "$warm/done" ]; then
            mkdir -p "$warm/out" "$warm/home" && run "$warm" >"$warm/log.txt" 2>&1
            touch "$warm/done"
            look
        fi
{%- endif %}
        "$python" -m harness.telemetry.sampler "$work/telemetry.jsonl" --kind {{ batch.spec.device.kind }} --cards "$(<"$work/cards")" \
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
