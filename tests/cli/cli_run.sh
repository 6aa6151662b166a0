#!/bin/bash
# cli_run.sh - plans executed through the command line: any strategy gives one rank's losses and weights (float64), the same
# run twice gives the same bits, options and their exit codes. HPLAN is the binary; hplan-exec lies beside it.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor

images=synthetic # one run of each kind is on images of the data set where that is here
[ -e /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz ] && images=fashion-mnist
data=synthetic
all "every run on images of a data set" && data=$images

# --- one rank with the same grouping is the reference of every strategy ---
expect 0 simulate --net cnn --image 28 --classes 10 --machine local --device ref --batch 8 --strategy dp=1,micro=4,sched=gpipe --out ref.db
expect 0 run ref.db --steps 3 --lr 0.05 --data $data --json --trace one.db
cp out one.json
others=
all "four more strategies against one rank" && others="dp=4 stages=2,micro=4,sched=gpipe dp=2,stages=2,micro=2,sched=1f1b
  stages=2,chunks=2,micro=4,sched=interleaved"
for strategy in dp=2,micro=2,sched=gpipe stages=2,micro=4,sched=1f1b $others; do
  expect 0 run ref.db --plan "$strategy" --steps 3 --lr 0.05 --data $data --json --trace other.db --save other.safetensors
  python3 - one.json out <<'EOF' || complain "$strategy: losses differ from one rank's"
import json, sys
one, other = ([json.loads(l) for l in open(f)] for f in sys.argv[1:])
assert len(one) == len(other) == 4, (len(one), len(other))
for a, b in zip(one[:3], other[:3]):
    assert a["step"] == b["step"] and abs(a["loss"] - b["loss"]) <= 1e-9, (a, b)
final = other[3]
assert final["final"] and final["peak_bytes"] == final["planned_bytes"], final
EOF
done

# --- the same run twice: the same bits; another seed: others ---
expect 0 simulate --net cnn --image 28 --classes 10 --machine local --batch 8 --strategy dp=2 --out cpu.db
for i in 1 2; do
  expect 0 run cpu.db --steps 4 --data $data --json --deterministic --save "w$i.safetensors" --trace "t$i.db"
  sed 's/,"step_s".*//' out | head -4 >"losses$i"
done
cmp -s w1.safetensors w2.safetensors || complain "two equal runs save different weights"
cmp -s losses1 losses2 || complain "two equal runs have different losses"
expect 0 simulate --net cnn --image 28 --classes 10 --machine local --batch 8 --strategy dp=2 --seed 2 --out seed.db
expect 0 run seed.db --steps 4 --data $data --json --save w3.safetensors
cmp -s w1.safetensors w3.safetensors && complain "the seed changes nothing"

# --- weights go round ---
expect 0 run cpu.db --steps 1 --lr 0 --init w1.safetensors --save w4.safetensors --plan dp=1 --json
python3 - <<'EOF' || complain "--init, lr 0, --save does not keep the trained weights"
import json, struct
def tensors(name):
    b = open(name, "rb").read()
    n = struct.unpack("<Q", b[:8])[0]
    h = json.loads(b[8:8 + n])
    return {k: b[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]] for k, v in h.items() if k != "__metadata__"}
a, b = tensors("w1.safetensors"), tensors("w4.safetensors")
assert a.keys() == b.keys()
moving = ("running_mean", "running_var", "num_batches_tracked")
assert all(a[k] == b[k] for k in a if not k.endswith(moving))
EOF

# --- inference: every strategy computes the same losses; there is nothing to save ---
for strategy in micro=2 dp=2 $(all "inference on four ranks" && echo dp=2,stages=2); do
  expect 0 simulate --net cnn --image 28 --classes 10 --machine local --mode infer --device ref --batch 8 --strategy "$strategy" --out "i-$strategy.db"
  expect 0 run "i-$strategy.db" --steps 2 --init w1.safetensors --data $data --no-shuffle --json
  sed -n 's/.*"loss":\([0-9.]\{12\}\).*/\1/p' out | head -2 >"i-$strategy.losses"
  [ "$(wc -l <"i-$strategy.losses")" = 2 ] || complain "inference with $strategy prints no losses: $(cat out)"
  cmp -s i-micro=2.losses "i-$strategy.losses" || complain "inference with $strategy has other losses: $(cat "i-$strategy.losses")"
done
expect 2 run i-micro=2.db --steps 1 --init w1.safetensors --save i.safetensors

# --- the other forms ---
expect 0 run cpu.db --plan 1 --steps 2
grep -q 'wrote run.db' out || complain "the summary names no trace: $(cat out)"
expect 0 compare run.db
expect 0 simulate --net cnn --image 28 --classes 2 --machine local --batch 2 --strategy dp=1 --out two.db
python3 - <<'EOF'
import os, struct, zlib
chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
pixels = zlib.compress(b"".join(b"\0" + bytes((7 * x * y) % 256 for x in range(28)) for y in range(28)))
png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0)) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
for split in "train", "test":
    for name in "a", "b":
        os.makedirs(f"pictures/{split}/{name}")
        for i in range(8):
            open(f"pictures/{split}/{name}/{i}.png", "wb").write(png)
EOF
expect 0 run two.db --steps 2 --trace again.db --eval --data pictures
grep -q accuracy out || complain "--eval shows no accuracy"
all "accuracy after a run on two ranks" && {
  expect 0 run run.db --steps 2 --trace again.db --eval --data synthetic
  grep -q accuracy out || complain "--eval shows no accuracy"
}
expect 0 run cpu.db --plan dp=1 --launcher none --steps 1 --device ref

# --- a trace to stdout is the one to a file ---
expect 0 export run.db --csv -o spans.csv
expect 0 export run.db --csv -o -
cmp -s out spans.csv || complain "export -o - writes other spans than export -o FILE"
[ -e ./- ] && complain "export -o - writes a file of that name"
expect 2 export run.db --nsys -o -
expect 2 export run.db --csv -o - --json
expect 2 simulate --net cnn --image 28 --machine local --memory-limit 0
expect 3 simulate --net cnn --image 28 --machine local --batch 4294967296 --strategy dp=1
grep -q 'at most 2147483647' err || complain "no limit of a micro-batch: $(cat err)"
expect 0 simulate --net cnn --image 28 --machine local --batch 1 --strategy dp=1 --out one.db
grep -q 'batch 1 on 1 device$' out && grep -q 'searched 1 strategy ' out || complain "one of many: $(head -3 out)"

# --- the device that computes nothing runs every task of the cpu's program, in its memory ---
spans() { # of the second step, by rank and task: phase, kind, label and bytes, without the times
  expect 0 export --csv "$1" -o spans.csv
  awk -F, '$4 == 1 { print $1, $3, $5, $6, $7, $NF }' spans.csv | sort
}
whats=("--strategy=stages=2,micro=2,sched=1f1b" "--strategy=sp=2x1 --mode=infer --prec=int8")
all "the device null on four ranks" && whats+=("--strategy=dp=2,stages=2,micro=2,sched=1f1b")
for what in "${whats[@]}"; do
  # shellcheck disable=SC2086
  expect 0 simulate --net cnn --image 28 --batch 8 --machine local --device null $what --out null.db
  expect 0 run null.db --steps 3 --trace null-run.db --json
  python3 - out <<'EOF' || complain "$what: null counts something, or plans other memory than it uses"
import json, sys
final = json.loads(open(sys.argv[1]).readlines()[-1])
assert final["loss"] == 0 and final["peak_bytes"] == final["planned_bytes"], final
EOF
  expect 0 run null.db --device cpu --steps 3 --trace cpu-run.db
  spans null-run.db >null.spans
  spans cpu-run.db >cpu.spans
  [ -s null.spans ] && cmp -s null.spans cpu.spans || complain "$what: null runs other tasks than the cpu"
  expect 0 run cpu-run.db --device null --steps 1
done

# --- what is refused or kept whatever the number of ranks, from here on: on one ---
strategy=dp=1
all "traces and refusals on two ranks" && strategy=dp=2
expect 0 simulate --net cnn --image 28 --classes 10 --machine local --batch 8 --strategy $strategy --out plan.db

# --- an earlier trace is kept: the newest is run.db, and a run that was cut short replaces none ---
mkdir history && cd history || exit 1
runs_of() { sqlite3 "$1" "SELECT count(DISTINCT iter) FROM span JOIN run ON run = run.id WHERE kind = 'exec' AND iter >= 0"; }
for steps in 1 2 3; do expect 0 run ../plan.db --steps $steps; done
grep -q 'wrote run.db (the one before is now run-2.db)' out || complain "where the earlier trace is stands nowhere: $(cat out)"
[ "$(for f in run-1 run-2 run; do runs_of $f.db; done | tr '\n' ' ')" = "1 2 3 " ] || complain "traces are not kept in order"
expect 0 run ../plan.db --steps 4 --no-history
[ "$(runs_of run.db)" = 4 ] && [ ! -e run-3.db ] || complain "--no-history keeps a trace"
"$HPLAN" run ../plan.db --steps 100000000 --no-history --json >steps 2>err &
for _ in $(seq 1200); do
  grep -q '"step"' steps && break
  sleep 0.1
done
kill -INT $!
wait $!
[ "$(runs_of run-3.db)" = 4 ] || complain "an incomplete run replaced a complete one: $(cat err)"
grep -q 'the trace up to there is in run.db; the one before is now run-3.db' err || complain "no word of it: $(cat err)"
expect 0 run ../plan.db --steps 1 --trace x
expect 0 run ../plan.db --steps 1 --trace ../history/x
[ -e x-1 ] || complain "a name without a suffix is not kept"
cd ..
mkdir folder
for name in folder none/run.db; do
  expect 73 run plan.db --steps 1000 --trace "$name"
done
[ -e /dev/full ] && expect 73 run plan.db --steps 1000 --trace /dev/full

# --- where weights go is looked at first; how many images an accuracy is of ---
for name in folder none/w.safetensors /dev/null; do
  expect 73 run plan.db --steps 1000 --json --save "$name"
  [ -s out ] && complain "trains before it finds that --save '$name' cannot be written"
done
[ -c /dev/null ] || complain "--save replaced /dev/null"
expect 2 run plan.db --epochs 2147483647 --data $data
grep -q -- '--epochs .* at most' err || complain "no limit of --epochs: $(cat err)"
if [ $images = fashion-mnist ]; then
  expect 0 run i-micro=2.db --steps 1 --init w1.safetensors --data $images
  grep -q 'on 8 of the 10000 images of the test split' out || complain "accuracy of how many? $(cat out)"
fi

# --- weights that are not finite replace none; the trace of the run is kept, also where it ends at a bad image ---
cp w1.safetensors good.safetensors
rm -f nan.db
expect 3 run plan.db --steps 30 --lr 1e6 --data $data --save good.safetensors --trace nan.db
grep -q 'the loss of step [0-9]* is not a finite number' err || complain "no word of a loss that is not finite: $(cat err)"
cmp -s w1.safetensors good.safetensors || complain "a run that lost its loss replaces good weights"
expect 3 run plan.db --steps 30 --lr 1e6 --data $data --save good.safetensors --trace nan.db --on-nan go-on
grep -q 'not written to good.safetensors' err || complain "no word of weights that are not finite: $(cat err)"
cmp -s w1.safetensors good.safetensors || complain "weights that are not finite replace good ones"
expect 0 compare nan.db
rm -f bad.db
for split in train test; do truncate -s -60 pictures/$split/b/7.png; done
expect 65 run two.db --epochs 1 --data pictures --no-shuffle --trace bad.db
expect 0 compare bad.db

# --- refusals: one message, the documented code, nothing left behind ---
expect 3 run cpu.db --launcher none
expect 3 run cpu.db --plan dp=3
expect 2 run cpu.db --plan nonsense
expect 2 run cpu.db --steps 1 --epochs 1
expect 2 run cpu.db --launcher pigeon
expect 2 run cpu.db --device toaster
expect 65 run missing.db
expect 65 run plan.db --input=x.png
expect 2 run plan.db --output=x.npy
expect 65 run cpu.db --data "$scratch/no-such-folder"
expect 65 run plan.db --init cpu.db
expect 2 run plan.db --resume
expect 2 run plan.db --every=2
expect 69 run cpu.db --device=cuda
[ "$(wc -l <err)" = 1 ] || complain "--device=cuda: $(wc -l <err) lines on stderr"
timeout -k 5 60 "$(dirname "$HPLAN")/hplan-exec" cpu.db >out 2>err
[ $? = 3 ] && grep -q 'needs 2 ranks, started with 1: mpirun -n 2' err || complain "wrong number of ranks: $(cat err)"

# a launcher that waits though both its ranks have ended is woken; one that waits for a rank is not. It ends with 65 when it
# was woken more often than ranks have ended, with 64 when not.
mkdir made-up
cat >made-up/mpirun <<'EOF'
#!/usr/bin/python3
import os, signal, subprocess, sys, time
woken = 0
def wake(*_):
    global woken
    woken += 1
signal.signal(signal.SIGCHLD, wake)
stays = os.environ["RANKS"].count("stays")
say = ["sh", "-c", "echo 'hplan: made up' >&2; exit 65"]
ranks = [subprocess.Popen(["sleep", "300"] if how == "stays" else say) for how in os.environ["RANKS"].split()]
until = time.monotonic() + (1 if stays else 120)
while time.monotonic() < until and woken <= len(ranks) - stays:
    time.sleep(0.05)
code = 65 if woken > len(ranks) - stays else 64
[r.kill() for r in ranks]
sys.exit(code)
EOF
chmod +x made-up/mpirun
for case in "65 ends ends" "64 ends stays"; do
  RANKS=${case#* } PATH=$scratch/made-up:$PATH expect "${case%% *}" run cpu.db --launcher mpirun
  grep -qx "hplan: made up" err || complain "a launcher whose ranks ${case#* }: $(cat err)"
done

# several mpirun that begin at once may fail to make Open MPI's directory for all of them: those start again, up to five times in all
mkdir late
cat >late/mpirun <<'EOF'
#!/bin/bash
echo >>"$TRIES"
[ "$(wc -l <"$TRIES")" -gt "$FAILURES" ] && PATH=${PATH#*:} exec mpirun "$@"
echo "[here:1] [[1,0],0] ORTE_ERROR_LOG: Error in file ../../../orte/util/session_dir.c at line 107" >&2
printf '%s\n' -------- 'A call to mkdir was unable to create the desired directory:' '' '  Directory: /tmp/ompi.here.0' \
  '  Error:     File exists' '' 'Please check to ensure you have adequate permissions.' -------- >&2
exit 1
EOF
chmod +x late/mpirun
for case in "0 2 3" "69 100 5"; do
  read -r code times tries <<<"$case"
  TRIES=$scratch/tries-$times FAILURES=$times PATH=$scratch/late:$PATH expect "$code" run cpu.db --launcher mpirun --steps 1
  [ "$(wc -l <"tries-$times")" = "$tries" ] || complain "$times failures to start: $(wc -l <"tries-$times") tries"
  grep -q ORTE_ERROR_LOG err && complain "$times failures to start: $(cat err)"
done

ls -d ./*.tmp* 2>/dev/null && complain "scratch files were left behind"
conclude "all runs passed"
