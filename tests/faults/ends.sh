#!/bin/bash
# ends.sh - how long a run takes to end after a rank, its launcher or hplan is stopped, killed or signalled at a random time, while it
# saves after every step: at most the deadline and 5 s, with the right name and exit code, and nothing left of it. Prints a row for each.
# ROUNDS=N: so many of each (3). By hand: cli_faults.sh and leftovers.sh have the same faults, once.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh" || exit 1
need_executor
rounds=${ROUNDS:-3} deadline=3 allowed=8
RANDOM=${SEED:-1}
export TMPDIR=$scratch/tmp # session folders of these runs alone
mkdir "$TMPDIR"

ranks() { # in the order in which they were started
  pgrep -f "hplan-exec.*$scratch" | sort -n | while read -r p; do
    case $(cat "/proc/$p/comm" 2>/dev/null) in hplan-exec) echo "$p" ;; esac
  done
}

# whom WORD: processes of the run
whom() {
  case $1 in
  hplan) echo "$run" ;;
  launcher) echo "$launcher" ;;
  ranks) ranks ;;
  *) ranks | sed -n "$(($1 + 1))p" ;;
  esac
}

start() {
  rm -rf saved run*.db
  : >out
  "$HPLAN" run plan.db --steps 10000000 --trace "$scratch/run.db" --json --deadline $deadline --checkpoint saved --every 1 >out 2>err </dev/null &
  run=$!
  for _ in $(seq 600); do
    [ "$(grep -c '"step"' out)" -ge 3 ] && break
    sleep 0.1
  done
  launcher=$(tr -d ' ' <"/proc/$run/task/$run/children")
  job=$(head -1 "$TMPDIR"/ompi.*/pid."$launcher"/contact.txt | cut -d. -f1)
  segments=$(printf '/dev/shm/vader_segment.*.%x.*' $((job + 1)))
  sleep "0.$(printf %03d $((RANDOM % 1000)))"
}

# left NAME: what goes on or lies about once the run is over.
left() {
  for _ in $(seq 50); do
    [ -n "$(ranks)" ] || break
    sleep 0.1
  done
  [ -z "$(ranks)" ] || complain "$1: ranks go on: $(ranks | tr '\n' ' ')"
  # shellcheck disable=SC2086
  ls -d $segments "$TMPDIR"/ompi.*/pid.* "$scratch"/run*.tmp* 2>/dev/null && complain "$1: files are left"
}

# fault NAME CODE WORDS SIGNAL WHOM
fault() {
  local name=$1 code=$2 words=$3 signal=$4 longest=0 took begin got
  for _ in $(seq "$rounds"); do
    start
    begin=${EPOCHREALTIME/./}
    # shellcheck disable=SC2046
    kill -s "$signal" $(whom "$5")
    wait "$run"
    got=$?
    took=$(((${EPOCHREALTIME/./} - begin) / 1000))
    [ $took -le $longest ] || longest=$took
    [ $got = "$code" ] || complain "$name: exit $got, expected $code: $(cat err)"
    grep -q -- "$words" err || complain "$name: no message says '$words': $(cat err)"
    [ $took -le $((allowed * 1000)) ] || complain "$name: took $took ms, at most $allowed s wanted"
    left "$name"
  done
  printf '%-24s %3d times  at most %2d.%d s  exit %d\n' "$name" "$rounds" $((longest / 1000)) $((longest % 1000 / 100)) "$code"
}

expect 0 simulate --net cnn --image 28 --classes 10 --machine local --batch 16 --strategy dp=2 --out plan.db
fault 'a rank killed' 137 'rank 1 died (signal 9' KILL 1
fault 'the launcher killed' 137 'the launcher mpirun died (signal 9' KILL launcher
fault 'a rank stopped' 124 'rank 0 \(gives no sign of life\|(process\)' STOP 0
fault 'all ranks stopped' 124 'stopped for .*: rank 0 .* and 1 more' STOP ranks
fault 'the launcher stopped' 124 'stopped for .*: the launcher' STOP launcher
fault 'hplan told by USR1' 75 'saved' USR1 hplan
fault 'hplan told by TERM' 75 'saved' TERM hplan
fault 'hplan told by INT' 130 'signal 2' INT hplan
conclude "each fault ends its run in time"
