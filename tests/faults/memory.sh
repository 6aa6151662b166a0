#!/bin/bash
# memory.sh - a control group's limit kills a rank: the message says so, names the rank, the limit and what the plan takes; with
# --restarts the run goes on to the weights of one that was not disturbed. Needs a control group that may be made: else status 77.
# ROUNDS=30 for that many (1).
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh" || exit 1
need_executor
group=/sys/fs/cgroup/memory/hplan-oom-$$ limit=memory.limit_in_bytes
[ -d /sys/fs/cgroup/memory ] || group=/sys/fs/cgroup/hplan-oom-$$ limit=memory.max
mkdir "$group" 2>/dev/null && [ -e "$group/$limit" ] && echo 600000000 >"$group/$limit" || {
  rmdir "$group" 2>/dev/null
  echo "no control group can be made here"
  exit 77
}
cleanup() {
  for _ in $(seq 50); do
    rmdir "$group" 2>/dev/null && break
    # shellcheck disable=SC2046
    kill -9 $(cat "$group/cgroup.procs") 2>/dev/null
    sleep 0.1
  done
  rm -rf "$scratch"
}
trap cleanup EXIT

inside() { exec bash -c 'echo $BASHPID >"$0/cgroup.procs" && exec "$@"' "$group" "$@"; }

# crowd RANK: takes the group's memory until that rank was killed, which the kernel is told to choose.
crowd() {
  local before after crowd victim
  before=$(kills)
  victim=$(ranks | sed -n "$(($1 + 1))p")
  echo 1000 >"/proc/$victim/oom_score_adj"
  (inside python3 -c '
taken = []
for _ in range(50):
    taken.append(b"x" * (64 << 20))' 2>/dev/null) &
  crowd=$!
  for _ in $(seq 400); do
    after=$(kills)
    [ "$after" -gt "$before" ] && break
    sleep 0.05
  done
  kill -9 $crowd 2>/dev/null
  wait $crowd 2>/dev/null
  [ "$after" -gt "$before" ] || complain "nothing was killed for want of memory"
  [ ! -d "/proc/$victim" ] || sleep 1
}

ranks() { # in the order in which they were started
  for p in $(pgrep -f "hplan-exec .*$scratch" | sort -n); do
    case $(cat "/proc/$p/comm" 2>/dev/null) in hplan-exec) echo "$p" ;; esac
  done
}

kills() {
  awk '$1 == "oom_kill" { print $2 }' "$group"/memory.oom_control "$group"/memory.events 2>/dev/null
}

# start OPTIONS...: until it has done some steps; $run is hplan.
start() {
  : >out
  (inside "$HPLAN" run plan.db --deterministic --json "$@" >out 2>err </dev/null) &
  run=$!
  for _ in $(seq 300); do
    [ "$(grep -c '"step"' out)" -ge 5 ] && return
    sleep 0.1
  done
  complain "the run does not start: $(cat err)"
}

expect 0 simulate --net cnn --image 28 --classes 10 --machine local --batch 8 --strategy dp=2 --out plan.db
steps=1500 # many more than pass on a busy machine before memory is short
expect 0 run plan.db --deterministic --steps $steps --save whole.st --trace whole.db
for round in $(seq "${ROUNDS:-1}"); do
  rm -rf saved run*.db
  start --steps 1000000 --trace "$scratch/run.db"
  crowd 1
  wait $run
  got=$?
  [ $got = 137 ] || complain "round $round: exit $got, expected 137: $(cat err)"
  grep -Eq 'rank 1 died \(signal 9, Killed\) for want of memory: its control group may have 600 MB \(.*hplan-oom-[0-9]*/memory\.[a-z_]*\), the plan takes .* for 2 ranks' err ||
    complain "round $round: the message does not say what happened: $(cat err)"

  start --steps $steps --trace "$scratch/run.db" --checkpoint saved --every 20 --restarts 3 --save parts.st
  crowd 0
  wait $run || complain "round $round: with restarts: exit $?: $(cat err)"
  grep -q 'restart 1 of 3, from the newest checkpoint' err || complain "round $round: no restart: $(cat err)"
  cmp whole.st parts.st || complain "round $round: other weights after a restart"
done
start --steps 1000000 --trace "$scratch/run.db"
kill -9 "$(ranks | head -1)"
wait $run
grep -q 'died (signal 9, Killed); not for want of memory on this node' err || complain "killed on purpose: $(cat err)"
conclude "who is killed for want of memory is told from who is killed"
