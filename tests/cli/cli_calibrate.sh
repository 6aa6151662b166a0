#!/usr/bin/env bash
# cli_calibrate.sh - a calibration that stops goes on, what was measured is kept, and runs of plans are taken in.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
need_executor

comm=(calibrate --comm -e 4Ki -f 16 -n 2 -w 0)
if [ "$(nproc)" -gt 1 ]; then
  # the first run is always made, then its seconds are over; the next goes on where this one stopped
  for runs in 1 2 3; do
    expect 0 "${comm[@]}" -o part.cost --seconds 0.001
    grep -q "^1 runs in" out || complain "with a thousandth of a second it makes $(grep ' runs in ' out)"
    grep -q "goes on where this one stopped" out || complain "after $runs runs it says that it is done"
    [ "$(sqlite3 part.samples.db "SELECT count(DISTINCT job) FROM run")" = $runs ] || complain "not $runs different runs are kept"
  done
  if all "messages and collectives, measured to the end"; then
    expect 0 "${comm[@]}" -o part.cost --seconds 6000
    grep -q "goes on where" out && complain "it does not come to an end"
    runs=$((runs + $(sed -n 's/^\([0-9]*\) runs in .*/\1/p' out)))
    expect 0 "${comm[@]}" -o whole.cost
    grep -q "^$runs runs in" out || complain "$runs parts, but as a whole $(grep ' runs in ' out)"
    rows() { sed -n 's/^\(p2p\|collective\) \([^|]*\)|.*/\1 \2/p' "$1"; }
    [ "$(rows part.cost)" = "$(rows whole.cost)" ] || complain "in parts it measures $(rows part.cost), not $(rows whole.cost)"
  fi
  grep -q "^yardstick cpu arith r" part.cost || grep -q "^yardstick cpu l2 r" part.cost ||
    complain "the table does not say how fast the machine was"
fi

# ^C: what was measured until then is kept, and the next calibration begins with it
runs_kept() { [ -s "$1" ] && sqlite3 "$1" "SELECT count(*) FROM run WHERE job LIKE '${2-}%'" 2>/dev/null || echo 0; }
ranks=1
[ "$(nproc)" -gt 1 ] && all "a calibration of two ranks that stops" && ranks=2
set -m # so that the job heeds SIGINT
timeout -k 5 900 "$HPLAN" calibrate --net cnn --image 20 --gpus "$ranks" --seconds 800 -o stopped.cost >out 2>err </dev/null &
for _ in $(seq 3000); do
  [ "$(runs_kept stopped.samples.db cnn)" -ge 2 ] && break # messages come first
  sleep 0.1
done
pkill -INT -P $! -x hplan || complain "there is no calibration to stop: $(cat err)"
wait $!
got=$?
set +m
[ "$got" = 130 ] || complain "^C: exit $got, $(cat err)"
kept=$(runs_kept stopped.samples.db)
[ "$kept" -ge 2 ] || complain "^C: $kept runs are kept"
expect 0 calibrate --net cnn --image 20 --gpus "$ranks" --seconds 0.001 -o stopped.cost
[ "$(runs_kept stopped.samples.db)" -gt "$kept" ] || complain "after ^C: $kept runs, then $(runs_kept stopped.samples.db)"
grep -q "^compute cpu fwd.conv" stopped.cost || complain "after ^C the table has no convolutions"

# a run of a plan is taken in: its tasks become rows
expect 0 simulate --net cnn --image 20 --batch 2 --machine local --strategy dp=1 --out plan.db
expect 0 run plan.db --steps 5 --trace run.db
expect 0 calibrate --from run.db -o taken.cost
grep -q "^compute cpu fwd.conv .*w20 " taken.cost || complain "the run's convolutions are no rows: $(grep -c . taken.cost) lines"
expect 0 calibrate --from run.db -o taken.cost
expect 65 calibrate --from plan.db -o taken.cost
grep -q "holds no executed run" err || complain "$(cat err)"
expect 0 simulate --net cnn --image 20 --batch 2 --machine local --strategy dp=1 --cost taken.cost --out again.db

# damaged samples: said, and what to do
head -c 3000 taken.samples.db >short.db
cp short.db taken.samples.db
cp taken.cost before.cost
expect 65 calibrate --from run.db -o taken.cost
grep -q "taken.samples.db.*remove it" err || complain "damaged samples: $(cat err)"
cmp -s taken.cost before.cost || complain "the table changed"
conclude "a calibration stops, goes on, and takes in runs"
