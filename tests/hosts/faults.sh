#!/bin/bash
# faults.sh - what happens between hosts: a link is cut for a while, or for good, a daemon is killed, a host stops or its link becomes
# slow. Each is noticed, with the host, its ranks or the operation named, on a machine without other work within the deadline and 5 s
# (SOON=15 for this claim); a run with --restarts goes on and ends with the weights of one that nothing happened to, on one host less
# (--elastic) with its losses; nothing is left. TIMES=N: so many of each (1).
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/cli/lib.sh
. "$here/../cli/lib.sh" || exit 1
need_executor
"$here/hosts" 2 400mbit -- true || exit $?
touch begun
times=${TIMES:-1}

cat >inside.sh <<'EOS'
# within the first host
fail() { echo "FAIL: $*: $(cat err)"; }
# begin OPTIONS...: a run in the background, until step 30
begin() {
  rm -rf saved parts.st err
  timeout -k 5 1200 "$HPLAN" run plan.db --hostfile "$HPLAN_HOSTS" --steps $STEPS --deterministic --no-history --json --deadline 10 \
    --trace "$PWD/run.db" --checkpoint saved --every 10 --save parts.st "$@" >out 2>err </dev/null &
  run=$!
  for _ in $(seq 3000); do
    [ "$(grep -c '"step"' out)" -ge 30 ] && return
    sleep 0.1
  done
  fail "no 30 steps"
}
# said SECONDS WORDS...: each is on stderr by then
said() {
  local start=${EPOCHREALTIME/./} limit=$1 word
  shift
  for word in "$@"; do
    until grep -q -- "$word" err; do
      [ $((${EPOCHREALTIME/./} - start)) -lt $((limit * 1000000)) ] || { fail "not said in $limit s: $word"; return; }
      sleep 0.1
    done
  done
  echo "noticed $(((${EPOCHREALTIME/./} - start) / 100000)) $*"
}
child_of() { # PID: the process that it has started
  tr -d ' ' </proc/$1/task/$1/children
}
reaches() { # the second host the first, where nobody listens
  ip netns exec hplan-$HPLAN_FIXTURE-2 timeout 2 bash -c ': </dev/tcp/10.99.0.1/9' 2>&1 | grep -q refused
}
left() { # ranks, and those that remove what they shared
  pgrep -f "hplan-exec.*$PWD" | while read -r p; do
    case $(cat /proc/$p/comm 2>/dev/null) in hplan-exec | hplan-sweep) echo $p ;; esac
  done
}
ends() { # CODE WHAT
  wait $run
  local got=$?
  [ $got = "$1" ] || fail "$2: exit $got, expected $1"
  for _ in $(seq 600); do
    [ -n "$(left)" ] || break
    sleep 0.2
  done
  [ -z "$(left)" ] || fail "$2: ranks are left"
  ls -d "$PWD"/run.db.tmp* "$PWD"/run.db.hosts* 2>/dev/null && fail "$2: files are left"
}
same() { cmp whole.st parts.st >/dev/null || fail "$1: other weights"; }
of_host() { # HOST NAME: its processes of that name
  for p in $(pgrep -x "$2"); do [ "$(stat -Lc %i /proc/$p/ns/net)" = "$(ip netns exec hplan-$HPLAN_FIXTURE-$1 stat -Lc %i /proc/self/ns/net)" ] && echo $p; done
}
"$HPLAN" simulate --machine "$HPLAN_MACHINE" --net cnn --image 32 --classes 10 --batch 16 --strategy dp=4 --out plan.db >/dev/null || exit 1
"$HPLAN" run plan.db --hostfile "$HPLAN_HOSTS" --steps $STEPS --deterministic --no-history --json --save whole.st --trace whole.db >whole 2>err || fail "a run without faults"

for _ in $(seq "$TIMES"); do
  # a link that is cut for a while
  # the launcher notices, before ranks do; hplan is held until the link is there again, as it starts the ranks again at once
  begin --restarts 3 --deadline 120
  "$FIXTURE" link 2 down
  hplan=$(child_of $run) launcher=$(child_of $(child_of $run))
  kill -STOP $hplan
  for _ in $(seq $((10 * SOON))); do
    case $(ps -o stat= -p $launcher) in '' | Z*) break ;; esac
    sleep 0.1
  done
  "$FIXTURE" link 2 up
  until reaches; do sleep 0.1; done
  kill -CONT $hplan
  said "$SOON" "node 10.99.0.2 is out of reach.*lost are rank 2, rank 3"
  ends 0 "a link that comes back"
  same "a link that comes back"

  # a daemon that is killed
  # the launcher learns it from its connection, or first from the program that started the daemon, or a rank from its own
  begin --restarts 3
  kill -9 $(of_host 2 orted)
  said "$SOON" "node 10.99.0.2 is out of reach.*lost are rank 2, rank 3\|a rank, its node or its daemon was lost"
  ends 0 "a daemon that is killed"
  same "a daemon that is killed"

  # the launcher
  begin
  kill -9 "$(pgrep -f "^mpirun.*$PWD")"
  said "$SOON" "launcher mpirun died (signal 9"
  ends 137 "a launcher that is killed"

  # a host that stops: of one that is another machine ranks alone can tell
  begin --restarts 1
  for p in $(of_host 2 hplan-exec); do kill -STOP "$p"; done
  said "$SOON" "stalled: rank [01] waited .* for .allreduce.* with its group: those on this node move; ranks elsewhere: 2, 3\|stopped for .* rank 2 (.* and 1 more"
  ends 0 "a host that stops"
  same "a host that stops"

  # a link that becomes too slow
  begin --restarts 1
  "$FIXTURE" link 2 8kbit
  said "$SOON" "stalled: rank [0-3] waited .* s in .* for .allreduce.* those on this node move\|node 10.99.0.2 is out of reach"
  "$FIXTURE" link 2 400mbit
  ends 0 "a link that becomes slow"
  same "a link that becomes slow"

  # a link that is cut for good: one host less, the same batch
  begin --restarts 2 --elastic --deadline 120
  "$FIXTURE" link 2 down
  said "$SOON" "node 10.99.0.2 is out of reach.*lost are rank 2, rank 3"
  ends 0 "a node that is gone"
  "$FIXTURE" link 2 up
  grep -q "left out: 10.99.0.2" err && grep -q "fitted to 2 cores on 1 node: dp=4 -> dp=2,micro=2; batch 16 as before: the same" err || fail "what it goes on with is not said"
  python3 - <<'EOP' || fail "a node that is gone: other losses"
import json
def losses(n): return {o["step"]: o["loss"] for o in map(json.loads, open(n)) if "step" in o}
a, b = losses("whole"), losses("out")
n = max(a)
assert sorted(b)[-1] == n and all(abs(a[k] - b[k]) <= 1e-3 * (1 + abs(a[k])) for k in range(1, n + 1)), [(k, a[k], b.get(k)) for k in a][-3:]
EOP
done
EOS
# so many steps that a link's rate lets none end before its fault
export HPLAN TIMES=$times SOON=${SOON:-180} STEPS=200 FIXTURE=$here/hosts
timeout -k 10 $((1700 * times)) "$here/hosts" 2 400mbit -- bash inside.sh >told 2>&1 || complain "the hosts' run: $(cat told)"
grep FAIL told >&2 && failures=$((failures + $(grep -c FAIL told)))
grep "^noticed\|^note" told
[ "$(grep -c ^noticed told)" = $((6 * times)) ] || complain "not all faults were noticed: $(cat told)"
# what ranks of a host shared, unless some other run's ranks have it mapped
find /dev/shm -maxdepth 1 -name '*_segment.host[0-9].*' -newer begun | while read -r segment; do
  grep -qs "$segment" /proc/[0-9]*/maps || echo "$segment"
done >left
[ ! -s left ] || complain "segments are left: $(xargs <left)"
conclude "faults between hosts are named, and runs go on"
