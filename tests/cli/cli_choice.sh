#!/bin/bash
# cli_choice.sh - comm=auto by a cost table that knows collectives: whichever way each goes, training computes the same. Which way that
# is: tests/words/test_choice.c.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor

# by hand: over shared memory small ones start sooner, rings over messages are faster
{
  printf 'hplan-cost 2\nmachine local\ndate 2026-01-01\n'
  for ranks in 2 4; do
    cat <<ROWS
collective shm allreduce own.doubling r$ranks n$ranks | measured 0.02 9 by hand | 0:2.5e-5 1e9:5.000025
collective shm allreduce own.ring r$ranks n$ranks | measured 0.02 9 by hand | 0:2e-5 1e9:1.00002
collective shm allreduce shm.doubling r$ranks n$ranks | measured 0.02 9 by hand | 0:2e-6 1e9:4.000002
ROWS
  done | sort
} >by_hand.cost

# losses of three steps in float64, all digits
losses() { # STRATEGY
  expect 0 simulate --net cnn --image 32 --batch 4 --cost by_hand.cost --strategy "$1" --device ref --out p.db
  expect 0 run p.db --steps 3 --trace r.db --json --no-history
  grep -o '"step":[0-9]*,"loss":[^,]*' out
}

# two members: a sum of two has one order only
for base in dp=2,fuse=1000 sp=2x1,fuse=1000; do
  got=$(losses "$base")
  want=$(losses "$base,comm=stats:own.doubling+allreduce:own.ring")
  [ "$(wc -l <<<"$got")" = 3 ] || complain "$base: no losses: $(cat out err)"
  [ "$got" = "$want" ] || complain "$base: $got, not $want"
done

# four: to rounding
if all "ways of four ranks"; then
  got=$(losses dp=4,fuse=1000 | sed 's/.*://; s/\(\.[0-9]\{9\}\).*/\1/')
  want=$(losses dp=4,fuse=1000,comm=own | sed 's/.*://; s/\(\.[0-9]\{9\}\).*/\1/')
  [ "$got" = "$want" ] || complain "dp=4: $got, not $want"
fi
conclude "collectives that go other ways compute the same"
