#!/usr/bin/env bash
# cli_fixes.sh - a fix that is printed can be pasted: its keys into the strategy, its options behind the command; the
# result is a plan, and needs the memory that the fix said.
# shellcheck source=tests/cli/lib.sh
. "${HPLAN_SOURCE:?}/tests/cli/lib.sh"

# paste STRATEGY KEYS: the strategy with these keys replaced
paste_keys() {
  local item kept="" key
  for item in ${1//,/ }; do
    key=${item%%=*}
    case ",$2" in
    *",$key="*) ;;
    *) kept+=$item, ;;
    esac
  done
  kept+=$2
  echo "${kept%,}"
}

fixed=0
none=0

# try WORDS...: simulate refuses --strategy (the last word), and what its fix says works
try() {
  local options=("${@:1:$#-1}") strategy=${!#} fix keys="" item
  expect 3 simulate --net resnet18 --classes 10 "${options[@]}" --strategy "$strategy"
  fix=$(sed -n 's/.*; fix: //p' err)
  [ -n "$fix" ] || complain "$*: no fix in $(cat err)"
  grep -q "smallest fix" err && complain "$*: an old word: $(cat err)"
  case $fix in
  "none found"*)
    none=$((none + 1))
    return
    ;;
  esac
  local needs=${fix##* -> }
  while IFS= read -r item; do
    case $item in
    --*) options+=("${item%% *}" "${item#* }") ;;
    *) keys+=$item, ;;
    esac
  done < <(echo "${fix% -> *}" | sed 's/, /\n/g')
  expect 0 simulate --net resnet18 --classes 10 "${options[@]}" --strategy "$(paste_keys "$strategy" "${keys%,}")"
  grep -q "$needs" out || complain "$*: '$fix' leads to another need: $(grep ' 1 ' out)"
  fixed=$((fixed + 1))
}

a100=(--machine thesis-a100)
try "${a100[@]}" --image 64 --gpus 8 dp=4,stages=4
try --machine lassen --image 64 dp=4000
try "${a100[@]}" --image 64 --batch 2048 dp=32,stages=64
try "${a100[@]}" --image 64 dp=2,stages=64
try "${a100[@]}" --image 64 stages=2,cut=1:1
try "${a100[@]}" --image 64 stages=2,cut=1:1:1
try "${a100[@]}" --image 64 dp=2,cut=2:3:5
try "${a100[@]}" --image 64 sp=2x2:2x1
try "${a100[@]}" --image 64 stages=3,sp=2x2,tail=shared
try "${a100[@]}" --image 64 sp=2x2,ldp=2
try "${a100[@]}" --image 64 cp=1000
try "${a100[@]}" --image 64 strips=4
try "${a100[@]}" --image 64 --mode infer --batch 2 strips=4
try "${a100[@]}" --image 64 --batch 63 stages=2,chunks=2,micro=3
try "${a100[@]}" --image 64 stages=2,micro=4,sched=lp
try "${a100[@]}" --image 64 stages=3,gems=3
try "${a100[@]}" --image 64 --batch 64 dp=3
try "${a100[@]}" --image 64 clients=2,comm=nccl
try "${a100[@]}" --image 96 --rules mpi4dl stages=2,sp=2x2,tail=shared
try "${a100[@]}" --image 96 --rules mpi4dl stages=2,cp=2,micro=2,recompute=full
try "${a100[@]}" --image 512 --batch 64 --memory-limit 2G dp=2
try "${a100[@]}" --image 256 --batch 8 --memory-limit 300M dp=1
try "${a100[@]}" --image 4096 --batch 128 dp=64,micro=4
try --machine local --image 256 --memory-limit 250M dp=2
[ "$fixed" -ge 23 ] || complain "$fixed fixes, $none without"

# where nothing helps, it is said, with what comes nearest
try "${a100[@]}" --image 64 --gpus 1 --memory-limit 1M dp=1
[ "$none" = 1 ] || complain "a fix for what cannot fit: $(cat err)"
grep -q "fix: none found on 1 device" err || complain "nothing helps: $(cat err)"

# the table and the JSON of a search say the same
expect 0 simulate --net resnet18 --image 1024 --batch 32 --gpus 16 "${a100[@]}" --memory-limit 2G --top 1
sed -n 's/^ *fix: //p' out | sort >table
expect 0 simulate --net resnet18 --image 1024 --batch 32 --gpus 16 "${a100[@]}" --memory-limit 2G --top 1 --json
grep -o '"fix": *"[^"]*"' out | sed 's/"fix": *"//;s/"$//' | sort >json
[ -s table ] || complain "no rejects"
cmp -s table json || complain "fixes differ: $(diff table json)"

# why says it too
expect 0 simulate --net resnet18 --image 64 --batch 8 --gpus 2 "${a100[@]}" --top 1 --out p.db
expect 0 why p.db dp=3
grep -q "rejected: E-BATCH: .*; fix: .* -> " out || complain "why: $(cat out)"

# a network that no GPU holds as it is: the search says what would help
expect 3 simulate --net unet:64 --image 4096 --gpus 1 "${a100[@]}" --out u.db
grep -q "no feasible plan: .*; fix: .*prec=bf16 -> " err || complain "no plan, no way out: $(cat err)"

# a plan has the options that it has: a fix of `run` is one of the strategy
need_executor
expect 0 simulate --net cnn --image 28 --batch 4 --machine local --strategy dp=1 --out r.db
expect 3 run r.db --plan dp=3 --steps 1
fix=$(sed -n 's/.*; fix: \(.*\) -> .*/\1/p' err)
case $fix in
"" | *--*) complain "run: no fix, or one of options: $(cat err)" ;;
*) expect 0 run r.db --plan "$(paste_keys dp=3 "$fix")" --steps 1 --force ;;
esac
conclude "$fixed fixes pasted"
