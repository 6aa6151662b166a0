#!/usr/bin/env bash
# cli_search.sh - a search misses nothing that fits, shows a row for each family and for plain data parallelism with its
# reason, says how sure it is, and gives the best so far when it is stopped.
# shellcheck source=tests/cli/lib.sh
. "${HPLAN_SOURCE:?}/tests/cli/lib.sh"

# Only recomputation fits: it is found, not named as a fix.
expect 0 simulate --net unet:64 --image 4096 --machine thesis-a100 --gpus 1 --prec bf16
grep -q 'recompute=' out || complain "unet on one A100: $(head -12 out)"
grep -q 'E-MEM: a rank needs' out || complain "plain data parallelism has no reason: $(head -12 out)"

# A stranger's machine, odd counts of devices: plain data parallelism has a row, possible or not.
echo 'name=odd; nodes=4; node=3 x NVIDIA L40S' >odd.machine
for gpus in 1 3 7 12; do
  expect 0 simulate --net densenet121 --image 256 --machine odd.machine --gpus "$gpus" --out odd.db
  grep -Eq "^[~ ][ 0-9]+ dp=$gpus[, ]|^  - dp=$gpus " out || complain "no row for dp=$gpus: $(cat out)"
  # kernels that are too small for their device take as long in halves, which bounds do not know
  grep -Eq 'none of those ruled out is faster than number 1|^[0-9]+ not simulated: at most 1?[0-9](\.[0-9])?% faster' out ||
    complain "unsure of $gpus: $(cat out)"
done
grep -q '^  - ' out || complain "12 devices: no family without a candidate: $(cat out)"
grep -q 'not in the space' out || complain "nothing is said of what is not in the space: $(cat out)"

# Where nothing fits, no plan is written, and plain words say so.
expect 3 simulate --net resnet18 --image 224 --machine odd.machine --gpus 3 --memory-limit 20M --out none.db
[ -e none.db ] && complain "a plan that does not fit was written"
grep -q 'no feasible plan\|none of the strategies' err || complain "no word of it: $(cat err)"

# The rows are numbered as `why` and `run --plan` count: --top shows what is between them.
expect 0 simulate --net resnet18 --image 224 --machine odd.machine --gpus 6 --out six.db
shown=$(grep -Ec '^[~ ][ 0-9]{2} [a-z]+=' out)
expect 0 simulate --net resnet18 --image 224 --machine odd.machine --gpus 6 --top 10 --out six.db
more=$(grep -Ec '^[~ ][ 0-9]{2} [a-z]+=' out)
[ "$more" -gt "$shown" ] && [ "$more" -ge 10 ] || complain "--top 10 shows $more rows, without it $shown"

# What is said of a table is true of it: sorted by memory nothing is called faster, a mark is explained where it stands,
# and long intervals stay apart from their neighbours.
expect 0 simulate --net resnet18 --image 64 --machine local --gpus 2 --sort memory --out memory.db
grep -q 'is smaller than number 1' out || complain "sorted by memory: $(cat out)"
grep -q 'faster than number' out && complain "the smallest is called the fastest: $(cat out)"
expect 0 simulate --net unet:16 --image 64 --machine odd.machine --gpus 1 --out one.db
grep -q '^~' out && complain "a tie where one row was wanted: $(cat out)"
grep -q '~not distinguishable' out && complain "a mark that no row has is explained: $(cat out)"
expect 0 simulate --net cnn --image 28 --machine odd.machine --mode infer --strategy dp=1 --batch 1 --out tiny.db
grep -Eq '[0-9]\([0-9]' out && complain "columns run together: $(cat out)"

# `why` writes the interval as the table does.
expect 0 simulate --net unet:64 --image 4096 --machine thesis-a100 --strategy dp=8,sp=2x2,micro=4 --batch 32 --out slow.db
interval=$(sed -nE 's/.*\(([0-9.]+-[0-9.]+)\).*/\1/p' out | head -1)
expect 0 why slow.db 1
grep -q -- "interval.* $interval ms" out || complain "the table has $interval: $(cat out)"

# JSON says how sure it is.
expect 0 simulate --net resnet18 --image 224 --machine odd.machine --gpus 6 --json --out six.db
jq -e '.open == 0 and .gap == 0 and (.stopped | not) and .simulated + .cut_off == .valid' out >/dev/null ||
  complain "figures of the search: $(jq 'del(.candidates, .rejected)' out)"

# ^C, while it looks at strategies or while it simulates: the best so far, if there is any, and status 130.
for after in 0.3 4; do
  rm -f big.db
  "$HPLAN" simulate --gpus 16384 --image 8192 --machine summit --out big.db >out 2>err &
  searching=$!
  sleep "$after"
  kill -INT "$searching"
  wait "$searching"
  got=$?
  [ "$got" = 130 ] || complain "stopped after $after s: status $got: $(cat err)"
  grep -q 'stopped: ' err || complain "stopped after $after s without a word: $(cat err)"
  if grep -q 'best so far' err; then
    expect 0 explain big.db
  elif [ -e big.db ]; then
    complain "nothing found, and a plan all the same"
  fi
done

conclude "every search answers"
