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

# step_of FILE: until a run has written a step there
step_of() {
  for _ in $(seq 1200); do
    grep -qs '"step"' "$1" && break
    sleep 0.1
  done
}

# affinities STRATEGY OPTIONS...: a line for every rank of such a run, its processors separated by commas.
affinities() {
  local strategy=$1
  shift
  rm -f steps # of an earlier run
  expect 0 simulate --net cnn --image 28 --machine local --batch 12 --strategy "$strategy" --out p.db
  "${under[@]}" timeout -k 5 600 "$HPLAN" run p.db --steps 100000000 --json --trace t.db "$@" >steps 2>err </dev/null &
  local run=$!
  step_of steps
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
for launcher in none $(all "one rank of mpirun's" && echo mpirun); do
  affinities dp=1 --launcher "$launcher" >bound
  of_shares 1 1 bound
done
if [ "$cores" -ge 2 ]; then
  affinities dp=2 >bound
  of_shares 2 1 bound
  affinities dp=1 --threads 2 >bound
  of_shares 1 2 bound
  for ranks in 1 $(all "two unbound ranks" && echo 2); do
    affinities dp=$ranks --no-bind >bound
    [ "$(sort -u bound)" = "$cpus" ] || complain "--no-bind binds ranks to $(tr '\n' ' ' <bound)of $cpus"
  done
  # bound from outside: both ranks to the same processor, which they share
  under=(taskset -c "${cpus%%,*}")
  affinities dp=2 --force >bound
  [ "$(sort -u bound)" = "${cpus%%,*}" ] || complain "ranks leave the processor they were given: $(cat bound)"
  under=(env)
fi
# more threads than cores: nothing is bound
affinities dp=1 --threads $((cores + 1)) --force >bound
[ "$(cat bound)" = "$cpus" ] || complain "$((cores + 1)) threads on $cores cores may use $(cat bound) of $cpus: $(cat err)"
if [ "$cores" -lt 4 ] && all "more ranks than cores"; then
  affinities "dp=$((cores + 1))" >bound
  [ "$(sort -u bound)" = "$cpus" ] && [ "$(wc -l <bound)" = $((cores + 1)) ] ||
    complain "$((cores + 1)) ranks on $cores cores do not share them all: $(cat bound)"
fi
# --quota: slower ranks compute the same, nothing of their control groups is left, and what is wrong is said before
# anything runs
rm -f run.db
expect 0 simulate --net cnn --image 28 --machine local --batch 8 --strategy stages=2,micro=2 --out p.db
for wrong in 1: 0 $(all "more wrong quotas" && echo 1:0.5:0.25 x:1 1:-1); do
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
  "$HPLAN" run p.db --steps 100000000 --quota 1:0.5 --json >steps 2>err </dev/null &
  run=$!
  step_of steps
  ranks=$(for p in $(pgrep -x hplan-exec); do [ "$(readlink "/proc/$p/cwd")" = "$PWD" ] && echo "$p"; done)
  groups() { for p in $ranks; do find /sys/fs/cgroup -maxdepth 4 -type d -name "hplan-$p" 2>/dev/null; done; }
  [ -n "$(groups)" ] || complain "ranks $ranks have no group: $(cat err)"
  kill -KILL $run
  wait $run 2>/dev/null
  for _ in $(seq 1200); do
    # shellcheck disable=SC2086 # pids
    kill -0 $ranks 2>/dev/null || break # one of them is there
    sleep 0.1
  done
  expect 0 run p.db --steps 1 --quota 1:0.5
  for group in $(groups); do
    [ -d "/proc/${group##*-}" ] || complain "left: $group"
  done
  ;;
69) grep -q "control group" err || complain "why there are no quotas: $(cat err)" ;;
*) complain "--quota 1:0.5: $(cat err)" ;;
esac
conclude "ranks compute where they should"
