#!/usr/bin/env bash
# cli_fixes.sh - a plan has the options that it has: a fix that `run` prints is one of the strategy alone, and works. Fixes of
# `simulate` and `why`: tests/words/test_fixes.c.
# shellcheck source=tests/cli/lib.sh
. "${HPLAN_SOURCE:?}/tests/cli/lib.sh"
need_executor
expect 0 simulate --net cnn --image 28 --batch 4 --machine local --strategy dp=1 --out r.db
expect 3 run r.db --plan dp=3 --steps 1
fix=$(sed -n 's/.*; fix: \(.*\) -> .*/\1/p' err)
case $fix in
dp=*,* | *" "*) complain "run: more than dp to change: $fix" ;;
dp=*) expect 0 run r.db --plan "$fix" --steps 1 --force ;;
*) complain "run: no fix of the strategy: $(cat err)" ;;
esac
conclude "what run says would help does"
