#!/bin/bash
# cli_quota.sh - run --quota: slower ranks compute the same, nothing of their control groups is left, and what is wrong with
# a quota is said before anything runs.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor

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
    [ -d "/proc/$pid" ] || complain "left: $group"
  done
  ;;
69) grep -q "control group" err || complain "why there are no quotas: $(cat err)" ;;
*) complain "--quota 1:0.5: $(cat err)" ;;
esac
conclude "quotas make ranks slower, not different"
