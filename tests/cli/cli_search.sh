#!/usr/bin/env bash
# cli_search.sh - ^C on a terminal, while a search looks at strategies and while it simulates: the best so far, if there is any, and
# status 130. What else is said of searches: tests/words/test_search.c.
# shellcheck source=tests/cli/lib.sh
. "${HPLAN_SOURCE:?}/tests/cli/lib.sh"
command -v script >/dev/null || {
  echo "no script(1): nobody can press ^C"
  exit 77
}
export TERM=xterm

# stop_at SIGN WORDS...: simulate, on a terminal, until its progress shows SIGN; then ^C. Either search would take minutes of
# a processor of its own.
stop_at() {
  local sign=$1 got i
  shift
  rm -f big.db screen
  {
    for ((i = 0; i < 6000; i++)); do
      ! grep -aq "$sign" screen 2>/dev/null || break
      sleep 0.05
    done
    printf '\003'
  } | timeout -k 5 600 script -qfec "exec '$HPLAN' simulate $* --machine summit --out big.db" screen >/dev/null
  got=${PIPESTATUS[1]}
  grep -aq "$sign" screen || complain "no '$sign' before the ^C: $(tail -5 screen)"
  [ "$got" = 130 ] || complain "stopped at '$sign': status $got: $(tail -5 screen)"
  grep -aq 'stopped: ' screen || complain "stopped at '$sign' without a word: $(tail -5 screen)"
}

stop_at 'strategies [0-9]' --gpus 16384 --image 8192
if grep -aq 'best so far' screen; then
  expect 0 explain big.db
elif [ -e big.db ]; then
  complain "nothing found, and a plan all the same"
fi

stop_at 'best [0-9]' --net cnn --image 28 --gpus 96
grep -aq 'stopped: the plan is the best so far' screen || complain "a best, and no plan: $(tail -5 screen)"
expect 0 explain big.db

conclude "a search that is stopped answers"
