#!/bin/bash
# cli_zero.sh - ZeRO on the command line: every stage gives the losses and weights of dp alone, sends the bytes that its
# formula says, keeps its planned memory; what it saves is whole and loads in any other stage. HPLAN is the binary.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor

net=(--net cnn --classes 10 --machine local --device ref)
if all "four ranks"; then
  n=4 net+=(--image 32 --batch 16)
else
  n=2 net+=(--image 16 --batch 8 --optimizer adamw) # whose moments make parts worth while on two ranks
fi
# run STRATEGY NAME [OPTIONS]: three steps
run() {
  expect 0 simulate "${net[@]}" --strategy "$1,micro=2,fuse=200k" --out "$2.db"
  expect 0 run "$2.db" --force --steps 3 --lr 0.02 --json --trace "$2-run.db" --save "$2.safetensors" "${@:3}"
  cp out "$2.json"
  expect 0 compare --comm "$2-run.db" --json
  cp out "$2-comm.json"
}
run dp=$n plain
# moved NAME: bytes of each kind of gradients' and parameters' collectives, and whether the executor counted what they must send
cat >moved.py <<'PY'
import json, sys
rows = [r for r in json.load(open(sys.argv[1] + "-comm.json"))["rows"] if r["bytes"] > 1000]
n = int(sys.argv[2])
for r in rows:
    passes = 2 if r["operation"] == "allreduce" else 1
    assert r["sent_bytes"] == passes * (n - 1) * r["bytes"] * r["calls"], r
print(*(int(sum(r["bytes"] * r["calls"] for r in rows if r["operation"] == op))
        for op in ("allreduce", "reducescatter", "allgather")))
PY
moved() { python3 moved.py "$1" $n; }
read -r all none also <<<"$(moved plain)"
[ "$none $also" = "0 0" ] || complain "dp alone scatters $none and gathers $also bytes"
for zero in 1 2 3 $(all "windows of parameters, and kept ones" && echo 3:2 3:0:keep); do
  name="zero${zero//:/-}"
  run "dp=$n,zero=$zero" "$name"
  python3 - plain "$name" "$zero" <<'PY' || complain "zero=$zero: other losses, weights, memory or bytes"
import array, json, struct, sys
def lines(n): return [json.loads(l) for l in open(n + ".json")]
def weights(n):
    f = open(n + ".safetensors", "rb").read()
    size = struct.unpack("<Q", f[:8])[0]
    head = json.loads(f[8:8 + size])
    kind = {"F64": "d", "F32": "f", "I64": "q"}
    return {k: array.array(kind[v["dtype"]], f[8 + size:][slice(*v["data_offsets"])]) for k, v in head.items()
            if k != "__metadata__"}
a, b = lines(sys.argv[1]), lines(sys.argv[2])
for x, y in zip(a[:3], b[:3]):
    assert abs(x["loss"] - y["loss"]) <= 1e-9 * (1 + abs(x["loss"])), (x, y)
assert b[3]["peak_bytes"] == b[3]["planned_bytes"] < a[3]["planned_bytes"], b[3]
w, v = weights(sys.argv[1]), weights(sys.argv[2])
assert w.keys() == v.keys() and all(abs(x - y) <= 1e-9 for k in w for x, y in zip(w[k], v[k]))
PY
  read -r summed scattered gathered <<<"$(moved "$name")"
  [ "$zero" = 1 ] && whole=$scattered # padded
  case $zero in # of two micro-batches: scattered, gathered
  1) want="0 $whole $whole" ;;
  2 | *keep) want="0 $((2 * whole)) $whole" ;;
  *) want="0 $((2 * whole)) $((4 * whole))" ;;
  esac
  [ "$summed $scattered $gathered" = "$want" ] ||
    complain "zero=$zero sums, scatters and gathers $summed $scattered $gathered bytes, not $want"
done
if [ "$whole" -lt "$all" ] || [ $((100 * (whole - all))) -ge "$all" ]; then complain "$all bytes are padded to $whole"; fi
run dp=$n,zero=3 again --init zero2.safetensors
run dp=$n plain-again --init plain.safetensors
python3 - <<'PY' || complain "weights of zero=2 do not load in zero=3"
import json
a, b = ([json.loads(l) for l in open(n + ".json")] for n in ("again", "plain-again"))
assert abs(a[0]["loss"] - b[0]["loss"]) <= 1e-9, (a[0], b[0])
PY
expect 3 simulate "${net[@]}" --strategy stages=2,sched=gems,zero=2
grep -q "E-ZERO.*mirrored" out err || complain "zero=2 with GEMS: $(cat out err)"
expect 2 simulate "${net[@]}" --strategy dp=2,zero=2:keep

conclude "parts of the state give the losses, weights and bytes that they should"
