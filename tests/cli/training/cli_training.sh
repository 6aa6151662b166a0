#!/bin/bash
# cli_training.sh - optimisers, clipping and schedules on the command line: memory is as planned and as large as the states make
# it, rates are those of the formulas, a run that goes on is the run without a break, and what does not fit is said. HPLAN is the
# binary.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../lib.sh" || exit 1
need_executor

# plan NAME STRATEGY [OPTIONS]
plan() { expect 0 simulate --net cnn --image 16 --machine local --batch 16 --strategy "$2" "${@:3}" --out "$1.db" --json && cp out "$1.json"; }
# run NAME [OPTIONS]: into NAME.run
run() {
  expect 0 run "$1.db" --force --json --no-history --trace "$1-run.db" "${@:2}"
  cp out "$1.run"
}
falls=(--lr 0.01 --lr-schedule cosine --warmup 2 --min-lr 0.001 --steps 6)
plan sgd dp=1
plan adam dp=1 --optimizer adamw
plan clip dp=2,zero=1 --optimizer adamw --clip-norm
run sgd "${falls[@]}" --momentum 0
run adam "${falls[@]}" --betas 0.8,0.9 --adam-eps 1e-6 --weight-decay 0.1
run clip "${falls[@]}" --clip-norm 0.001
python3 - <<'PY' || complain "memory, rates or norms are not what they should be"
import json, math
def lines(name): return [json.loads(l) for l in open(name + ".run")]
def steps(name): return [l for l in lines(name) if "step" in l]
def said(name): return json.load(open(name + ".json"))
def rate(t): return 0.01 * (t + 1) / 2 if t < 2 else 0.001 + 0.009 * (1 + math.cos(math.pi * (t - 2) / 4)) / 2
end = {n: lines(n)[-1] for n in ("sgd", "adam", "clip")}
assert all(e["peak_bytes"] == e["planned_bytes"] for e in end.values())
more = end["adam"]["planned_bytes"][0] - end["sgd"]["planned_bytes"][0]  # a moment more of every parameter
assert 4 * said("sgd")["parameters"] <= more <= 4 * said("sgd")["parameters"] + 64 * 16, more
for name in end:
    assert len(steps(name)) == 6
    for t, s in enumerate(steps(name)): assert abs(s["lr"] - rate(t)) < 1e-15, (name, t, s)
assert all("gradient_norm" not in s for s in steps("adam")) and all(s["gradient_norm"] > 0.001 for s in steps("clip"))
assert said("clip")["optimizer"] == "adamw" and said("clip")["clipped"] and not said("sgd")["clipped"]
PY

# A run that goes on, in the same plan bit for bit.
run adam "${falls[@]}" --checkpoint whole --every 3 --keep 9
tail -n 2 adam.run | head -n 1 | grep -o '"loss":[^,]*' >want
rm -r whole/step-000000000006
run adam "${falls[@]}" --checkpoint whole --resume
tail -n 2 adam.run | head -n 1 | grep -o '"loss":[^,]*' >have
cmp -s want have || complain "a run that went on ended with $(cat have), not $(cat want)"
rm -rf whole/step-000000000006
expect 0 run adam.db --force --lr 0.01 --steps 6 --checkpoint whole --resume
grep -q -- "--lr-schedule was cosine" err || complain "another schedule is not said: $(cat err)"
expect 65 run sgd.db --force --steps 6 --checkpoint whole --resume
grep -q "the optimiser was adamw, now sgd" err || complain "another optimiser is not said: $(cat err)"

# refused CODE WORDS OPTIONS...
refused() {
  expect "$1" "${@:3}"
  grep -q -- "$2" err || complain "'$(cat err)' does not say '$2'"
}
refused 2 "sgd, adamw" simulate --optimizer adam
refused 2 "about training" simulate --net cnn --image 16 --machine local --mode infer --optimizer adamw
refused 3 "E-SYNC" simulate --net cnn --image 16 --machine local --batch 16 --strategy dp=2,sync=local:2 --optimizer adamw
refused 3 "E-SYNC" simulate --net cnn --image 16 --machine local --batch 16 --strategy dp=2,sync=local:2 --clip-norm
refused 2 "of adamw, the plan trains by sgd" run sgd.db --betas 0.9,0.99
refused 2 "has no norm of the gradients" run adam.db --clip-norm 1
refused 2 "at which steps" run adam.db --lr-schedule step
echo "some text, not much" >a.txt
refused 65 "the network reads images" run adam.db --data text:a.txt
conclude "optimisers, clipping and schedules: all as said"
