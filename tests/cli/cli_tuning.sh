#!/usr/bin/env bash
# cli_tuning.sh - output of nccl-tests and OSU becomes a cost table, which predicts, is drawn, and becomes rules that Open
# MPI takes; what is wrong changes nothing.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# osu NAME LATENCY_US BYTES_PER_US: as osu_NAME prints it
osu() {
  echo "# OSU MPI $1 Latency Test v7.4"
  echo "# Datatype: MPI_CHAR."
  echo "# Size       Avg Latency(us)"
  awk -v a="$2" -v b="$3" 'BEGIN { for (s = 4; s <= 1048576; s *= 4) printf "%-10d %24.2f\n", s, a + s / b }'
}
osu Allreduce 2 500 >doubling.txt
osu Allreduce 8 2000 >ring.txt
osu Allgather 3 1000 >gather.txt

# both sweeps in one table, and what they are of
import=(calibrate --import)
at=(--ranks 2 --per-node 2 -o t.cost)
if [ "$(nproc)" -gt 1 ]; then
  expect 0 "${import[@]}" doubling.txt gather.txt --algorithm doubling "${at[@]}"
  expect 0 "${import[@]}" ring.txt --algorithm ring "${at[@]}"
  for row in "allreduce mpi.doubling" "allreduce mpi.ring" "allgather mpi.doubling"; do
    grep -q "^collective shm $row r2 n2 | measured .* OSU 7.4, [a-z]*.txt of 20" t.cost ||
      grep -q "^collective shm $row r2 n2 | measured .* OSU v7.4, [a-z]*.txt of 20" t.cost || complain "no row $row: $(cut -c1-120 t.cost)"
  done
  expect 0 simulate --net cnn --image 20 --batch 2 --machine local --strategy dp=2 --cost t.cost --out plan.db
  grep -q "costs: t.cost" out || complain "$(head -1 out)"

  # nothing is written where anything is wrong
  cp t.cost before.cost
  { cat ring.txt; echo "2097152 fast"; } >bad.txt
  expect 65 "${import[@]}" doubling.txt bad.txt "${at[@]}"
  grep -q "bad.txt line 14: expected a value above 0: 'fast'" err || complain "malformed: $(cat err)"
  expect 65 "${import[@]}" /dev/null "${at[@]}"
  expect 65 "${import[@]}" nowhere.txt "${at[@]}"
  expect 2 "${import[@]}" ring.txt -o t.cost
  grep -q -- "--ranks N --per-node N" err || complain "no ranks: $(cat err)"
  expect 2 "${import[@]}" ring.txt --algorithm pairwise "${at[@]}"
  expect 2 calibrate ring.txt
  expect 2 calibrate --ranks 2
  cmp -s t.cost before.cost || complain "the table changed"
  expect 73 "${import[@]}" ring.txt --ranks 2 --per-node 2 -o nowhere/t.cost

  # the lines meet where 2 + s/500 = 8 + s/2000: at 4000 bytes
  expect 0 export t.cost --ompi-rules -o rules
  grep -q "^0 3 0 0 # doubling$" rules || complain "rules: $(cat rules)"
  sed -n 's/^\([0-9]*\) 4 0 0 # ring$/\1/p' rules | awk '{ exit !($1 >= 3900 && $1 <= 4100) }' || complain "rules: $(cat rules)"
  expect 65 export t.cost --nccl-tuner -o conf
  [ ! -e conf ] || complain "a configuration without a rule"
  expect 2 export t.cost -o conf
  expect 65 export rules --ompi-rules -o conf

  # Open MPI itself takes them: with an algorithm that it does not have in the place of ours, it fails, at the sizes of
  # that rule and at no others (its messages about the file are compiled in only where it was built to be debugged)
  if command -v mpirun >/dev/null && command -v mpicc >/dev/null; then
    cat >cpu_sum.c <<'C'
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    static float x[65536], y[65536];
    MPI_Init(&argc, &argv);
    MPI_Allreduce(x, y, atoi(argv[1]), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return MPI_Finalize();
}
C
    mpicc cpu_sum.c -o sum || complain "mpicc"
    # sum RULES ELEMENTS: does Open MPI add up so many with these rules?
    sum() {
      OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout -k 5 600 mpirun --oversubscribe -n 2 \
        --mca coll_base_verbose 1 --mca coll_tuned_priority 100 --mca coll_tuned_use_dynamic_rules 1 \
        --mca coll_tuned_dynamic_rules_filename "$PWD/$1" ./sum "$2" >mpi.log 2>&1
    }
    sed 's/^\([0-9]*\) 4 0 0 # ring$/\1 99 0 0/' rules >no-ring
    sed 's/^0 3 0 0 # doubling$/0 99 0 0/' rules >no-doubling
    for elements in 2 65536; do
      sum rules "$elements" || complain "Open MPI, $elements elements: $(tail -3 mpi.log)"
      grep -qi "rule\|configur" mpi.log && complain "Open MPI warns: $(cat mpi.log)"
    done
    sum no-ring 65536 && complain "the rule for 256 KiB does not hold there"
    sum no-doubling 2 && complain "the rule for 8 bytes does not hold there"
    if all "rules hold at no other sizes"; then
      sum no-ring 2 || complain "the rule for long ones holds for 8 bytes: $(tail -3 mpi.log)"
      sum no-doubling 65536 || complain "the rule for short ones holds for 256 KiB: $(tail -3 mpi.log)"
    fi
  fi
  if command -v gnuplot >/dev/null; then
    expect 0 plot comm t.cost
    grep -q "mpi.ring" out || complain "no line of mpi.ring"
    expect 0 plot comm plan.db -o c.svg
    grep -q "allreduce, 2 ranks" c.svg || complain "no panel of the plan's table"
  fi
fi
# --- hplan's own measurements: rows of the back end and algorithm that each table names ---
if [ -x "$(dirname "$HPLAN")/hplan-exec" ] && command -v mpirun >/dev/null && [ "$(nproc)" -gt 1 ]; then
  few=(--gpus 2 -b 64 -e 16Ki -f 16 -n 2 --turns 1)
  expect 0 bench comm --op allreduce,alltoall,barrier,sendrecv --backend own.ring,own.bruck,mpi,shm "${few[@]}" --out own.txt
  expect 0 bench comm --op allreduce,alltoall,barrier --backend shm "${few[@]}" --json
  cp out rule.json
  expect 0 "${import[@]}" own.txt -o own.cost
  python3 - <<'EOP' || complain "rows of hplan's own output: $(cut -c1-100 own.cost)"
import json
# what the text says: in place, but of an all-to-all
said, op, way = {}, None, None
for line in open("own.txt"):
    if "Collective test starting" in line: op = line.split()[-1].removesuffix("_perf").replace("_", "")
    if line.startswith("# back end "): way = line.split()[3].strip(",")
    if not line.startswith("#"):
        w = line.split()
        said.setdefault((op, way), []).append((int(w[0]), float(w[5 if op == "alltoall" else 9])))
# what shm chose, says the JSON of another run
rule = {(s["op"], r["bytes"]): r["algorithm"] for s in json.load(open("rule.json"))["series"] for r in s["rows"]}
expected = {}
for (op, way), rows in said.items():
    for bytes, us in rows:
        key = ("p2p shm" + (" shm" if way == "shm" else "") if op == "sendrecv" else
               "collective shm %s %s r2 n2" % (op, way + "." + rule[op, bytes] if way == "shm" else way))
        expected.setdefault(key, []).append((bytes, us))
rows = dict((k.strip(), v) for k, v in (l.split(" | ", 1) for l in open("own.cost") if " | " in l))
assert rows.keys() == expected.keys() and len(rows) >= 9, (rows.keys(), expected.keys())
for key, row in rows.items():
    head, points = row.split(" | ")
    assert head.startswith("measured") and "hplan bench comm" in head and "own.txt of 20" in head, head
    got = [tuple(map(float, p.split(":"))) for p in points.split()]
    assert [b for b, _ in got] == [b for b, _ in expected[key]], key
    assert all(abs(g[1] - 1e-6 * e[1]) < 1e-12 for g, e in zip(got, expected[key])), (key, got, expected[key])
EOP
  expect 2 "${import[@]}" own.txt --algorithm doubling -o own.cost
  grep -q "leave the option out" err || complain "another algorithm than the text's: $(cat err)"
  expect 0 bench comm --op allreduce --backend mpi "${few[@]}" --out mpi.txt
  expect 0 "${import[@]}" mpi.txt --algorithm ring -o mpi.cost # of a library, the caller knows
  grep -q "^collective shm allreduce mpi.ring r2 n2 |" mpi.cost || complain "$(cat mpi.cost)"
  expect 0 bench comm --op allreduce --backend mpi --mode barriered "${few[@]}" --out barriered.txt
  expect 65 "${import[@]}" barriered.txt -o own.cost
  grep -q "barriered.txt line 3: .*--mode pipelined" err || complain "barriered: $(cat err)"
  sed 's/back end mpi/back end smoke/' mpi.txt >bad.txt
  expect 65 "${import[@]}" bad.txt -o own.cost
fi
: >empty.cost
expect 65 plot comm empty.cost
# a panel for each operation and number of ranks of a table, a line for each back end and algorithm; names stay text
printf '%s\n' "hplan-cost 2" "machine m" 'date `touch canary`' \
  "collective l allreduce mpi r2 n2 | measured 0 1 | 8:1e-6 1048576:1e-3" \
  "collective l allreduce nccl.ring r16 n8 | measured 0 1 | 1024:1e-6" \
  "collective l allreduce own.ring r2 n2 | measured 0 1 | 8:4e-6 1048576:5e-4" \
  "collective l barrier mpi r2 n2 | measured 0 1 | 0:1e-6" "p2p l | measured 0 1 | 8:1e-6" >rows.cost
if command -v gnuplot >/dev/null; then
  expect 0 plot comm rows.cost -o rows.svg
  for text in "allreduce, 2 ranks" "allreduce, 16 ranks on 2 nodes" own.ring nccl.ring "2 of 3"; do
    grep -q "$text" rows.svg || complain "no '$text' in the chart of rows.cost"
  done
  [ -e canary ] && complain "a date was executed"
fi
sed '/^collective/d' rows.cost >none.cost
expect 65 plot comm none.cost
grep -q "hplan calibrate --comm" err || complain "a table without collectives: $(cat err)"
conclude "nccl-tests and OSU text, rules for libraries, and the chart of crossovers"
