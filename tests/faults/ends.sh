#!/bin/bash
# ends.sh - how a run ends after a rank, its launcher or hplan is stopped, killed or signalled at a random time, while it saves after every
# step: with the right name and exit code, and nothing left of it. Prints a row for each, with how long that took. On a machine without
# other work that is at most the deadline and 5 s: DEADLINE=3 ALLOWED=8 tests/faults/ends.sh (8, 120). ROUNDS=N: so many of each (3).
# cli_faults.sh and leftovers.sh have the same faults, once.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh" || exit 1
# shellcheck source=tests/cli/runs.sh
. "$(dirname "$0")/../cli/runs.sh" || exit 1
need_executor
rounds=${ROUNDS:-3} deadline=${DEADLINE:-8} allowed=${ALLOWED:-120}
RANDOM=${SEED:-1}
export TMPDIR=$scratch/tmp # session folders of these runs alone
mkdir "$TMPDIR"

# whom WORD: processes of the run
whom() {
  case $1 in
  hplan) echo "${hplan[ends]}" ;;
  launcher) echo "${launcher[ends]}" ;;
  ranks) ranks ends ;;
  *) rank ends "$1" ;;
  esac
}

disturb_later() {
  local job
  rm -rf saved
  start ends --deadline "$deadline" --checkpoint "$scratch/saved" --every 1
  job=$(head -1 "$TMPDIR"/ompi.*/pid."${launcher[ends]}"/contact.txt | cut -d. -f1)
  segments=$(printf '/dev/shm/vader_segment.*.%x.*' $((job + 1)))
  sleep "0.$(printf %03d $((RANDOM % 1000)))"
}

nothing_left() {
  no_ranks ends && ! compgen -G "$segments" && ! compgen -G "$TMPDIR/ompi.*/pid.*" && ! compgen -G "ends/run*.tmp*"
}

# fault NAME CODE WORDS SIGNAL WHOM
fault() {
  local name=$1 code=$2 words=$3 signal=$4 longest=0 took begin got
  for _ in $(seq "$rounds"); do
    disturb_later
    begin=${EPOCHREALTIME/./}
    # shellcheck disable=SC2046
    kill -s "$signal" $(whom "$5")
    wait "${run[ends]}"
    got=$?
    took=$(((${EPOCHREALTIME/./} - begin) / 1000))
    [ $took -le $longest ] || longest=$took
    [ $got = "$code" ] || complain "$name: exit $got, expected $code: $(cat ends/err)"
    grep -q -- "$words" ends/err || complain "$name: no message says '$words': $(cat ends/err)"
    [ $took -le $((allowed * 1000)) ] || complain "$name: took $took ms, at most $allowed s wanted"
    await "$name: an end of ranks, segments and folders" nothing_left >/dev/null
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
conclude "each fault ends its run"
