#!/bin/bash
# cli_checkpoint.sh - a run that was interrupted and went on is the run that was not: bit for bit under the same plan,
# whatever the strategy; within rounding under another plan. What does not belong together is refused. HPLAN is the binary.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor
size=16
all "images of 32x32" && size=32

# plan NAME STRATEGY [OPTIONS]
plan() {
  expect 0 simulate --net cnn --image $size --classes 10 --machine local --batch 16 --strategy "$2" --out "$1.db" "${@:3}"
}
# go NAME PLAN OPTIONS...: leaves NAME.json
go() {
  expect 0 run "$2.db" --force --lr 0.05 --json --trace "$1-run.db" "${@:3}"
  cp out "$1.json"
}
# both NAME: six steps at a stretch, and three and three; the same losses and weights, to the bit
both() {
  go "$1-all" "$1" --steps 6 --save "$1-all.st" "${@:2}"
  go "$1-one" "$1" --steps 4 --checkpoint "$1-dir" --every 3 "${@:2}"
  go "$1-two" "$1" --steps 6 --checkpoint "$1-dir" --every 3 --resume --save "$1-two.st" "${@:2}"
  grep -q "goes on after step 3" err || complain "$1: $(cat err)"
  cmp -s "$1-all.st" "$1-two.st" || complain "$1: other weights after going on"
  python3 - "$1" <<'PY' || complain "$1: other losses after going on"
import json, sys
a, b = ([json.loads(l) for l in open(f"{sys.argv[1]}-{n}.json")] for n in ("all", "two"))
assert [r["loss"] for r in a[3:6]] == [r["loss"] for r in b[:3]], (a, b)
assert [r["step"] for r in b[:3]] == [4, 5, 6] and b[-1]["steps"] == 6 and a[-1]["loss"] == b[-1]["loss"]
PY
}

# tensors A B TOLERANCE: two safetensors files hold the same
cat >tensors.py <<'PY'
import array, json, struct, sys
def read(n):
    f = open(n, "rb").read()
    size = struct.unpack("<Q", f[:8])[0]
    kind = {"F64": "d", "F32": "f", "I64": "q"}
    return {k: (v["shape"], array.array(kind[v["dtype"]], f[8 + size:][slice(*v["data_offsets"])]))
            for k, v in json.loads(f[8:8 + size]).items() if k != "__metadata__"}
a, b = read(sys.argv[1]), read(sys.argv[2])
assert a.keys() == b.keys(), a.keys() ^ b.keys()
for k in a:
    assert a[k][0] == b[k][0] and len(a[k][1]) == len(b[k][1]), k
    if a[k][1] == b[k][1]: continue
    for x, y in zip(a[k][1], b[k][1]):
        assert abs(x - y) <= float(sys.argv[3]) * (1 + abs(x)), (k, x, y)
PY

# --- the same plan ---
same=("dp=1" "dp=2,zero=2,micro=2,fuse=200k")
all "the same plan: ten more" && same+=("dp=2,stages=2,micro=2" "sp=2x1 --net resnet18" "stages=2,micro=2,sched=gems" "dp=2,zero=3,fuse=200k"
  "dp=2,sync=ps" "dp=2,sync=local:4" "dp=2,bn=local --net resnet18" "dp=2,compress=allreduce:powersgd:2" "dp=2,compress=allreduce:int8"
  "dp=1,prec=fp16 --device ref")
for n in "${!same[@]}"; do
  read -r strategy options <<<"${same[n]}"
  read -ra more <<<"$options"
  plan "same$n" "$strategy" "${more[@]}"
  both "same$n"
done

# --- another plan: within rounding, in float64 ---
# as_whole NAME: losses of steps 3 and 4, and weights, are within rounding those of the run without a break
as_whole() {
  python3 tensors.py whole.st "$1.st" 1e-9 || complain "$1: other weights than without a break"
  python3 - "$1" <<'PY' || complain "$1: other losses than without a break"
import json, sys
a, b = ([json.loads(l) for l in open(f"{n}.json")] for n in ("whole", sys.argv[1]))
a, b = ({r["step"]: r["loss"] for r in rows if "step" in r} for rows in (a, b))
assert list(a) == [1, 2, 3, 4] and list(b) == [3, 4] and all(abs(b[i] / a[i] - 1) < 1e-9 for i in b), (a, b)
PY
}
net=(--device ref --batch 8)
plan whole "dp=1,micro=4" "${net[@]}"
go whole whole --lr 0.001 --steps 4 --save whole.st
plan before "dp=2,stages=2,micro=2,zero=0" "${net[@]}"
go before before --lr 0.001 --steps 2 --checkpoint moved --every 2
others=
all "to ten more plans" && others="dp=1,micro=4 dp=4 dp=2,zero=1,micro=2 dp=4,zero=3 stages=2,micro=4 sp=2x1,micro=4 dp=2,sp=1x2,micro=2
  dp=2,sync=ps,micro=2 stages=2,micro=4,sched=1f1b stages=2,micro=2,sched=gems"
for strategy in dp=2,zero=2,micro=2 $others; do
  cp -r moved "moved-$strategy"
  plan "$strategy" "$strategy" "${net[@]}"
  go "to-$strategy" "$strategy" --steps 4 --lr 0.001 --checkpoint "moved-$strategy" --resume --save "to-$strategy.st"
  as_whole "to-$strategy"
done
# ... and from parts, and from stages that two passes share
for strategy in dp=2,zero=3,micro=2 $(all "from two more plans" && echo dp=4,zero=3 stages=2,micro=2,sched=gems); do
  plan parts "$strategy" "${net[@]}"
  go parts parts --lr 0.001 --steps 2 --checkpoint "again-$strategy" --every 2
  go "back-$strategy" whole --lr 0.001 --steps 4 --checkpoint "again-$strategy" --resume --save "back-$strategy.st"
  as_whole "back-$strategy"
done

# --- what does not belong together ---
plan small dp=2
plan single dp=1
plan other dp=1 --batch 8
plan wider dp=1 --classes 11
expect 0 run small.db --force --steps 3 --trace r.db --checkpoint held --every 1 --keep 3 --save held.st
expect 65 run small.db --force --steps 4 --trace r.db --checkpoint held
grep -q -- "--resume" err || complain "a folder that is not empty: $(cat err)"
expect 65 run other.db --force --steps 4 --trace r.db --checkpoint held --resume
grep -q "the batch was 16, now 8" err || complain "another batch: $(cat err)"
expect 65 run wider.db --force --steps 4 --trace r.db --checkpoint held --resume
grep -q "classes was 10, now 11" err || complain "another network: $(cat err)"
expect 65 run single.db --force --steps 4 --trace r.db --checkpoint held --resume --no-shuffle
expect 2 run single.db --force --steps 2 --trace r.db --checkpoint held --resume
expect 2 run single.db --force --trace r.db --resume
expect 2 run single.db --force --trace r.db --checkpoint new --every soon
expect 73 run single.db --force --trace r.db --checkpoint /dev/null/x
expect 0 run single.db --force --steps 3 --trace r.db --checkpoint held --resume --lr 0.02
grep -q "lr was 0.01, is now 0.02" err || complain "another learning rate is not said: $(cat err)"
mkdir -p images/train/a images/train/b
python3 - $size <<'PY'
import struct, sys, zlib
size = int(sys.argv[1])
def png(path, v):
    def part(k, d): return struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d))
    rows = b"".join(b"\0" + bytes((v * 7 + i * 13 + k) % 256 for k in range(size)) for i in range(size))
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 0, 0, 0, 0)) +
                           part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))
for i in range(16): png(f"images/train/{'ab'[i % 2]}/{i}.png", i)
PY
expect 0 run single.db --force --steps 2 --trace r.db --checkpoint real --every 1 --data images
mv images elsewhere
expect 0 run single.db --force --steps 3 --trace r.db --checkpoint real --resume --data elsewhere
mv elsewhere/train/a/0.png elsewhere/train/b/0.png
expect 65 run single.db --force --steps 4 --trace r.db --checkpoint real --resume --data elsewhere
grep -q "the data set was" err || complain "another data set: $(cat err)"

# --- checkpoints as files ---
expect 0 checkpoint ls held
[ "$(wc -l <out)" = 3 ] || complain "not three are kept: $(cat out)"
expect 0 checkpoint verify held
expect 0 checkpoint export held -o exported.st
python3 tensors.py held.st exported.st 0 || complain "exported weights are not those of --save"
printf '\1' | dd of=held/step-000000000003/rank-0.safetensors bs=1 seek=5000 conv=notrunc 2>dd.log
expect 65 checkpoint verify held
expect 65 checkpoint verify held --json
[ "$(jq -c '[.checkpoints[] | [.step, has("damaged")]]' out)" = "[[3,true],[2,false],[1,false]]" ] ||
  complain "damage in JSON: $(cat out)"
truncate -s -1 held/step-000000000002/rank-1.safetensors
expect 65 checkpoint export held --step 2 -o none.st
[ -e none.st ] && complain "a damaged checkpoint is exported"
expect 0 run small.db --force --steps 3 --trace r.db --checkpoint held --resume --save after.st
[ "$(grep -c "is damaged and left out" err)" = 2 ] || complain "damaged ones are not said: $(cat err)"
grep -q "goes on after step 1" err || complain "the newest that is whole: $(cat err)"
cmp -s held.st after.st || complain "after damage: other weights"

conclude "runs go on as if nothing had been"
