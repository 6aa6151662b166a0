#!/bin/bash
# cli_tune.sh - hplan tune and simulate --measure: who runs in which round, what ends a race, and that what was measured best
# becomes the plan. An executor of known answers stands in, so that no time is asserted. HPLAN is the binary; hplan-exec lies
# beside it.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
real=$HPLAN

# --- an executor of known answers: seconds by strategy, FACTORS, on a machine that becomes slower with every run ---
mkdir standin
cp "$HPLAN" standin/hplan
python=$(type -P /usr/bin/python3 python3 | head -1)
echo "#!$python -IS" >standin/hplan-exec
cat >>standin/hplan-exec <<'EOP'
import json, os, signal, sqlite3, sys, zlib
asked = dict(w[2:].partition("=")[::2] for w in sys.argv[2:])
strategy, = sqlite3.connect(sys.argv[1]).execute("SELECT value FROM meta WHERE key = 'strategy'").fetchone()
assert asked["lr"] == "0"
with open(os.environ["LOG"], "a") as f:
    f.write(strategy + "\n")
turn = sum(1 for _ in open(os.environ["LOG"]))
factor = json.loads(os.environ["FACTORS"])[strategy]
if factor is None:
    print("hplan: no memory for " + strategy, file=sys.stderr)
    sys.exit(3)
if turn == int(os.environ.get("INTERRUPT", 0)):
    os.kill(os.getppid(), signal.SIGINT)
    signal.pause()
noise = float(os.environ.get("NOISE", "0.001")) * (zlib.crc32(b"%d" % turn) % 1000 / 500 - 1)
print('{"planned_steps":%s}' % asked["steps"])
for i in range(int(asked["steps"])):
    print(json.dumps({"step": i + 1, "loss": 1, "step_s": 99 if i == 0 else factor * (1 + 0.005 * turn) * (1 + noise)}))
print('{"final":true,"steps":%s,"step_s":1}' % asked["steps"])
EOP
chmod +x standin/hplan-exec
export LOG=$PWD/log
plan() { expect 0 simulate --net cnn --image 28 --batch 16 --gpus 1 --machine local --top 8 --out plan.db; }
strategies() { python3 -c 'import sqlite3; print("\n".join(s for s, in sqlite3.connect("plan.db").execute("SELECT strategy FROM candidate ORDER BY rank")))'; }
tune() { HPLAN=standin/hplan expect "$@"; }

# every strategy takes 1 s, but for those of the arguments: NUMBER=SECONDS (of the plan as it was searched)
answers() {
  FACTORS=$(python3 - "$@" <<'EOP'
import json, sqlite3, sys
all = [s for s, in sqlite3.connect("plan.db").execute("SELECT strategy FROM candidate ORDER BY rank")]
f = {s: 1 for s in all}
for word in sys.argv[1:]:
    number, _, value = word.partition("=")
    f[all[int(number) - 1]] = json.loads(value)
print(json.dumps(f))
EOP
  )
  export FACTORS
  : >log
}

# --- number 3 is fastest: it becomes the plan, the others leave ---
plan
[ "$(strategies | wc -l)" -ge 4 ] || complain "too few candidates for these tests: $(strategies)"
strategies >before
cp plan.db searched.db
answers 1=1.2 2=1.3 3=0.9 4=1.1
tune 0 tune plan.db --top 4 --seconds 1000 --steps 4 --json
cp out tune.json
python3 - <<'EOF' || complain "tune.json, plan.db and the log disagree: $(head -c 1500 tune.json)"
import json, sqlite3
j = json.load(open("tune.json"))
before = open("before").read().split("\n")
log = open("log").read().split()
c = sqlite3.connect("plan.db")
assert j["schema"] == 1 and j["settled"] and not j["stopped"]
ran = {e["rank"]: e for e in j["candidates"]}
assert len(ran) == 4 and all(before[k - 1] == e["strategy"] for k, e in ran.items())
# what ran is what is recorded, in its order; nobody runs twice in a round, and who left does not come back
assert [before[k - 1] for r in j["rounds"] for k in r["order"]] == log
live = set(ran)
for r in j["rounds"]:
    assert len(set(r["order"])) == len(r["order"]) == len(r["step_s"]) and set(r["order"]) <= live
    live = set(r["order"])
assert len({tuple(r["order"]) for r in j["rounds"][:3]}) > 1, "never shuffled"
assert all(e["rounds"] == sum(k in r["order"] for r in j["rounds"]) for k, e in ran.items())
best = [e for e in ran.values() if e["winner"]]
assert len(best) == 1 and best[0]["rank"] == 3 and best[0]["strategy"] == j["winner"] == before[2]
assert all(e["outcome"] == "slower" for k, e in ran.items() if k != 3)
for k, want in ((1, 1.2 / .9), (2, 1.3 / .9), (4, 1.1 / .9)):
    if k in ran: assert abs(ran[k]["slower"] - (want - 1)) < 0.05, (k, ran[k])
assert c.execute("SELECT value FROM meta WHERE key = 'strategy'").fetchone()[0] == before[2]
rows = c.execute("SELECT strategy, measured_s, measured_low_s, measured_high_s, rounds, tie FROM candidate ORDER BY rank").fetchall()
assert sorted(r[0] for r in rows) == sorted(s for s in before if s)
assert rows[0][0] == before[2] and [r[1] for r in rows[:4]] == sorted(r[1] for r in rows[:4])
assert all(r[4] >= 3 and r[2] < r[1] < r[3] for r in rows[:4]) and not rows[1][5] and all(r[4] == 0 for r in rows[4:])
EOF
tune 0 explain plan.db
[ -z "$(find . -name '*.tmp-*')" ] || complain "tune leaves files behind: $(find . -name '*.tmp-*')"

# --- the same seed, the same order; another, another; four candidates at first, two in the end ---
order=0
for seed in 1 1 2; do
  cp searched.db plan.db
  answers
  NOISE=0.3 tune 0 tune plan.db --seconds 1000 --steps 3 --rounds 3 --seed $seed --json
  [ "$(python3 -c 'import json; print(len(json.load(open("out"))["rounds"]))')" = 3 ] || complain "--rounds 3: $(head -c 300 out)"
  cp log "order-$((order++))"
done
cmp -s order-0 order-1 || complain "one seed, two orders"
cmp -s order-0 order-2 && complain "two seeds, one order"
[ "$(wc -l <order-0)" = 10 ] || complain "nothing is halved: $(cat order-0)"

# --- equal ones: the race ends, and says that it cannot tell them apart ---
cp searched.db plan.db
answers
sed -i 's/0.005/0/' standin/hplan-exec
NOISE=0.0001 tune 0 tune plan.db --seconds 1000 --steps 3
grep -q "not distinguishable" out || complain "equal candidates: $(cat out)"
[ "$(wc -l <log)" -le 24 ] || complain "equal candidates run on: $(wc -l <log) runs"
# --- no time: each runs once ---
cp searched.db plan.db
: >log
tune 0 tune plan.db --seconds 0.001 --steps 3
[ "$(sort -u log | wc -l) $(wc -l <log)" = "4 4" ] || complain "without time each runs once: $(cat log)"

# --- one that does not run is left out, with its reason; without any the plan stays ---
cp searched.db plan.db
answers 1=null 2=0.5
tune 0 tune plan.db --seconds 1000 --steps 3
grep -q "number 1 .* is left out: .*no memory for" err || complain "no warning: $(cat err)"
strategies >after
[ "$(head -n 1 after)" = "$(sed -n 2p before)" ] || complain "not number 2: $(cat after)"
cp searched.db plan.db
FACTORS=$(sed 's/: [0-9.]*/: null/g' <<<"$FACTORS")
tune 3 tune plan.db --seconds 1000 --steps 3
cmp -s searched.db plan.db || complain "a race without runs changes the plan"

# --- ^C in the second round: what was measured until then is the plan ---
cp searched.db plan.db
answers 4=0.5
INTERRUPT=6 tune 130 tune plan.db --seconds 1000 --steps 3 --top 4
strategies >after
[ "$(head -n 1 after)" = "$(sed -n 4p before)" ] || complain "not number 4 after ^C: $(cat after)"
grep -q "^stopped: " out || complain "a stopped race does not say so: $(cat out)"
[ -z "$(find . -name '*.tmp-*')" ] || complain "^C leaves files behind: $(find . -name '*.tmp-*')"

# --- simulate --measure is simulate, then tune ---
answers 1=1.2 2=0.9 3=1.3 4=1.1
tune 0 simulate --net cnn --image 28 --batch 16 --gpus 1 --machine local --top 8 --out plan.db --measure 4 --seconds 1000 --json
python3 - <<'EOF' || complain "simulate --measure: $(head -c 900 out)"
import json, sqlite3
j = json.load(open("out"))
before = open("before").read().split("\n")
rows = sqlite3.connect("plan.db").execute("SELECT strategy, measured_s, rounds FROM candidate ORDER BY rank").fetchall()
assert j["race"]["winner"] == before[1] == j["candidates"][j["chosen"] - 1]["strategy"] == rows[0][0]
assert [(c["strategy"], c["measured_s"] or 0, c["rounds"]) for c in j["candidates"]] == rows
assert all(c["measured_low_s"] < c["measured_s"] < c["measured_high_s"] for c in j["candidates"] if c["rounds"])
EOF

# --- refused ---
for words in '--top 1' '--top x' '--seconds 0' '--steps 0' '--rounds 0' '--seed -1'; do
  # shellcheck disable=SC2086 # words are words
  expect 2 tune plan.db $words
done
expect 2 tune
expect 65 tune missing.db
expect 73 tune plan.db --keep nosuchfolder/kept
expect 2 simulate --net cnn --image 28 --seconds 3
expect 2 simulate --net cnn --image 28 --gpus 1 --machine local --measure 1
expect 2 simulate --net cnn --image 28 --machine local --strategy dp=1 --measure 4
expect 3 simulate --net cnn --image 28 --gpus 2 --machine thesis-a100 --measure 4
grep -q "machine local" err || complain "no way out: $(cat err)"
expect 0 simulate --net cnn --image 28 --gpus 2 --machine thesis-a100 --out far.db
cp far.db far-before.db
expect 3 tune far.db
cmp -s far.db far-before.db || complain "a refused race changes the plan"
need_executor

# --- for real: the runs are kept, one per round ---
HPLAN=$real plan
expect 0 tune plan.db --seconds 1000 --steps 3 --rounds 2 --keep kept --json
python3 - <<'EOF' || complain "the kept runs: $(ls kept; head -c 900 out)"
import json, os, sqlite3
j = json.load(open("out"))
assert {"number-%d.db" % e["rank"] for e in j["candidates"]} == set(os.listdir("kept"))
for e in j["candidates"]:
    c = sqlite3.connect("kept/number-%d.db" % e["rank"])
    runs = c.execute("SELECT strategy, status FROM run WHERE kind = 'exec'").fetchall()
    assert len(runs) == e["rounds"] > 0 and all(r[1] == 0 for r in runs), runs
    assert c.execute("SELECT COUNT(*) FROM span WHERE run IN (SELECT id FROM run WHERE kind = 'exec')").fetchone()[0] > 0
EOF
expect 0 run plan.db --steps 3 --no-history

# --- who runs: two by rank, and of other families what may be fastest; on several ranks ---
net=(cnn --image 28)
all "races and moves of a deep network" && net=(resnet18 --image 32)
expect 0 simulate --net "${net[@]}" --batch 4 --gpus 2 --machine local --out two.db --json
cp out two.json
expect 0 tune two.db --seconds 0.001 --steps 1 --top 4 --json
python3 - <<'EOF' || complain "who runs: $(head -c 900 out)"
import json
def family(s):
    keys = dict(w.split("=") for w in s.split(","))
    staged = "gems" if keys.get("sched") == "gems" else "pipeline" if "micro" in keys else "layer"
    kind = next((k for k in ("strips", "clients", "bp", "cp") if k in keys), None)
    return kind or ("sp" if "sp" in keys else "", staged if "stages" in keys else "")
found = json.load(open("two.json"))["candidates"]
ran = [e["rank"] - 1 for e in json.load(open("out"))["candidates"]]
assert len(ran) == 4 and ran[:2] == [0, 1], ran
seen, want = {family(found[k]["strategy"]) for k in (0, 1)}, []
for k in range(2, len(found)):
    if found[k]["step_low_s"] <= found[0]["step_high_s"] and family(found[k]["strategy"]) not in seen:
        seen.add(family(found[k]["strategy"]))
        want.append(k)
want = sorted((want + [k for k in range(2, len(found)) if k not in want])[:2])
assert ran[2:] == want, (ran, want)
EOF

# --- Shisha's moves: from what each trace shows, whatever it shows ---
HPLAN=$real
unset LOG FACTORS
expect 0 simulate --net "${net[@]}" --batch 8 --gpus 2 --machine local --strategy stages=2,micro=2 --out pipe.db
cp pipe.db before.db
expect 0 tune pipe.db --moves shisha --alpha 3 --steps 3 --json
cut_of() { "$HPLAN" explain "$1" | sed -n 's/^strategy .*cut=\([0-9:]*\).*/\1/p' | head -1; }
jq -e '.tried | length >= 1 and length <= 12' out >/dev/null || complain "tune --moves: $(cat out)"
jq -e '(.tried | map(.step_s) | min) == .tried[.best].step_s' out >/dev/null || complain "tune --moves: the best is not: $(cat out)"
# every cut follows from the one before: a unit from the slower of the two stages to the other
jq -e '.tried as $t | [range(1; $t | length)] | all(. as $i | ($t[$i - 1].cut | split(":") | map(tonumber)) as $a |
  ($t[$i].cut | split(":") | map(tonumber)) as $b | $t[$i - 1].stage_s as $s |
  if $s[1] > $s[0] then $b[0] == $a[0] + 1 and $b[1] == $a[1] - 1 else $b[0] == $a[0] - 1 and $b[1] == $a[1] + 1 end)' out >/dev/null ||
  complain "tune --moves: not the slowest stage's unit: $(cat out)"
jq -e '(.spent_s - (.tried | map(.spent_s) | add)) | fabs < 1e-6' out >/dev/null || complain "tune --moves: the cost is not the sum: $(cat out)"
jq -e '[.tried[].cut] | length == (unique | length)' out >/dev/null || complain "tune --moves: a cut ran twice: $(cat out)"
if [ "$(jq .wrote out)" = true ]; then
  [ "$(cut_of pipe.db)" = "$(jq -r '.tried[.best].cut' out)" ] || complain "tune --moves: the plan is not the best: $(cut_of pipe.db)"
else
  cmp -s pipe.db before.db || complain "tune --moves changed a plan that was the best"
fi
expect 0 run pipe.db --steps 1
expect 2 tune pipe.db --moves magic
expect 2 tune pipe.db --moves shisha --top 3
expect 2 tune pipe.db --alpha 3
expect 0 simulate --net cnn --image 28 --batch 8 --gpus 2 --machine local --strategy dp=2 --out flat.db
expect 3 tune flat.db --moves shisha
grep -q 'one stage' err || complain "tune --moves without stages: $(cat err)"
expect 0 simulate --net resnet18 --image 64 --batch 8 --gpus 2 --machine dgx-a100 --strategy stages=2 --out far.db
expect 3 tune far.db --moves shisha

conclude "races run in random order, drop what is slower and make the fastest the plan"
