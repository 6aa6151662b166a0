#!/bin/bash
# what-if.sh - what data parallelism on 8 GPUs in two nodes would gain from a network twice or four times as fast.
set -eu
step() {
  hplan simulate --net vgg16 --machine lassen --batch 8 --strategy dp=8 --json "$@" | jq '.candidates[0].step_s'
}
before=$(step)
for change in nic=2x nic=4x; do
  awk -v before="$before" -v after="$(step --set "$change")" -v change="$change" \
    'BEGIN {printf "%s: %.1f ms instead of %.1f ms, %.2f times as fast\n", change, after * 1e3, before * 1e3, before / after}'
done
