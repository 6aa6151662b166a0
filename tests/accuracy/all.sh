#!/bin/bash
# all.sh - every judge, one after another, on a machine that does nothing else: about 40 minutes.
#
#   tests/accuracy/all.sh [SEED] [HPLAN]     7, build/hplan; results and what was judged go to build/accuracy/SEED/
#
# Goes on where it was stopped: a judge whose results are complete only judges them again.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
seed=${1:-7}
hplan=$(realpath "${2:-build/hplan}") || exit 2
folder=build/accuracy/$seed
mkdir -p "$folder" && cd "$folder" || exit 1
status=0
judge() {
  local name=$1
  shift
  echo "== $name: $SECONDS s so far" >&2
  "$here/$name.py" --hplan "$hplan" "$@" >"$name.txt" || status=1
  cat "$name.txt"
}
judge accuracy --seed "$seed" --out accuracy.jsonl
race=()
"$hplan" help simulate | grep -q -- --measure && race=(--measure 4)
judge searches --seed "$seed" --after accuracy.jsonl --out searches.jsonl "${race[@]}"
judge drift
judge demo
echo "all of it: $((SECONDS / 60)) minutes" >&2
exit $status
