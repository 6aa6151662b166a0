#!/bin/bash
# memory.sh - a control group's limit kills a rank: the message says so, names the rank, the limit and what the plan takes; with
# --restarts the run goes on, and what it saved to the weights of one that was not disturbed. Needs a control group that may be made:
# else status 77. ROUNDS=30 for that many (1).
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh" || exit 1
# shellcheck source=tests/cli/runs.sh
. "$(dirname "$0")/../cli/runs.sh" || exit 1
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

# a program that runs in the group
cat >inside <<END
#!/bin/bash
echo \$\$ >$group/cgroup.procs && exec "\$@"
END
printf '#!/bin/bash\nexec %s/inside %s "$@"\n' "$scratch" "$HPLAN" >hplan_inside
chmod +x inside hplan_inside

# crowd NAME RANK: takes the group's memory until that rank was killed, which the kernel is told to choose.
crowd() {
  local before crowd victim
  before=$(kills)
  victim=$(rank "$1" "$2")
  echo 1000 >"/proc/$victim/oom_score_adj"
  ./inside /usr/bin/env python3 -c '
taken = []
for _ in range(50):
    taken.append(b"x" * (64 << 20))' 2>/dev/null &
  crowd=$!
  await "a kill for want of memory" more_kills "$before"
  kill -9 $crowd 2>/dev/null
  wait $crowd 2>/dev/null
}

kills() {
  awk '$1 == "oom_kill" { print $2 }' "$group"/memory.oom_control "$group"/memory.events 2>/dev/null
}
more_kills() {
  [ "$(kills)" -gt "$1" ]
}

# within NAME OPTIONS...: a run in the group, that has done some steps
within() {
  rm -rf "$1"
  HPLAN=$scratch/hplan_inside begin "$@" --deterministic
  started "$1"
}

restarted() {
  grep -q 'restart 1 of 3, from the newest checkpoint' again/err
}

expect 0 simulate --net cnn --image 28 --classes 10 --machine local --batch 8 --strategy dp=2 --out plan.db
for round in $(seq "${ROUNDS:-1}"); do
  rm -rf saved
  within short
  crowd short 1
  over short 137 'rank 1 died (signal 9, Killed) for want of memory'
  grep -Eq 'its control group may have 600 MB \(.*hplan-oom-[0-9]*/memory\.[a-z_]*\), the plan takes .* for 2 ranks' short/err ||
    complain "round $round: the message does not say what happened: $(cat short/err)"

  within again --checkpoint "$scratch/saved" --every 20 --restarts 3
  crowd again 0
  await "a restart" restarted
  await "25 steps" has_steps again $(($(steps again) + 25))
  kill "${hplan[again]}"
  wait "${run[again]}"
  got=$?
  [ $got = 75 ] || complain "round $round: with restarts: exit $got: $(cat again/err)"
  until=$(($(newest saved) + 5))
  expect 0 run plan.db --steps $until --deterministic --save parts.st --trace parts.db --checkpoint saved --resume
  expect 0 run plan.db --steps $until --deterministic --save whole.st --trace whole.db
  cmp whole.st parts.st || complain "round $round: other weights after a restart"
done
within killed
kill -9 "$(ranks killed | head -1)"
over killed 137 'died (signal 9, Killed); not for want of memory on this node'
conclude "who is killed for want of memory is told from who is killed"
