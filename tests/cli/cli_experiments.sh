#!/bin/bash
# cli_experiments.sh - published figures: the shipped files are read, what must hold exactly does, wrong files are refused
# with file and line, and what is shown is what simulate predicts. No prediction is asserted. HPLAN is the binary.
set -u
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1

# json KEY: the first number (or word) of that key in ./out.
json() { grep -oE "\"$1\": ?[^,}]*" out | head -1 | sed 's/.*: *//; s/"//g'; }
# row NAME: that row of ./out as JSON.
row() { grep -oE "\{[^{}]*\"name\": ?\"$1\"[^{}]*\}" out; }
value() { row "$1" | grep -oE "\"$2\": ?[^,}]*" | head -1 | sed 's/.*: *//; s/"//g'; }
near() { awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { d = a - b; exit !(a != "" && b != "" && (d < 0 ? -d : d) <= t * (b < 0 ? -b : b)) }'; }

# --- what is shipped ---
expect 0 experiments --list
files=$(find "$HPLAN_SOURCE/experiments" -name "*.txt" | wc -l)
[ "$(wc -l <out)" = "$files" ] || complain "--list names $(wc -l <out) of $files files"
names=() # all
all "published figures that take seconds to predict" ||
  mapfile -t names < <(cd "$HPLAN_SOURCE/experiments" && printf '%s\n' *.txt | sed -E 's/[.]txt$//; /^(torchgpipe|ratios|megatron|activation|lambda|mlperf|mxnet|tf-infer|timm)/d')
expect 0 experiments --json "${names[@]}"
held=$(grep -oE '"exact": ?\{[^}]*\}' out | head -1)
[ "$(echo "$held" | grep -oE '"simulated": ?[0-9]+' | grep -oE '[0-9]+')" -ge 20 ] || complain "hardly any exact row: $held"
[ "$(echo "$held" | grep -oE '"simulated": ?[0-9]+' | grep -oE '[0-9]+')" = "$(echo "$held" | grep -oE '"hit": ?[0-9]+' | grep -oE '[0-9]+')" ] ||
  complain "exact rows do not hold: $held"
cp out all.json
expect 2 experiments nothing-of-this-name
expect 2 experiments --leave-out colour
expect 0 experiments layouts table-2.1
[ "$(grep -c '^[a-z].*: thesis' out)" = 2 ] || complain "two names, and: $(grep '^[a-z]' out)"

# every section of the published targets has a file, where they are at hand
targets=$HPLAN_SOURCE/../shared/targets.md
if [ -r "$targets" ]; then
  sed -n 's/^## //p' "$targets" >sections
  [ -s sections ] || complain "no sections in $targets"
  while read -r section; do
    grep -qxF "section: $section" "$HPLAN_SOURCE"/experiments/*.txt -h || complain "no experiment of section '$section'"
  done <sections
fi

# --- text and JSON say the same ---
expect 0 experiments "${names[@]}"
python3 - out all.json <<'END' || complain "text and JSON differ"
import json, sys
rows, file, seen, wrong = {}, None, 0, []
for f in json.load(open(sys.argv[2]))["files"]:
    for r in f["rows"]:
        rows[f["name"], r["name"]] = r
for line in open(sys.argv[1]):
    words = line.split()
    if line[:1].isalpha():
        file = line.split(":")[0]
    r = rows.get((file, words[0])) if line.startswith("  ") and words else None
    if not r or len(words) < 6 or words[1] != r["measure"] or words[3] == "-":
        continue
    seen += 1
    number, error = r["simulated"], r["error"]
    same = words[3] == r["simulated_word"] if number is None else abs(float(words[3]) - number) <= 1e-3 * abs(number)
    same &= error is None if words[4] == "-" else abs(float(words[4].rstrip("%")) - 100 * error) <= 0.051
    same &= ("MISS" in line or "WRONG" in line or "NOT HELD" in line) == (r["hit"] is False)
    if not same:
        wrong.append((line, r))
shown = sum(r["simulated"] is not None or r["simulated_word"] is not None for r in rows.values())
print(*wrong, f"{seen} rows of {shown} in the JSON", file=sys.stderr) if wrong or seen != shown else None
sys.exit(bool(wrong) or seen != shown or seen < 30)
END

# --- files together are all points of time, and text and JSON say the same of them ---
python3 - out all.json <<'END' || complain "groups"
import json, math, sys
report, lines = json.load(open(sys.argv[2])), {}
text = open(sys.argv[1]).read().split("\npoints of time by file", 1)[1].split("\n\n", 1)[0]
for line in text.split("\n")[1:]:
    words = line.replace(" of ", "/").split()
    lines[words[0]] = words[1:]
time, wrong = report["summary"]["point"], []
for key, of in (("points", "simulated"), ("hit", "hit"), ("used", "used")):
    if sum(g[key] for g in report["groups"]) != time[of]:
        wrong.append((key, time[of]))
if len(lines) != len(report["groups"]) + 1 or lines["all"][:3] != [str(time[of]) for of in ("simulated", "used", "hit")]:
    wrong.append(lines)
for g in report["groups"] + [report["of_time"]]:
    part = lambda x: "-" if x is None else f"{100 * x:.1f}%"
    said = [str(g["points"]), str(g["used"]), str(g["hit"]), part(g["mean_error"]), "-" if g["tau"] is None else f"{g['tau']:.2f}",
            f"{g['covered']}/{g['intervals']}" if g["intervals"] else "-", part(g["half_width"])]
    if said != lines[g["file"]]:
        wrong.append((said, lines[g["file"]]))
print(*wrong, file=sys.stderr)
sys.exit(bool(wrong))
END

# --- what is shown is what simulate predicts ---
head='source: made up
what: a test
setup: none'
one='--net resnet50 --machine lassen --batch 64 --strategy dp=1'
two='--net resnet50 --machine lassen --batch 128 --strategy dp=2'
mkdir own
cat >own/own.txt <<END
$head
all: --net resnet50 --machine lassen
one    | --batch 64 --strategy dp=1  | images_per_s 100 | point
memory | one                         | memory_gb 1      | point
two    | --batch 128 --strategy dp=2 | step_s 0.1       | point
ratio  | two / one                   | images_per_s 2   | point
rising | two / one                   | images_per_s above | sign
fallen | two / one                   | images_per_s 0.5 | sign
sinking | one / two | images_per_s above | sign
in     | one                         | images_per_s 1..1e6 | band
out    | one                         | images_per_s 1e6.. | band
over   | one                         | images_per_s 1..2   | band
best   | --gpus 2 --batch 128        | images_per_s 100 | point
none   | --machine nowhere --strategy dp=1 | images_per_s 100 | point
never  | not simulated: too far      | images_per_s 100 | point
END
"$HPLAN" experiments --folder own --json >own.json 2>err || complain "own files: $(cat err)"
# simulated WORDS...: images/s, step and GB of number 1
simulated() { timeout -k 5 120 "$HPLAN" simulate --json "$@" >out 2>err </dev/null && echo "$(json images_per_s) $(json step_s) $(json memory_bytes)"; }
# shellcheck disable=SC2086
read -r rate_1 _ bytes_1 <<<"$(simulated $one)"
# shellcheck disable=SC2086
read -r rate_2 step_2 _ <<<"$(simulated $two)"
read -r rate_best _ _ <<<"$(simulated --net resnet50 --machine lassen --gpus 2 --batch 128)"
cp own.json out
near "$(value one simulated)" "$rate_1" 1e-9 || complain "one: $(value one simulated), simulate says $rate_1"
near "$(value one error)" "$(awk -v r="$rate_1" 'BEGIN { printf "%.12g", r / 100 - 1 }')" 1e-6 || complain "one: error $(value one error) of $rate_1"
near "$(value memory simulated)" "$(awk -v b="$bytes_1" 'BEGIN { printf "%.12g", b / 1e9 }')" 1e-6 || complain "memory: $(value memory simulated), simulate says $bytes_1"
near "$(value two simulated)" "$step_2" 1e-9 || complain "two: $(value two simulated), simulate says $step_2"
near "$(value ratio simulated)" "$(awk -v a="$rate_2" -v b="$rate_1" 'BEGIN { printf "%.12g", a / b }')" 1e-6 || complain "ratio: $(value ratio simulated)"
near "$(value best simulated)" "$rate_best" 1e-9 || complain "best: $(value best simulated), simulate says $rate_best"
for case in 'rising true' 'fallen false' 'in true' 'out false' 'over false' 'sinking false' 'none null' 'never null'; do
  [ "$(value "${case% *}" hit)" = "${case#* }" ] || complain "${case% *} is $(value "${case% *}" hit)"
done
row none | grep -q "machine 'nowhere'" || complain "an unknown machine: $(row none)"
# rates at their peak and nothing else: never slower
awk -v a="$(value one roofline)" -v b="$rate_1" 'BEGIN { exit !(a > b) }' || complain "roofline $(value one roofline) is slower than $rate_1"
grep -oE '"bands?": ?\{[^}]*\}' out | head -1 | grep -q '"hit": *1' || complain "bands: $(grep -oE '"band": ?\{[^}]*\}' out | head -1)"

# --- an exchange of halos: longer by what a message's latency is, whatever the layers take; none where nothing is exchanged ---
mkdir halo
cat >halo/halo.txt <<END
$head
all: --net unet:1 --image 256 --device cuda --jitter 0
soon   | --batch 1 --strategy sp=2x1,comm=nccl --machine "nodes=1; node=2 x a100-40, nvlink=300GB/s, latency=4us"   | exchange_s 1 | point
late   | --batch 1 --strategy sp=2x1,comm=nccl --machine "nodes=1; node=2 x a100-40, nvlink=300GB/s, latency=104us" | exchange_s 1 | point
slow   | --batch 1 --strategy sp=2x1,comm=nccl --machine "nodes=1; node=2 x a100-40, nvlink=300GB/s, latency=4us" --set a100-40.fp32=1GFLOP/s | exchange_s 1 | point
apart  | --batch 2 --strategy dp=2 --machine "nodes=1; node=2 x a100-40, nvlink=300GB/s, latency=4us" | exchange_s 1 | point
END
expect 0 experiments --folder halo --json
near "$(awk -v a="$(value late simulated)" -v b="$(value soon simulated)" 'BEGIN { print a - b }')" 100e-6 1e-3 || complain "exchanges: $(cat out)"
near "$(value slow simulated)" "$(value soon simulated)" 1e-6 || complain "an exchange beside slow layers: $(cat out)"
[ "$(value apart simulated)" = null ] || complain "an exchange without halos: $(row apart)"

# --- what must hold exactly, and does not ---
mkdir exact
printf '%s\n%s\n' "$head" 'a | --net resnet18 --machine lassen --strategy dp=1 | parameters 11689513 | exact' >exact/exact.txt
expect 1 experiments --folder exact
grep -q 'NOT HELD' out || complain "an exact row that does not hold: $(cat out)"
sed -i 's/11689513/11689512/' exact/exact.txt
expect 0 experiments --folder exact

# --- the best strategy, and what a table rests on ---
mkdir rank
cat >rank/rank.txt <<END
$head
cited: 334.0 img/s
all: --net resnet50 --machine lassen
first | --batch 64 --strategy dp=1 | images_per_s 334 | point, used, of group
fast | --batch 128 --strategy dp=2 | - | best group
last | --batch 64 --strategy dp=1 | - | of group
END
expect 0 experiments --folder rank --leave-out machine --json
[ "$(json published)" = fast ] && [ "$(json predicted)" = fast ] || complain "ranking: $(grep -o '"ranking".*' out)"
with=$(json with) without=$(json without)
awk -v a="$with" -v b="$without" 'BEGIN { exit !(a != b && b > 0) }' || complain "left out: error $with with, $without without"
sed -i 's/^cited.*/cited: no row of any table/' rank/rank.txt
expect 0 experiments --folder rank --leave-out machine --json
[ "$(json with)" = "$(json without)" ] || complain "nothing was left out, and the errors are $(json with) and $(json without)"

# rates of frameworks are left out like rows of the table; a row that two files are cited by is one
mkdir rates
for file in one two; do
  cat >rates/$file.txt <<END
$head
cited: fitted to published throughput
all: --net resnet50 --image 224 --device cuda --machine "nodes=1; node=1 x v100-16" --strategy dp=1 --prec fp16 --batch 128
trained | --as pytorch-1.13 | images_per_s 1400 | point, used
END
done
printf '%s\n%s\n' "$head" 'own | --net resnet50 --machine lassen --strategy dp=1 | images_per_s 334 | point' >rates/three.txt
expect 0 experiments --folder rates one --leave-out group
cited=$(grep '^rows of cost tables' out)
grep -q 'rest on it\|rests on it' out && complain "no rate of a framework is left out: $(cat out)"
expect 0 experiments --folder rates --leave-out group
rows=$(cat "$HPLAN_SOURCE"/costmodels/data/shipped.cost "$HPLAN_SOURCE"/costmodels/data/frameworks/*.cost | grep -c 'fitted to published throughput')
[ "${cited##* }" = $((rows + 1)) ] || complain "$rows rows and frameworks are cited by a file, and: $cited"
[ "$cited" = "$(grep '^rows of cost tables' out)" ] || complain "'$cited' of one file, of two: $(grep '^rows of' out)"
[ "$(grep -oE '^ +[a-z]+ .*rests on it' out | grep -oE '[a-z]+' | head -1) $(grep -c 'rests on it' out)" = 'three 1' ] || complain "left out: $(cat out)"
[ "$(grep -cE '^one +1 +1 ' out)" = 1 ] || complain "a point that rates were fitted to is not used: $(cat out)"
expect 0 experiments --folder rates one --leave-out group --json
[ "$(json with)" != "$(json without)" ] || complain "without a framework's rates the error is $(json without), too"
with=$(json with) without=$(json without)
for by in net machine image; do # the file has one of each
  expect 0 experiments --folder rates one --leave-out $by --json
  [ "$(json with) $(json without)" = "$with $without" ] || complain "--leave-out $by: $(json with) $(json without), not $with $without"
done
# and so are the 3.2 ms of a step's call in MXNet, before which nothing starts: at most 312 images/s with them
rm -rf call && mkdir call
cat >call/call.txt <<END
$head
cited: fitted to published throughput
call | --as mxnet --net resnet50 --image 224 --device cuda --machine "nodes=1; node=1 x v100-16" --strategy dp=1 --prec fp16 --batch 1 --mode infer | images_per_s 1 | point, used
END
expect 0 experiments --folder call --leave-out group --json
awk -v a="$(json with)" -v b="$(json without)" 'BEGIN { exit !(a <= 312 && b > 312) }' || complain "a step's call: $(json with), without it $(json without)"

# --- wrong files: file and line ---
# wrong LINE TEXT: a file of the head and these lines
wrong() {
  rm -rf wrong && mkdir wrong
  printf '%s\n%s\n' "$head" "$2" >wrong/bad.txt
  expect 65 experiments --folder wrong
  grep -q "wrong/bad.txt:$1:" err || complain "'$2': $(cat err)"
  [ "$(wc -l <err)" = 1 ] || complain "'$2': not one line: $(cat err)"
}
good='a | --strategy dp=1 | step_s 1 | point'
wrong 4 'colour: blue'
wrong 4 'nothing'
wrong 4 'what: twice'
wrong 5 "$good
section: late"
wrong 1 '# no row'
wrong 4 'a | --strategy dp=1'
wrong 4 'a | --strategy dp=1 | step_s 1 | point | note | more'
wrong 4 'a | --strategy dp=1 | speed 1 | point'
wrong 4 'a | --strategy dp=1 | step_s one | point'
wrong 4 'a | --strategy dp=1 | step_s 2..1 | band'
wrong 4 'a | --strategy dp=1 | step_s 1..2 | point'
wrong 4 'a | --strategy dp=1 | step_s 1 | band'
wrong 4 'a | --strategy dp=1 | step_s 1 | sign'
wrong 4 'a | --strategy dp=1 | step_s 0 | point'
wrong 4 'a | --strategy dp=1 | step_s 1 | dot'
wrong 4 'a | --strategy dp=1 | step_s 1 |'
wrong 4 'a | --strategy dp=1 | outcome oom | point'
wrong 4 'a | --strategy | step_s 1 | point'
wrong 4 'a | --stratgy dp=1 | step_s 1 | point'
wrong 4 'a | --strategy "dp=1 | step_s 1 | point'
wrong 4 'a | not simulated: | step_s 1 | point'
wrong 5 "$good
a | --strategy dp=2 | step_s 1 | point"
wrong 5 "$good
b | a / c | step_s 1 | point"
wrong 5 "$good
b c | a | step_s 1 | point"
mkdir empty
expect 65 experiments --folder empty
expect 65 experiments --folder missing

conclude "published figures are read, and shown as predicted"
