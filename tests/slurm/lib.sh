# shellcheck shell=bash
# lib.sh - sourced by the scripts of this folder: a cluster in a scratch folder, in which they work, and waiting for jobs. HPLAN is the binary.
set -euo pipefail
: "${HPLAN:?path of the hplan binary}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
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
  for _ in $(seq 3000); do # a hang: jobs of a loaded machine are queued again and again
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
    *JobState=PENDING* | *JobState=RUNNING* | *JobState=COMPLETING* | *JobState=CONFIGURING* | *JobState=SIGNALING*) ;;
    *) die "job $1: $state" ;;
    esac
    case $state in *JobState=COMPLETED*) ;; *) ended=0 ;; esac
    sleep 1
  done
  die "job $1 does not end"
}

timeout -k 5 60 "$here/cluster.sh" start "$cluster"
cd "$work"
# shellcheck disable=SC2034 # for the scripts
train=(--data fashion-mnist --deterministic)
