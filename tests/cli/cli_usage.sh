#!/bin/bash
# cli_usage.sh - the frame of the command line: help, wrong words, exit codes, a full disk on stdout, and what every
# command that reads a database says about files that are not hplan's. HPLAN is the binary.
set -u
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1

# One line on stderr that holds the text.
expect_message() {
  [ "$(wc -l <err)" = 1 ] || complain "$1: $(wc -l <err) lines on stderr instead of one: $(head -c 300 err)"
  grep -qF -- "$2" err || complain "$1: the message does not say '$2': $(head -c 300 err)"
}

commands=(doctor calibrate machine simulate explain why run bench eval compare check plot export)
later=(report)

# --- help ---
expect 0
[ "$(wc -l <out)" -le 12 ] || complain "bare hplan prints $(wc -l <out) lines, at most 12 wanted"
grep -q 'hplan simulate' out || complain "bare hplan shows no example"
expect 0 --version
grep -qE '^hplan [0-9]+\.[0-9]+\.[0-9]+ ' out || complain "--version prints '$(cat out)'"
expect 0 help
cp out help
expect 0 --help
cmp -s out help || complain "hplan --help differs from hplan help"
for command in "${commands[@]}"; do
  grep -q "^  $command " help || complain "hplan help does not list $command"
  expect 0 help "$command"
  [ -s out ] || complain "hplan help $command prints nothing"
  cp out "help.$command"
  expect 0 "$command" --help
  cmp -s out "help.$command" || complain "hplan $command --help differs from hplan help $command"
  grep -qE '^( {9,}|  -.,  +)--[a-z=-]+  ' out && complain "hplan help $command: an option stands where its text belongs"
  head -1 out | grep -q "^Usage: hplan $command" || complain "help of $command begins: $(head -1 out)"
done

# --- the wrong words ---
expect 2 simulat
expect_message simulat 'hplan simulate'
expect 2 zzzzzzzz
expect_message zzzzzzzz 'hplan help'
expect 2 help zzzzzzzz
expect 2 "$(printf 'x%.0s' {1..5000})"
expect 2 --gpus 2
expect_message '--gpus' 'hplan simulate --gpus'
expect 2 ''
for command in "${commands[@]}"; do
  expect 2 "$command" --no-such-option
  grep -q -- --no-such-option err || complain "hplan $command --no-such-option does not name the option"
done
for command in "${later[@]}"; do
  expect 69 "$command" whatever
  expect_message "$command" "$command"
  expect 69 help "$command"
done
expect 2 "$(printf 'a\033[31mb')"
grep -q "$(printf '\033')" err && complain "an escape sequence reaches the terminal"

# --- stdout on a full disk ---
for words in '' 'help' '--version' 'doctor' 'doctor --json' 'help simulate' 'run --help'; do
  # shellcheck disable=SC2086 # words are words
  timeout -k 5 60 "$HPLAN" $words >/dev/full 2>err </dev/null
  got=$?
  [ "$got" = 74 ] || complain "hplan $words >/dev/full: exit $got, expected 74"
  expect_message "hplan $words >/dev/full" stdout
done

# --- a reader that goes away ---
"$HPLAN" help 2>err </dev/null | true
[ -s err ] && complain "a closed pipe prints: $(cat err)"

# --- doctor ---
expect 0 doctor
grep -q '^ next: ' out || complain "doctor does not say what to do next"
expect 0 doctor --json
if command -v jq >/dev/null; then
  jq -e '.schema == 1 and (.checks | length > 3) and (.next | length > 0) and .cores >= 1 and .memory_bytes > 1e6' out \
    >/dev/null || complain "doctor --json lacks something: $(head -c 300 out)"
fi
expect 2 doctor something
env PATH=/nonexistent "$HPLAN" doctor >out 2>err || complain "doctor fails with an empty PATH"

# --- files that are no plan ---
printf 'this is not a database\n' >text.db
: >empty.db
head -c 100000 /dev/urandom >noise.db
mkdir folder.db
if command -v sqlite3 >/dev/null; then
  sqlite3 foreign.db 'CREATE TABLE recipe(name TEXT); INSERT INTO recipe VALUES(1);'
fi
timeout -k 5 60 "$HPLAN" simulate --net cnn --image 28 --classes 10 --gpus 2 --machine local --batch 64 --out good.db \
  >/dev/null 2>err </dev/null || complain "simulate cannot make a plan to damage: $(head -c 300 err)"
if [ -s good.db ]; then
  size=$(stat -c %s good.db)
  for percent in 10 50 90; do head -c $((size * percent / 100)) good.db >"cut$percent.db"; done
  for at in 0 100; do # zeros over the file's header, over its schema
    cp good.db "zeroed$at.db"
    dd if=/dev/zero of="zeroed$at.db" bs=1 seek="$at" count=512 conv=notrunc status=none
  done
  expect 0 explain good.db
  expect 0 explain good.db --dot
  grep -q '^digraph' out || complain "explain --dot begins: $(head -1 out)"
  expect 0 explain good.db --json
  if command -v jq >/dev/null; then # stages hold every unit and every parameter once; tasks wait for earlier ones only
    jq -e '([.stages[] | .last_unit - .first_unit + 1] | add) == (.units | length)
      and ([.stages[].parameters] | add) == .parameters
      and all(.roles[].tasks[]; .task as $t | all(.after[]; . < $t))' out >/dev/null ||
      complain "explain --json contradicts itself: $(head -c 300 out)"
  fi
  # tiles times branches: every part of the stage is some rank's, under its own number
  "$HPLAN" simulate --net cnn --image 28 --batch 2 --strategy sp=2x1,bp=2 --device ref --out parts.db \
    >/dev/null 2>err </dev/null || complain "simulate cannot plan tiles and branches: $(head -c 300 err)"
  expect 0 explain parts.db
  grep -q '^stage 0 on ranks 0..3 ' out && grep -q 'tile 1 of 2 (1,0) branch 1 of 2' out ||
    complain "explain leaves out parts of the stage: $(grep '^stage' out)"
  expect 0 explain good.db --rank 0
  expect 2 explain good.db --rank 99
  expect_message 'explain --rank 99' --rank
fi

# on_bad_file NAME WORDS...: 65 and one line that names the file; the file stays as it was.
on_bad_file() {
  local name=$1 before after
  shift
  before=$(cksum "$name" 2>/dev/null)
  expect 65 "$@"
  expect_message "hplan $*" "$name"
  after=$(cksum "$name" 2>/dev/null)
  [ "$before" = "$after" ] || complain "hplan $* changed $name"
}

for name in missing.db text.db empty.db noise.db folder.db foreign.db cut10.db cut50.db cut90.db zeroed*.db; do
  [ -e "$name" ] || [ "$name" = missing.db ] || continue
  on_bad_file "$name" explain "$name"
  on_bad_file "$name" why "$name" dp=2
  on_bad_file "$name" run "$name" --steps 1
  on_bad_file "$name" compare "$name"
  on_bad_file "$name" check "$name" --baseline "$name"
  on_bad_file "$name" plot timeline "$name" -o chart.svg
  on_bad_file "$name" export "$name" --chrome -o trace.json
done
[ ! -e chart.svg ] || complain "plot leaves a chart behind although it failed"
[ ! -e trace.json ] || complain "export leaves a trace behind although it failed"
[ ! -e missing.db ] || complain "reading a missing file creates it"

for command in explain why run compare check plot export; do expect 2 "$command"; done

conclude "the command line's frame holds"
