#!/bin/bash
# cli_machines.sh - machines as a new user meets them: the device follows the machine, and what was assumed is said.
# HPLAN is the binary.
set -u
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1

# device_of PLAN: what it is planned for, as explain says it.
device_of() { "$HPLAN" explain "$1" | sed -n 's/.*(device \([a-z]*\)).*/\1/p' | head -1; }
# step_of WORDS...: predicted step of one strategy.
step_of() { "$HPLAN" simulate --net cnn --image 28 --strategy dp=2 --out step.db --json "$@" 2>err | sed -n 's/.*"step_s": *\([^,]*\),.*/\1/p' | head -1; }

# --- the device follows the machine ---
for words in 'thesis-a100 cuda' 'dgx-h200 cuda' 'local cpu'; do
  expect 0 simulate --net cnn --image 28 --strategy dp=2 --machine "${words% *}" --out "${words% *}.db"
  [ "$(device_of "${words% *}.db")" = "${words#* }" ] || complain "machine ${words% *}: device $(device_of "${words% *}.db")"
  [ -s err ] && complain "machine ${words% *}: nothing was assumed, but stderr says: $(cat err)"
done
expect 0 simulate --net cnn --image 28 --strategy dp=2 --machine thesis-a100 --prec tf32
[ "$(step_of --machine thesis-a100)" = "$(step_of --machine thesis-a100 --device cuda)" ] ||
  complain "thesis-a100 without --device is not the same as with --device cuda"
# what was planned for GPUs is asked about on GPUs
figures() { grep -oE "\"(step_s|memory_bytes)\": ?[^,]*" out | head -2; }
expect 0 simulate --net cnn --image 28 --strategy dp=2 --machine thesis-a100 --json
planned=$(figures)
expect 0 why plan.db dp=2 --json
[ -n "$planned" ] && [ "$(figures)" = "$planned" ] || complain "why says $(figures), the plan $planned"
# more devices than are here
expect 0 simulate --net cnn --image 28 --gpus 1024 --batch 1024 --top 1 --out far.db --jitter 0
grep -q 'thesis-a100.*a100-40' err || complain "the machine that stands in is not said: $(cat err)"
[ "$(device_of far.db)" = cuda ] || complain "the machine that stands in is planned for $(device_of far.db)"
# another device than the machine's
expect 0 simulate --net cnn --image 28 --strategy dp=2 --machine thesis-a100 --device cpu
grep -q 'machine of GPUs.*--device cuda' err || complain "thesis-a100 with --device cpu, without a word: $(cat err)"
expect 0 simulate --net cnn --image 28 --strategy dp=2 --machine local --device cuda
grep -q 'machine of CPU cores.*--device cpu' err || complain "local with --device cuda, without a word: $(cat err)"

# --- names ---
# A machine file with the device's name alone, and one that says all as hplan's own class does.
described() {
  cat <<END
{"name": "x", "source": "", "nodes": 4, "devices_per_node": 2, "cores_per_node": 64, "nics_per_node": 1, "share_cpu": false,
 "device": {"name": "$1", "is_cpu": false, "memory_bytes": 40000000000, "flops_per_s": 19.5e12, "bytes_per_s": 1555e9, "launch_s": 5e-6},
 "intra": {"name": "nvlink", "latency_s": 4e-6, "bytes_per_s": 168e9}, "inter": {"name": "ib-hdr", "latency_s": 14e-6, "bytes_per_s": 24e9}}
END
}
described a100-40 >class.json
described A100-SXM4-40GB >driver.json
described 'nvidia a100-sxm4-40gb' >small.json
echo '{"nodes": 4, "devices_per_node": 2, "device": "NVIDIA A100-SXM4-40GB"}' >short.json
for prec in fp32 bf16; do
  want=$(step_of --machine class.json --prec "$prec")
  [ -n "$want" ] || complain "no step on class.json: $(cat err)"
  for file in driver small short; do
    [ "$(step_of --machine "$file.json" --prec "$prec")" = "$want" ] ||
      complain "$file.json $prec: $(step_of --machine "$file.json" --prec "$prec") instead of $want"
  done
done
expect 2 simulate --net cnn --machine short
expect 65 simulate --net cnn --machine missing.json
echo '{"nodes": -1, "devces_per_node": 2, "device": {"memory_bytes": 1e99}}' >bad.json
expect 65 simulate --net cnn --machine bad.json
for word in nodes devices_per_node device.name device.memory_bytes; do
  grep -q "\"$word\"" err || complain "$word is wrong in bad.json, but: $(cat err)"
done
[ "$(wc -l <err)" = 1 ] || complain "what is wrong in bad.json is not one line"

conclude "machines are what they are called"
