#!/bin/bash
# cli_comm.sh - whatever carries messages and collectives, a strategy computes the same.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor

# comm= of two ranks: each back end that carries messages here; and every way to name one
comms=(mpi own shm)
all "comm= by operation and algorithm" && comms=(mpi auto own shm allreduce:own.ring allreduce:own.doubling
  allreduce:shm.rabenseifner+stats:own.two_trees halo:shm+stage:mpi+allreduce:mpi+stats:shm)
net=(--net cnn --image 16)
all "images of 32x32" && net=(--net cnn --image 32)

# losses of three steps in float64, all digits
losses() {
  expect 0 run p.db --steps 3 --trace r.db --json --no-history
  grep -o '"step":[0-9]*,"loss":[^,]*' out
}

# two members: a sum of two has one order only
for base in dp=2 sp=2x1 stages=2,micro=2; do
  want=
  for comm in "${comms[@]}"; do
    expect 0 simulate "${net[@]}" --batch 4 --strategy "$base,comm=$comm" --device ref --out p.db
    got=$(losses)
    [ "$(wc -l <<<"$got")" = 3 ] || complain "$base,comm=$comm: no losses: $(cat out err)"
    [ "${want:=$got}" = "$got" ] || complain "$base,comm=$comm: $got, not $want"
  done
done

# four members: every algorithm, to rounding
want=
for comm in mpi own.two_trees $(all "more algorithms on four ranks" && echo own.ring own.doubling own.rabenseifner) shm.ring; do
  expect 0 simulate "${net[@]}" --batch 4 --strategy "dp=4,comm=allreduce:$comm" --device ref --out p.db
  got=$(losses | sed 's/.*://; s/\(\.[0-9]\{9\}\).*/\1/')
  [ "${want:=$got}" = "$got" ] || complain "dp=4,comm=allreduce:$comm: $got, not $want"
done
expect 0 explain p.db
grep -q 'allreduce.*shm.ring' out || complain "explain does not say what carries the sums: $(head -20 out)"

# of a run: counted bytes are the least that a ring sends
expect 0 compare --comm --json r.db
grep -q '"algorithm": *"ring"' out || complain "no row of the ring: $(cat out)"
expect 0 compare --comm r.db
grep -Eq 'allreduce .* 4 shm.ring ' out || complain "no row of the ring: $(cat out)"

# bytes of each kind: those of the formulas (tests/laws/test_volumes.c), in the plan and as counted in a run. Two layers of
# 64 channels, 4 samples of 32 tokens of 64 ids; what two ranks share by tokens or samples is 106240 parameters, by heads
# and ids 2944
u=$((4 * 32 * 64 * 4)) all=$((4 * (2 * (12 * 64 * 64 + 13 * 64) + (64 + 32 + 2) * 64)))
whole=$((4 * (2 * 6 * 64 + (32 + 2) * 64))) metrics=$((2 * 9 * 8))
cat >kinds.py <<'PY'
import json, sys
plan = {t["kind"]: t["sent_bytes"] for t in json.load(open("explain.json"))["traffic"]}
run = dict.fromkeys(plan, 0)
for row in json.load(open("compare.json"))["rows"]: run[row["operation"]] += row["sent_bytes"]
assert plan == {k: int(v) for k, v in (w.split("=") for w in sys.argv[1:])}, plan
plan["allreduce"] += plan.pop("stats", 0)  # all-reduces, too: compare lists operations
assert {k: v for k, v in run.items() if k != "stats"} == plan, (plan, run)
PY
# kinds STRATEGY KIND=BYTES...
kinds() {
  expect 0 simulate --net gpt:2,64,4,32,64 --batch 4 --machine local --device cpu --strategy "$1,fuse=1G" --out p.db
  expect 0 explain p.db
  sed -n '/^sent by all ranks/,/^$/p' out | grep -q "^  ${2%%=*} .* in " || complain "$1: explain does not show ${2%%=*}: $(head -20 out)"
  expect 0 explain --json p.db
  cp out explain.json
  expect 0 run p.db --steps 3 --trace r.db --no-history
  expect 0 compare --comm --json r.db
  cp out compare.json
  python3 kinds.py "${@:2}" || complain "$1: other bytes"
}
kinds tp=2 halo=$((8 * u * 2 + 4 * u)) stats=$((2 * 2 * 4 * 32 * 4 * 8)) allreduce=$((2 * whole + metrics))
kinds seq=2:a2a halo=$((4 * u * 2)) allreduce=$((2 * all + metrics))
if all "bytes of attention in a ring, of ZeRO's first stages"; then
  kinds seq=2:ring halo=$((2 * u * 2)) allreduce=$((2 * all + metrics))
  kinds dp=2,zero=1 reducescatter=$all allgather=$all allreduce=$metrics
  kinds dp=2,micro=2,zero=2 reducescatter=$((2 * all)) allgather=$all allreduce=$metrics
fi
kinds dp=2,micro=2,zero=3 reducescatter=$((2 * all)) allgather=$((4 * all)) allreduce=$metrics

# what does not exist
expect 2 simulate --net cnn --image 32 --strategy dp=2,comm=gloo
grep -q 'choose auto, own, mpi, nccl or shm' err || complain "$(cat err)"
expect 2 simulate --net cnn --image 32 --strategy dp=2,comm=allreduce:own.bruck
grep -q 'bruck is no algorithm for allreduce' err || complain "$(cat err)"
expect 2 simulate --net cnn --image 32 --strategy dp=2,comm=allreduce:mpi.ring
grep -q 'only own and shm take one' err || complain "$(cat err)"
expect 2 simulate --net cnn --image 32 --strategy dp=2,comm=own.ring
grep -q 'belongs to a collective' err || complain "$(cat err)"
conclude "whatever carries messages, a strategy computes the same"
