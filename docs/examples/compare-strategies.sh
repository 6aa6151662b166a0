#!/bin/bash
# compare-strategies.sh - three ways to train ResNet-50 on 16 A100 in four nodes, and why the last one is not the plan.
set -eu
machine="nodes=4; node=4 x a100-40, nvlink=300GB/s; nic=2 x 200Gb/s"
for strategy in dp=16 dp=8,stages=2,micro=4 dp=4,sp=2x2; do
  hplan simulate --net resnet50 --machine "$machine" --batch 256 --strategy "$strategy" --json --out "$strategy.db" |
    jq -r '.candidates[0] | "\(.strategy)  \(.step_s * 1e3) ms  \(.memory_bytes / 1e9) GB"'
done
hplan why dp=16.db dp=4,sp=2x2
