"""chrome.py - is an export for Perfetto well formed, and does it say what the database holds?

chrome.py TRACE.json RUN.db: a process per run of the database; complete events that do not overlap on a track; a flow from
each message's send to its receive, as the tasks' meetings pair them; counters that never go below 0."""

import collections
import json
import sqlite3
import sys

trace, db = json.load(open(sys.argv[1])), sqlite3.connect(sys.argv[2])
events = trace["traceEvents"]
by = collections.defaultdict(list)
for e in events:
    by[e["ph"]].append(e)
assert set(by) == {"M", "X", "s", "f", "C"}, set(by)

# processes and tracks have names
process = {e["pid"]: e["args"]["name"] for e in by["M"] if e["name"] == "process_name"}
track = {(e["pid"], e["tid"]): e["args"]["name"] for e in by["M"] if e["name"] == "thread_name"}
kinds = {"predicted": "sim", "measured": "exec"}
runs = {kind: run for run, kind in db.execute("SELECT max(id), kind FROM run GROUP BY kind").fetchall()}
assert sorted(kinds[n] for n in process.values()) == sorted(runs), process
assert len({tid for _, tid in track}) == len(track)  # no number stands for tracks of two processes
assert all(e["pid"] in process for e in events)

# complete events: all spans, and none begins on a track before the one before has ended (to the nanosecond)
ns = lambda us: round(1000 * us)
on_track = collections.defaultdict(list)
for e in by["X"]:
    assert (e["pid"], e["tid"]) in track and e["dur"] >= 0, e
    assert track[e["pid"], e["tid"]].startswith("rank %d " % e["args"]["rank"]), e
    on_track[e["pid"], e["tid"]].append((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e))
for list_ in on_track.values():
    list_.sort(key=lambda x: x[:2])
    assert all(a[1] <= b[0] for a, b in zip(list_, list_[1:]))
for pid, name in process.items():
    run = runs[kinds[name]]
    spans = db.execute("SELECT count(*) FROM span WHERE run = ?", (run,)).fetchone()[0]
    assert sum(e["pid"] == pid for e in by["X"]) == spans, (name, spans)


def slice_at(e):
    """The complete event that a flow's end lies in."""
    found = [x for a, b, x in on_track[e["pid"], e["tid"]] if a <= ns(e["ts"]) < max(b, a + 1)]
    assert len(found) == 1, (e, found)
    return found[0]


# flows: a start and an end each, forwards in time, from a send to the receive of the same meeting, step and replica
start, end = ({e["id"]: e for e in by[ph]} for ph in "sf")
assert len(start) == len(by["s"]) == len(end) == len(by["f"]) and set(start) == set(end)
count = collections.Counter()
for i, s in start.items():
    f = end[i]
    assert s["pid"] == f["pid"] and ns(s["ts"]) <= ns(f["ts"]) and f["bp"] == "e"
    assert " send" in track[s["pid"], s["tid"]] and " recv" in track[f["pid"], f["tid"]]
    a, b = slice_at(s)["args"], slice_at(f)["args"]
    run = runs[kinds[process[s["pid"]]]]
    roles = db.execute("SELECT max(role) + 1 FROM task WHERE run = ?", (run,)).fetchone()[0]
    meeting = [db.execute("SELECT meeting FROM task WHERE run = ? AND role = ? AND task = ?",
                          (run, x["rank"] % roles, x["task"])).fetchone()[0] for x in (a, b)]
    assert meeting[0] == meeting[1] >= 0 and a["iter"] == b["iter"] and a["bytes"] == b["bytes"], (a, b)
    assert a["rank"] // roles == b["rank"] // roles and a["rank"] != b["rank"], (a, b)
    count[run] += 1
for run in runs.values():
    sends = db.execute("SELECT count(*) FROM span JOIN task USING(run, role, task)"
                       " WHERE run = ? AND op = 'send' AND iter >= 0", (run,)).fetchone()[0]
    assert count[run] == sends, (run, count[run], sends)

# counters
value = collections.defaultdict(list)
for e in by["C"]:
    value[e["pid"], e["name"]].append((ns(e["ts"]), e["args"]["value"]))
for pid, name in process.items():
    flight = value[pid, "bytes in flight"]
    assert flight == sorted(flight) and max(v for _, v in flight) > 0, flight[:9]
    assert min(v for _, v in flight) == 0 == flight[-1][1]
    if name == "predicted":
        assert any(n.startswith("memory_bytes rank ") for p, n in value if p == pid), value.keys()

# the prediction begins with the step after the warm-up
if len(process) == 2:
    pid = {n: p for p, n in process.items()}
    first = {n: min(ns(e["ts"]) for e in by["X"] if e["pid"] == pid[n] and e["args"]["iter"] == i)
             for n, i in (("predicted", 0), ("measured", 1))}
    assert first["predicted"] == first["measured"], first
