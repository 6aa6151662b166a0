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

# What takes long, and how it becomes short: fewer steps, fewer devices, smaller networks, images that are not read.
shorter=(
  -e '/^hplan run /s/ (--epochs 1|--steps [0-9]{2,})/ --steps 6/'
  -e '/^hplan run /s/ --eval//'
  -e '/^hplan bench /s/ --net mobilenetv2 --image 64 (.*) --seconds 1$/ --net cnn --image 28 \1 --seconds 0.1/'
  -e '/^hplan (eval|run plan.db .* --(trace|lr)) /s/ --data fashion-mnist/ --data synthetic/'
  -e 's/ --gpus 32,64,...,256 / --gpus 2,4 /; s/ dp=256,/ dp=4,/'
  -e 's/ resnet101 --image 1024 --gpus 128 / resnet18 --image 1024 --gpus 8 /; s/ dp=64,/ dp=4,/'
  -e 's/ --net resnet18 --image 64 (.*) --batch 64 --strategy dp=16/ --net cnn --image 28 \1 --batch 32 --strategy dp=16/'
)
seconds=0.001
all "the documents' commands at full length" && shorter=() seconds=10

# commands_of FILE: how fast the machine was from one run to the next is nothing to fail by; a calibration takes less than a minute.
commands_of() {
  sed -n '/^```console$/,/^```$/{s/^\$ \(hplan .*\)/\1/p}' "$1" | sed -E "${shorter[@]}" \
    -e '/^hplan check /s/ --max-slowdown [0-9]+%/ --max-slowdown 1000000%/' -e "/^hplan calibrate /s/\$/ --seconds $seconds/"
}

# calibrated: a calibration that is cut short goes on with this one.
calibrated() {
  mkdir -p "$XDG_CACHE_HOME/hplan"
  fixture local.cost local.samples.db
  mv local.cost local.samples.db "$XDG_CACHE_HOME/hplan"
}

# run_document FILE: its commands, one after another.
run_document() {
  local line code start
  mkdir "$scratch/$(basename "$1")" && cd "$scratch/$(basename "$1")" || exit 1
  while read -r line <&3; do
    start=$SECONDS
    [[ $line != "hplan calibrate "*" 0.001" ]] || calibrated
    timeout -k 5 1500 bash -c "$line" >out 2>err </dev/null
    code=$?
    commands=$((commands + 1))
    echo "$((SECONDS - start)) s: $line"
    [ "$code" = 0 ] || complain "$1: exit $code: $line: $(tail -c 400 err)"
  done 3< <(commands_of "$1")
}

for document in "$HPLAN_SOURCE"/README.md "$HPLAN_SOURCE"/docs/*.md; do
  run_document "$document"
done
[ "$commands" -ge 20 ] || complain "the documents show $commands hplan commands"

conclude "the documents' commands work"
