#!/usr/bin/env bash
# cli_scaling.sh - curves: batches that grow with the devices, strategies as wide as they are, a row for every count with its
# figures or its reason, and what an epoch takes.
# shellcheck source=tests/cli/lib.sh
. "${HPLAN_SOURCE:?}/tests/cli/lib.sh"

# Weak scaling: the batch grows; every figure of a row follows from its step by arithmetic that anyone can repeat.
expect 0 simulate --net resnet50 --machine summit --gpus 1,2,4,...,1536 --batch-per-gpu 64 --strategy 'dp=*' \
  --samples 1000000 --price 2.5 --json --out weak.db
python3 - <<'PY' || complain "weak scaling: $(jq -c '.scaling[]' out | head -3)"
import json
o = json.load(open("out"))
rows = o["scaling"]
assert [r["gpus"] for r in rows] == [2**i for i in range(11)] + [1536], rows
base = rows[0]
for r in rows:
    n, step = r["gpus"], r["step_s"]
    close = lambda a, b: abs(a - b) <= 1e-9 * abs(b)
    assert r["batch"] == 64 * n and r["reason"] is None, r
    assert r["strategy"] == f"dp={n}" and r["curve"] == "dp=*", r
    assert close(r["images_per_s"], r["batch"] / step), r
    assert close(r["speedup"], n * base["step_s"] / step), r
    assert close(r["efficiency"], base["step_s"] / step), r
    assert close(r["epoch_s"], 1000000 // r["batch"] * step), r
    assert close(r["gpu_hours"], n * r["epoch_s"] / 3600), r
    assert close(r["cost"], 2.5 * r["gpu_hours"]), r
    assert close(r["energy_kwh"], 0.3 * r["gpu_hours"]), r  # V100 SXM2: 300 W
    # 4.09 G multiply-adds of an image (torchvision), three times as many in training, 15.7 TFLOP/s
    assert abs(r["flop_utilisation"] / (3 * 8.18e9 * 64 / step / 15.7e12) - 1) < 0.005, r
    c = o["candidates"][r["number"] - 1]
    assert (c["strategy"], c["gpus"], c["step_s"]) == (r["strategy"], n, step), r
assert rows[-1]["number"] == o["chosen"] and o["gpus"] == 1536 and o["batch"] == 64 * 1536, o["chosen"]
PY

# Strong scaling: one batch; a count without a plan says why, and the fix that it names works.
expect 0 simulate --net resnet18 --machine summit --gpus 1,2,3,4,6 --batch 24 --strategy 'dp=*,stages=2' --json --out strong.db
jq -e '[.scaling[] | select(.batch == 24 or .strategy == null) | .gpus] == [1, 2, 3, 4, 6]' out >/dev/null ||
  complain "one batch for all: $(jq -c '.scaling[] | [.gpus, .batch]' out)"
jq -e '[.scaling[] | select(.reason) | [.gpus, .reason.code, .reason.fix]] ==
  [[1, "E-GPUS", "--gpus 2"], [3, "E-GPUS", "--gpus 2"]]' out >/dev/null ||
  complain "odd counts: $(jq -c '.scaling[] | .reason' out)"
jq -e '.scaling[2].reason.limit | test("stages=2 occupies 2, dp=2,stages=2 4")' out >/dev/null ||
  complain "what comes nearest is not said: $(jq .scaling[2].reason out)"
jq -e '.scaling[1].speedup == 1 and .scaling[0].speedup == null' out >/dev/null ||
  complain "the smallest count with a plan is no base: $(jq -c '.scaling[] | .speedup' out)"
expect 0 simulate --net resnet18 --machine summit --gpus 2 --batch 24 --strategy 'dp=*,stages=2' --out strong.db

# A batch that does not divide, too little memory: the row has code, limit and a fix that was evaluated.
expect 0 simulate --net resnet50 --image 1024 --machine summit --gpus 2,4 --batch-per-gpu 8 --memory-limit 8G \
  --strategy 'dp=*' --strategy 'dp=*,prec=fp16' --json --out lean.db
jq -e '[.scaling[] | select(.curve == "dp=*") | .reason.code] == ["E-MEM", "E-MEM"]' out >/dev/null ||
  complain "memory: $(jq -c '.scaling[] | .reason' out)"
fix=$(jq -r '.scaling[0].reason.fix | sub(" -> .*"; "")' out)
expect 0 simulate --net resnet50 --image 1024 --machine summit --batch 16 --memory-limit 8G --strategy "dp=2,$fix" --out fixed.db
expect 0 simulate --net resnet18 --machine summit --gpus 2,3 --batch 8 --strategy 'dp=*' --out batch.db
grep -Eq '^  - dp=\* +3 +8 +E-BATCH: .*; fix: ' out || complain "no row says E-BATCH: $(cat out)"

# A search sweeps as well: the best of each count, and the reason where nothing fits.
expect 0 simulate --net unet:64 --image 4096 --machine summit --gpus 1,4 --batch 2 --json --out search.db
jq -e '.scaling | length == 2 and .[0].strategy == null and .[0].reason.code == "E-MEM" and .[0].reason.limit != ""
  and .[1].reason == null and .[1].number == 1' out >/dev/null || complain "search: $(jq -c '.scaling[]' out)"
jq -e '.scaling[1].strategy == .candidates[0].strategy and .scaling[1].gpus == 4' out >/dev/null ||
  complain "not the best of its count: $(jq -c '.scaling[1]' out)"
expect 0 simulate --net unet:64 --image 4096 --machine summit --gpus 1,4 --batch 2 --out search.db
grep -Eq '^  - .* 1 +2 +E-MEM: ' out || complain "a count without a plan is silent: $(cat out)"

# Where no count has one, each row says why.
expect 3 simulate --net unet:64 --image 8192 --machine summit --gpus 1,2 --batch-per-gpu 4 --strategy 'dp=*' --out none.db
[ "$(grep -Ec '^  - dp=\* .*E-MEM: ' out)" = 2 ] || complain "rows without a plan: $(cat out)"

# Several image sizes: each as if it were asked for alone, the last is the plan.
expect 0 simulate --net unet:16 --image 256,512x256,512 --machine thesis-a100 --gpus 2 --batch 4 --json --out sizes.db
sizes=$(jq -c '[.images[] | [.image, .strategy, .step_s]]' out)
for image in 256x256 512x256 512x512; do
  expect 0 simulate --net unet:16 --image "$image" --machine thesis-a100 --gpus 2 --batch 4 --json --out alone.db
  jq -e --argjson sizes "$sizes" '[.image, .candidates[.chosen - 1].strategy, .candidates[.chosen - 1].step_s] as $alone |
    $sizes | index([$alone]) != null' out >/dev/null || complain "$image alone is not in $sizes"
done
[ "$(jq length <<<"$sizes")" = 3 ] || complain "three sizes are $sizes"
cmp -s sizes.db alone.db || complain "the plan is not the last size's"
expect 0 simulate --net unet:64 --image 8192,1024 --machine thesis-a100 --gpus 1 --out sizes.db
grep -Eq '^ +8192x8192 +1 +1 +E-MEM: .*; fix: ' out || complain "a size without a plan is silent: $(head -3 out)"

# One count: an epoch is said all the same.
expect 0 simulate --net cnn --image 28 --machine thesis-a100 --gpus 2 --batch 64 --strategy dp=2 --data fashion-mnist --out one.db
grep -q 'an epoch of 60000 samples: ' out || complain "no epoch: $(cat out)"
expect 0 simulate --net cnn --image 28 --machine thesis-a100 --strategy dp=2 --batch 64 --samples 60 --out one.db
grep -q '60 samples are not one batch of 64' out || complain "an epoch without a batch: $(cat out)"

# The plan keeps the front and which candidates are a curve; nobody beats one of the front.
expect 0 simulate --net unet:64 --image 4096 --machine thesis-a100 --gpus 4,8,16 --batch-per-gpu 1 --prec bf16 \
  --strategy 'dp=*,recompute=boundary' --strategy 'dp=*,stages=4,micro=4,recompute=full' --out front.db
python3 - <<'PY' || complain "front or curves of plan.db"
import json, sqlite3
db = sqlite3.connect("front.db")
meta = dict(db.execute("SELECT key, value FROM meta"))
rows = {r[0]: r[1:] for r in db.execute("SELECT rank, images_per_s, memory_bytes, gpus / images_per_s FROM candidate")}
front = set(json.loads(meta["front"]))
def beats(a, b):
    no_worse = a[0] >= b[0] and a[1] <= b[1] and a[2] <= b[2]
    return no_worse and a != b
assert front == {k for k in rows if not any(beats(rows[i], rows[k]) for i in rows)}, (front, rows)
curves = json.loads(meta["curves"])
assert [len(v) for v in curves.values()] == [3, 3] and len(rows) == 6, curves
stored = {r[0] for r in db.execute("SELECT strategy FROM candidate")}
assert all(x in stored for v in curves.values() for x in v), (curves, stored)
PY
if command -v gnuplot >/dev/null; then
  expect 0 plot scaling front.db -o front.svg
  grep -q 'dp=\*,recompute=boundary' front.svg && grep -q 'stages=4' front.svg || complain "curves without names"
  printf 'source: somebody, somewhere\n# a comment\n2 55.5\n4 1e2\n' > points.txt
  expect 0 plot scaling front.db points.txt -o points.svg
  grep -q 'measured: somebody, somewhere' points.svg || complain "points without their source"
  printf '2 55.5\n' > nobody.txt
  expect 65 plot scaling front.db nobody.txt -o nobody.svg
  printf 'source: x\n2 fast\n' > wrong.txt
  expect 65 plot scaling front.db wrong.txt -o wrong.svg
  grep -q 'wrong.txt line 2' err || complain "no line: $(cat err)"
  expect 0 plot pareto front.db -o pareto.svg
  grep -q 'device hours' pareto.svg || complain "the front says no device hours"
fi

# Mistakes.
usage() {
  local words=$1
  shift
  expect 2 simulate --net cnn --image 28 --machine thesis-a100 "$@"
  grep -q -- "$words" err || complain "hplan simulate $*: '$words' is not in: $(cat err)"
}
usage 'give one' --batch 8 --batch-per-gpu 8
usage 'two stars' --strategy 'dp=*,stages=*'
usage 'no number of devices' --strategy 'micro=*'
usage 'dots' --gpus 1,2,...
usage 'give one' --samples 5 --data fashion-mnist
usage 'only the size of fashion-mnist' --data imagenet
usage '--samples' --price 3
# shellcheck disable=SC2046
usage 'more than 8' $(printf -- '--strategy dp=%d ' 1 2 3 4 5 6 7 8 9)

# --- a count that the machine does not have is a row of its own, in a search and of a template; alone it is an error ---
small="nodes=2; node=2 x a100-40, nvlink=100GB/s; nic=1 x 24GB/s"
for how in "" "--strategy dp=*"; do
  # shellcheck disable=SC2086
  expect 0 simulate --net cnn --image 28 --machine "$small" --gpus 2,4,64 $how --json
  [ "$(jq '[.scaling[].gpus]' out | tr -d ' \n')" = "[2,4,64]" ] || complain "rows of $how: $(jq -c .scaling out)"
  jq -e '.scaling[2] | .. | strings | select(test("E-GPUS|there are 4|has 4"))' out >/dev/null || complain "no reason: $(jq -c '.scaling[2]' out)"
done
expect 3 simulate --net cnn --image 28 --machine "$small" --gpus 64

# --- a node with empty devices: as one that has fewer, but for the NICs, which stay ---
expect 0 simulate --net cnn --image 28 --machine "$small" --ranks-per-node 1 --strategy dp=2 --batch 8 --json
left=$(jq '.candidates[0].step_s' out)
expect 0 simulate --net cnn --image 28 --machine "${small/2 x a100/1 x a100}" --strategy dp=2 --batch 8 --json
[ "$left" = "$(jq '.candidates[0].step_s' out)" ] || complain "--ranks-per-node 1: $left against $(jq '.candidates[0].step_s' out)"
expect 0 simulate --net cnn --image 28 --machine "$small" --strategy dp=2 --batch 8 --json
[ "$left" != "$(jq '.candidates[0].step_s' out)" ] || complain "two ranks of a node as fast as of two"
expect 2 simulate --net cnn --image 28 --machine "$small" --ranks-per-node 3

conclude "curves add up"
