#!/bin/bash
# cli_cuda.sh - plans for a GPU on a machine without one: they are made, explained and refused by `run` with what to
# do about it (69, EX_UNAVAILABLE); the same plan runs on the CPU.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor
[ ! -e /proc/driver/nvidia/version ] || {
  echo "this machine has a GPU: nothing to test"
  exit 0
}

expect 0 simulate --net cnn --image 28 --device cuda --gpus 1 --out train.db
expect 0 simulate --net cnn --image 28 --device cuda --gpus 1 --mode infer --prec int8 --out infer.db
for plan in train.db infer.db; do
  expect 69 run "$plan"
  grep -q -- "--device cpu" err || complain "$plan: no way out in: $(cat err)"
  expect 0 run "$plan" --device cpu --steps 2
done
expect 69 run train.db --device cuda
expect 2 run train.db --device gpu

# a library that is none, and one that does not exist
HPLAN_CUDA=$scratch/no.so expect 69 run train.db
echo "no library" >no.so
HPLAN_CUDA=$scratch/no.so expect 69 run train.db

expect 0 doctor --json
python3 - out <<'PY' || complain "doctor says nothing of the GPU part"
import json, sys
facts = json.load(open(sys.argv[1]))
assert "cuda" in facts["hplan_exec"] and facts["cuda_driver"] is None, facts
PY
conclude "cuda: plans without a GPU"
