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
expect 0 simulate --net cnn --image 28 --gpus 16 --batch 16 --top 1 --out far.db --jitter 0
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
name=x; source=""; nodes=4; node=2 x $1, nvlink=168GB/s, latency=4us; cores=64; share-cpu=no; cpu=no
nic=1 x 24GB/s, ib-hdr, latency=14us # one a node
device=$1, memory=40GB, fp32=19.5TFLOP/s, bandwidth=1555GB/s, launch=5us
END
}
described a100-40 >class.machine
described A100-SXM4-40GB >driver.machine
described 'nvidia a100-sxm4-40gb' >small.machine
echo 'nodes=4; node=2 x NVIDIA A100-SXM4-40GB' >short.machine
for prec in fp32 bf16; do
  want=$(step_of --machine class.machine --prec "$prec")
  [ -n "$want" ] || complain "no step on class.machine: $(cat err)"
  for file in driver small short; do
    [ "$(step_of --machine "$file.machine" --prec "$prec")" = "$want" ] ||
      complain "$file.machine $prec: $(step_of --machine "$file.machine" --prec "$prec") instead of $want"
  done
done
expect 2 simulate --net cnn --machine short
expect 65 simulate --net cnn --machine missing.machine
echo 'nodes=-1; nod=2 x a100; nic=2 x fast; device=a100, memory=1e99GB' >bad.machine
expect 65 simulate --net cnn --machine bad.machine
for word in "nodes must be" "no such clause (node)" "'fast' is neither a rate" "node=K x DEVICE is missing" "memory must be"; do
  grep -qF "$word" err || complain "$word is wrong in bad.machine, but: $(cat err)"
done
[ "$(wc -l <err)" = 1 ] || complain "what is wrong in bad.machine is not one line"

# a pipe is read; one that nobody writes to is no machine, and nobody waits for it
mkfifo pipe
expect 65 simulate --net cnn --machine ./pipe
expect 65 simulate --net cnn --image 28 --strategy dp=1 --cost ./pipe
expect 65 simulate --onnx ./pipe
"$HPLAN" simulate --net cnn --image 28 --strategy dp=2 --machine <(cat class.machine) --out pipe.db >out 2>err </dev/null ||
  complain "a machine from a pipe: $(cat err)"

# --- what is said ---
# device and precision above every table, and what a lower precision would gain: what asking for it predicts
expect 0 simulate --net unet:16 --image 512 --strategy dp=2 --machine class.machine
grep -q '^device cuda, fp32; --prec bf16: about [0-9.]*x$' out || complain "no device and gain: $(head -3 out)"
grep -q '^assumed' out && complain "nothing was assumed: $(head -3 out)"
gain=$(sed -n 's/.*bf16: about \([0-9.]*\)x.*/\1/p' out)
net() { "$HPLAN" simulate --net unet:16 --image 512 --strategy dp=2 --machine class.machine --out step.db --json "$@" 2>err | grep -oE '"step_s":[^,]*' | head -1 | cut -d: -f2; }
awk -v a="$(net)" -v b="$(net --prec bf16)" -v g="$gain" 'BEGIN { exit !(a / b > 0.94 * g && a / b < 1.06 * g) }' ||
  complain "bf16 is said to gain $gain, and predicted $(net) and $(net --prec bf16)"
expect 0 simulate --net unet:16 --image 512 --strategy dp=2 --machine class.machine --prec bf16
grep -q '^device cuda, bf16$' out || complain "no device and precision: $(head -3 out)"
expect 0 simulate --net unet:16 --image 512 --strategy dp=2 --machine class.machine --mode infer
grep -q '^device cuda, fp32; --prec bf16: about [0-9.]*x, \(--prec \)\?int8: about [0-9.]*x$' out || complain "no gains in inference: $(head -3 out)"
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
expect 0 simulate --net cnn --image 28 --strategy dp=2 --machine short.machine
grep -q 'assumed: .*GB/s inside a node; 1 x .*GB/s between nodes' err && grep -q '^assumed: .*GB/s' out ||
  complain "assumed links are not said: $(cat err)"
echo 'nodes=4; node=2 x Abacus 9000, pcie4; nic=1 x ib-hdr' >odd.machine
expect 0 simulate --net cnn --image 28 --strategy dp=2 --machine odd.machine
for file in err out; do
  grep -q 'assumed: device "Abacus 9000" is unknown: [a-z0-9-]* is assumed' $file || complain "an unknown device is not said in $file"
done
sed 's/Abacus 9000/NVIDIA L40S/' odd.machine >l40s.machine
expect 0 simulate --net cnn --image 28 --strategy dp=2 --machine l40s.machine
grep -q 'no rows for l40s: those of a100-40 assumed' out || complain "the costs' class is not said: $(head -1 out)"
[ -s err ] && complain "l40s.machine leaves nothing open, but: $(cat err)"
expect 0 simulate --net cnn --image 28 --strategy dp=2 --machine l40s.machine --json # plan.db keeps those costs
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
  devices=$((${shape% *} * ${shape#* }))
  shape="nodes=${shape% *}; node=${shape#* } x h200" # on the command line
  expect 0 simulate --net cnn --image 28 --strategy "dp=$devices" --machine "$shape"
  expect 3 simulate --net cnn --image 28 --gpus $((devices + 1)) --machine "$shape"
done


# --- hplan machine ---
expect 0 machine list
for name in thesis-a100 lassen summit pitzer frontera thetagpu perlmutter dgx-a100 dgx-h100 dgx-h200 p40x8; do
  grep -q "^$name " out || complain "machine list has no $name"
done
# what is shown is accepted, and is the same machine again; with sources, where it is shipped
for what in thesis-a100 frontera local 'nodes=8; node=4 x a100-80, nvlink=300GB/s; nic=2 x 200Gb/s; fat-tree 2:1' \
  'nodes=8; node=8 x h100; nic=8 x 400Gb/s, rails; fat-tree 2:1, leaf=16; mpi=openmpi; sharp=yes'; do
  expect 0 machine show "$what"
  cp out shown.machine
  expect 0 machine check shown.machine
  expect 0 machine show shown.machine
  cp out again.machine
  expect 0 machine show again.machine
  cmp -s out again.machine || complain "machine show $what is not what it reads: $(diff out again.machine)"
  expect 0 simulate --net cnn --image 28 --strategy dp=2 --machine shown.machine
done
expect 0 machine show summit
[ "$(grep -c '# ' out)" -ge 4 ] || complain "summit is shown without sources: $(cat out)"
expect 2 machine check 'nodes=8; nod=4 x a100-80; nic=2 x fast'
grep -q "(node).*'fast' is neither" err || complain "not all that is wrong is said: $(cat err)"
expect 65 machine check <(echo '{"nodes": 8}')
grep -q 'not written in JSON but as nodes=8' err || complain "JSON: $(cat err)"
for words in '' 'show' 'list x' 'lst' 'check'; do
  # shellcheck disable=SC2086
  expect 2 machine $words
done
# the machine at hand: cards of a made-up /sys, nodes of a Slurm job
card() { mkdir -p "sys/class/infiniband/$1/ports/1" && echo "$2" >"sys/class/infiniband/$1/ports/1/rate" && echo "$3" >"sys/class/infiniband/$1/ports/1/state"; }
card mlx5_0 '200 Gb/sec (4X HDR)' '4: ACTIVE'
card mlx5_1 '200 Gb/sec (4X HDR)' '4: ACTIVE'
card mlx5_2 '100 Gb/sec (4X EDR)' '4: ACTIVE'
card mlx5_3 '200 Gb/sec (4X HDR)' '1: DOWN'
SLURM_JOB_NUM_NODES=16 expect 0 machine --detect --sys sys
grep -q '^nic=2 x 25GB/s, ib-hdr, latency=14us$' out && grep -q '^nodes=16$' out || complain "detected: $(cat out)"
cp out here.machine
expect 0 machine check here.machine
expect 0 simulate --net cnn --image 28 --strategy dp=2 --machine here.machine
mkdir -p net/class/net/eth0/device net/class/net/br0
echo 10000 >net/class/net/eth0/speed
echo 100000 >net/class/net/br0/speed
expect 0 machine --detect --sys net
grep -q '^nic=1 x 1.25GB/s, tcp, latency=50us$' out || complain "Ethernet detected: $(cat out)"
expect 0 machine --detect --sys nothing
grep -q 'none was found' out || complain "no card, but: $(cat out)"

# --- what if ---
# twice the NICs' rate is the machine described with it; unnamed changes are refused with what is possible
by_set=$(step_of --machine thesis-a100 --strategy dp=4 --set nic=2x)
[ -n "$by_set" ] && [ "$by_set" = "$(step_of --machine 'nodes=512; node=2 x a100-40, nvlink=168GB/s; nic=1 x 48GB/s, ib-hdr' --strategy dp=4)" ] ||
  complain "nic=2x is $by_set, described $(step_of --machine 'nodes=512; node=2 x a100-40, nvlink=168GB/s; nic=1 x 48GB/s, ib-hdr' --strategy dp=4)"
expect 0 simulate --net cnn --image 28 --gpus 2 --machine thesis-a100 --set nodes=1 --set a100.memory=80G
grep -q '1 x 2 a100-40' out && grep -q 'what if: thesis-a100 with nodes=1, a100.memory=80G' err || complain "--set: $(head -2 out) $(cat err)"
expect 3 simulate --net cnn --image 28 --gpus 4 --machine thesis-a100 --set nodes=1
expect 2 simulate --net cnn --image 28 --machine thesis-a100 --set nodse=2
grep -q "nodse.*(node" err || complain "--set nodse=2: $(cat err)"


# --- devices that are not all alike ---
expect 0 simulate --net resnet18 --image 128 --batch 16 --gpus 2 --machine 'nodes=1; node=1 x a100-40 + 1 x v100-16' --strategy stages=2,micro=4 --out mixed.db
grep -q 'all devices a100-40 at full speed: .*x as fast; with stages as for equal devices (cut=' out || complain "simulate does not say what the mix costs: $(cat out)"
expect 0 why mixed.db dp=2
grep -q 'mix: *all devices a100-40' out || complain "why does not say what the mix costs: $(cat out)"
expect 0 explain mixed.db
expect 2 simulate --net resnet18 --image 128 --gpus 2 --machine thesis-a100 --set 'slow=600:50%'
grep -q 'there are .* nodes, numbered from 0' err || complain "a slow node that is not there: $(cat err)"
[ "$(step_of --machine thesis-a100 --set 'slow=0.1:50%')" != "$(step_of --machine thesis-a100)" ] || complain "a slow device changes nothing"

conclude "machines are what they are called"
