#!/bin/bash
# cli_export.sh - the trace for Perfetto of a run beside its prediction, and what is written to stdout.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
check=$(dirname "$0")/../traces/chrome.py
need_executor

# messages between stages of two replicas, tiles' halos, all-reduces
for strategy in dp=2,stages=2,micro=4 sp=2x1,stages=1; do
  expect 0 simulate --net cnn --image 28 --machine local --batch 8 --strategy "$strategy" --out p.db
  expect 0 export p.db --chrome -o plan.json
  python3 "$check" plan.json p.db || complain "$strategy: the prediction's trace"
  expect 0 run p.db --steps 4 --no-history --trace run.db
  expect 0 export run.db --chrome -o trace.json
  grep -q "and its prediction" err || complain "what was written: $(cat err)"
  python3 "$check" trace.json run.db || complain "$strategy: the trace of a run beside its prediction"
done
expect 0 export run.db --chrome --sim -o sim.json
grep -q '"measured"' sim.json && complain "--sim is the prediction alone"

# - is stdout, and holds nothing else
expect 0 export run.db --chrome -o -
cmp -s out trace.json || complain "stdout is not the file"
expect 0 export run.db --csv -o t.csv
expect 0 export run.db --csv -o -
cmp -s out t.csv || complain "stdout is not the file of --csv"
expect 2 export run.db --chrome -o - --json
expect 2 export run.db --nsys -o -
expect 73 export run.db --chrome -o missing/t.json

# no output takes the place of the input or of another database; one form at a time
cp run.db kept.db
ln -s kept.db link.db
cp run.db other.db
for form in --chrome --csv --nsys; do
  expect 2 export kept.db $form -o ./kept.db
  expect 2 export link.db $form -o kept.db
done
for form in --chrome --csv; do expect 73 export kept.db $form -o other.db; done
echo text >note.txt
expect 73 export kept.db --nsys -o note.txt
expect 73 run run.db --steps 1 --trace note.txt
[ "$(cat note.txt)" = text ] || complain "a database replaced a text"
cmp -s run.db kept.db && cmp -s run.db other.db || complain "an export replaced a run"
expect 2 export run.db --chrome --csv -o t.json
grep -q -- "--chrome and --csv: choose one" err || complain "two forms: $(cat err)"
expect 0 export run.db --chrome --chrome -o t.json --json
[ "$(jq -r .file out)" = t.json ] || complain "--json does not say what was written: $(cat out)"
if command -v gnuplot >/dev/null; then
  expect 0 plot timeline run.db -o t.svg
  expect 0 plot timeline run.db -o -
  cmp -s out t.svg || complain "stdout is not the plot"
  expect 2 plot timeline run.db -o - --json
  # what fills a rank's memory is said of a plan and of its run; a chart without a plan has none of it
  for db in p.db run.db; do
    expect 0 plot memory $db -o m.svg
    for text in weights gradients activations "a rank has"; do
      grep -q ">$text" m.svg || complain "memory of $db: no '$text'"
    done
  done
  expect 0 plot timeline run.db -o t.svg --size 600x400
  head -5 t.svg | grep -q 'width="600" height="400"' || complain "--size 600x400: $(head -5 t.svg)"
  expect 0 plot timeline run.db -o t.png --size 601x402
  file=$(od -An -tx1 -j16 -N8 t.png) # PNG, IHDR: width and height, four bytes each
  [ "$file" = " 00 00 02 59 00 00 01 92" ] || complain "a PNG of 601 by 402 pixels: $file"
  expect 0 plot timeline run.db -o t.pdf --size 720x360
  [ "$(head -c 5 t.pdf)" = "%PDF-" ] || complain "t.pdf is no PDF"
  grep -aq 'MediaBox \[ 0 0 720 360 \]' t.pdf || complain "the size of t.pdf: $(grep -a MediaBox t.pdf)"
fi
for size in 600 600x 0x400 x400 600X400 600x400x2 -600x400 100x400 600x99999 600x400000000000 "600x 400" ""; do
  expect 2 plot timeline run.db -o t.svg --size "$size"
done
expect 2 plot timeline run.db --size 600x400
grep -q -- '-o FILE' err || complain "--size without -o says: $(cat err)"
for name in t t.jpg t.SVG .svgz t.pdf.gz; do
  expect 2 plot timeline run.db -o "$name"
  grep -q '.svg, .png or .pdf' err || complain "-o $name says: $(cat err)"
done
[ ! -e - ] || complain "a file called -"
conclude "exports are well formed"
