#!/bin/bash
# regression-gate.sh [LIMIT] - runs the plan and fails where a step takes LIMIT (10%) longer than in baseline.db, which the first
# call leaves. Exit status 1: slower; the table says in which phase.
set -eu
[ -e plan.db ] || hplan simulate --net cnn --image 28 --machine local --batch 16 --strategy dp=2
if [ ! -e baseline.db ]; then
  hplan run plan.db --steps 30 --trace baseline.db
fi
hplan run plan.db --steps 30 --trace new.db
hplan check new.db --baseline baseline.db --max-slowdown "${1:-10%}"
