#!/bin/bash
# cli_yardsticks.sh - the machine's speed in traces: every rank has the same samples, whatever the strategy, messages are rank
# 0's, losses do not depend on them, --no-yardsticks has none, and hplan-exec --check-speed answers. HPLAN is the binary.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor

expect 0 simulate --net cnn --image 28 --classes 10 --machine local --batch 8 --strategy dp=1 --out plan.db
for strategy in dp=1 dp=2 $(all "pipelines, four ranks" && echo stages=2,micro=4,sched=1f1b dp=2,stages=2,micro=2,sched=gpipe); do
  for without in "" --no-yardsticks; do
    # shellcheck disable=SC2086 # nothing is no word
    expect 0 run plan.db --plan "$strategy" --steps 12 --json --trace "with$without.db" --no-history $without
    cp out "with$without.json"
  done
  python3 - <<'END' || complain "yardsticks of $strategy"
import json, sqlite3
lines = [[json.loads(l) for l in open(f"with{w}.json")] for w in ("", "--no-yardsticks")]
assert [l["loss"] for l in lines[0]] == [l["loss"] for l in lines[1]], "losses differ"
final, bare = lines[0][-1], lines[1][-1]
ranks = len(final["peak_bytes"])
assert final["yardstick_bytes"] == [786432] * ranks and bare["yardstick_bytes"] == [0] * ranks, final
assert final["planned_bytes"] == final["peak_bytes"] == bare["peak_bytes"], final

def counters(file, like):
    rows = sqlite3.connect(file).execute("SELECT rank, name, iter, value FROM counter WHERE name LIKE ?", (like,))
    return list(rows)

samples = counters("with.db", "yard_%")
assert all(value > 0 for *_, value in samples), samples
of = lambda r, names: sorted((name, step) for rank, name, step, _ in samples if rank == r and name in names)
kernels, messages = ["yard_arith_s", "yard_l2_s", "yard_dram_s"], ["yard_small_s", "yard_large_s"]
first = of(0, kernels)
assert all((name, step) in first for name in kernels for step in (0, 11)), first
assert all(of(r, kernels) == first for r in range(ranks)), "ranks have different samples"
assert (len(of(0, messages)) >= 4) == (ranks > 1), of(0, messages)
assert all(not of(r, messages) for r in range(1, ranks)), "messages of another rank"
assert not counters("with--no-yardsticks.db", "yard_%")

for file in ("with.db", "with--no-yardsticks.db"):
    steps = {(r, i): s for r, _, i, s in counters(file, "step_s")}
    cpu = {(r, i): s for r, _, i, s in counters(file, "step_cpu_s")}
    assert steps.keys() == cpu.keys() == {(r, i) for r in range(ranks) for i in range(12)}, (steps, cpu)
    assert all(s > 0 for s in cpu.values()), cpu
END
done

# --- inference has them as well ---
expect 0 simulate --net cnn --image 28 --classes 10 --machine local --mode infer --batch 8 --strategy dp=2 --out infer.db
expect 0 run infer.db --steps 3 --json --trace infer-run.db
python3 -c '
import sqlite3; db = sqlite3.connect("infer-run.db")
n = dict(db.execute("SELECT rank, count(*) FROM counter WHERE name = ? GROUP BY rank", ("yard_arith_s",)))
assert set(n) == {0, 1} and n[0] == n[1] >= 2, n' || complain "inference without yardsticks"

# --- without a plan ---
executor=$(dirname "$HPLAN")/hplan-exec
timeout -k 5 600 "$executor" --check-speed --seconds 0.1 >one.json 2>err || complain "--check-speed: $(cat err)"
timeout -k 5 600 mpirun --allow-run-as-root --oversubscribe -n 2 "$executor" --check-speed --seconds 0.1 >two.json 2>err ||
  complain "--check-speed of two ranks: $(cat err)"
python3 - <<'END' || complain "--check-speed says $(cat one.json two.json)"
import json
for ranks, file in enumerate(("one.json", "two.json"), 1):
    line, = open(file)
    o = json.loads(line)
    assert o["schema"] == 1 and o["ranks"] == ranks and 0 < o["availability"] <= 1, o
    kernels = {"arith": "flops", "l2": "bytes", "dram": "bytes"}
    assert set(o["yardsticks"]) == set(kernels) | ({"small", "large"} if ranks > 1 else set()), o
    for name, y in o["yardsticks"].items():
        assert y["n"] > 0 and y["quiet_s"] > 0 and y["mean_s"] > 0, o
        if name in kernels:
            assert y["quiet_s"] <= y["mean_s"] and y["unit"] == kernels[name] and y["work"] > 0 and y["n"] % ranks == 0, o
END
timeout -k 5 600 "$executor" --check-speed --seconds 0 >out 2>err
[ $? = 2 ] || complain "--check-speed for no time: $(cat err)"

conclude "yardsticks: the same samples on all ranks"
