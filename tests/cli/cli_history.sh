#!/bin/bash
# cli_history.sh - every run goes into the history, and nothing that happens to the history fails a run. HPLAN is the binary;
# hplan-exec lies beside it.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor

history=$XDG_STATE_HOME/hplan/history.db

# runs: how many the history has
runs() {
  expect 0 history --json
  python3 -c 'import json; print(len(json.load(open("out"))["runs"]))'
}

# --- without runs ---
expect 0 history
grep -q 'no runs yet' out || complain "an empty history says: $(cat out)"
[ -e "$history" ] && complain "looking at the history makes one"
expect 0 doctor
grep -q 'history .*no runs yet' out || complain "doctor says nothing of the history: $(cat out)"

# --- one row per run, with the figures that the run and compare show ---
expect 0 simulate --net cnn --image 28 --classes 10 --machine local --batch 8 --strategy dp=2 --out plan.db
expect 0 run plan.db --steps 5 --json
tail -1 out >final.json
expect 0 compare run.db --json
cp out compare.json
expect 0 history --json
python3 - final.json compare.json out <<'EOF' || complain "the figures of run, compare and history differ"
import json, sys
final, compare, history = (json.load(open(f)) for f in sys.argv[1:])
row, = history["runs"]
assert row["measured_s"] == final["step_s"] == compare["step"]["measured_s"], (row, final)
assert row["predicted_s"] == final["predicted_s"], (row, final)
assert row["predicted_s"] == compare["step"]["predicted_s"], (row, compare["step"])
assert row["low_s"] == final["predicted_low_s"] <= row["predicted_s"] <= row["high_s"] == final["predicted_high_s"], row
assert (row["net"], row["image"], row["mode"], row["batch"], row["ranks"]) == ("cnn", "28x28", "train", 8, 2), row
assert row["steps"] == compare["measured"]["steps"] == 4, row
assert row["processor"] == history["processor"] == compare["measured"]["made_on"]["processor"], row
assert abs(final["images_per_s"] * final["step_s"] / 8 - 1) < 1e-12, final
assert not row["counts"] and history["here"]["uncalibrated"] == 1, history["here"] # nothing was measured for it
EOF
expect 0 run plan.db --steps 3
[ "$(runs)" = 2 ] || complain "the second run is not in the history"
expect 0 history --last 1
[ "$(grep -c 'cnn 28x28 dp=2' out)" = 1 ] || complain "--last 1 shows: $(cat out)"
expect 2 history --last 0
expect 2 history plan.db

# --- another strategy has its own prediction ---
expect 0 run plan.db --plan dp=1 --steps 3 --json
expect 0 history --json
python3 - out <<'EOF' || complain "run --plan is not in the history as what it is"
import json, sys
row = json.load(open(sys.argv[1]))["runs"][-1]
assert row["strategy"] == "dp=1" and row["ranks"] == 1, row
EOF

# --- runs that were predicted with a calibration of this processor count ---
expect 2 plot error run.db --history
expect 2 plot timeline --history
expect 65 plot error
grep -q 'history has no run' err || complain "an empty plot of the history says: $(cat err)"
expect 0 history --json
processor=$(python3 -c 'import json; print(json.load(open("out"))["processor"])')
printf 'hplan-cost 2\nmachine local\ndate 2026-01-02\nprocessor %s\ncompute cpu none k1 f32 | measured 0.1 1 test | 1:1 2:2\n' "$processor" >own.cost
sed 's/^processor .*/processor another/' own.cost >other.cost
for table in own other; do
  expect 0 simulate --net cnn --image 28 --classes 10 --machine local --batch 8 --strategy dp=1 --cost $table.cost --out $table.db
  expect 0 run $table.db --steps 3
done
expect 0 history --json
python3 - out <<'EOF' || complain "what counts: $(head -c 400 out)"
import json, sys
h = json.load(open(sys.argv[1]))
own, other = h["runs"][-2:]
assert own["counts"] and own["cost"].startswith("own.cost") and not other["counts"], (own, other)
here = h["here"]
assert here["measured"]["runs"] == 1 and here["elsewhere"] == 1 and here["uncalibrated"] == 3, here
error = abs(own["predicted_s"] / own["measured_s"] - 1)
assert abs(here["measured"]["median_error"] - error) < 1e-12, here
assert here["measured"]["covered"] == float(own["low_s"] <= own["measured_s"] <= own["high_s"]), here
EOF
expect 0 doctor
grep -qE 'ok +history +1 run: median error' out || complain "doctor: $(grep history out)"
if command -v gnuplot >/dev/null; then
  expect 0 plot error
  grep -q 'as measured' out || complain "plot error draws no history"
  expect 0 plot error --history -o history.svg
fi

# --- what leaves no row ---
expect 0 run own.db --steps 3 --no-history
expect 0 run own.db --steps 2 # only a warm-up and one step
HPLAN_NO_HISTORY=1 expect 0 run own.db --steps 3
expect 65 run own.db --steps 3 --data no-such-folder
[ "$(runs)" = 5 ] || complain "$(runs) runs in the history instead of 5"

# --- a history that is damaged, or cannot be written ---
head -c 3000 /dev/urandom >"$history"
cp "$history" before
expect 0 run own.db --steps 3
grep -q 'note: the run is not in the history' err || complain "a damaged history: $(cat err)"
cmp -s "$history" before || complain "a damaged history was changed"
expect 65 history
grep -q "$history" err || complain "history does not name the damaged file: $(cat err)"
expect 0 doctor
grep -q 'history .*remove it' out || complain "doctor: $(grep history out)"
rm "$history"
rmdir "$XDG_STATE_HOME/hplan"
touch "$XDG_STATE_HOME/hplan" # a file where the folder has to be
expect 0 run own.db --steps 3
[ "$(grep -c '^hplan: ' err)" = 1 ] || complain "more than one line: $(cat err)"
rm "$XDG_STATE_HOME/hplan"

# --- runs that end at the same time ---
for i in 1 2 3 4; do
  "$HPLAN" run own.db --steps 3 --trace "at-once-$i.db" >/dev/null 2>>at-once.err </dev/null &
done
wait
[ "$(runs)" = 4 ] || complain "$(runs) of 4 runs in the history: $(cat at-once.err)"

conclude "the history holds the runs"
