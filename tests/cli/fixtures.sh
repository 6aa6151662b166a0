#!/bin/bash
# fixtures.sh FOLDER - what is dear and what several scripts read: made once (CTest's fixture `made`), taken by `fixture NAME`
# (lib.sh) as copies. On two ranks of this machine, the small network cnn at 28x28:
#   local.cost local.samples.db   a calibration of some seconds, by which plans of cnn 28x28 are predicted
#   train.db                      a plan of training, dp=2, batch 8, seed 1
#   run.db                        12 steps of it on synthetic images, with yardsticks
#   w.safetensors                 the weights after them
set -uo pipefail
folder=$1
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor
net=(--net cnn --image 28 --classes 10)
expect 0 calibrate "${net[@]:0:4}" --batch 16 --gpus 2 --seconds 8 -o local.cost
expect 0 simulate "${net[@]}" --machine local --batch 8 --strategy dp=2 --out train.db
expect 0 run train.db --steps 12 --save w.safetensors --trace run.db
[ "$failures" = 0 ] || conclude
mkdir -p "$folder"
cp -t "$folder" local.cost local.samples.db train.db run.db w.safetensors || exit 1
conclude "made: $(ls "$folder" | tr '\n' ' ')"
