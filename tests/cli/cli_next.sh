#!/bin/bash
# cli_next.sh - every line "next: hplan ..." works as printed: in a folder, and with files, whose names a shell splits
# or reads otherwise; with the cost table, the network and the machine of the command that printed it.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
PATH=$(dirname "$HPLAN"):$PATH
folder="it's a \$folder; here"
mkdir "$folder" && cd "$folder" || exit 1

# next_of WORDS...: hplan WORDS, then each of its next lines in turn; the lines lie in ./next afterwards
next_of() {
  expect 0 "$@"
  sed -n 's/^ *next: //p' out err >next
  [ -s next ] || complain "hplan $*: no next line"
  while IFS= read -r line; do
    [[ $line == "hplan calibrate "* ]] && line+=" --seconds 0.001"
    [[ $line == hplan* ]] || complain "hplan $*: next is not of hplan: $line"
    timeout -k 5 120 bash -c "$line" >out2 2>err2 </dev/null || complain "next of hplan $*: $line: $(head -c 300 err2)"
  done <next
}

# says PATTERN: one of them does
says() {
  grep -qe "$1" next || complain "no '$1' in: $(cat next)"
}

out=$'plan "1"\'s.db'
next_of simulate --net cnn --image 28 --gpus 2 --top 3 --machine thesis-a100 --out "$out"
says "^hplan explain"
says "^hplan why .* 2$"
grep -q "^hplan run" next && complain "a plan for another machine is to be run here: $(cat next)"
next_of simulate --net cnn --image 28 --machine thesis-a100 --strategy dp=1 --out $'tab\tand\033[1m.db'
grep -q $'\033' out && complain "a control character on the terminal"
cp out next.out

# a strategy that does not fit into the table stands whole below it
expect 0 simulate --net resnet18 --image 64 --batch 8 --machine thesis-a100 --out long.db --strategy \
  dp=2,stages=4,cut=3:2:3:2,sp=2x1,micro=2,sched=1f1b,halo=2,recompute=boundary,fuse=10M,overlap=interior
strategy=$(sed -n 's/^  number 1 is //p' out)
[ -n "$strategy" ] || complain "truncated: $(cat out)"
expect 0 simulate --net resnet18 --image 64 --batch 8 --machine thesis-a100 --out long.db --strategy "$strategy"

need_executor
next_of simulate --net cnn --image 28 --machine local --batch 4 --strategy dp=1 --out "$out"
says "^hplan run"
says "^hplan calibrate --net cnn --image 28 --batch 4 --gpus 1$"
next_of run "$out" --steps 2 --trace "a run.db"
says "^hplan compare 'a run.db'"
next_of calibrate --net cnn --image 12 --batch 1 --seconds 0.001 -o "my costs.cost"
says "^hplan simulate --net cnn --image 12 --batch 1 --machine local --cost 'my costs.cost'"
expect 0 simulate --net cnn --image 12 --batch 1 --machine local --cost "my costs.cost" --strategy dp=1
grep -q "costs: my costs.cost" out || complain "$(cat out)"
next_of calibrate --net cnn --image 12 --batch 1 --gpus 1 --seconds 0.001
says "^hplan simulate --net cnn --image 12 --batch 1 --gpus 1 --machine local$"
next_of run "$out" --steps 1 --save "w 1.safetensors" --trace "a run.db"
next_of quantize --net cnn --image 28 --weights "w 1.safetensors" --calib synthetic --images 4 -o "q 1.safetensors"
says "^hplan run plan.db --init 'q 1.safetensors'"
says "^hplan eval .*--weights 'w 1.safetensors' --quant 'q 1.safetensors'"
next_of quantize "$out" --weights "w 1.safetensors" --calib synthetic --images 4 -o "q 1.safetensors"
next_of bench --net cnn --image 28 --prec fp32 --scenario single-stream --queries 2 --rounds 1 --out "b 1.db"
next_of doctor
conclude "next lines work as printed"
