#!/bin/bash
# requeue.sh - a job script of `hplan sbatch` on a real Slurm: its time ends, it is queued again, it goes on, and ends with the weights
# of a run without a break. By hand, as root: HPLAN=build/hplan tests/slurm/requeue.sh. Needs slurm-wlm, munge, dataset-fashion-mnist.
# A minute is Slurm's shortest limit: 3 to 5 minutes in all.
set -euo pipefail
: "${HPLAN:?path of the hplan binary}"
here=$(cd "$(dirname "$0")" && pwd)
HPLAN=$(realpath "$HPLAN")
work=$(mktemp -d)
cluster=$work/cluster
finish() {
  "$here/cluster.sh" stop "$cluster"
  rm -rf "$work"
}
trap finish EXIT
PATH=$(dirname "$HPLAN"):$PATH
export PATH SLURM_CONF=$cluster/slurm.conf OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export XDG_CACHE_HOME=$work/cache XDG_STATE_HOME=$work/state
die() {
  echo "FAIL: $*" >&2
  cat "$work"/*.log >&2 || true
  exit 1
}

# end_of JOB: waits for it; what would wait two minutes to be queued again begins at once. A job that is queued again looks
# completed for a moment.
end_of() {
  local state restarts ended=0 hurried=
  for _ in $(seq 600); do
    state=$(scontrol -o show job "$1")
    case $state in
    *JobState=COMPLETED*)
      ended=$((ended + 1))
      [ $ended -lt 6 ] || return 0
      ;;
    *Reason=BeginTime*)
      restarts=${state##*Restarts=}
      restarts=${restarts%% *}
      [ "$hurried" = "$restarts" ] || scontrol update JobId="$1" StartTime=now+5 || true
      hurried=$restarts
      ;;
    *JobState=PENDING* | *JobState=RUNNING* | *JobState=COMPLETING* | *JobState=CONFIGURING*) ;;
    *) die "job $1: $state" ;;
    esac
    case $state in *JobState=COMPLETED*) ;; *) ended=0 ;; esac
    sleep 1
  done
  die "job $1 does not end"
}

timeout -k 5 60 "$here/cluster.sh" start "$cluster"
cd "$work"
train=(--data fashion-mnist --deterministic)

# --- a rank on each of two nodes, started by srun ---
"$HPLAN" simulate --net cnn --image 28 --batch 64 --gpus 2 --strategy dp=2 --out two.db --machine \
  'nodes=2; node=1 x cpu; cores=1; nic=1 x 10Gb/s; device=cpu, memory=4GB, fp32=60GFLOP/s, bandwidth=10GB/s' >/dev/null
"$HPLAN" sbatch two.db -t 5 -J two -- "${train[@]}" --steps 30 --save two.st >two.sh
end_of "$(sbatch --parsable two.sh)"
[ -s two.st ] || die "two nodes: no weights"

# --- without PMIx every rank believes that it is alone: refused ---
srun --quiet --mpi=none -N2 -n2 hplan-exec two.db --steps=1 >alone.log 2>&1 && die "ranks without PMIx ran"
grep -q 'srun --mpi=pmix' alone.log || die "ranks without PMIx: the message does not say what to do"

# --- the time ends: saved, queued again, gone on ---
"$HPLAN" simulate --net cnn --image 28 --batch 64 --gpus 2 --strategy dp=2 --machine local --out plan.db >/dev/null
steps=${STEPS:-4000}
"$HPLAN" run plan.db --launcher mpirun "${train[@]}" --steps "$steps" --save whole.st --trace whole.db >whole.log
"$HPLAN" sbatch plan.db -t 1 --notice 30 -J cnn -- "${train[@]}" --steps "$steps" --save parts.st >job.sh
job=$(sbatch --parsable job.sh)
end_of "$job"
restarts=$(scontrol -o show job "$job" | sed -n 's/.*Restarts=\([0-9]*\).*/\1/p')
[ "$restarts" -ge 1 ] || die "the job was over before its time: STEPS=$((10 * steps)) $0"
cmp whole.st parts.st || die "other weights than those of a run without a break"
for attempt in $(seq 0 "$restarts"); do
  [ -s "cnn-$attempt.db" ] || die "attempt $attempt left no trace"
done
echo "queued again $restarts times: the weights are those of a run without a break, bit for bit; $(wc -l <"cnn-$job.log") lines of log"
