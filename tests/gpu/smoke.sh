#!/bin/bash
# smoke.sh SOURCE BUILD - tests/gpu/pack and tests/gpu/run where there is no GPU, on the stand-in for one: every step (in the
# short tier, one of each kind) ends well at a tiny size and is in the results; what is wrong, hangs or comes too late is
# reported as that, and costs no other step.
set -uo pipefail
source=$1 build=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
failures=0

complain() {
  echo "FAIL: $*" >&2
  failures=$((failures + 1))
}

# all TITLE: is this the whole suite? As in tests/cli/lib.sh.
all() {
  [ "${HPLAN_TIER:-short}" = all ] && return
  echo "left for --all: $*" >&2
  return 1
}

# expect CODE NAME ARGUMENT...: runs the script, leaves NAME.json
expect() {
  local want=$1 name=$2 got
  shift 2
  timeout -k 5 2500 pack/run --smoke -o "$name.json" "$@" >"$name.txt" 2>&1 </dev/null
  got=$?
  [ "$got" = "$want" ] || complain "$name: exit $got, expected $want: $(grep -v '^ok' "$name.txt" | head -c 2000)"
}

# holds NAME PYTHON: of its results, as r, and of steps by their names, as s
holds() {
  python3 - "$1.json" "$2" <<'PY' || complain "$1: $2"
import json, sys
r = json.load(open(sys.argv[1]))
s = {step["name"]: step for step in r["steps"]}
status = {name: step["status"] for name, step in s.items()}
if not eval(sys.argv[2]):
    sys.exit(f"{status}, {r['verdict']}, {[step['why'] for step in r['steps'] if step['why']]}")
PY
}

"$source/tests/gpu/pack" --build "$build" --folder pack --stand-in || exit 1

pack/run --list | awk '{print $1}' >steps.txt
all "every step" || printf '%s\n' describe norms laws_check ranks4 costs layers >steps.txt
expect 0 all --budget 2000 --steps "$(paste -sd, steps.txt)"
holds all '[x["name"] for x in r["steps"]] == open("steps.txt").read().split()'
holds all 'r["verdict"] == "passed" and r["schema"] == 1 and r["smoke"] and "stand-in" in r["device"]'
holds all 'all(x["status"] == "ok" for x in r["steps"] if x["conformance"])'
holds all 'all(x["status"] in ("ok", "refused") for x in r["steps"])'
holds all '{"y", "dx", "gradients"} <= {k.split()[1] for i in s["norms"]["data"]["items"] for k in i["worst"]}'
holds all 's["layers"]["data"]["items"][0]["tasks"]'
all "memory beside PyTorch's" && holds all 's["bench_infer"]["data"]["items"][0]["peak_bytes"] > 0'
tar tzf all.logs.tar.gz >logs.txt
grep -q "ranks[24].txt" logs.txt || complain "no logs in all.logs.tar.gz"
[ ! -e all.work ] || complain "all.work was left behind"

# the device fails
HPLAN_STANDIN_FAIL=cudaMalloc:1 expect 1 broken --steps describe,train_first
holds broken 'status["train_first"] == "failed" and r["failed"] == ["train_first"] and r["verdict"] == "failed"'

# wrong numbers; a program that hangs and will not be asked to end; neither costs the next step
real=$(mktemp -p "$scratch")
mv pack/bin/gpu_norms "$real"
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "{\\"op\\":\\"$1\\",\\"prec\\":\\"fp32\\",\\"layer\\":\\"x\\",\\"y\\":0.01}"\n' >pack/bin/gpu_norms
chmod +x pack/bin/gpu_norms
expect 1 wrong --steps norms,costs
holds wrong 'status == {"norms": "failed", "costs": "ok"} and "bound" in s["norms"]["why"]'
nap=98765.$$ # sleeps that are ours
printf '#!/bin/sh\ntrap "" TERM\nsleep %s & sleep %s\nwait\n' $nap $nap >pack/bin/gpu_norms
expect 1 hangs --steps norms,costs --budget 6
holds hangs 'status["norms"] == "timeout" and r["seconds"] < 600' # of the sleeps' day, not of the budget
pgrep -f "sleep $nap" >/dev/null && complain "what hung is still there"
mv "$real" pack/bin/gpu_norms

# no time at all
expect 3 late --budget 1 --steps norms,ranks2
holds late 'set(status.values()) == {"skipped"} and r["verdict"] == "incomplete" and r["not_reached"] == ["norms", "ranks2"]'
expect 2 unknown --steps nonsense

[ "$failures" = 0 ] || {
  echo "$failures failures" >&2
  exit 1
}
echo "the GPU script: whole on the stand-in, and what goes wrong is said"
