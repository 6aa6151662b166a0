#!/bin/bash
# cli_bind.sh - which processors the ranks of a run compute on, as the kernel says: shares of their own while there is a core
# for every thread, all that are allowed otherwise; never more than the run was given; whatever starts the ranks. And how much
# of a processor, with --quota.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor
# what planner and ranks may use: a core is as many processors as it has hardware threads
cpus=$(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep=",")')
expect 0 doctor --json
cores=$(jq .cores out) threads=$(jq .hardware_threads out)
limit=$(jq -r '.cores_limit // ""' out)
case $limit in *quota* | SLURM*)
  echo "$limit leaves fewer cores than the affinity: nothing to test"
  exit 0
  ;;
esac

# affinities STRATEGY OPTIONS...: a line for every rank of such a run, its processors separated by commas.
affinities() {
  local strategy=$1
  shift
  rm -f steps # of an earlier run
  expect 0 simulate --net cnn --image 28 --machine local --batch 60 --strategy "$strategy" --out p.db
  "${under[@]}" timeout -k 5 60 "$HPLAN" run p.db --steps 10000000 --json --trace t.db "$@" >steps 2>err </dev/null &
  local run=$!
  for _ in $(seq 200); do
    grep -qs '"step"' steps && break
    sleep 0.1
  done
  python3 - <<'PY' | sort
import os
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        words = open(f"/proc/{pid}/cmdline").read().split("\0")
        cwd, name = os.readlink(f"/proc/{pid}/cwd"), open(f"/proc/{pid}/comm").read().strip()
    except OSError:
        continue
    if name == "hplan-exec" and words[0].endswith(name) and cwd == os.getcwd():  # no helper of a rank
        print(*sorted(os.sched_getaffinity(int(pid))), sep=",")
PY
  kill -INT "$run"
  wait "$run"
}

# of_shares RANKS CORES FILE: disjoint, equal to a core's processors or more, all of them allowed
of_shares() {
  python3 - "$@" "$cpus" "$threads" "$cores" <<'PY' || complain "ranks are bound to $(tr '\n' ' ' <"$3") of $cpus: $(cat err)"
import sys
ranks, each = int(sys.argv[1]), int(sys.argv[2])
sets = [set(line.split(",")) for line in open(sys.argv[3]).read().split()]
allowed, per_core = set(sys.argv[4].split(",")), int(sys.argv[5]) // int(sys.argv[6])
assert len(sets) == ranks, sets
assert sum(map(len, sets)) == len(set.union(*sets)) and set.union(*sets) <= allowed, sets
assert all(len(s) >= each * per_core for s in sets), sets
PY
}

under=(env)
for launcher in none mpirun; do
  affinities dp=1 --launcher "$launcher" >bound
  of_shares 1 1 bound
done
if [ "$cores" -ge 2 ]; then
  affinities dp=2 >bound
  of_shares 2 1 bound
  affinities dp=1 --threads 2 >bound
  of_shares 1 2 bound
  affinities dp=2 --no-bind >bound
  [ "$(sort -u bound)" = "$cpus" ] || complain "--no-bind binds ranks to $(tr '\n' ' ' <bound)of $cpus"
  # bound from outside: both ranks to the same processor, which they share
  under=(taskset -c "${cpus%%,*}")
  affinities dp=2 --force >bound
  [ "$(sort -u bound)" = "${cpus%%,*}" ] || complain "ranks leave the processor they were given: $(cat bound)"
  under=(env)
fi
# more threads than cores: nothing is bound
if [ "$cores" -lt 4 ]; then
  affinities "dp=$((cores + 1))" >bound
  [ "$(sort -u bound)" = "$cpus" ] && [ "$(wc -l <bound)" = $((cores + 1)) ] ||
    complain "$((cores + 1)) ranks on $cores cores do not share them all: $(cat bound)"
fi
# --quota: slower ranks compute the same, nothing of their control groups is left, and what is wrong is said before
# anything runs
rm -f run.db
expect 0 simulate --net cnn --image 28 --machine local --batch 8 --strategy stages=2,micro=2 --out p.db
for wrong in 1:0.5:0.25 1: x:1 0 1:-1; do
  expect 2 run p.db --quota "$wrong"
  grep -q -e "--quota=$wrong" err || complain "--quota $wrong is not named: $(cat err)"
done
[ ! -e run.db ] || complain "a refused quota left a trace"

expect 0 run p.db --steps 3 --save whole.safetensors
timeout -k 5 120 "$HPLAN" run p.db --steps 3 --quota 1:0.5 --save slow.safetensors >out 2>err
case $? in
0)
  cmp whole.safetensors slow.safetensors || complain "a slow rank computes something else"
  # killed while it runs: the next run finds none of its groups
  timeout -s KILL 2 "$HPLAN" run p.db --steps 1000000 --quota 1:0.5 >out 2>err
  sleep 1
  expect 0 run p.db --steps 1 --quota 1:0.5
  left=$(find /sys/fs/cgroup -maxdepth 4 -type d -name 'hplan-*' 2>/dev/null)
  for group in $left; do
    pid=${group##*-}
    [ -d "/proc/$pid" ] || sleep 1 # of another test, which is about to remove it
    [ -d "/proc/$pid" ] || [ ! -d "$group" ] || complain "left: $group"
  done
  ;;
69) grep -q "control group" err || complain "why there are no quotas: $(cat err)" ;;
*) complain "--quota 1:0.5: $(cat err)" ;;
esac
conclude "ranks compute where they should"
