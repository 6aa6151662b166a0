#!/bin/bash
# cli_import.sh - a model of ONNX's own tests brings its weights: what is computed with them, by either name. What `import` says,
# writes and refuses: tests/words/test_import.c.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor
model=/usr/share/libonnx-testdata/data/pytorch-converted/test_Conv2d_groups/model.onnx
[ -e "$model" ] || {
  echo "libonnx-testdata is not installed"
  exit 77
}
expect 0 quantize --onnx "$model" --image 60x50 --images 2 --calib synthetic -o own.st
! grep -q 'not trained' err || complain "quantize --onnx draws weights: $(cat err)"
expect 0 quantize --onnx "$model" --weights "$model" --image 60x50 --images 2 --calib synthetic -o named.st
cmp -s own.st named.st || complain "the weights of --onnx are not those of --weights"
conclude "a model brings its weights"
