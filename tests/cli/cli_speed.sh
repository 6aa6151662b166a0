#!/bin/bash
# cli_speed.sh - a machine that was slower than its cost table says, by a known factor: compare, run's figures and the history
# split the error into that factor and the model's. HPLAN is the binary; hplan-exec lies beside it.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor

# two ranks compute at a time where there are two cores
together=r$(($(nproc) > 1 ? 2 : 1))
cat >speed.cost <<END
hplan-cost 2
machine local
date 2026-01-02
compute cpu none k1 f32 | measured 0.1 1 test | 1:1 2:2
yardstick cpu arith $together | measured 0.1 100 test | quiet:5e-05 mean:6e-05 spread:0
yardstick cpu dram $together | measured 0.1 100 test | quiet:4e-05 mean:4.8e-05 spread:0
yardstick cpu l2 $together | measured 0.1 100 test | quiet:3e-05 mean:3.6e-05 spread:0
END
grep -v '^yardstick' speed.cost >own.cost
expect 0 simulate --net cnn --image 28 --classes 10 --machine local --batch 8 --strategy dp=2 --cost speed.cost --out plan.db
expect 0 run plan.db --steps 6 # every yardstick is sampled at its two ends at least
grep -qE 'step .* measured \(median\), .* predicted \(.* to .*\); the machine was .* predicted for: .*% off at equal speed' out ||
  complain "run says: $(grep step out)"
expect 0 history --json
python3 -c '
import json; row = json.load(open("out"))["runs"][-1]
assert row["arith"] > 0 and row["l2"] > 0 and row["dram"] > 0 and 0 < row["availability"] <= 1, row
assert row["equal_speed_s"] > 0, row' || complain "the history lacks the speed of the run: $(cat out)"
expect 0 run plan.db --steps 6 --no-yardsticks
grep -q 'at equal speed' out && complain "a speed of a run without yardsticks: $(grep step out)"
expect 0 run plan.db --steps 6

# pretend ARITH L2 DRAM AVAILABILITY: the run's machine had these slowdowns
pretend() {
  python3 - "$@" <<'END'
import sqlite3, sys
arith, l2, dram, available = map(float, sys.argv[1:])
db = sqlite3.connect("run.db")
run, = db.execute("SELECT max(id) FROM run WHERE kind = 'exec'").fetchone()
db.execute("DELETE FROM counter WHERE run = ? AND (name LIKE 'yard_%' OR name = 'step_cpu_s')", (run,))
for rank in range(2):
    for step in range(6):
        for name, seconds in ("arith", arith * 5e-5), ("l2", l2 * 3e-5), ("dram", dram * 4e-5):
            wrong = 50 if step == 0 else 1  # of the warm-up
            db.execute("INSERT INTO counter VALUES(?,?,?,?,0,?)", (run, rank, step, f"yard_{name}_s", seconds * wrong))
db.execute("INSERT INTO counter SELECT run, rank, iter, 'step_cpu_s', t_ns, value * ? FROM counter"
           " WHERE run = ? AND name = 'step_s'", (available, run))
db.execute("UPDATE meta SET value = 'none' WHERE key = 'content'")
db.commit()
END
}

# split SLOWDOWN: of the run against the quiet machine, as compare has to say it; predictions are for 1.2
split() {
  expect 0 compare run.db --json
  python3 - out "$1" <<'END' || complain "the split of a run that was slowed by $1: $(head -c 600 out)"
import json, math, sys
c = json.load(open(sys.argv[1]))
slow, near = float(sys.argv[2]), lambda a, b: abs(a / b - 1) < 1e-9
speed, step = c["speed"], c["step"]
assert near(speed["quiet"], slow) and near(speed["predicted_for"], 1.2) and near(speed["usual"], slow / 1.2), speed
assert near(speed["expected_s"], step["predicted_s"] * slow / 1.2), (speed, step)
assert near(speed["equal_speed_s"], step["measured_s"] * 1.2 / slow), (speed, step)
assert near(1 + speed["model_error"], speed["expected_s"] / step["measured_s"]), speed
assert step["model_error"] == speed["model_error"] and step["expected_s"] == speed["expected_s"], step
if speed["availability"] == 1:  # else short tasks are as fast as ever
    for row in c["phases"] + c["kinds"] + c["tasks"]:
        assert row["predicted_s"] == 0 or near(row["expected_s"] / row["predicted_s"], slow / 1.2), row
END
}

pretend 1.5 1.5 1.5 1
split 1.5
expect 0 compare run.db
grep -q 'the machine was 50% slower than when quiet (arith +50%, l2 +50%, dram +50%, availability 100%), 25% slower than predicted for; at equal speed the model is off by' out ||
  complain "compare says: $(grep machine out)"
grep -q 'at equal' out || complain "compare has no column at equal speed"

if [ $together = r2 ]; then # two ranks of one core share it as predicted
  pretend 1.2 1.2 1.2 0.75 # the machine as usual, but shared
  split 1.6
fi
pretend 0.9 0.9 0.9 1 # faster than when it was measured
split 0.9

# classes that differ: in between, and nearer to what the tasks are bound by
pretend 2 1 1 1
expect 0 compare run.db --json
python3 -c '
import json; s = json.load(open("out"))["speed"]
want = {"arith": 2, "l2": 1, "dram": 1}
assert 1 < s["quiet"] < 2 and all(abs(s["classes"][k] - want[k]) < 1e-9 for k in want), s' || complain "different classes: $(head -c 600 out)"

# --- two files: the plan's prediction beside the run, in any order ---
cp run.db a.db
expect 0 compare run.db --json
cp out one.json
for order in "plan.db a.db" "a.db plan.db"; do
  # shellcheck disable=SC2086 # two words
  expect 0 compare $order --json
  python3 -c '
import json; one, two = json.load(open("one.json")), json.load(open("out"))
assert one["speed"] == two["speed"] and two["speed"], two["speed"]' || complain "compare $order: another speed"
done

# --- doctor knows how fast the machine was in the last run whose prediction was of this processor ---
expect 0 doctor
grep -q ' -- *speed .*not known' out || complain "doctor: $(grep speed out)" # speed.cost names no processor

# --- nothing is claimed without yardsticks in both ---
python3 -c '
import sqlite3; db = sqlite3.connect("a.db"); db.execute("DELETE FROM counter WHERE name LIKE ?", ("yard_%",)); db.execute("UPDATE meta SET value = ? WHERE key = ?", ("none", "content")); db.commit()'
expect 0 compare a.db --json
python3 -c '
import json; c = json.load(open("out")); assert c["speed"] is None and c["step"]["model_error"] is None, c["speed"]' || complain "a speed without yardsticks: $(head -c 300 out)"
expect 0 compare a.db
grep -qE 'at equal|machine was' out && complain "a speed without yardsticks: $(cat out)"
expect 0 simulate --net cnn --image 28 --classes 10 --machine local --batch 8 --strategy dp=2 --out bare.db
expect 0 run bare.db --steps 4 --trace bare-run.db --json
tail -1 out | grep -q '"speed":null' || complain "a speed without yardsticks in the table: $(tail -1 out)"

# --- simulate --check-speed: predictions for the speed now, which an executor of the test's says ---
mkdir bin
cp "$HPLAN" bin/hplan
cat >bin/hplan-exec <<'END'
#!/bin/bash
# 1.5 times the quiet times of speed.cost, with a processor for 75% of the time: twice as slow
[[ " $* " == *" --check-speed "* ]] || exit 70
[ "${OMPI_COMM_WORLD_RANK:-0}" = 0 ] || exit 0
echo '{"schema":1,"ranks":2,"yardsticks":{"arith":{"mean_s":7.5e-5},"l2":{"mean_s":4.5e-5},"dram":{"mean_s":6e-5}},"availability":0.75}'
END
chmod +x bin/hplan-exec
real=$HPLAN
processor=$("$real" history --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["processor"])')
sed -e "s/^date .*/&\nprocessor $processor/" speed.cost >here.cost
sed -e "s/ $together / r1 /" here.cost >one.cost
plan="simulate --net cnn --image 28 --classes 10 --machine local --batch 8"
HPLAN=$scratch/bin/hplan
# shellcheck disable=SC2086 # words
for case in "one dp=1" "here dp=2"; do
  read -r table strategy <<<"$case"
  expect 0 $plan --strategy $strategy --cost $table.cost --json --out usual.db
  cp out usual.json
  expect 0 $plan --strategy $strategy --cost $table.cost --check-speed --json --out now.db
  python3 - usual.json out <<'END' || complain "--check-speed of $case: $(head -c 300 out)"
import json, sys
usual, now = (json.load(open(f)) for f in sys.argv[1:])
assert all(abs(v - 2) < 1e-9 for v in now["cost_table"]["speed_now"].values()), now["cost_table"]
assert all(abs(v - 1.2) < 1e-9 for v in now["cost_table"]["speed"].values()), now["cost_table"]
assert usual["cost_table"]["speed_now"] is None and usual["cost_table"]["this_processor"], usual["cost_table"]
assert usual["cost_table"]["age_days"] > 100, usual["cost_table"]
ratio = now["candidates"][0]["step_s"] / usual["candidates"][0]["step_s"]
assert abs(ratio / (2 / 1.2) - 1) < 0.02, ratio
END
done
# shellcheck disable=SC2086
expect 0 $plan --strategy dp=2 --cost here.cost --check-speed --out now.db
grep -q 'of this processor, at present speed (2.00x the time of the quiet machine): now 67% slower than when it was calibrated (arith +67%, l2 +67%, dram +67%)' out ||
  complain "simulate --check-speed says: $(head -1 out)"
if [ $together = r2 ]; then
  # shellcheck disable=SC2086
  expect 69 $plan --strategy dp=1 --cost here.cost --check-speed # of two ranks at a time only
  grep -q 'no yardstick arith of 1 rank' err || complain "a table without that yardstick: $(cat err)"
fi
# shellcheck disable=SC2086
expect 69 $plan --strategy dp=2 --cost own.cost --check-speed
expect 2 simulate --net cnn --image 28 --machine thesis-a100 --gpus 2 --check-speed
HPLAN=$real
# shellcheck disable=SC2086
expect 0 $plan --strategy dp=2 --cost here.cost
grep -q 'of this processor, at usual speed (1.20x the time of the quiet machine)' out || complain "simulate says: $(head -1 out)"
# what was predicted for the speed now is held against the run at that speed
expect 0 run now.db --steps 6
expect 0 doctor
grep -qE ' speed +the machine was .* predicted for in the run of 2[0-9-]+ [0-9:]+ UTC' out || complain "doctor: $(grep speed out)"
expect 0 run now.db --steps 6 --no-history
pretend 2 2 2 1
expect 0 compare run.db --json
python3 -c '
import json; s = json.load(open("out"))["speed"]
assert abs(s["predicted_for"] - 2) < 1e-9 and abs(s["usual"] - 1) < 1e-9, s' || complain "a plan for the speed now: $(head -c 300 out)"

conclude "the speed of the machine and the error of the model are told apart"
