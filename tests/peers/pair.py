#!/usr/bin/python3
"""Two commands in turn, A B A B ..., on a machine that others use too: medians, minima and ratios.

    pair.py [--rounds 5] [--json] -- COMMAND-A ... -- COMMAND-B ...

Each command prints JSON objects, one per line, with the seconds of its runs: "step_s", a list or one number per line
(ort.mjs and `hplan run --json` do), and "step_cpu_s" likewise where it knows them. A command without any is timed as a whole.
The process's CPU seconds and largest resident size include its children's. A ratio above 1 says that B takes more."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def seconds_in(text, key):
    """What the lines of JSON say under this key about single runs."""
    found = []
    for line in text.splitlines():
        try:
            said = json.loads(line)
        except ValueError:
            continue
        steps = said.get(key, []) if isinstance(said, dict) and not said.get("final") else []
        found += steps if isinstance(steps, list) else [steps]
    return found


def run(command):
    """One run of a command: seconds of its steps, of the process (wall, CPU), its largest resident size."""
    with tempfile.TemporaryFile() as out:
        t0 = time.monotonic()
        child = subprocess.Popen(command, stdout=out, stdin=subprocess.DEVNULL, env={**os.environ, "HPLAN_NO_HISTORY": "1"})
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - t0
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode()
    if child.returncode:
        print(text, file=sys.stderr)
        sys.exit(child.returncode)  # 77, where a peer cannot be had, stays 77
    cpu = usage.ru_utime + usage.ru_stime
    steps = seconds_in(text, "step_s")
    return {"step_s": steps or [wall], "step_cpu_s": seconds_in(text, "step_cpu_s") if steps else [cpu], "process_cpu_s": cpu,
            "peak_rss_bytes": usage.ru_maxrss * 1024}


def summary(runs):
    steps, cpu = ([s for r in runs for s in r[key]] for key in ("step_s", "step_cpu_s"))
    return {"steps": len(steps), "median_s": statistics.median(steps), "min_s": min(steps),
            "cpu_median_s": statistics.median(cpu) if cpu else None, "cpu_min_s": min(cpu, default=None),
            "process_cpu_s": statistics.median(r["process_cpu_s"] for r in runs),
            "peak_rss_bytes": statistics.median(r["peak_rss_bytes"] for r in runs)}


ROWS = (("median, ms", "median_s", 1e3), ("minimum, ms", "min_s", 1e3), ("CPU median, ms", "cpu_median_s", 1e3),
        ("CPU minimum, ms", "cpu_min_s", 1e3), ("process CPU, s", "process_cpu_s", 1), ("peak RSS, MB", "peak_rss_bytes", 1e-6))


def show(a, b, per_round):
    print(f"{'':16}{'A':>12}{'B':>12}{'B / A':>8}")
    for title, key, unit in ROWS:
        cells = ["" if v[key] is None else f"{v[key] * unit:.2f}" for v in (a, b)]
        ratio = f"{b[key] / a[key]:.3f}" if all(cells) else ""
        print(f"{title:16}{cells[0]:>12}{cells[1]:>12}{ratio:>8}")
    print("ratio of each round: " + " ".join(f"{r:.3f}" for r in per_round) + f"; median {statistics.median(per_round):.3f}")


def split(words):
    """Options, command A, command B: separated by --."""
    cuts = [i for i, w in enumerate(words) if w == "--"]
    if len(cuts) < 2:
        sys.exit(__doc__)
    return words[:cuts[0]], words[cuts[0] + 1:cuts[1]], words[cuts[1] + 1:]


def main():
    options, a, b = split(sys.argv[1:])
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    o = parser.parse_args(options)
    rounds = [(run(a), run(b)) for _ in range(o.rounds)]
    of_a, of_b = (summary([r[i] for r in rounds]) for i in (0, 1))
    per_round = [statistics.median(rb["step_s"]) / statistics.median(ra["step_s"]) for ra, rb in rounds]
    if o.json:
        print(json.dumps({"schema": 1, "a": of_a, "b": of_b, "ratios": per_round, "ratio": statistics.median(per_round)}))
    else:
        show(of_a, of_b, per_round)


if __name__ == "__main__":
    main()
