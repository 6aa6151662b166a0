#!/bin/bash
# cli_infer.sh - quantised inference through the command line: a float plan is calibrated, evaluated and run on an image; the
# 8-bit answer has the same bits however the network and the image are cut, and so has the calibration; what cannot be gives
# its documented code and leaves nothing behind. HPLAN is the binary; hplan-exec lies beside it.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor

# residual blocks, 3-channel images whose sides no number of tiles divides
net=(--net resnet-v1-8 --image 37x50 --classes 10)
all "ResNet-18, of 11 million parameters" && net[1]=resnet18

# plan FILE STRATEGY OPTIONS...: of inference
plan() {
  expect 0 simulate "${net[@]}" --mode infer --machine local --batch 1 --out "$1" --strategy "$2" "${@:3}"
}

# As many bytes as the plan said.
as_planned() {
  python3 -c 'import json, sys
f = json.loads(sys.stdin.readlines()[-1])
assert f["final"] and f["peak_bytes"] == f["planned_bytes"] and len(f["peak_bytes"]) > 0, f' <out ||
    complain "$1: planned and observed memory differ: $(tail -n 1 out)"
}

# image FILE HEIGHT WIDTH SEED: a PNG
image() {
  python3 - "$@" <<'EOF'
import math, struct, sys, zlib
name, h, w, seed = sys.argv[1], *map(int, sys.argv[2:])
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
rows = b"".join(b"\0" + bytes(int(127 + 90 * math.sin((x * (c + 2) + y * 3 + seed) / 9) + (x * y * 7 + seed) % 30)
                              for x in range(w) for c in range(3)) for y in range(h))
with open(name, "wb") as f:
    f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
EOF
}

image x.png 37 50 1
image calib.png 74 100 2
expect 0 simulate "${net[@]}" --machine local --batch 2 --strategy dp=1 --out train.db
expect 0 run train.db --steps 1 --save w.safetensors

# --- the calibration does not depend on who saw which part of which image ---
for strategy in dp=1 sp=2x1 stages=2 $(all "calibration on four tiles, on tiles of stages" && echo sp=2x2 sp=2x1,stages=2); do
  expect 0 quantize "${net[@]}" --weights w.safetensors --calib calib.png --strategy "$strategy" -o "q-$strategy"
  cmp -s q-dp=1 "q-$strategy" || complain "calibrated with $strategy the file is another"
done
for observer in minmax percentile entropy; do
  expect 0 quantize "${net[@]}" --weights w.safetensors --calib calib.png --observer $observer --equalise -o q-other
  cmp -s q-dp=1 q-other && complain "the observer $observer changes nothing"
done

# --- several files are images in that order; one that is missing is named ---
image other.png 60 41 3
expect 0 quantize "${net[@]}" --weights w.safetensors --calib calib.png,other.png,x.png -o q-three
cmp -s q-dp=1 q-three && complain "two more images change nothing"
if all "calibration with several images on two tiles"; then
  expect 0 quantize "${net[@]}" --weights w.safetensors --calib calib.png,other.png,x.png --strategy sp=2x1 -o q-tiles
  cmp -s q-three q-tiles || complain "calibrated with several images on two tiles the file is another"
fi
expect 65 quantize "${net[@]}" --weights w.safetensors --calib calib.png,missing.png -o none
grep -q 'missing.png' err || complain "the missing image is not named: $(cat err)"

# --- nor do the bits of the answer, nor its memory differ from the plan's ---
for strategy in dp=1 strips=5 strips=8,deep=4 sp=2x1,strips=3 \
  $(all "inference on tiles, on stages, on both" && echo sp=2x1 sp=3x1 sp=2x2 stages=3 sp=2x1,stages=2); do
  plan p8.db "$strategy" --prec int8
  expect 0 run p8.db --init q-dp=1 --input x.png --output "y-$strategy.npy" --json
  as_planned "$strategy"
  cmp -s y-dp=1.npy "y-$strategy.npy" || complain "$strategy: the 8-bit answer has other bits"
done
plan f.db dp=1
expect 0 run f.db --init w.safetensors --input x.png --output y.npy --threads 2 --json
as_planned "in float32"
whole=dp=1
all "the reference on two tiles" && whole=sp=2x1
plan ref.db $whole --device ref
expect 0 run ref.db --init w.safetensors --input x.png --output ref.npy
plan ref8.db $whole --device ref --prec int8
expect 0 run ref8.db --init q-dp=1 --input x.png --output ref8.npy

# --- float32 is float64 but for rounding, int8 is both but for quantisation; the forms of --output agree ---
for form in json bin; do expect 0 run f.db --init w.safetensors --input x.png --output "y.$form"; done
python3 - <<'EOF' || complain "the answers disagree"
import json, struct
def npy(name):
    b = open(name, "rb").read()
    n = 10 + struct.unpack("<H", b[8:10])[0]
    return struct.unpack("<10f", b[n:])
f, r, q, q_ref = (npy(n) for n in ("y.npy", "ref.npy", "y-dp=1.npy", "ref8.npy"))
most = max(map(abs, r))
def off(a, b):
    return max(abs(x - y) for x, y in zip(a, b)) / most
assert off(f, r) < 1e-4, off(f, r)
assert off(q, q_ref) < 1e-5, off(q, q_ref)
assert 0 < off(q, r) < 0.1, off(q, r)
assert struct.unpack("<10f", open("y.bin", "rb").read()) == f
assert off(json.load(open("y.json"))["logits"][0], f) < 1e-6
EOF

# --- an image of another shape is stretched, and said to be; each of several files has its own answer ---
expect 0 run f.db --init w.safetensors --input other.png --output other.bin --json
grep -q 'other.png: stretched from 41x60 to 50x37' err || complain "stretched silently: $(cat err)"
expect 0 run f.db --init w.safetensors --input calib.png --output calib.bin
grep -q stretched err && complain "of the same shape, called stretched"
expect 0 run f.db --init w.safetensors --data other.png,calib.png,x.png --output three.bin
cat other.bin calib.bin y.bin | cmp -s - three.bin || complain "three images together have other answers"

# --- eval: int8 against fp32 ---

expect 0 eval "${net[@]}" --weights w.safetensors --quant q-dp=1 --data calib.png --prec int8,bf16 --json
python3 - "${net[1]}" <<'EOF' || complain "eval: $(cat out)"
import json, sys
rows = {r["name"]: r for r in json.load(open("out"))["results"]}
assert list(rows) == ["fp32", "int8", "bf16"], list(rows)
assert rows["fp32"]["exact"] and rows["int8"]["sqnr_db"] > 15, rows
# over many layers bfloat16 is the finer of the two
assert rows["bf16"]["sqnr_db"] > (rows["int8"]["sqnr_db"] if sys.argv[1] == "resnet18" else 15), rows
EOF

# --- a limit on memory is kept by strips ---
expect 0 simulate --net unet:8 --image 128 --mode infer --prec int8 --machine local --gpus 1 --memory-limit 1000K --out small.db --json
grep -q '"strategy":"strips=' out || complain "no strips under a limit: $(cat out)"
expect 0 run small.db --steps 1 --json
as_planned "under a limit"

# --- patches: a label each, a map of them ---
expect 0 run f.db --init w.safetensors --data patches:calib.png,size=24,tissue=0 --output l.npy --heatmap heat.tif --argmax
grep -q '20 patches: class' out || complain "no verdict on the patches: $(cat out)"

# --- transformers: an image's and a text's, quantised and cut ---
cp "$HPLAN_SOURCE/LICENSE" text.txt
# transformer NAME DATA OPTIONS...: trained for a step, calibrated, cut
transformer() {
  local name=$1 data=$2 strategy
  shift 2
  expect 0 simulate "$@" --machine local --batch 2 --strategy dp=1 --out "$name.db"
  expect 0 run "$name.db" --steps 3 --save "$name.w"
  expect 0 quantize "$@" --weights "$name.w" --calib "$data" --images 4 -o "$name.q"
  for strategy in dp=1 sp=2x1 $(all "transformers by stages" && echo stages=2 sp=3x1,stages=2); do
    expect 0 simulate "$@" --mode infer --prec int8 --machine local --batch 2 --strategy "$strategy" --out "$name.db"
    expect 0 run "$name.db" --init "$name.q" --data "$data" --steps 1 --output "$name-$strategy.npy" --json
    as_planned "$name with $strategy"
    cmp -s "$name-dp=1.npy" "$name-$strategy.npy" || complain "$name with $strategy: the 8-bit answer has other bits"
  done
  expect 0 eval "$@" --weights "$name.w" --quant "$name.q" --data "$data" --json
  python3 -c 'import json; r = json.load(open("out"))["results"]; assert r[1]["sqnr_db"] > 15, r' || complain "$name: $(cat out)"
  expect 0 simulate "$@" --mode infer --machine thesis-a100 --gpus 1 --device cuda
  for strategy in tp=2 seq=2; do
    expect 3 simulate "$@" --mode infer --machine local --batch 2 --strategy $strategy
  done
}
transformer vit x.png,calib.png --net vit:2,24,3,8 --image 32 --classes 10
transformer gpt text:text.txt --net gpt:2,32,4,16,256

# --- refusals ---
for mode in train infer; do
  expect 69 simulate --net gpt:2,1024,2,16,256 --mode $mode --machine thesis-a100 --gpus 1 --device cuda
  grep -q 'E-LAYER: layer .* has heads of 512 channels, device cuda takes at most 256; give 4 heads, or --device cpu' err ||
    complain "$mode with wide heads: $(cat err)"
  expect 0 simulate --net gpt:2,1024,4,16,256 --mode $mode --machine thesis-a100 --gpus 1 --device cuda
done
expect 2 run f.db --init w.safetensors --data patches:calib.png,size=24,tissue=0 --heatmap heat.png
grep -q 'heat.png: end the name' err || complain "the wrong option is blamed: $(cat err)"
grep -q -e --output err && complain "--output is blamed for --heatmap"
for mode in train infer; do expect 2 simulate "${net[@]}" --mode $mode --machine local --gpus 1 --float-layers conv1 --out none.db; done
for how in "train --prec bf16 --device ref" "infer --prec tf32 --device cuda"; do
  # shellcheck disable=SC2086
  expect 2 simulate "${net[@]}" --mode $how --machine local --gpus 1 --float-layers conv1 --out none.db
done
expect 0 simulate "${net[@]}" --mode infer --prec fp32,int8 --machine local --gpus 1 --float-layers conv1 --out some.db
expect 65 run p8.db --init w.safetensors --input x.png      # no scales
expect 65 run f.db --init q-dp=1 --input x.png              # 8-bit weights in a float plan
expect 65 run f.db --init w.safetensors --input missing.png
: >empty.png
expect 65 run f.db --init w.safetensors --input empty.png
head -c 900 x.png >cut.png
expect 65 run f.db --init w.safetensors --input cut.png --output cut.npy
expect 65 quantize "${net[@]}" --weights w.safetensors --calib empty.png -o none
expect 65 quantize --net cnn --image 28 --weights w.safetensors --calib x.png -o none
expect 2 quantize "${net[@]}" --weights w.safetensors --calib x.png --observer median -o none
expect 2 quantize "${net[@]}" --weights w.safetensors --calib x.png --float-layers nosuch -o none
expect 2 quantize "${net[@]}" --weights w.safetensors -o none
expect 2 run f.db --init w.safetensors --input x.png --output y.doc
expect 2 run f.db --init w.safetensors --input x.png --output map.tif
expect 2 run f.db --init w.safetensors --input x.png --heatmap none.npy
# random weights answer for real images only if asked to
for real in --input=x.png --data=x.png,calib.png --data=patches:calib.png,size=24,tissue=0; do
  expect 2 run f.db "$real"
  grep -q -- '--init W.safetensors.*--random-weights' err || complain "$real: no way out in: $(cat err)"
  expect 0 run f.db "$real" --random-weights
  grep -q 'random weights' err || complain "$real: nothing says that weights are random"
done
expect 0 run f.db --data synthetic --steps 1
expect 2 run f.db --init w.safetensors --random-weights --input x.png
expect 2 eval "${net[@]}" --data calib.png --prec bf16
grep -q -- '--weights W.safetensors.*--random-weights' err || complain "eval: no way out in: $(cat err)"
expect 0 eval "${net[@]}" --data calib.png --prec bf16 --random-weights
expect 2 run f.db --save none
expect 2 run train.db --steps 1 --output none.npy
expect 73 run f.db --init w.safetensors --input x.png --output no/such/folder/y.npy
expect 2 simulate "${net[@]}" --mode infer --prec int9 --machine local --out none
expect 2 simulate "${net[@]}" --mode infer --prec int8,int8 --machine local --out none
expect 2 simulate "${net[@]}" --mode infer --prec fp32 --strategy prec=int8 --machine local --out none
expect 69 simulate "${net[@]}" --mode train --prec int8 --machine local --out none
expect 3 simulate "${net[@]}" --mode infer --strategy strips=999 --machine local --out none
expect 3 simulate "${net[@]}" --mode infer --prec int8 --memory-limit 100K --machine local --out none
[ -e none ] || [ -e cut.npy ] || [ -e none.npy ] && complain "a refusal left a file: $(ls)"

# --- a plan for GPUs that are not here, on the host ---
expect 0 simulate "${net[@]}" --mode infer --machine thesis-a100 --strategy dp=1 --out gpus.db
expect 0 quantize gpus.db --device cpu --weights w.safetensors --calib calib.png -o gpus.safetensors
expect 0 eval gpus.db --device cpu --weights w.safetensors --data calib.png --prec bf16
expect 2 eval gpus.db --device abacus --weights w.safetensors --data calib.png

# --- told to end: nothing unfinished stays ---
image big.png 400 400 3
# a patch at every pixel: more than a hundred thousand, of which it is far from the last when it is told
timeout -k 5 1000 "$HPLAN" run f.db --init w.safetensors --data patches:big.png,size=8,stride=1,tissue=0 --output end.npy \
  --heatmap heat.npy --trace end.db >out 2>err </dev/null &
run=$!
for _ in $(seq 1200); do
  [ -e end.npy.part ] && [ -e heat.npy.part ] && break
  kill -0 "$run" 2>err.kill || break
  sleep 0.1
done
kill "$run"
wait "$run"
got=$?
[ $got = 143 ] || complain "told to end: exit $got: $(cat err)"
for f in ./*.part ./*.tmp* end.npy heat.npy; do
  [ -e "$f" ] && complain "$f is left"
done
conclude "all runs passed"
