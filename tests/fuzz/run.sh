#!/bin/bash
# run.sh BUILD [SECONDS [NAME]...] - fuzz targets (all, or those named) of a build by clang with -DHPLAN_FUZZ=ON, SECONDS (60) each, as many at a
# time as there are cores, from the seeds, tests/fuzz/corpus and what earlier runs found (BUILD/fuzz). Prints how many
# inputs were tried. A finding is written to BUILD/fuzz, where it stays a seed of its target, and is the exit status.
set -euo pipefail
build=$(cd "$1" && pwd)
seconds=${2:-60}
shift $(($# < 2 ? $# : 2))
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$build/fuzz"
"$build/fuzz_seeds" "$build/fuzz/seeds"
if [ $# = 0 ]; then
  for source in "$here"/fuzz_*.c; do set -- "$@" "$(basename "$source" .c | sed s/fuzz_//)"; done
fi

one() {
  local name=$1 folders=() dict=() code=0 log=$build/fuzz/$1.log
  mkdir -p "$build/fuzz/$name"
  for folder in "$build/fuzz/$name" "$build/fuzz/seeds/$name" "$here/corpus/$name"; do
    [ -d "$folder" ] && folders+=("$folder")
  done
  [ -e "$here/$name.dict" ] && dict=("-dict=$here/$name.dict")
  "$build/fuzz_$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=3000 -print_final_stats=1 "${dict[@]}" \
    -artifact_prefix="$build/fuzz/$name/" "${folders[@]}" >"$log" 2>&1 || code=$?
  printf '%-12s %s inputs, exit %s\n' "$name" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" "$code"
  [ "$code" = 0 ] || tail -n 40 "$log"
  return "$code"
}
export -f one
export build here seconds
printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} bash -c 'one {}'
