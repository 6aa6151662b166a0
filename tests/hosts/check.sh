#!/bin/bash
# check.sh - the fixture: rates hold, counters count, runs over links compute the same, and nothing is left behind.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/cli/lib.sh
. "$here/../cli/lib.sh" || exit 1
need_executor
"$here/hosts" 2 100mbit -- true || exit $?

cat >stream.py <<'EOP'
# Sends megabytes to a process in the second host for 2 s; prints bytes per second, and bytes.
import socket, subprocess, sys, time, os
server = 'import socket\ns = socket.create_server(("10.99.0.2", 5001))\nc, _ = s.accept()\nwhile c.recv(1 << 16): pass\nc.send(b"x")\n'
there = subprocess.Popen(["nsenter", "--net=/run/netns/hplan-%s-2" % os.environ["HPLAN_FIXTURE"], "python3", "-c", server])
for _ in range(100):
    try:
        c = socket.create_connection(("10.99.0.2", 5001))
        break
    except OSError:
        time.sleep(0.05)
n, start = 0, time.monotonic()
while time.monotonic() - start < 2:
    n += c.send(bytes(1 << 16))
c.shutdown(socket.SHUT_WR)
c.recv(1)
print(n / (time.monotonic() - start), n)
there.wait()
EOP
timeout -k 5 60 "$here/hosts" 2 100mbit -- bash -c "python3 stream.py; '$here/hosts' bytes" >out 2>err ||
  complain "no stream: $(cat err)"
read -r rate sent <out
python3 -c 'import sys; sys.exit(not 0.75 * 12.5e6 < float(sys.argv[1]) < 1.05 * 12.5e6)' "$rate" ||
  complain "a stream over 100 Mb/s reaches $rate bytes/s"
counted=$(awk '/^host1/ {print $2}' out)
# headers are 66 bytes of 1514
python3 -c 'import sys; n, c = map(float, sys.argv[1:]); sys.exit(not 1.0 < c / n < 1.08)' "$sent" "${counted:-0}" ||
  complain "$sent bytes were sent, the link counted $counted"

# A run over the links gives the losses of one without, and hplan's bytes are the links'.
cat >run.sh <<EOS
"$HPLAN" simulate --machine "\$HPLAN_MACHINE" --net cnn --image 32 --classes 10 --batch 8 --device ref \\
  --strategy dp=4,comm=allreduce:own.two_levels --out hosts.db >/dev/null &&
  "$here/hosts" bytes >before &&
  "$HPLAN" run hosts.db --hostfile "\$HPLAN_HOSTS" --steps 4 --trace hosts-run.db --json --no-history >over &&
  "$here/hosts" bytes >after &&
  "$HPLAN" run hosts.db --force --steps 4 --trace alone.db --json --no-history >alone
EOS
timeout -k 5 150 "$here/hosts" 2 400mbit -- bash run.sh >out 2>err || complain "no run over the links: $(cat out err)"
losses() {
  grep -o '"step":[0-9]*,"loss":[^,]*' "$1"
}
[ "$(losses over | wc -l)" = 4 ] || complain "no losses: $(cat over)"
[ "$(losses over)" = "$(losses alone)" ] || complain "losses over links: $(losses over), without: $(losses alone)"
"$HPLAN" compare --comm --json hosts-run.db >comm.json || complain "no log of the run"
python3 - <<'EOP' || complain "the links counted other bytes than hplan: $(cat before after)"
import json, sys
rows = json.load(open("comm.json"))["rows"]
big = max(rows, key=lambda r: r["bytes"])
# by two levels each host's link carries the data once in each direction, a step
expected = 4 * big["bytes"]
def sent(f):
    return {l.split()[0]: int(l.split()[1]) for l in open(f)}
a, b = sent("before"), sent("after")
ok = big["algorithm"] == "two_levels" and all(1.0 < (b[h] - a[h]) / expected < 1.12 for h in b)
print([(b[h] - a[h]) / expected for h in b], big["algorithm"])
sys.exit(not ok)
EOP

# What cannot be is refused, a command's exit code is passed on, and SIGTERM ends the fixture before the command's own end.
for words in '2' '2 100foo -- true' '2 0mbit -- true' '2 100mbit,x -- true' '2 100mbit true'; do
  # shellcheck disable=SC2086 # words are words
  timeout -k 5 20 "$here/hosts" $words >out 2>err
  [ $? = 2 ] && [ "$(wc -l <err)" = 1 ] || complain "hosts $words: not refused in one line: $(cat err)"
done
timeout -k 5 20 "$here/hosts" 2 100mbit -- bash -c 'exit 5'
[ $? = 5 ] || complain "the command's exit code 5 is lost"
start=$SECONDS
timeout -k 20 3 "$here/hosts" 2 100mbit -- setsid sleep 60 2>/dev/null
[ $((SECONDS - start)) -lt 15 ] || complain "SIGTERM took $((SECONDS - start)) s"

# A killed run's leavings go at the next start.
setsid bash -c "exec '$here/hosts' 2 100mbit -- sleep 100" >/dev/null 2>&1 &
killed=$!
for _ in $(seq 100); do
  ip netns list | grep -q "hplan-$killed-2" && break
  sleep 0.05
done
ip netns list | grep -q "hplan-$killed-2" || complain "the run to kill made no hosts"
kill -9 -"$killed" 2>/dev/null || kill -9 "$killed"
wait "$killed" 2>/dev/null
timeout -k 5 60 "$here/hosts" 2 100mbit -- true || complain "no start after a killed run"
sleep 0.2
ip netns list | grep -q "hplan-$killed-" && complain "left behind: $(ip netns list)"
ip link | grep -q "hp[bv]-$killed" && complain "left behind: $(ip link)"

conclude "hosts have links of their rate, and leave nothing"
