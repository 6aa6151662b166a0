#!/bin/bash
# cli_bits.sh - run --deterministic and compare --bits: the same plan gives the same bits, also over a break; where runs are made to
# differ, the step and what of it are said. HPLAN is the binary.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../lib.sh" || exit 1
need_executor

# plan NAME STRATEGY [OPTIONS]
plan() { expect 0 simulate --net resnet-v1-20 --image 32 --machine local --batch 8 --strategy "$2" "${@:3}" --out "$1.db"; }
# run TRACE NAME [OPTIONS]
run() { expect 0 run "$2.db" --force --deterministic --no-history --trace "$1.db" "${@:3}"; }
# bits CODE A B WORDS: what compare says
bits() {
  expect "$1" compare --bits "$2.db" "$3.db"
  grep -q -- "$4" out err || complain "$2 and $3: no word of '$4': $(cat out err)"
}

plan one dp=1,micro=2
plan two dp=2
plan stages stages=2,micro=2
plan parts dp=2,zero=3 --optimizer adamw
for name in one parts $(all "replicas and stages" && echo two stages); do
  run a $name --steps 4
  run b $name --steps 4
  bits 0 a b "the same bits: losses and weights of 4 steps"
  rm b.db
  mv a.db another.db
done

falls=(--steps 5 --lr 0.01 --lr-schedule step --lr-steps 3)
name=one
all "differences on two ranks" && name=two
run slow $name "${falls[@]}" --lr-gamma 0.1
run fast $name "${falls[@]}" --lr-gamma 0.5
run other $name "${falls[@]}" --std 0.3
run short $name --lr 0.01 --steps 2
bits 1 slow fast "step 4 is the first that differs: its loss is the same, the weights after it are not: first .*, on rank 0"
bits 1 slow other "step 1 is the first that differs: in its loss"
bits 0 slow short "the same bits: losses and weights of 2 steps"
grep -q "not compared: 3 steps of A alone, 0 of B alone" out || complain "steps of one run alone are not said: $(cat out)"
expect 1 compare --bits slow.db fast.db --json
python3 - <<'PY' || complain "the JSON of compare --bits is not as described: $(cat out)"
import json
o = json.load(open("out"))
assert o["schema"] == 1 and o["same"] is False and o["steps"] == 5 and o["step"] == 4 and o["what"] == "weights"
assert o["parameter"].endswith("weight") and o["rank"] == 0 and o["steps_of_one_alone"] == [0, 0], o
PY

# A run that goes on from a checkpoint has the bits of the one without a break.
run whole one --steps 4
run begun one --steps 2 --checkpoint saved --every 2
run resumed one --steps 4 --checkpoint saved --resume
grep -q "the run begins" err && complain "nothing to go on from: $(cat err)"
bits 0 whole resumed "the same bits: losses and weights of 2 steps"
bits 65 begun resumed "no step in common"

expect 0 run $name.db --force --no-history --trace silent.db --steps 2
bits 65 slow silent "hplan run --deterministic"
bits 65 slow another "different plans"
expect 2 compare --bits slow.db
conclude "bits: the same where they are, and the first difference is named"
