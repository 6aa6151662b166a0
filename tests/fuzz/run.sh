#!/bin/bash
# run.sh BUILD [SECONDS] - every fuzz target of a build with -DHPLAN_FUZZ=ON, SECONDS (60) each, from the seeds and
# what earlier runs found (BUILD/fuzz). A finding is written there and ends the run with its status.
set -euo pipefail
build=$1
seconds=${2:-60}
mkdir -p "$build/fuzz"
"$build/fuzz_seeds" "$build/fuzz/seeds"
for target in "$build"/fuzz_*; do
  name=${target##*/fuzz_}
  if [ ! -x "$target" ] || [ "$name" = seeds ]; then continue; fi
  mkdir -p "$build/fuzz/$name" "$build/fuzz/seeds/$name"
  printf '==> %s, %s s\n' "$name" "$seconds"
  "$target" -max_total_time="$seconds" -max_len=8192 -timeout=20 -rss_limit_mb=3000 -print_final_stats=1 \
    -artifact_prefix="$build/fuzz/$name-" "$build/fuzz/$name" "$build/fuzz/seeds/$name" 2>&1 | tail -n 20
done
