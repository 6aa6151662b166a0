#!/usr/bin/env python3
"""drift.py - slows the machine between calibration and run: is the drift that compare reports the true one?

    tests/accuracy/drift.py [--hplan build/hplan] [--net unet:8 --image 192 --batch 3] [--pairs 8]

Two ways: a process that copies memory on the other cores, and a quota of processor time whose period of 2 ms slows
rather than stalls (control groups, version 1 or 2; skipped where they cannot be written). Runs of one rank with and
without it alternate. The true slowdown is the mean ratio of a pair's median steps, the reported one that of compare's
"slower than when quiet". Judged: its sign, its distance from the true one, and the error that is left of the prediction
at the run's speed. A true slowdown below 3 %, or one that its pairs do not show, has no sign to get right.
"""
import argparse
import contextlib
import math
import os
import pathlib
import statistics
import subprocess
import sys

import judge

WITHIN, LEAST = 0.10, 0.03
PERIOD_US, QUOTA_US = 2000, 1400

# two buffers beyond any cache, copied to and fro by the C library
HOG = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
a, b = bytearray(96 << 20), bytearray(96 << 20)
while os.getppid() == int(sys.argv[2]):
    a[:] = b
    b[:] = a
"""


def options():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("--hplan", default="build/hplan")
    p.add_argument("--net", default="unet:8")
    p.add_argument("--image", default="192")
    p.add_argument("--batch", type=int, default=3)
    p.add_argument("--pairs", type=int, default=8)
    p.add_argument("--seconds", type=float, default=2.0, help="steps of a run")
    p.add_argument("--calibrate-seconds", type=int, default=60)
    p.add_argument("--out", default="drift.jsonl", help="results; their home beside them is used again")
    return p.parse_args()


# --- what slows ---


@contextlib.contextmanager
def hogs(cores):
    started = [subprocess.Popen([sys.executable, "-c", HOG, str(core), str(os.getpid())]) for core in cores]
    try:
        yield
    finally:
        for one in started:
            one.kill()
            one.wait()


class Quota:
    """A control group whose processes get QUOTA_US of processor time every PERIOD_US; `words` start one in it."""

    def __init__(self):
        self.group = None
        for root, files in (("/sys/fs/cgroup/cpu", {"cpu.cfs_period_us": PERIOD_US, "cpu.cfs_quota_us": QUOTA_US}),
                            ("/sys/fs/cgroup", {"cpu.max": f"{QUOTA_US} {PERIOD_US}"})):
            group = pathlib.Path(root, f"hplan-judge-{os.getpid()}")
            try:
                group.mkdir()
                self.group = group
                for name, value in files.items():
                    if not (group / name).exists():
                        raise OSError(f"{group} has no {name}")
                    (group / name).write_text(str(value))
                self.words = ["sh", "-c", f'echo $$ >"{group}/cgroup.procs" && exec "$@"', "sh"]
                return
            except OSError as error:
                self.why = str(error)
                self.close()

    def close(self):
        if self.group:
            with contextlib.suppress(OSError):
                self.group.rmdir()
        self.group = None


# --- pairs ---


def run_pairs(hplan, o, name, plan, step_s, slowed, book):
    """Alternating runs; slowed(on) is the context in which one runs."""
    for pair in range(o.pairs):
        if any(r["what"] == name and r["pair"] == pair for r in book.rows("pair")):
            continue
        figures = {}
        for on in ((False, True) if pair % 2 == 0 else (True, False)):
            with slowed(on):
                figures["slowed" if on else "free"] = hplan.measure(plan, "train", judge.steps_for(o.seconds, step_s), step_s)
        book.add("pair", what=name, pair=pair, **figures)
        judge.say(f"{name}: pair {pair + 1}/{o.pairs}: {figures['slowed']['measured_s'] / figures['free']['measured_s']:.3f}")


def quiet_factor(figures):
    return (figures["speed"] or {}).get("quiet")


def judge_pairs(name, pairs):
    mean, half = judge.paired_interval([p["slowed"]["measured_s"] / p["free"]["measured_s"] for p in pairs])
    true = math.exp(mean)
    print(f"\n{name}: {len(pairs)} pairs; truly {100 * (true - 1):+.1f} % slower, 95 % interval "
          f"{100 * math.expm1(mean - half):+.1f} to {100 * math.expm1(mean + half):+.1f}")
    both = [(quiet_factor(p["slowed"]), quiet_factor(p["free"])) for p in pairs]
    if any(a is None or b is None for a, b in both):
        print("  compare does not say how fast the machine was")
        return
    reported = math.exp(statistics.mean(math.log(a / b) for a, b in both))
    print(f"  reported {100 * (reported - 1):+.1f} %")
    if abs(mean) > half and abs(true - 1) >= LEAST:
        print(f"  sign: {'right' if (reported - 1) * (true - 1) > 0 else 'WRONG'}")
    else:
        print("  sign: not judged, the slowdown is too small or not shown")
    print(judge.verdict("reported against true slowdown", abs(reported / true - 1), -math.inf, WITHIN))
    for which in ("slowed", "free"):
        off = [p[which]["model_error"] for p in pairs if p[which]["model_error"] is not None]
        raw = statistics.mean(p[which]["predicted_s"] / p[which]["measured_s"] - 1 for p in pairs)
        print(judge.verdict(f"prediction at the speed of the {which} runs", abs(statistics.mean(off)) if off else None,
                            -math.inf, WITHIN) + f"; as it was: {judge.percent(raw, True)} %")


def main():
    o = options()
    book = judge.Book(o.out)
    hplan = judge.Hplan(o.hplan, book.home())
    problem = {"net": o.net, "image": o.image, "batch": o.batch, "mode": "train"}
    print(judge.heading())
    judge.calibrate(hplan, [problem], o.calibrate_seconds, 2, "quick", book)
    plan = hplan.home / "drift.db"
    step_s = hplan.predict(problem, "dp=1", plan)["step_s"]
    cores = sorted(os.sched_getaffinity(0))

    if len(cores) > 1:
        @contextlib.contextmanager
        def hogged(on):
            hplan.prefix = ["taskset", "-c", str(cores[0])]
            with hogs(cores[1:] if on else []):
                yield
            hplan.prefix = []
        run_pairs(hplan, o, "copies on the other cores", plan, step_s, hogged, book)
    else:
        print("copies on the other cores: skipped, there is one core")

    quota = Quota()
    if quota.group:
        @contextlib.contextmanager
        def limited(on):
            hplan.prefix = quota.words if on else []
            yield
            hplan.prefix = []
        try:
            run_pairs(hplan, o, "processor quota", plan, step_s, limited, book)
        finally:
            quota.close()
    else:
        print(f"processor quota: skipped, {quota.why}")

    for name in dict.fromkeys(p["what"] for p in book.rows("pair")):
        judge_pairs(name, [p for p in book.rows("pair") if p["what"] == name])


if __name__ == "__main__":
    try:
        main()
    except judge.Failed as failure:
        sys.exit(f"FAILED: {failure}")
