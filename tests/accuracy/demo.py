#!/usr/bin/env python3
"""demo.py - the commands of `./bootstrap demo` with a tree that is built, and whether they keep what they promise.

    tests/accuracy/demo.py [--hplan build/hplan] [--rounds 10]

Runs the function `demo` of ./bootstrap as it stands there, without its packages and its build. Judged: its measured step
lies within the predicted interval, calibration takes at most a minute, and its choice is at most 3 % slower than the best
of six strategies that run beside it in rounds (the regret is cross-fitted: searches.py says why).
"""
import argparse
import json
import math
import pathlib
import random
import re
import shlex
import statistics
import sys
import time

import judge

CALIBRATION_S, SLOWER = 60, 0.03
STRATEGIES = ["dp=2", "dp=2,micro=8", "sp=2x1", "sp=1x2", "cp=2", "stages=2,micro=8,sched=1f1b", "stages=2,sp=2x1,tail=shared"]


def options():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("--hplan", default="build/hplan")
    p.add_argument("--rounds", type=int, default=10)
    p.add_argument("--seconds", type=float, default=0.8, help="steps of a run")
    p.add_argument("--out", default="demo.jsonl", help="results")
    return p.parse_args()


def demo_commands(folder):
    """The words of every `show` line of the demo, with its variables."""
    script = pathlib.Path(__file__).resolve().parents[2].joinpath("bootstrap").read_text()
    body = re.search(r"^demo\(\) \{\n(.*?)^\}", script, re.S | re.M).group(1).replace("\\\n", " ")
    return [[re.sub(r"\$\{?out\}?", str(folder), word) for word in shlex.split(line.strip())[1:]]
            for line in body.splitlines() if line.strip().startswith("show ")]


def option_of(words, name):
    return words[words.index(f"--{name}") + 1] if f"--{name}" in words else None


def run_demo(hplan, commands, book):
    for words in commands:
        before = time.monotonic()
        hplan.call(*words, limit_s=600)
        book.add("command", words=words, elapsed_s=time.monotonic() - before)
        judge.say(f"{book.lines[-1]['elapsed_s']:7.1f} s  hplan {shlex.join(words)}")


def judge_demo(hplan, commands):
    search = next(words for words in commands if words[0] == "simulate")
    trace = option_of(next(words for words in commands if words[0] == "run"), "trace")
    # asked again of the demo's table: the search is deterministic
    found = json.loads(hplan.call(*search[:search.index("--out")], "--out", hplan.home / "again.db", "--json")[1])
    chosen = next(c for c in found["candidates"] if c["rank"] == found["chosen"])
    compared = json.loads(hplan.call("compare", trace, "--json")[1])
    step, speed = compared["step"], compared.get("speed") or {}
    low, high = chosen["step_low_s"], chosen["step_high_s"]
    print(f"choice: {chosen['strategy']}, {1e3 * chosen['step_s']:.4g} ms predicted, {1e3 * low:.4g} to {1e3 * high:.4g}")
    for name, seconds in (("raw", step["measured_s"]), ("at equal speed", step.get("equal_speed_s") or speed.get("equal_speed_s"))):
        if seconds:
            print(f"  measured {name}: {1e3 * seconds:.4g} ms, {'inside' if low <= seconds <= high else 'OUTSIDE'}; "
                  f"error {judge.percent(chosen['step_s'] / seconds - 1, True)} %")
    return search, chosen["strategy"]


def race(hplan, o, search, chosen, book):
    problem = {"net": option_of(search, "net"), "image": option_of(search, "image"), "batch": option_of(search, "batch")}
    cost = option_of(search, "cost")
    plans = {}
    for strategy in [chosen] + STRATEGIES:
        plan = hplan.home / f"demo-{len(plans)}.db"
        words = ["--strategy", strategy, "--out", plan] + (["--cost", cost] if cost else [])
        found = hplan.search(problem, *words)["candidates"]
        if found and found[0]["strategy"] not in plans and len(plans) < 7:
            plans[found[0]["strategy"]] = (plan, found[0]["step_s"])
    done = {(r["strategy"], r["round"]) for r in book.rows("run")}
    for number in range(o.rounds):
        for strategy in random.Random(number).sample(list(plans), len(plans)):
            plan, step_s = plans[strategy]
            if (strategy, number) not in done:
                book.add("run", strategy=strategy, round=number,
                         **hplan.measure(plan, "train", judge.steps_for(o.seconds, step_s), step_s))
        judge.say(f"round {number + 1}/{o.rounds}")
    return list(plans)


def judge_race(strategies, runs, figure, name):
    seconds = {s: [math.log(r[figure]) for r in runs if r["strategy"] == s and r[figure]] for s in strategies}
    if min(map(len, seconds.values())) < 2:
        print(f"race {name}: not known")
        return
    chosen, others = strategies[0], strategies[1:]
    print(f"race {name}:")
    for s in sorted(strategies, key=lambda s: statistics.mean(seconds[s])):
        print(f"  {1e3 * math.exp(statistics.mean(seconds[s])):9.4g} ms  {s}{'  (the choice)' if s == chosen else ''}")

    def against_best(a, b):
        best = min(others, key=lambda s: statistics.mean(seconds[s][a]))
        return math.expm1(statistics.mean(seconds[chosen][b]) - statistics.mean(seconds[best][b]))
    odd, even, every = slice(0, None, 2), slice(1, None, 2), slice(None)
    print(f"  the choice against the best of the others: {judge.percent(against_best(every, every), True)} %")
    print(judge.verdict("cross-fitted", statistics.mean((against_best(odd, even), against_best(even, odd))), -math.inf, SLOWER))


def main():
    o = options()
    book = judge.Book(o.out)
    hplan = judge.Hplan(o.hplan, book.home())
    folder = hplan.home / "demo"
    folder.mkdir(exist_ok=True)
    print(judge.heading())
    commands = demo_commands(folder)
    if not book.rows("command"):
        run_demo(hplan, commands, book)
    calibration_s = sum(r["elapsed_s"] for r in book.rows("command") if r["words"][0] == "calibrate")
    print(judge.verdict("calibration", calibration_s, -math.inf, CALIBRATION_S, "s"))
    search, chosen = judge_demo(hplan, commands)
    strategies = race(hplan, o, search, chosen, book)
    for figure, name in (("equal_speed_s", "at equal speed"), ("measured_s", "raw")):
        judge_race(strategies, book.rows("run"), figure, name)


if __name__ == "__main__":
    try:
        main()
    except judge.Failed as failure:
        sys.exit(f"FAILED: {failure}")
