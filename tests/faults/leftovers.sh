#!/bin/bash
# leftovers.sh - what is left after kill -9 of the launcher, of hplan, of both; after QUIT, USR1, a closed stdout: no process, no
# shared memory, no session folder; of a killed hplan the run's folder alone, which `hplan recover` turns into a trace.
# ROUNDS=20 for that many (1).
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh" || exit 1
# shellcheck source=tests/cli/runs.sh
. "$(dirname "$0")/../cli/runs.sh" || exit 1
need_executor
rounds=${ROUNDS:-1}
export TMPDIR=$scratch/tmp # session folders of these runs alone
mkdir -p "$TMPDIR"

# watch NAME: a run of which also the shared memory is known, as $segments
watch() {
  local job
  start "$1"
  job=$(head -1 "$TMPDIR"/ompi.*/pid."${launcher[$1]}"/contact.txt | cut -d. -f1)
  segments=$(printf '/dev/shm/vader_segment.*.%x.*' $((job + 1)))
  [ "$(count "$segments")" -ge 2 ] || complain "no shared memory to look for: $segments"
}

# count PATTERN: of files
count() {
  compgen -G "$1" | wc -l
}

# all_ended NAME: no process goes on
all_ended() {
  no_ranks "$1" && ! runs_on "${launcher[$1]}"
}
all_gone() {
  all_ended "$1" && [ "$(count "$segments")" = 0 ] && [ "$(count "$TMPDIR/ompi.*/pid.*")" = 0 ]
}

# nothing_left NAME: what ends removes its own; not all wait for each other
nothing_left() {
  await "$1: all gone" all_gone "$1" ||
    complain "$1: left are $(count "$segments") segments, $(count "$TMPDIR/ompi.*/pid.*") session folders: $(find "$TMPDIR"/ompi.*)"
}

folders() { # NAME N: folders of runs
  [ "$(count "$1/*.tmp-*")" = "$2" ] || complain "$1: $(count "$1/*.tmp-*") folders of runs, expected $2"
}

launcher_killed() {
  watch mpirun
  kill -9 "${launcher[mpirun]}"
  over mpirun 137 'the launcher mpirun died (signal 9'
  nothing_left mpirun
}

hplan_killed() {
  watch killed
  cd killed || exit 1
  expect 0 recover run.db
  grep -q 'its run goes on: hplan is process' out || complain "a run that goes on is recovered: $(cat out)"
  cd ..
  kill -0 "${hplan[killed]}" 2>/dev/null || complain "recover ends a run that goes on"
  folders killed 1
  cp "$plan" killed/run.db
  kill -9 "${hplan[killed]}"
  wait "${run[killed]}" 2>/dev/null
  nothing_left killed
  folders killed 1
  cd killed || exit 1
  expect 0 run "../$plan" --steps 1 --trace run.db --dry-run
  grep -q 'was killed and has left its folder: hplan recover run.db' err || complain "run does not tell of a folder: $(cat err)"
  expect 0 recover run.db
  grep -q 'next: hplan compare run-1.db' out || complain "recover offers nothing: $(cat out)"
  cd ..
  folders killed 0
  cmp -s "$plan" killed/run.db || complain "recover has replaced an earlier run.db"
  expect 0 compare killed/run-1.db
  "$HPLAN" compare killed/run-1.db --json | python3 -c 'import json, sys; assert json.load(sys.stdin)["step"]["measured_s"] > 0' || complain "no step is left in the trace"
  expect 65 recover killed/run.db
}

both_killed() {
  watch both
  kill -9 "${hplan[both]}" "${launcher[both]}"
  wait "${run[both]}" 2>/dev/null
  await "both killed: the end of all" all_ended both
  expect 0 recover both/run.db --json
  python3 -c 'import json; d = json.load(open("out")); assert [f["state"] for f in d["folders"]] == ["recovered"], d' || complain "both killed: $(cat out)"
  nothing_left both
  folders both 0
}

signalled() { # SIGNAL
  watch "$1"
  kill -s "$1" "${hplan[$1]}"
  over "$1" $((128 + $(kill -l "$1"))) "signal $(kill -l "$1")"
  nothing_left "$1"
}

nobody_reads() {
  mkdir -p unread
  timeout -k 5 600 "$HPLAN" run "$plan" --steps 100000000 --trace "$scratch/unread/run.db" --json 2>err | head -3 >out
  [ "${PIPESTATUS[0]}" = 141 ] || complain "a closed stdout: exit code is not 141: $(cat err)"
  [ "$(wc -l <out)" = 3 ] || complain "three lines were wanted"
  segments=/dev/shm/none launcher[unread]=0
  nothing_left unread
  folders unread 0
  expect 0 compare unread/run.db
}

for strategy in dp=2 $(all "runs of four ranks" && echo dp=2,stages=2); do
  expect 0 simulate --net cnn --image 8 --classes 2 --machine local --batch 4 --strategy "$strategy" --out plan.db
  for _ in $(seq "$rounds"); do
    launcher_killed
    hplan_killed
    both_killed
    for signal in QUIT $(all "other signals" && echo USR1 USR2); do signalled "$signal"; done
    nobody_reads
    rm -rf killed unread
  done
done
conclude "$rounds rounds: nothing is left"
