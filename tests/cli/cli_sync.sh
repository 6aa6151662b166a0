#!/bin/bash
# cli_sync.sh - sync= on the command line: planned, explained and run by processes, with the losses of an all-reduce; refused
# where it cannot be. HPLAN is the binary; hplan-exec lies beside it.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor

net=(--net cnn --image 16 --classes 10 --machine local --device ref --batch 8)
n=2
all "four ranks" && n=4
# run STRATEGY NAME: four steps
run() {
  expect 0 simulate "${net[@]}" --strategy "$1,fuse=200k" --out "$2.db"
  expect 0 run "$2.db" --force --steps 4 --lr 0.02 --json --trace "$2-run.db"
  cp out "$2.json"
}
run dp=$n sums
for strategy in sync=ps sync=local:1 $(all "other servers, and another all-reduce" && echo sync=ps:1 sync=ps,comm=mpi comm=allreduce:own.two_levels); do
  run "dp=$n,$strategy" "$strategy"
  python3 - sums.json "$strategy.json" <<'PY' || complain "$strategy: other losses"
import json, sys
a, b = ([json.loads(l) for l in open(f)] for f in sys.argv[1:])
assert len(a) == len(b) == 5, (len(a), len(b))
for x, y in zip(a[:4], b[:4]):
    assert abs(x["loss"] - y["loss"]) <= 1e-9 * (1 + abs(x["loss"])), (x, y)
assert b[4]["peak_bytes"] == b[4]["planned_bytes"], b[4]
PY
done
expect 0 explain sync=ps.db --rank 0
grep -q "reduce bucket 1 .*own.direct, root 1" out || complain "rank 1 does not serve the second bucket: $(grep reduce out)"
grep -q "broadcast bucket 0 .*root 0" out || complain "nothing is sent back"
expect 0 compare --comm sync=ps-run.db
grep -q broadcast out || complain "compare --comm does not know of servers: $(cat out)"

expect 3 simulate "${net[@]}" --strategy dp=2,zero=1,sync=ps
grep -q "E-SYNC" out err || complain "zero=1,sync=ps: $(cat out err)"
expect 2 simulate "${net[@]}" --strategy dp=2,sync=ring
expect 2 simulate "${net[@]}" --strategy dp=2,sync=local

conclude "servers and averages give the losses of an all-reduce"
