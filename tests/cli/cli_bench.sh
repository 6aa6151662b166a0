#!/bin/bash
# cli_bench.sh - hplan bench, plot precision and eval: every query of every round is stored, figures follow from them, what
# cannot be planned is named, and comparisons of logits agree with Python's own arithmetic. No time is asserted. HPLAN is the
# binary; hplan-exec lies beside it.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1

# --- logits that are there: accuracy, agreement, SQNR by an independent program ---
python3 - <<'EOF' || complain "Python cannot write arrays"
import random, struct
random.seed(7)
def save(name, descr, code, shape, values):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(name, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<%d%s" % (len(values), code), *values))
a = [struct.unpack("<f", struct.pack("<f", random.gauss(0, 1)))[0] for _ in range(3000)]
b = [x + random.gauss(0, .2) for x in a]
save("a.npy", "<f4", "f", (300, 10), a)
save("b.npy", "<f4", "f", (300, 10), b)
save("labels.npy", "<i8", "q", (300,), [random.randrange(-1, 10) for _ in range(300)])
save("short.npy", "<f4", "f", (299, 10), a[:2990])
save("flat.npy", "<f4", "f", (3000,), a)
EOF
expect 0 eval --logits a.npy,b.npy --labels labels.npy --json
cp out eval.json
python3 - <<'EOF' || complain "eval --logits disagrees with Python: $(cat eval.json)"
import json, math, struct
def load(name, code):
    raw = open(name, "rb").read()
    raw = raw[10 + struct.unpack("<H", raw[8:10])[0]:]
    return struct.unpack("<%d%s" % (len(raw) // struct.calcsize("<" + code), code), raw)
a, b, label = load("a.npy", "f"), load("b.npy", "f"), load("labels.npy", "q")
best = lambda v: [max(range(10), key=lambda c: (v[10 * i + c], -c)) for i in range(300)]
rows = [i for i in range(300) if label[i] >= 0]
top1 = lambda v: sum(best(v)[i] == label[i] for i in rows) / len(rows)
j = json.load(open("eval.json"))
x, y = j["results"]
assert j["schema"] == 1 and j["rows"] == 300 and j["classes"] == 10
assert x["exact"] and x["sqnr_db"] is None and x["agreement"] == 1
assert abs(x["accuracy"] - top1(a)) < 1e-12 and abs(y["accuracy"] - top1(b)) < 1e-12
assert abs(y["agreement"] - sum(p == q for p, q in zip(best(a), best(b))) / 300) < 1e-12
sqnr = 10 * math.log10(sum(p * p for p in a) / sum((p - q) ** 2 for p, q in zip(a, b)))
assert abs(y["sqnr_db"] - sqnr) < 1e-9, (y, sqnr)
EOF
# --- the same from an executor of known answers: what it is asked for, which file belongs to which precision ---
mkdir standin tmp
: >q.safetensors
: >w.safetensors
cp "$HPLAN" standin/hplan
cat >standin/hplan-exec <<'EOF'
#!/usr/bin/env python3
import shutil, sys
asked = dict(w[2:].partition("=")[::2] for w in sys.argv[2:])
int8 = "int8" in asked["output"]
assert "eval" in asked and asked["data"] == "synthetic" and asked["mean"] == "0.1"
assert asked["init"] == ("q.safetensors" if int8 else "w.safetensors")
shutil.copy("b.npy" if int8 else "a.npy", asked["output"])
print('{"planned_steps":1}')
print('{"final":true,"accuracy":%g,"images_per_s":3,"peak_bytes":[5,%d]}' % ((0.25, 8) if int8 else (0.5, 7)))
EOF
chmod +x standin/hplan-exec
TMPDIR=$PWD/tmp standin/hplan eval --net cnn --image 28 --weights w.safetensors --quant q.safetensors --mean 0.1 \
  --prec fp32,int8 --json >standin.json 2>err || complain "eval with known answers: $(cat err)"
python3 - <<'EOF' || complain "eval makes other figures of known answers: $(cat standin.json)"
import json
x, y = json.load(open("standin.json"))["results"]
a, b = json.load(open("eval.json"))["results"]
assert (x["name"], y["name"]) == ("fp32", "int8") and (x["accuracy"], y["accuracy"]) == (0.5, 0.25)
assert (x["peak_bytes"], y["peak_bytes"]) == (7, 8)
assert y["sqnr_db"] == b["sqnr_db"] and y["agreement"] == b["agreement"] and x["exact"]
EOF
[ -z "$(ls tmp)" ] || complain "eval leaves files behind: $(ls tmp)"

expect 0 eval --logits a.npy,b.npy
grep -q '^b.npy' out || complain "eval prints no line of b.npy: $(cat out)"
expect 65 eval --logits a.npy,short.npy
expect 65 eval --logits flat.npy
expect 65 eval --logits a.npy,missing.npy
expect 65 eval --logits a.npy --labels b.npy
expect 2 eval
expect 2 eval --logits a.npy --net cnn
expect 2 eval --net cnn --labels labels.npy
expect 2 eval --net cnn --strategy dp=1,prec=int8
expect 2 eval --net nosuchnet --data synthetic
expect 65 eval missing.db

# --- wrong words ---
for words in '--net nosuchnet' '--prec fp31' '--scenario server' '--image 0' '--image 32,32' '--net cnn,,resnet18' \
  '--queries 0' '--queries 3 --seconds 1' '--strategy dp=1,prec=int8' '--net cnn --strategy nonsense'; do
  # shellcheck disable=SC2086 # words are words
  expect 2 bench $words
  [ "$(grep -vc "^Try" err)" = 1 ] || complain "bench $words: $(wc -l <err) lines on stderr: $(head -c 300 err)"
done
expect 73 bench --net cnn --image 32 --prec fp32 --queries 1 --out nosuchfolder/bench.db
printf 'this is not a database\n' >text.db
expect 65 plot precision text.db
need_executor

# --- what is stored is what is shown ---
# what bench calls a precision, the plot knows
expect 0 bench --net cnn --image 32 --prec fp32,bf16,fp16,int8,int8-dynamic --scenario offline --queries 1 --rounds 1 --out all.db
expect 0 plot precision all.db -o all.svg
second=resnet-v1-8
all "bench of ResNet-18" && second=resnet18
expect 0 bench --net cnn,$second --image 32 --prec fp32 --queries 7 --rounds 3 --out bench.db --json
cp out bench.json
python3 - <<'EOF' || complain "bench.db and bench --json disagree: $(head -c 600 bench.json)"
import json, sqlite3
from statistics import median
j = json.load(open("bench.json"))
c = sqlite3.connect("bench.db")
assert j["schema"] == 1 and j["rounds"] == 3 and not j["skipped"] and len(j["series"]) == 6
batches = {"single-stream": 1, "multi-stream": 8, "offline": 64}
for s in j["series"]:
    (i, batch, planned, peak, rss), = c.execute("SELECT id, batch, planned_bytes, peak_bytes, rss_bytes FROM bench WHERE net = ? AND scenario = ?",
                                                (s["net"], s["scenario"]))
    assert batch == s["batch"] == batches[s["scenario"]] and s["image"] == [32, 32] and s["prec"] == "fp32"
    assert planned == s["planned_bytes"] == peak == s["peak_bytes"] and rss == s["rss_bytes"] > peak
    rounds = [[1e-9 * ns for ns, in c.execute("SELECT ns FROM latency WHERE bench = ? AND round = ? ORDER BY ns", (i, r))] for r in range(3)]
    assert [len(r) for r in rounds] == [3, 2, 2], rounds
    for name, share in ("p50", 500), ("p90", 900), ("p99", 990):
        value = median(r[len(r) * share // 1000] for r in rounds)
        assert abs(s["latency_s"][name] - value) < 1e-12, (name, s, value)
    assert abs(s["images_per_s"] / median(batch * len(r) / sum(r) for r in rounds) - 1) < 1e-9
    assert s["queries"] == 7 and s["images"] == 7 * batch and s["to_fp32"] == 1
    assert not s["mlperf"]["complete"] and "of 600 s" in s["mlperf"]["missing"]
EOF
[ -z "$(find . -name '*.tmp*')" ] || complain "bench leaves files behind: $(find . -name '*.tmp*')"
cp bench.db before.db
expect 3 bench --net cnn --image 32 --prec fp32 --strategy dp=3 --scenario multi-stream --queries 1 --out bench.db
cmp -s bench.db before.db || complain "a bench that measures nothing replaces the file"

# --- one combination that cannot be planned does not stop the others ---
expect 0 bench --net cnn --image 32 --prec fp32 --strategy dp=2 --scenario single-stream,multi-stream --queries 2 --rounds 1 --out two.db
grep -q "not measured: cnn 32x32 single-stream fp32: .*E-BATCH" out || complain "bench does not say what cannot be planned: $(cat out)"
grep -q "MLPerf's rules ask" out || complain "bench does not say how far it is from MLPerf's rules: $(cat out)"

# --- pictures ---
if command -v gnuplot >/dev/null; then
  expect 0 plot precision bench.db two.db -o p.svg
  grep -q '</svg>' p.svg || complain "plot precision writes no whole picture"
  expect 0 plot precision bench.db
fi
expect 0 simulate --net cnn --image 28 --machine local --batch 8 --strategy dp=1 --out plan.db
expect 65 plot precision plan.db
grep -q 'hplan bench' err || complain "plot precision of a plan does not say what to do: $(cat err)"

# --- balancing pipelines over unlike devices ---
expect 0 bench balance --net chain:6 --places 4 --speeds 2 --rows -o balance.svg
[ -s balance.svg ] || complain "bench balance: no picture"
expect 0 bench balance --net vgg16 --places 4 --speeds 3 --json
# the exact answer is what trying everything finds, and nobody is better
jq -e '[.rows[] | select(.way == "dp" or .way == "exhaustive") | .to_best] | length == 2 and all(. > 0.999999 and . < 1.000001)' out >/dev/null ||
  complain "bench balance: dp and exhaustive differ: $(cat out)"
jq -e '[.rows[].to_best] | min > 0.999999' out >/dev/null || complain "bench balance: better than the best: $(cat out)"
jq -e '(.rows | map({(.way): .gained_in_best}) | add) as $t | $t["shisha-h1"] < $t.annealing' out >/dev/null ||
  complain "bench balance: Shisha takes longer than annealing: $(cat out)"
expect 2 bench balance --method foo
expect 2 bench balance --places 1
expect 2 bench balance --net chain:6 --places 4 --speeds 2 -o balance.txt

conclude "bench, its picture and eval's figures hold"
