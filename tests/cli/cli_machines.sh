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

# a pipe is read; one that nobody writes to is no machine, and nobody waits for it
mkfifo pipe
expect 65 simulate --net cnn --machine ./pipe
expect 65 simulate --net cnn --image 28 --strategy dp=1 --cost ./pipe
expect 65 simulate --onnx ./pipe
"$HPLAN" simulate --net cnn --image 28 --strategy dp=2 --machine <(cat class.json) --out pipe.db >out 2>err </dev/null ||
  complain "a machine from a pipe: $(cat err)"

# --- what is said ---
# device and precision above every table, and what a lower precision would gain: what asking for it predicts
expect 0 simulate --net unet:16 --image 512 --strategy dp=2 --machine class.json
grep -q '^device cuda, fp32; --prec bf16: about [0-9.]*x$' out || complain "no device and gain: $(head -3 out)"
grep -q '^assumed' out && complain "nothing was assumed: $(head -3 out)"
gain=$(sed -n 's/.*bf16: about \([0-9.]*\)x.*/\1/p' out)
net() { "$HPLAN" simulate --net unet:16 --image 512 --strategy dp=2 --machine class.json --out step.db --json "$@" 2>err | grep -oE '"step_s":[^,]*' | head -1 | cut -d: -f2; }
awk -v a="$(net)" -v b="$(net --prec bf16)" -v g="$gain" 'BEGIN { exit !(a / b > 0.94 * g && a / b < 1.06 * g) }' ||
  complain "bf16 is said to gain $gain, and predicted $(net) and $(net --prec bf16)"
expect 0 simulate --net unet:16 --image 512 --strategy dp=2 --machine class.json --prec bf16
grep -q '^device cuda, bf16$' out || complain "no device and precision: $(head -3 out)"
expect 0 simulate --net unet:16 --image 512 --strategy dp=2 --machine class.json --mode infer
grep -q '^device cuda, fp32; --prec bf16: about [0-9.]*x, int8: about [0-9.]*x$' out || complain "no gains in inference: $(head -3 out)"
expect 0 simulate --net cnn --image 28 --gpus 1 --machine local
grep -q '^device cpu, fp32$' out || complain "training on a CPU gains nothing, but: $(head -3 out)"
expect 0 simulate --net cnn --image 28 --gpus 1 --machine thesis-a100 --json
grep -q '"device":"cuda"' out && grep -q '"prec":"fp32"' out || complain "JSON without device and precision: $(head -c 300 out)"
expect 0 simulate --net cnn --image 28 --gpus 1 --machine thesis-a100 --out one.db
expect 0 why one.db prec=bf16
grep -q 'machine: *thesis-a100, device cuda' out && grep -q 'precision *bf16 *fp32' out || complain "why: no device or precision: $(cat out)"
expect 0 explain one.db
grep -q '^training of cnn in fp32' out && grep -q 'on thesis-a100 (device cuda)' out || complain "explain: no device or precision"
# links that the file leaves out, devices that nobody knows, costs of another class
expect 0 simulate --net cnn --image 28 --strategy dp=2 --machine short.json
grep -q 'assumed: .*GB/s inside a node; 1 x .*GB/s between nodes' err && grep -q '^assumed: .*GB/s' out ||
  complain "assumed links are not said: $(cat err)"
echo '{"nodes": 4, "devices_per_node": 2, "device": "Abacus 9000", "intra": "pcie4", "inter": "ib-hdr", "nics_per_node": 1}' >odd.json
expect 0 simulate --net cnn --image 28 --strategy dp=2 --machine odd.json
for file in err out; do
  grep -q 'assumed: device "Abacus 9000" is unknown: [a-z0-9-]* is assumed' $file || complain "an unknown device is not said in $file"
done
sed 's/Abacus 9000/NVIDIA L40S/' odd.json >l40s.json
expect 0 simulate --net cnn --image 28 --strategy dp=2 --machine l40s.json
grep -q 'no rows for l40s: those of a100-40 assumed' out || complain "the costs' class is not said: $(head -1 out)"
[ -s err ] && complain "l40s.json leaves nothing open, but: $(cat err)"
expect 0 simulate --net cnn --image 28 --strategy dp=2 --machine l40s.json --json # plan.db keeps those costs
planned=$(figures)
expect 0 why plan.db dp=2 --json
[ -n "$planned" ] && [ "$(figures)" = "$planned" ] || complain "why says $(figures), the plan $planned"
# precisions that the devices have no units for
expect 69 simulate --net cnn --image 28 --strategy dp=2 --machine lassen --prec bf16
grep -q 'v100-16 has no units for bf16.*--prec fp16' err || complain "bf16 on a V100: $(cat err)"
expect 0 simulate --net cnn --image 28 --strategy dp=2 --machine lassen --prec fp16
expect 69 simulate --net cnn --image 28 --gpus 2 --machine lassen --prec fp32,tf32 # before anything is searched
# any number of devices, also odd ones
for shape in '1 1' '1 3' '5 3' '2048 8'; do
  echo "{\"nodes\": ${shape% *}, \"devices_per_node\": ${shape#* }, \"device\": \"h200\"}" >shape.json
  devices=$((${shape% *} * ${shape#* }))
  expect 0 simulate --net cnn --image 28 --strategy "dp=$devices" --machine shape.json
  expect 3 simulate --net cnn --image 28 --gpus $((devices + 1)) --machine shape.json
done

conclude "machines are what they are called"
