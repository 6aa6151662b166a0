#!/bin/bash
# cli_readme.sh - the documents' commands work: every line of the console blocks of README.md and docs/ that begins
# with "$ hplan" is run, each document's in order in a scratch folder of its own, and must exit 0. (That the commands,
# networks, plots and exit codes that they list are the program's, tests/lint/planned.py checks.)
# shellcheck disable=SC2016 # backticks and $ below are the README's
set -u
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
: "${HPLAN_SOURCE:?folder of the sources}"
PATH=$(dirname "$HPLAN"):$PATH
commands=0

# run_document FILE: its commands, one after another.
run_document() {
  local line code start
  mkdir "$scratch/$(basename "$1")" && cd "$scratch/$(basename "$1")" || exit 1
  while read -r line <&3; do
    start=$SECONDS
    [[ $line != "hplan calibrate "* || $line == *--seconds* ]] || line+=" --seconds 10" # of a minute
    timeout -k 5 300 bash -c "$line" >out 2>err </dev/null
    code=$?
    commands=$((commands + 1))
    echo "$((SECONDS - start)) s: $line"
    [ "$code" = 0 ] || complain "$1: exit $code: $line: $(tail -c 400 err)"
  done 3< <(sed -n '/^```console$/,/^```$/{s/^\$ \(hplan .*\)/\1/p}' "$1")
}

for document in "$HPLAN_SOURCE"/README.md "$HPLAN_SOURCE"/docs/*.md; do
  run_document "$document"
done
[ "$commands" -ge 20 ] || complain "the documents show $commands hplan commands"

conclude "the documents' commands work"
