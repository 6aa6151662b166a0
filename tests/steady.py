#!/usr/bin/env python3
"""steady.py [--times N] [--loops L] [--core C] BUILD [CTEST-OPTION...] - are the tests steady? Runs them N times (20) beside L busy loops (2), or
on the one core C, and prints of each test how often it failed and its least, median and greatest time, the slowest first. Exits 1 if any failed once.

    tests/steady.py build -L 'cli|speed'
    tests/steady.py --times 5 --core 0 build-asan -LE speed
"""
import argparse
import collections
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import xml.etree.ElementTree


def run_once(build, options, jobs):
    """{test: (passed, seconds)}, and what failed said."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.xml")
        subprocess.run(["ctest", "-j", str(jobs), "--output-on-failure", "--output-junit", report, *options], cwd=build, stdout=subprocess.DEVNULL)
        found, said = {}, {}
        for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
            if case.get("status") in ("run", "fail"):
                found[case.get("name")] = (case.get("status") == "run", float(case.get("time")))
            if case.get("status") == "fail":
                said[case.get("name")] = (case.findtext("system-out") or "")[-1500:]
        return found, said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--loops", type=int, default=2)
    parser.add_argument("--core", type=int)
    parser.add_argument("build")
    options, ctest_options = parser.parse_known_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    jobs = len(os.sched_getaffinity(0))
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(options.loops)]
    seconds, failures = collections.defaultdict(list), collections.Counter()
    try:
        for turn in range(options.times):
            found, said = run_once(options.build, ctest_options, jobs)
            for name, (passed, took) in found.items():
                seconds[name].append(took)
                failures[name] += not passed
            print(f"run {turn + 1} of {options.times}: {len(found)} tests, {len(said)} failed", flush=True)
            for name, text in said.items():
                print(f"--- {name}\n{text}", flush=True)
    finally:
        for loop in loops:
            loop.kill()
    print(f"{'test':48} {'runs':>5} {'failed':>7} {'least':>8} {'median':>8} {'greatest':>9}")
    for name, times in sorted(seconds.items(), key=lambda item: -statistics.median(item[1])):
        print(f"{name:48} {len(times):5} {failures[name]:7} {min(times):8.2f} {statistics.median(times):8.2f} {max(times):9.2f}")
    return 1 if sum(failures.values()) or not seconds else 0


if __name__ == "__main__":
    sys.exit(main())
