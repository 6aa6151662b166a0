#!/bin/bash
# leftovers.sh - what is left after kill -9 of the launcher, of hplan, of both; after QUIT, USR1, a closed stdout: no process, no
# shared memory, no session folder; of a killed hplan the run's folder alone, which `hplan recover` turns into a trace.
# ROUNDS=20 for that many (1).
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh" || exit 1
need_executor
rounds=${ROUNDS:-1}
export TMPDIR=$scratch/tmp # session folders of these runs alone
mkdir -p "$TMPDIR"

ranks() {
  pgrep -f "hplan-exec.*$scratch" | while read -r pid; do
    case $(ps -o comm= -p "$pid") in hplan-exec) echo "$pid" ;; esac
  done
}

# runs_on PID: a process that is there, and not only to be waited for.
runs_on() {
  case $(ps -o stat= -p "$1" 2>/dev/null) in '' | Z*) return 1 ;; esac
}

# start: a run in the background that has done some steps: $run is hplan, $launcher mpirun, $segments its shared memory.
start() {
  : >out
  "$HPLAN" run plan.db --steps 10000000 --trace "$scratch/run.db" --json "$@" >out 2>err </dev/null &
  run=$!
  for _ in $(seq 600); do
    [ "$(grep -c '"step"' out)" -ge 3 ] && break
    sleep 0.1
  done
  [ "$(grep -c '"step"' out)" -ge 3 ] || complain "the run does not start: $(cat err)"
  launcher=$(tr -d ' ' <"/proc/$run/task/$run/children")
  local job
  job=$(head -1 "$TMPDIR"/ompi.*/pid."$launcher"/contact.txt | cut -d. -f1)
  segments=$(printf '/dev/shm/vader_segment.*.%x.*' $((job + 1)))
  [ "$(count "$segments")" -ge 2 ] || complain "no shared memory to look for: $segments"
}

# count PATTERN: of files.
count() {
  # shellcheck disable=SC2086
  ls -d $1 2>/dev/null | wc -l
}

# all_ended WORDS: no process goes on, within some seconds.
all_ended() {
  for _ in $(seq 300); do
    [ -n "$(ranks)" ] || runs_on "$launcher" || return 0
    sleep 0.1
  done
  complain "$1: left are ranks $(ranks | tr '\n' ' '), $(ps -o pid=,args= -p "$launcher")"
}

# nothing_left WORDS: what ends removes its own before.
nothing_left() {
  all_ended "$1"
  [ "$(count "$segments")" = 0 ] && [ "$(count "$TMPDIR/ompi.*/pid.*")" = 0 ] ||
    complain "$1: left are $(count "$segments") segments, $(count "$TMPDIR/ompi.*/pid.*") session folders: $(find "$TMPDIR"/ompi.*)"
}

no_folder() {
  [ "$(count "$scratch/*.tmp-*")" = 0 ] || complain "$1: the run's folder is left: $(ls -d "$scratch"/*.tmp-*)"
}

ended() { # CODE WORDS...
  local want=$1 got
  shift
  wait $run
  got=$?
  [ $got = "$want" ] || complain "$*: exit $got, expected $want: $(cat err)"
}

expect 0 simulate --net cnn --image 28 --classes 10 --machine local --batch 16 --strategy dp=2,stages=2 --out plan.db

for round in $(seq "$rounds"); do
  # --- the launcher ---
  start
  kill -9 "$launcher"
  ended 137 "mpirun killed"
  grep -q 'the launcher mpirun died (signal 9' err || complain "the launcher is not named: $(cat err)"
  nothing_left "mpirun killed"
  no_folder "mpirun killed"
  rm -f run*.db

  # --- hplan ---
  start
  expect 0 recover run.db
  grep -q 'its run goes on: hplan is process' out || complain "a run that goes on is recovered: $(cat out)"
  kill -0 "$run" 2>/dev/null && [ "$(count "$scratch/run.db.tmp-*")" = 1 ] || complain "recover touches a run that goes on"
  echo earlier >run.db
  kill -9 "$run"
  wait "$run" 2>/dev/null
  nothing_left "hplan killed"
  [ "$(count "$scratch/run.db.tmp-*")" = 1 ] || complain "hplan killed: $(count "$scratch/run.db.tmp-*") folders, 1 expected"
  expect 0 run plan.db --steps 1 --trace run.db --dry-run
  grep -q 'was killed and has left its folder: hplan recover run.db' err || complain "run does not tell of a folder: $(cat err)"
  expect 0 recover run.db
  grep -q 'next: hplan compare run-1.db' out || complain "recover offers nothing: $(cat out)"
  no_folder "recovered"
  [ "$(cat run.db)" = earlier ] || complain "recover has replaced an earlier run.db"
  expect 0 compare run-1.db
  "$HPLAN" compare run-1.db --json | python3 -c 'import json, sys; assert json.load(sys.stdin)["step"]["measured_s"] > 0' || complain "no step is left in the trace"
  expect 65 recover run.db
  rm -f run*.db

  # --- both ---
  start
  kill -9 "$run" "$launcher"
  wait "$run" 2>/dev/null
  all_ended "both killed"
  expect 0 recover run.db --json
  python3 -c 'import json; d = json.load(open("out")); assert [f["state"] for f in d["folders"]] == ["recovered"], d' || complain "both killed: $(cat out)"
  nothing_left "both killed, recovered"
  no_folder "both killed, recovered"
  rm -f run*.db

  # --- signals ---
  for signal in QUIT USR1 USR2; do
    start
    kill -s $signal "$run"
    ended $((128 + $(kill -l $signal))) "SIG$signal"
    nothing_left "SIG$signal"
    no_folder "SIG$signal"
    rm -f run*.db
  done

  # --- nobody reads ---
  "$HPLAN" run plan.db --steps 10000000 --trace "$scratch/run.db" --json 2>err | head -3 >out
  [ "${PIPESTATUS[0]}" = 141 ] || complain "a closed stdout: exit code is not 141: $(cat err)"
  [ "$(wc -l <out)" = 3 ] || complain "three lines were wanted"
  segments=/dev/shm/none
  launcher=0
  nothing_left "a closed stdout"
  no_folder "a closed stdout"
  expect 0 compare run.db
  rm -f run*.db
done
conclude "$rounds rounds: nothing is left"
