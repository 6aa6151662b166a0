#!/bin/bash
# cli_as.sh - simulate --as: a framework takes no less than hplan for the same strategy, plan.db keeps it for why, its memory
# is eager unless said, and wrong names are explained.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1

what=(--net resnet18 --image 128 --batch 8 --machine thesis-a100 --strategy dp=2)
# step_of FILE, memory_of FILE
step_of() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["candidates"][0]["step_s"])' "$1"; }
memory_of() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["candidates"][0]["memory_bytes"])' "$1"; }
less() { python3 -c 'import sys; sys.exit(not float(sys.argv[1]) < float(sys.argv[2]))' "$1" "$2"; }

expect 0 simulate "${what[@]}" --json
cp out own.json
for as in pytorch-1.13 mpi4dl torchgpipe horovod-tf; do
  expect 0 simulate "${what[@]}" --as $as --json --out as.db
  cp out as.json
  grep -Eq "\"as\": ?\"$as\"" as.json || complain "--as $as: JSON does not say so: $(head -c 200 as.json)"
  less "$(step_of own.json)" "$(step_of as.json)" || complain "--as $as takes less than hplan"
  expect 0 why as.db dp=2 --json
  step=$(step_of as.json)
  grep -q "\"step_s\": *${step:0:8}" out || complain "why predicts something else than --as $as: $(head -c 300 out)"
done
# PyTorch keeps more, unless memory is asked for as planned
expect 0 simulate "${what[@]}" --as pytorch-1.13 --json
less "$(memory_of own.json)" "$(memory_of out)" || complain "PyTorch is said to need no more memory"
expect 0 simulate "${what[@]}" --as pytorch-1.13 --memory planned --json
[ "$(memory_of out)" = "$(memory_of own.json)" ] || complain "--memory planned is not as planned"
expect 0 simulate "${what[@]}" --as hplan --json
[ "$(step_of out)" = "$(step_of own.json)" ] || complain "--as hplan is not hplan"
expect 2 simulate "${what[@]}" --as torch
grep -q 'pytorch-1.13' err || complain "no framework is named: $(cat err)"
conclude "frameworks take what they take"
