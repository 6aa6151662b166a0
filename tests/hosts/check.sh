#!/bin/bash
# check.sh - the fixture: rates hold, counters count, runs over links compute the same, and nothing is left behind. Beside other work a
# stream may be slower than its link, and a packet may be sent twice: what these would change is tried up to ten times.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/cli/lib.sh
. "$here/../cli/lib.sh" || exit 1
# shellcheck source=tests/cli/runs.sh
. "$here/../cli/runs.sh" || exit 1
need_executor
"$here/hosts" 2 100mbit -- true || exit $?

cat >stream.py <<'EOP'
# Sends to a process in the second host for 2 s. Prints bytes per second, bytes, the share of the processors that this took
# (both ends), and how idle they all were: beforehand, meanwhile, afterwards.
import os, resource, socket, subprocess, time
server = 'import socket\ns = socket.create_server(("10.99.0.2", 5001))\nc, _ = s.accept()\nwhile c.recv(1 << 16): pass\nc.send(b"x")\n'
def ticks():  # idle, all
    t = list(map(int, open("/proc/stat").readline().split()[1:9]))
    return t[3] + t[4], sum(t)
def idle_since(before):
    now = ticks()
    return (now[0] - before[0]) / max(1, now[1] - before[1])
def idle_for(seconds):
    before = ticks()
    time.sleep(seconds)
    return idle_since(before)
quiet = idle_for(1)
there = subprocess.Popen(["nsenter", "--net=/run/netns/hplan-%s-2" % os.environ["HPLAN_FIXTURE"], "python3", "-c", server])
for _ in range(2400):
    try:
        c = socket.create_connection(("10.99.0.2", 5001))
        break
    except OSError:
        time.sleep(0.05)
n, start, before, used = 0, time.monotonic(), ticks(), time.process_time()
while time.monotonic() - start < 2:
    n += c.send(bytes(1 << 16))
c.shutdown(socket.SHUT_WR)
c.recv(1)
elapsed, meanwhile, used = time.monotonic() - start, idle_since(before), time.process_time() - used
there.wait()
u = resource.getrusage(resource.RUSAGE_CHILDREN)
print(n / elapsed, n, (used + u.ru_utime + u.ru_stime) / elapsed / os.cpu_count(), quiet, meanwhile, idle_for(1))
EOP
# sent HOST FILE FILE: what programs sent over its link between two outputs of `hosts bytes`. Headers are 66 bytes a packet
# (Ethernet 14, IP 20, TCP 32).
sent() {
  awk -v host="$1" '$1 == host { n = $2 - 66 * $4 - n } END { printf "%d", n }' "$2" "$3"
}
# lies VALUE LOW HIGH: between them
lies() {
  awk -v v="$1" -v low="$2" -v high="$3" 'BEGIN { exit !(v != "" && v + 0 >= low && v + 0 <= high) }'
}
# within WHAT VALUE LOW HIGH
within() {
  lies "${@:2}" || complain "$1: $2, expected $3 to $4"
}
# tries WHAT COMMAND...: which succeeds one time in ten, or says why it does not
tries() {
  local try
  for try in 1 2 3 4 5 6 7 8 9 10; do
    "${@:2}" >why && return
  done
  complain "$1, $try times, the last: $(cat why)"
}

# stream MBIT: no faster than its link, and one of ten fills that; the counters agree with it.
stream() {
  local counted
  timeout -k 5 300 "$here/hosts" 2 "$1mbit" -- bash -c "'$here/hosts' bytes >before; python3 stream.py; '$here/hosts' bytes >after" >out 2>err ||
    complain "no stream: $(cat err)"
  read -r rate bytes took quiet meanwhile afterwards <out
  counted=$(sent host1 before after)
  lies "$rate" 0 $(($1 * 131250)) || complain "$rate bytes/s of a stream over $1 Mb/s"
  echo "$rate bytes/s, $bytes bytes of which the link counted $counted, share of the processors $took"
  lies "$rate" $(($1 * 93750)) 1e99 && lies "$counted" "$bytes" $((bytes * 105 / 100)) && lies "$took" 0 0.2
}
# idles MBIT: the link is the limit, not the cores: where these have nothing else to do, they idle while it is full. Ranks of MPI poll,
# which hides that.
idles() {
  stream "$1" >/dev/null
  echo "idle beforehand $quiet, meanwhile $meanwhile, afterwards $afterwards"
  lies "$meanwhile" 0.8 1 || ! lies "$quiet" 0.9 1 || ! lies "$afterwards" 0.9 1
}
for mbit in 100 25; do tries "a stream over $mbit Mb/s" stream $mbit; done
tries "cores that idle while a link of 25 Mb/s is full" idles 25
lies "$meanwhile" 0.8 1 || echo "note: other work keeps the cores busy: not checked that they idle while a link is full"

# run_over N RATES BATCH COMM: data parallelism over hosts of two ranks gives the losses of one without links
cat >run.sh <<EOS
"$HPLAN" simulate --machine "\$HPLAN_MACHINE" --net cnn --image 32 --classes 10 --batch \$2 --device ref \\
  --strategy dp=\$1,comm=allreduce:\$3 --out hosts.db >/dev/null &&
  "$here/hosts" bytes >before &&
  "$HPLAN" run hosts.db --hostfile "\$HPLAN_HOSTS" --steps 4 --deadline 600 --trace hosts-run.db --json --no-history >over &&
  "$here/hosts" bytes >after &&
  "$HPLAN" run hosts.db --force --steps 4 --trace alone.db --json --no-history >alone
EOS
losses() {
  grep -o '"step":[0-9]*,"loss":[^,]*' "$1"
}
run_over() {
  rm -f over alone
  timeout -k 5 1200 "$here/hosts" "$1" "$2" -- bash run.sh $(($1 * 2)) "$3" "$4" >out 2>err || complain "no run over links of $2: $(cat out err)"
  [ "$(losses over | wc -l)" = 4 ] || complain "no losses: $(cat over)"
  [ "$(losses over)" = "$(losses alone)" ] || complain "losses over links of $2: $(losses over), without: $(losses alone)"
  "$HPLAN" compare --comm --json hosts-run.db >comm.json || complain "no log of the run"
  of_largest "r[\"algorithm\"]" | grep -qx "${4#*.}" || complain "not $4: $(cat comm.json)"
}
# of_largest EXPRESSION: of r, the largest row of the run's communication
of_largest() {
  python3 -c "import json; r = max(json.load(open('comm.json'))['rows'], key=lambda r: r['bytes']); print($1)"
}
# By two levels each host's link carries the data once in each direction, a step; hplan counts what ranks send.
two_levels() {
  local bytes host enough=0
  run_over 2 400mbit 8 own.two_levels
  bytes=$(of_largest '4 * r["bytes"]')
  for host in host1 host2; do
    echo "$(sent $host before after) bytes of $host's link, expected $bytes and 5 %"
    lies "$(sent $host before after)" "$bytes" $((bytes * 105 / 100)) || enough=1
  done
  return $enough
}
tries "all-reduce by two levels" two_levels
# Links that differ: around the ring every host's carries what one rank sends, which takes as long as on the slowest.
ring() {
  local bytes host enough=0
  run_over 3 200mbit,50mbit,100mbit 12 own.ring
  bytes=$(of_largest 'round(4 * r["sent_bytes"] / r["members"])')
  within "hplan's count of a rank's bytes" "$bytes" "$(of_largest 'int(4 * r["bytes"] * 2 * 5 / 6) - 6 * 8')" "$(of_largest 'int(4 * r["bytes"] * 2 * 5 / 6) + 6 * 8')"
  for host in host1 host2 host3; do
    echo "$(sent $host before after) bytes of $host's link, expected $bytes and 5 %"
    lies "$(sent $host before after)" "$bytes" $((bytes * 105 / 100)) || enough=1
  done
  return $enough
}
tries "all-reduce around a ring" ring
within "seconds of an all-reduce over 200, 50 and 100 Mb/s" "$(of_largest 'r["measured_s"]')" "$(of_largest '0.98 * r["sent_bytes"] / r["members"] / 6.25e6')" 1e9

# No operation is done before its bytes have crossed; what the links' bursts let through is 2 * 6250 bytes in each direction.
timeout -k 5 900 "$here/hosts" 2 200mbit -- bash -c "'$HPLAN' bench comm --hostfile \"\$HPLAN_HOSTS\" --backend own,mpi -b 256Ki -e 256Ki -n 2 -w 1 --turns 1 --json" >bench.json 2>err ||
  complain "no bench comm over links: $(cat err)"
python3 - <<'EOP' || complain "bench comm over links of 25e6 bytes/s"
import json, sys
j, bad = json.load(open("bench.json")), []
# shares of the data that cross, of operations among two hosts with two ranks each
cross = dict(allreduce=1, reducescatter=.5, allgather=.5, alltoall=1, broadcast=1, reduce=1, gather=.5, scatter=.5, sendrecv=1)
if j["hosts"] != ["host1", "host1", "host2", "host2"] or j["per_node"] != 2: bad.append((j["hosts"], j["per_node"]))
for s in j["series"]:
    for r in s["rows"] if s["op"] in cross else []:
        for t in r, r["in_place"]:
            if t["wrong"] != 0: bad.append((s["op"], s["backend"], "wrong elements"))
            least = (2 * cross[s["op"]] * r["bytes"] - 2 * 6250) / 25e6 / 2
            if s["mode"] == "pipelined" and t["time_s"] < least: bad.append((s["op"], s["backend"], t["time_s"], least))
for b in bad: print(*b, file=sys.stderr)
sys.exit(bool(bad) or {s["op"] for s in j["series"]} < cross.keys())
EOP

# What cannot be is refused, a command's exit code is passed on, and SIGTERM ends the fixture before the command's own end.
for words in '2' '2 100foo -- true' '2 0mbit -- true' '2 100mbit,x -- true' '2 100mbit true'; do
  # shellcheck disable=SC2086 # words are words
  timeout -k 5 300 "$here/hosts" $words >out 2>err
  [ $? = 2 ] && [ "$(wc -l <err)" = 1 ] || complain "hosts $words: not refused in one line: $(cat err)"
done
timeout -k 5 300 "$here/hosts" 2 100mbit -- bash -c 'exit 5'
[ $? = 5 ] || complain "the command's exit code 5 is lost"
# long FILE: hosts in the background, whose command has begun, and has no end
long() {
  setsid "$here/hosts" 2 100mbit -- bash -c "echo >'$scratch/$1'; exec setsid sleep 100000" >/dev/null 2>&1 &
  hosts=$!
  await "hosts to end" test -e "$1"
}
is_over() {
  ! kill -0 "$hosts" 2>/dev/null
}
long told
kill "$hosts"
await "an end by SIGTERM" is_over
wait "$hosts"

# Namespaces of a user end with their processes.
[ "$(id -u)" = 0 ] || conclude "hosts have links of their rate"
[ "$(id -u)" = 0 ] || exit 0

# A killed run's leavings go at the next start; it needs no root where users may make namespaces.
if setpriv --reuid 65534 --regid 65534 --clear-groups unshare --user --map-root-user --net --mount true 2>/dev/null; then
  cp "$here/hosts" /tmp/hplan-hosts-copy-$$ # this folder is nobody else's
  (cd /tmp && setpriv --reuid 65534 --regid 65534 --clear-groups env "TMPDIR=/tmp" timeout -k 5 600 /tmp/hplan-hosts-copy-$$ 2 100mbit -- \
    bash -c 'mpirun -n 4 --oversubscribe --hostfile "$HPLAN_HOSTS" hostname') >out 2>err || complain "no hosts without root: $(cat err)"
  [ "$(sort out | xargs)" = "host1 host1 host2 host2" ] || complain "hosts without root: $(cat out)"
  rm -f /tmp/hplan-hosts-copy-$$
fi
nothing_left() {
  ! ip netns list | grep -q "hplan-$hosts-" && ! ip link | grep -q "hp[bv]-$hosts\b"
}
await "an end of what was told to end" nothing_left
long killed
ip netns list | grep -q "hplan-$hosts-2" || complain "the run to kill made no hosts"
kill -9 -"$hosts" 2>/dev/null || kill -9 "$hosts"
wait "$hosts" 2>/dev/null
timeout -k 5 300 "$here/hosts" 2 100mbit -- true || complain "no start after a killed run"
await "an end of what a killed run has left" nothing_left || complain "left behind: $(ip netns list; ip link)"

conclude "hosts have links of their rate, and leave nothing"
