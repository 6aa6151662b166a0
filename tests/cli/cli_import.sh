#!/bin/bash
# cli_import.sh - hplan import on a model of ONNX's own tests: what it says, what it writes, how it refuses. HPLAN is the
# binary.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1

expect 2 import
expect 2 import model.onnx
expect 65 import nothing.onnx -o m.db
grep -q 'check the path' err || complain "a missing file: $(cat err)"
head -c 4000 /dev/zero >zeros.onnx
expect 65 import zeros.onnx -o m.db
[ ! -e m.db ] && [ ! -e m.safetensors ] || complain "a refused model left files"

model=/usr/share/libonnx-testdata/data/pytorch-converted/test_Conv2d_groups/model.onnx
if [ ! -e "$model" ]; then
  echo "skipped the rest: libonnx-testdata is not installed"
  conclude "import refuses what is no model"
  exit
fi
expect 0 import "$model" -o m.db
grep -q '^conv  *1  *78  *1152$' out || complain "the table of operators: $(cat out)"
grep -q '^output .*(2, 6, 4, 4)' out || complain "the output: $(cat out)"
expect 0 import "$model" -o m.db --json
python3 - <<'EOF' || complain "import --json or its files: $(cat out)"
import json, struct
j = json.load(open("out"))
assert j["schema"] == 1 and j["net"] == "onnx:model" and j["layers"] == 2 and j["parameters"] == 78
assert j["input"]["shape"] == [6, 5, 4] and j["output"]["shape"] == [2, 6, 4, 4]
raw = open("m.safetensors", "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
head = json.loads(raw[8:8 + n])
assert head["1"]["shape"] == [6, 2, 3, 2] and head["2"]["shape"] == [6] and head["1"]["dtype"] == "F32"
EOF
expect 2 import "$model" -o "$model"
expect 65 import "$model" -o q.safetensors
grep -q 'hplan quantize' err || complain "a model without scales as an int8 file: $(cat err)"
[ ! -e q.safetensors ] || complain "a refused int8 file was left"
expect 73 import "$model" -o nowhere/m.db
expect 0 simulate --onnx m.db --mode infer --gpus 1 --machine local --out a.db
expect 0 simulate --onnx "$model" --mode infer --gpus 1 --machine local --image 60x50 --out b.db
expect 0 explain a.db
# a model brings its weights
if [ -x "$(dirname "$HPLAN")/hplan-exec" ]; then
  expect 0 quantize --onnx "$model" --image 60x50 --images 2 --calib synthetic -o own.st
  ! grep -q 'not trained' err || complain "quantize --onnx draws weights: $(cat err)"
  expect 0 quantize --onnx "$model" --weights "$model" --image 60x50 --images 2 --calib synthetic -o named.st
  cmp -s own.st named.st || complain "the weights of --onnx are not those of --weights"
fi
# a changed byte is a refused file, or changes nothing that is read
python3 -c "
b = bytearray(open('m.db', 'rb').read())
b[len(b) // 2] ^= 255
open('broken.db', 'wb').write(b)"
timeout 60 "$HPLAN" simulate --onnx broken.db --mode infer --gpus 1 --machine local --out c.db >out 2>err </dev/null
case $? in 0 | 65) ;; *) complain "a changed byte: exit $?: $(cat err)" ;; esac
conclude "import says what a model holds, writes its structure and weights, and refuses the rest"
