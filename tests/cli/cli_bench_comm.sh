#!/bin/bash
# cli_bench_comm.sh - hplan bench comm: every operation by every back end delivers what it must, tables are such that readers
# of nccl-tests understand them, rates follow from times, and what is wrong is said. No time is asserted.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1

# --- wrong words ---
for words in '--op nosuch' '--op allreduce,allreduce' '--backend nccl' '--backend own.nosuch' '--backend mpi.ring' \
  '--op sendrecv --backend own' '--op barrier --backend own.ring' '-b 0' '-b 64 -e 8' '-f 1' '-n 0' '--gpus 1' '--gpus 2 --root 2' \
  '--dtype f31' '--reduction prod' '--mode both' '--launcher none' '-w -1' '-e 8X'; do
  # shellcheck disable=SC2086 # words are words
  expect 2 bench comm $words
  [ "$(wc -l <err)" = 1 ] || complain "bench comm $words: $(wc -l <err) lines on stderr: $(head -c 300 err)"
done
expect 3 bench comm -e 500T
grep -q 'give -e [0-9]' err || complain "too large a size: no fix is said: $(cat err)"
expect 65 bench comm --hostfile missing
expect 73 bench comm --out nosuchfolder/file
grep -q 'bench comm' <("$HPLAN" help bench) || complain "hplan help bench does not name bench comm"

# --- rows of known times and wrong elements ---
mkdir standin
cp "$HPLAN" standin/hplan
cat >standin/hplan-exec <<'END'
#!/bin/bash
[ "${OMPI_COMM_WORLD_RANK:-0}" = 0 ] || exit 0
echo '{"library":"Some MPI 1.0","hosts":["a","a","b","b"],"pids":[1,2,3,4]}'
row() {
  echo '{"op":"'$1'","backend":"mpi","algorithm":null,"mode":"'$2'","row":{"bytes":4000000,"count":1000000,"time_s":'$3',"min_s":1e-3,"median_s":2e-3,"p99_s":3e-3,"max_s":4e-3,"turns_s":['$3'],"wrong":7,"in_place":{"time_s":4e-3,"min_s":1e-3,"median_s":2e-3,"p99_s":3e-3,"max_s":4e-3,"turns_s":[4e-3],"wrong":null}}}'
}
for op in allreduce reducescatter allgather alltoall broadcast reduce gather scatter sendrecv; do
  row $op pipelined 2e-3
  row $op barriered 5e-4
done
[ -e stop ] || echo '{"yardsticks":{"arith":{"quiet_s":1e-4,"mean_s":1.5e-4,"unit":"flops"}},"availability":0.75}'
END
chmod +x standin/hplan-exec
if command -v mpirun >/dev/null; then
  real=$HPLAN HPLAN=$scratch/standin/hplan
  expect 0 bench comm --gpus 4 --root 3 -v
  cp out text
  expect 0 bench comm --gpus 4 --mode barriered --out file
  expect 0 bench comm --gpus 4 --json
  cp out json
  # where the ranks lie (here a, a, b, b) is not where the hostfile has them
  # shellcheck disable=SC2016 # of the program
  printf '#!/bin/bash\nwhile [ "${1##*/}" != hplan-exec ]; do shift; done\nexec "$@"\n' >standin/mpirun
  chmod +x standin/mpirun
  for slots in "2 2" "3 1"; do
    printf 'x slots=%s\ny slots=%s\n' "${slots% *}" "${slots#* }" >hosts
    PATH=$scratch/standin:$PATH expect 0 bench comm --hostfile hosts --json
    grep -q "\"ranks\":4,\"per_node\":${slots% *}," out || complain "slots $slots: $(head -c 200 out)"
    cp err "err${slots% *}"
  done
  [ -s err2 ] && complain "ranks lie as they should: $(cat err2)"
  grep -q "^note: rank 2 is on b, which is not 3 ranks a node" err3 || complain "no note on where ranks lie: $(cat err3)"
  touch stop
  expect 70 bench comm --gpus 4
  HPLAN=$real
  python3 - <<'END' || complain "figures of known rows: $(head -30 text)"
import json
# the PERFORMANCE page of nccl-tests: the factor of each operation on 4 ranks
factor = {"all_reduce": 1.5, "reduce_scatter": .75, "all_gather": .75, "alltoall": .75, "broadcast": 1, "reduce": 1,
          "gather": .75, "scatter": .75, "sendrecv": 1}
adds, rooted = {"all_reduce", "reduce_scatter", "reduce"}, {"broadcast", "reduce", "gather", "scatter"}
parts = {"reduce_scatter", "all_gather", "alltoall", "gather", "scatter"}
def read(name):
    op, rows = None, {}
    for line in open(name):
        if "Collective test starting:" in line: op = line.split()[-1].removesuffix("_perf")
        if not line.startswith("#"): rows[op] = line.split()
        if "Avg bus bandwidth" in line: rows[op].append(float(line.split()[-1]))
    return rows
text = read("text")
assert set(text) == set(factor)
for op, f in factor.items():
    size, count, kind, redop, root, *rest = text[op]
    assert (size, count, kind) == ("4000000", "250000" if op in parts else "1000000", "float"), text[op]
    assert redop == ("sum" if op in adds else "none") and root == ("3" if op in rooted else "-1"), text[op]
    want = [2000, 2, 2 * f, 7, 4000, 1, f]
    assert all(abs(float(a) - b) < 0.006 for a, b in zip(rest, want)) and rest[7] == "N/A", (op, rest)
    assert abs(rest[8] - (2 * f + f) / 2) < 1e-3, (op, rest)
assert {r[5] for r in read("file").values()} == {"500.00"}
assert "# Out of bounds values : 7 FAILED" in open("text").read()
assert "min 1000.00  median 2000.00  p99 3000.00  max 4000.00 us" in open("text").read()
assert "# machine: at 1.50 x the quiet time (arith), 75% of the processors" in open("text").read()
END
  python3 - <<'END' || complain "known rows as JSON: $(head -c 400 json)"
import json
j = json.load(open("json"))
assert j["schema"] == 1 and j["ranks"] == 4 and j["library"] == "Some MPI 1.0" and len(j["series"]) == 18
r = next(s for s in j["series"] if s["op"] == "allreduce" and s["mode"] == "pipelined")["rows"][0]
assert r["time_s"] == 2e-3 and abs(r["algbw"] - 2e9) < 1 and abs(r["busbw"] - 3e9) < 1 and r["wrong"] == 7
assert r["in_place"]["wrong"] is None and abs(r["in_place"]["busbw"] - 1.5e9) < 1
END
fi
need_executor

# --- every operation, back end and algorithm, on 3 ranks and on 2, of sizes that cut everywhere ---
for ranks in 3 $(all "every operation on two ranks" && echo 2); do
  expect 0 bench comm --gpus "$ranks" --backend all -b 4 -e 1Mi -f 37 -n 2 -w 1 --turns 2 --root 1 --json
  python3 - "$ranks" <<'END' || complain "all operations on $ranks ranks: $(head -c 600 out)"
import json, sys
ranks, j = int(sys.argv[1]), json.load(open("out"))
ops = {"allreduce", "reducescatter", "allgather", "alltoall", "broadcast", "reduce", "gather", "scatter", "barrier", "sendrecv"}
assert j["schema"] == 1 and j["ranks"] == ranks and "Open MPI" in j["library"] or j["library"], j["library"]
assert {s["op"] for s in j["series"]} == ops and j["yardsticks"]["arith"]["n"] > 0
assert {(s["op"], s["backend"]) for s in j["series"]} >= {(o, "mpi") for o in ops} | {(o, "own") for o in ops - {"sendrecv"}}
keys = {(s["op"], s["backend"], s["algorithm"], s["mode"]) for s in j["series"]}
assert len(keys) == len(j["series"]) and ("allreduce", "own", "ring", "barriered") in keys
for s in j["series"]:
    assert s["dtype"] == "f32" and s["rows"] and s["mode"] in ("pipelined", "barriered")
    assert len(s["rows"]) == (1 if s["op"] == "barrier" else 4), s
    for row in s["rows"]:
        for t in row, row["in_place"]:
            assert t["wrong"] == 0, (s["op"], s["backend"], s["algorithm"], row)
            assert 0 < t["min_s"] <= t["median_s"] <= t["p99_s"] <= t["max_s"] and t["min_s"] <= t["time_s"] <= t["max_s"], t
            assert len(t["turns_s"]) == 2 and abs(t["algbw"] * t["time_s"] - row["bytes"]) <= 1e-6 * row["bytes"]
        if s["op"] in ("reducescatter", "allgather", "alltoall", "gather", "scatter"): assert row["count"] % ranks == 0
        assert row["bytes"] == 4 * row["count"]
        steps = s["backend"] in ("own", "shm") and s["algorithm"] is None and s["op"] != "sendrecv"
        assert ("algorithm" in row) == steps, row
END
done

expect 0 bench comm --gpus 2 --op sendrecv -e 8 -n 1 --turns 1 --json # without --backend: by those that send messages

# --- types and reductions ---
cases=(f64:avg i32:min u8:max bf16:sum)
all "every type with every reduction" && cases=({f64,i32,u8,bf16,f16,i8}:{sum,min,max,avg})
for case in "${cases[@]}"; do
  expect 0 bench comm --gpus 3 --op allreduce,reducescatter,reduce -b 1k -e 1k -n 1 -w 0 --turns 1 --dtype "${case%:*}" \
    --reduction "${case#*:}" --json
  grep -q '"wrong":[1-9]' out && complain "$case: wrong elements: $(grep -o '"op":"[a-z]*","backend":"[a-z]*"' out | sort -u)"
  [ "$(grep -o '"wrong":0' out | wc -l)" -ge 24 ] || complain "$case: not everything was checked"
done

# --- the table, as a reader of nccl-tests sees it ---
expect 0 bench comm --gpus 2 --op alltoall,broadcast --backend own,mpi -b 64 -e 64Ki -f 32 -n 3 --turns 1 --mode barriered
awk '
  /^# *size +count +type +redop +root +time +algbw +busbw +#wrong +time +algbw +busbw +#wrong$/ { title = 1 }
  /^#  Rank/ { ranks++ }
  /barriered/ { modes++ }
  /^# Avg bus bandwidth    : [0-9.e-]+$/ { tables++; if (rows != 3) bad = 1; rows = 0; title = 0 }
  /^ *[0-9]/ { rows++; all++; if (!title || NF != 13 || $9 != 0 || $13 != 0) bad = 1
               expected = 1e-3 * $1 / $6; if (($7 - expected) ^ 2 > (0.006 + 0.02 * expected) ^ 2) bad = 1 }
  END { exit !(tables == 4 && all == 12 && ranks == 8 && modes == 4 && !bad) }' out || complain "the table: $(cat out)"
expect 0 bench comm --gpus 2 --op allreduce --backend mpi -b 64 -e 64 -n 1 --turns 1 --out table.txt
[ -s out ] && complain "--out prints as well: $(cat out)"
grep -q '^# Avg bus bandwidth' table.txt || complain "--out writes no table"

# --- more ranks than cores give them away while they wait ---
expect 0 bench comm --gpus $((2 * $(nproc) + 1)) --op allreduce,alltoall -b 1Ki -e 1Ki -n 2 --turns 1 --json
grep -q '"wrong":[1-9]' out && complain "more ranks than cores: wrong elements"

# --- ^C, when both ranks have worked for longer than they take to start; there is work for hours ---
"$HPLAN" bench comm --gpus 2 -n 100000 >out 2>err </dev/null &
pid=$! ranks=
for _ in $(seq 1200); do
  mpirun=$(pgrep -d, -P $pid) && ranks=$(pgrep -x hplan-exec -P "$mpirun")
  busy=$(for rank in $ranks; do awk '$14 + $15 > 50' "/proc/$rank/stat"; done | wc -l) # hundredths of a second
  [ "$busy" = 2 ] && break
  sleep 0.1
done
kill -INT $pid
wait $pid
code=$?
[ $code = 130 ] || complain "after SIGINT: exit $code: $(cat err)"
[ "$busy" = 2 ] || complain "two ranks were awaited, and there was: $ranks"
for rank in $ranks; do
  for _ in $(seq 600); do
    grep -qs '^State:.[^ZX]' "/proc/$rank/status" || continue 2
    sleep 0.1
  done
  complain "after SIGINT rank $rank is left"
done
[ "$(wc -l <err)" -le 2 ] || complain "after SIGINT: $(cat err)"

conclude "every collective delivers what it must, and its times are shown"
