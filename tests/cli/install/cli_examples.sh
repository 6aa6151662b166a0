#!/bin/bash
# cli_examples.sh - every script of docs/examples ends well and says something; the gate also says no.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../lib.sh" || exit 1
need_executor
command -v jq >/dev/null || exit 77
examples=$HPLAN_SOURCE/docs/examples
PATH=$(dirname "$HPLAN"):$PATH
export PATH HPLAN PYTHONPATH=$HPLAN_SOURCE/cli/python PYTHONDONTWRITEBYTECODE=1
# try SCRIPT WORDS...: in a folder of its own, which it is in afterwards
try() {
  mkdir -p "$scratch/$1.d" && cd "$scratch/$1.d" || exit 1
  timeout -k 5 1200 "$examples/$1" "${@:2}" >out 2>err </dev/null || complain "$*: $? $(tail -n 3 err)"
  [ -s out ] || complain "$1 says nothing"
}
for script in "$examples"/*.sh "$examples"/*.py; do
  name=$(basename "$script")
  grep -q "\[$name\]($name)" "$examples/README.md" || complain "docs/examples/README.md lacks $name"
  case $name in
  regression-gate.sh) try "$name" 1000000% ;; # how fast the machine is, is nothing to fail by
  slowest-layers.py) try "$name" "$scratch/first-plan.sh.d/run.db" ;;
  *) try "$name" ;;
  esac
done
[ -s "$scratch/scaling-curve.sh.d/scaling.svg" ] || complain "no scaling.svg"
cd "$scratch/regression-gate.sh.d" || exit 1
sqlite3 baseline.db "UPDATE counter SET value = value / 1e6 WHERE name = 'step_s'; UPDATE meta SET value = 'none' WHERE key = 'content'"
"$examples/regression-gate.sh" >out 2>err
[ $? = 1 ] || complain "a run a million times slower than its baseline passes: $(tail -n 3 err)"
conclude "examples"
