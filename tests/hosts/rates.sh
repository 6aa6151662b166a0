#!/bin/bash
# rates.sh - how well what was measured over links of one rate predicts steps over links of another: both ways, collective
# by collective, and for whole steps. Figures, no verdict; a quiet machine, about 12 minutes.
#
#   HPLAN=build/hplan tests/hosts/rates.sh FOLDER [RATE RATE]     400mbit 100mbit; the folder keeps tables and runs
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
HPLAN=$(realpath "${HPLAN:-build/hplan}")
export HPLAN
folder=$1 a=${2:-400mbit} b=${3:-100mbit}
mkdir -p "$folder" && cd "$folder" || exit 1

# Compute tasks do not depend on links: measured once, on this machine.
NETS="cnn:64:16 unet:16:128:2"
[ -f compute.cost ] || for net in $NETS; do
  IFS=: read -r name x y z <<<"$net"
  [ -n "${z:-}" ] && name=$name:$x x=$y y=$z
  "$HPLAN" calibrate --net "$name" --image "$x" --batch "$y" --seconds 60 -o compute.cost || exit 1
done

# Within the hosts: messages and collectives between them.
cat >measure.sh <<'EOS'
cp "$HPLAN_MACHINE" "$1.machine"
[ -f "$1.cost" ] || { cp compute.cost "$1.cost" &&
  "$HPLAN" calibrate --comm --machine "$HPLAN_MACHINE" --hostfile "$HPLAN_HOSTS" -o "$1.cost" -n 10; }
EOS

# Within the hosts, one rank on each: predicted from the other rate's table, run, compared.
cat >steps.sh <<'EOS'
sed 's/node=2 x/node=1 x/' "$HPLAN_MACHINE" >one.machine
sed 's/slots=2/slots=1/' "$HPLAN_HOSTS" >one.hosts
while read -r net image batch strategy; do
  "$HPLAN" simulate --machine one.machine --cost "$2.cost" --net "$net" --image "$image" --batch "$batch" \
    --strategy "$strategy" --out step.db >/dev/null || exit 1
  for i in 1 2; do
    "$HPLAN" run step.db --hostfile one.hosts --steps 6 --trace "step-$i.db" --no-history --force --json >"step-$i.json" || exit 1
    "$HPLAN" compare "step-$i.db" --json >"compare-$i.json" || exit 1
  done
  python3 - "$1" "$2" "$net" "$image" "$batch" "$strategy" <<'EOP'
import json, statistics, sys
runs = [json.load(open("compare-%d.json" % i)) for i in (1, 2)]
said = runs[0]["step"]["predicted_s"]
took = statistics.median(r["step"]["measured_s"] for r in runs)
here, there, net, image, batch, strategy = sys.argv[1:]
print("%-8s from %-8s %-8s %4s b%-3s %-44s predicted %7.1f ms, measured %7.1f ms: %+.1f %%"
      % (here, there, net, image, batch, strategy, 1e3 * said, 1e3 * took, 100 * (said / took - 1)), flush=True)
EOP
done <<'EOL'
cnn 64 16 dp=2
cnn 64 16 dp=2,comm=allreduce:mpi
cnn 64 16 stages=2,micro=4
cnn 64 16 stages=2,micro=2,sched=gpipe
unet:16 128 2 sp=1x2
unet:16 128 2 sp=2x1
cnn 64 16 sp=2x1
EOL
EOS
for rate in "$a" "$b"; do "$here/hosts" 2 "$rate" -- bash measure.sh "$rate" || exit 1; done
for pair in "$a $b" "$b $a"; do
  read -r there rate <<<"$pair"
  echo "# tables: measured at $there, held against what was measured at $rate"
  "$(dirname "$HPLAN")/bench_rates" "$there.cost" "$rate.json" "$rate.cost" 4096 | sed -n '/^$/,$p'
  "$here/hosts" 2 "$rate" -- bash steps.sh "$rate" "$there" || exit 1
done
