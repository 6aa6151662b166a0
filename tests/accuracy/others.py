#!/usr/bin/env python3
"""others.py - what a table that knows three small networks says of others, beside what an empty table says.

    tests/accuracy/others.py [--hplan build/hplan] [--seed 1] [--busy 2] [--configs 10] [--out FILE.jsonl]

Calibrates KNOWN in turn, beside `busy` loops that do nothing but compute; then draws networks, image sizes from 28 to 1024,
batches and modes by the seed, predicts each with that table and with none, and runs each in a median of rounds. The
judgement, at equal machine speed: how many are inside their interval, and both mean errors (of logarithms, since guesses
are wrong by factors). The same command goes on where a stopped one was; --report judges what FILE holds.
"""
import argparse
import contextlib
import math
import random
import statistics
import subprocess
import sys

import judge

KNOWN = [("cnn", 28, 64), ("resnet18", 32, 16), ("unet:4", 64, 4)]  # network, image, batch
OTHERS = ["cnn", "resnet18", "resnet34", "resnet50", "mobilenetv2", "densenet121", "unet:8", "unet:16", "resnet-v1-20", "vgg11",
          "amoebanetd:3,32"]
SIZES = (28, 32, 64, 96, 128, 224, 256, 384, 512, 768, 1024)
BATCHES = (1, 2, 4, 8, 16)
INFER, INSIDE = 0.4, 0.9


def options():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("--hplan", default="build/hplan")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--busy", type=int, default=0, help="busy loops beside the calibration")
    p.add_argument("--configs", type=int, default=10)
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--seconds", type=float, default=1.5, help="steps of a run")
    p.add_argument("--longest", type=float, default=3, help="seconds of a step, by an empty table")
    p.add_argument("--calibrate-seconds", type=int, default=30, help="for each of the three")
    p.add_argument("--minutes", type=float, default=20, help="no run begins after them")
    p.add_argument("--out", help="results (others-SEED-BUSY.jsonl)")
    p.add_argument("--report", action="store_true", help="only judge what there is")
    return p.parse_args()


@contextlib.contextmanager
def busy_loops(n):
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def draw(rng, predict, n, longest_s):
    """n problems of one rank that are no known one, that are legal, and whose steps are neither too short nor too long."""
    known = {(net, image) for net, image, _ in KNOWN}
    found = []
    while len(found) < n:
        p = {"net": rng.choice(OTHERS), "image": rng.choice(SIZES), "batch": rng.choice(BATCHES),
             "mode": "infer" if rng.random() < INFER else "train"}
        if p in found or (p["net"], p["image"]) in known:
            continue
        with contextlib.suppress(judge.Failed):
            step_s = predict(p)
            if step_s and 1e-3 <= step_s <= longest_s:
                found.append(p)
    return found


def calibrate(hplan, o, book):
    done = {row["job"] for row in book.rows("calibrated")}
    for net, image, batch in KNOWN:
        job = f"{net} {image} {batch}"
        if job in done:
            continue
        judge.say(f"calibrate {job} beside {o.busy} busy loops")
        with busy_loops(o.busy):
            hplan.call("calibrate", "--net", net, "--image", image, "--batch", batch, "--gpus", 2, "--seconds",
                       o.calibrate_seconds, limit_s=300 + 5 * o.calibrate_seconds)
        book.add("calibrated", job=job, heading=judge.heading())


def predict(hplan, p, plan):
    c = hplan.predict(p, "dp=1", plan)
    return c and {k: c[k] for k in ("step_s", "step_low_s", "step_high_s", "equal_low_s", "equal_high_s", "measured_share")}


def run(hplan, empty, o, book):
    clock = judge.Clock(o.minutes)
    if not book.rows("drawn"):
        rng = random.Random(o.seed)
        found = draw(rng, lambda p: (predict(empty, p, empty.home / "draw.db") or {}).get("step_s"), o.configs, o.longest)
        book.add("drawn", seed=o.seed, busy=o.busy, configurations=found, heading=judge.heading())
    calibrate(hplan, o, book)
    problems = book.rows("drawn")[0]["configurations"]
    done = {(row["config"], row["round"]) for row in book.rows("run")}
    for number in range(o.rounds):
        for i, p in enumerate(problems):
            if (i, number) in done or not clock.room_for(0):
                continue
            plan, without = hplan.home / f"{i}.db", empty.home / f"{i}.db"
            try:
                known, unknown = predict(hplan, p, plan), predict(empty, p, without)
                figures = hplan.measure(plan, p["mode"], min(8, judge.steps_for(o.seconds, known["step_s"])),
                                        max(known["step_s"], unknown["step_s"]) * 4)
            except judge.Failed as failure:
                book.add("failed", config=i, round=number, what=str(failure))
                continue
            book.add("run", config=i, round=number, known=known, empty=unknown, **figures)


def report(book):
    drawn = book.rows("drawn")[0]
    print(f"calibrated for {', '.join(f'{n} {i}' for n, i, _ in KNOWN)} beside {drawn['busy']} busy loops, seed {drawn['seed']}: "
          f"{drawn['heading']}")
    print(f"{'network':18}{'image':>6}{'batch':>6}{'mode':>7}{'equal ms':>10}{'predicted':>11}{'interval':>20}{'measured':>10}"
          f"{'empty':>10}  inside")
    hits, known_errors, empty_errors, empty_hits = [], [], [], []
    for i, p in enumerate(drawn["configurations"]):
        runs = [r for r in book.rows("run") if r["config"] == i]
        if not runs:
            continue
        equal = statistics.median(r["equal_speed_s"] or r["measured_s"] for r in runs)
        known, empty = runs[0]["known"], runs[0]["empty"]
        hits.append(known["equal_low_s"] <= equal <= known["equal_high_s"])
        empty_hits.append(empty["equal_low_s"] <= equal <= empty["equal_high_s"])
        known_errors.append(abs(math.log(known["step_s"] / equal)))
        empty_errors.append(abs(math.log(empty["step_s"] / equal)))
        interval = f"{1e3 * known['equal_low_s']:.4g}-{1e3 * known['equal_high_s']:.4g}"
        print(f"{p['net']:18}{p['image']:6}{p['batch']:6}{p['mode']:>7}{1e3 * equal:10.4g}{1e3 * known['step_s']:11.4g}"
              f"{interval:>20}{judge.percent(known['measured_share']):>9}%{1e3 * empty['step_s']:10.4g}  "
              f"{'yes' if hits[-1] else 'NO'}")
    for row in book.rows("failed"):
        print(f"  FAILED: {drawn['configurations'][row['config']]}: {row['what']}")
    if not hits:
        return
    factor = {name: math.exp(statistics.mean(errors)) - 1 for name, errors in (("known", known_errors), ("empty", empty_errors))}
    print(judge.verdict("inside their intervals", statistics.mean(hits), INSIDE, math.inf))
    print(judge.verdict("mean error, as a factor less one", factor["known"], -math.inf, factor["empty"]))
    print(f"    of the empty table {judge.percent(factor['empty'])} %, {sum(empty_hits)} of {len(empty_hits)} inside")


def main():
    o = options()
    book = judge.Book(o.out or f"others-{o.seed}-{o.busy}.jsonl")
    if not o.report:
        judge.say(judge.heading())
        run(judge.Hplan(o.hplan, book.home()), judge.Hplan(o.hplan, book.home().with_suffix(".empty")), o, book)
    report(book)


if __name__ == "__main__":
    try:
        main()
    except judge.Failed as failure:
        sys.exit(f"FAILED: {failure}")
