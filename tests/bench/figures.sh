#!/bin/bash
# figures.sh - measures again, on this machine, the figures of docs/measurements.md that need no other program, and
# prints them as one table. Minutes on two idle cores.
#
#   tests/bench/figures.sh [BUILD]     BUILD: folder with hplan and hplan-exec (build)
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "${1:-build}")
hplan=$build/hplan
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export XDG_CACHE_HOME=$scratch # a calibration of its own
export HPLAN_NO_HISTORY=1 # and out of theirs

row() { printf '| %s | %s |\n' "$1" "$2"; }
quiet() { "$@" 2>>log || {
  tail -3 log >&2
  exit 1
}; }

# Predicted and measured step of a strategy: "PREDICTED MEASURED", and whether the peak was the planned one.
measure() { # NET IMAGE BATCH STRATEGY
  quiet "$hplan" simulate --net "$1" --image "$2" --batch "$3" --machine local --strategy "$4" --out p.db --json >sim.json
  quiet "$hplan" run p.db --steps 20 --trace r.db --json >run.json
  quiet "$hplan" compare r.db --json | jq -r '"\(.step.predicted_s) \(.step.measured_s) \(.step.error)"'
}

show_prediction() {
  local errors=() equal=0 all=0 words
  while read -r -a words; do
    errors+=("$(measure "${words[@]}" | cut -d' ' -f3)")
    all=$((all + 1))
    tail -1 run.json | jq -e '.peak_bytes == .planned_bytes' >/dev/null && equal=$((equal + 1))
  done <<'END'
cnn 28 64 dp=1
cnn 28 64 dp=2
cnn 28 64 stages=2,micro=4,sched=1f1b
resnet18 64 8 dp=1
resnet18 64 8 dp=2
resnet18 64 8 stages=2,micro=4,sched=gpipe
mobilenetv2 64 8 dp=2
resnet18 64 8 stages=2,sp=2x1,tail=shared
END
  row "predicted step time after \`hplan calibrate\`, $all configurations: median and worst error" \
    "$(printf '%s\n' "${errors[@]}" | jq -rs 'map(fabs) | sort | "\(.[length/2|floor]*1000|round/10) %, \(max*1000|round/10) %"')"
  row "planned against observed peak memory" "equal in $equal of $all runs"
}

show_accuracy() {
  quiet "$hplan" simulate --net cnn --image 28 --gpus 2 --machine local --batch 64 --out p.db >/dev/null
  quiet "$hplan" run p.db --data fashion-mnist --epochs 5 --eval --save w.safetensors --json >run.json
  row "cnn on Fashion-MNIST, 5 epochs, default settings" "accuracy $(tail -1 run.json | jq .accuracy)"
  quiet "$hplan" quantize --net cnn --image 28 --classes 10 --weights w.safetensors --calib fashion-mnist -o q.safetensors >/dev/null
  quiet "$hplan" eval --net cnn --image 28 --classes 10 --weights w.safetensors --quant q.safetensors \
    --data fashion-mnist --json >eval.json
  row "that network, fp32 and int8" "$(jq -r '[.results[] | "\(.name) \(.accuracy)"] | join(", ")' eval.json)"
}

show_precision() {
  quiet "$hplan" bench --net resnet101 --image 256,512 --prec fp32,bf16,int8 --scenario offline --seconds 5 --json >bench.json
  local size
  for size in 256 512; do
    row "ResNet-101 offline, ${size}x$size, images/s" "$(jq -r --argjson s "$size" \
      '[.series[] | select(.image == [$s, $s]) | "\(.prec) \(.images_per_s * 1000 | round / 1000)"] | join(", ")' bench.json)"
  done
}

show_memory() {
  local words bytes
  for words in 'fp32 dp=1' 'int8 dp=1' 'int8 strips=64'; do
    bytes=$(quiet "$hplan" simulate --net resnet101 --image 8192 --mode infer --prec "${words% *}" --machine local \
      --strategy "${words#* }" --memory-limit 100G --out m.db --json | jq '.candidates[0].memory_bytes')
    row "ResNet-101, 8192x8192, one image, planned memory, $words" "$((bytes / 1000000)) MB"
  done
}

show_search() {
  quiet "$hplan" simulate --net resnet101 --image 8192 --gpus 128 --machine thesis-a100 --out s.db --json >search.json
  # shellcheck disable=SC2016 # backticks are Markdown
  row 'search: `simulate --net resnet101 --image 8192 --gpus 128 --machine thesis-a100`' \
    "$(jq -r '"\(.searched) strategies in \(.elapsed_s * 10 | round / 10) s"' search.json)"
  local words
  for words in '18,416' '18,208'; do
    row "parameters of amoebanetd:$words, 1000 classes" "$(quiet "$hplan" simulate --net "amoebanetd:$words" --image 224 \
      --machine thesis-a100 --strategy dp=1 --out a.db --json | jq .parameters)"
  done
}

echo "$(date -u +%F), $(nproc) cores of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $("$hplan" --version)"
echo
row claim measured
row --- ---
show_search
show_memory
SECONDS=0
quiet "$hplan" calibrate >/dev/null
calibrated=$SECONDS
show_prediction
# shellcheck disable=SC2016
row '`hplan calibrate`' "$calibrated s"
show_accuracy
show_precision
