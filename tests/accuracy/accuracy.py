#!/usr/bin/env python3
"""accuracy.py - how far predictions are from measurements, and how often their intervals contain them.

    tests/accuracy/accuracy.py [--hplan build/hplan] [--seed 1] [--configs 30] [--rounds 4] [--out FILE.jsonl]

Draws configurations (draw.py), calibrates in a home of its own, predicts each once, then runs all of them in rounds,
each round in another order. Runs feed neither table nor history: both are compared with what they were before. The
judgement: errors of a configuration are of the median over its rounds; coverage counts (configuration, round) medians.
The same command goes on where a stopped one was; --report judges what FILE holds.
"""
import argparse
import math
import random
import statistics
import sys

import draw
import judge

EQUAL_MEAN, EQUAL_WORST, COVERED, HALF_WIDTH, OF_SPREAD = 0.07, 0.20, (0.80, 0.97), 0.12, 1.5


def options():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("--hplan", default="build/hplan")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--configs", type=int, default=30)
    p.add_argument("--pairs", type=int, default=8, help="different networks and image sizes, each calibrated")
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--seconds", type=float, default=1.5, help="steps of a run")
    p.add_argument("--mode", choices=("quick", "full"), default="quick", help="calibration")
    p.add_argument("--calibrate-seconds", type=int, default=60)
    p.add_argument("--gpus", type=int, default=judge.some_ranks(), help="ranks that a quick calibration is asked for")
    p.add_argument("--minutes", type=float, default=25, help="no round begins that would not end within them")
    p.add_argument("--out", help="results (accuracy-SEED.jsonl)")
    p.add_argument("--report", action="store_true", help="only judge what there is")
    return p.parse_args()


# --- runs ---


def draw_all(hplan, o, book):
    """As drawn before, or now: with the costs that hplan has before it is calibrated."""
    if book.rows("drawn"):
        return book.rows("drawn")[0]["configurations"]

    def predict(problem, strategy):
        candidate = hplan.predict(problem, strategy, hplan.home / "draw.db")
        return candidate and candidate["step_s"]

    found = draw.draw_configurations(o.seed, o.configs, o.pairs, predict)
    book.add("drawn", seed=o.seed, configurations=found, heading=judge.heading())
    return found


def predict_all(hplan, configurations, book):
    """Once, after calibration. What is no longer legal or fails stands in the results as such."""
    done = {row["config"] for row in book.rows("predicted") + book.rows("failed")}
    (hplan.home / "plans").mkdir(exist_ok=True)
    for i, c in enumerate(configurations):
        if i in done:
            continue
        try:
            candidate = hplan.predict(c, c["strategy"], hplan.home / "plans" / f"{i}.db")
        except judge.Failed as failure:
            book.add("failed", config=i, what=str(failure))
            continue
        if not candidate:
            book.add("failed", config=i, what="no candidate")
            continue
        keep = {k: v for k, v in candidate.items() if not isinstance(v, list)}
        book.add("predicted", config=i, **keep)


def run_round(hplan, o, number, configurations, book):
    predicted = {row["config"]: row for row in book.rows("predicted")}
    done = {(row["config"], row["round"]) for row in book.rows("run") + book.rows("failed_run")}
    order = [i for i in predicted if (i, number) not in done]
    random.Random(o.seed * 1000 + number).shuffle(order)
    for i in order:
        step_s = predicted[i]["step_s"]
        c = configurations[i]
        try:
            figures = hplan.measure(hplan.home / "plans" / f"{i}.db", c["mode"], judge.steps_for(o.seconds, step_s), step_s)
            book.add("run", config=i, round=number, **figures)
        except judge.Failed as failure:
            book.add("failed_run", config=i, round=number, what=str(failure))
            judge.say(f"failed: {failure}")


def run_rounds(hplan, o, configurations, book, clock):
    before = hplan.fingerprint()
    for number in range(o.rounds):
        took = [r["wall_s"] for r in book.rows("run")]
        needed = len(configurations) * (statistics.mean(took) + 0.3 if took else o.seconds + 2)
        if not clock.room_for(needed):
            judge.say(f"round {number + 1} would take {needed:.0f} s: not within {o.minutes:g} minutes")
            break
        judge.say(f"round {number + 1}/{o.rounds}: about {needed:.0f} s; {clock.elapsed_s():.0f} s so far")
        run_round(hplan, o, number, configurations, book)
    if hplan.fingerprint() != before:
        sys.exit("the runs changed a table or a history that predictions rest on: these figures judge nothing")


# --- judgement ---


def known(values):
    return [v for v in values if v is not None and not math.isnan(v)]


class Row:
    """One configuration: its prediction, and the medians of its rounds raw and at equal speed."""

    def __init__(self, predicted, configuration, runs):
        self.p, self.c = predicted, configuration
        self.raw = [r["measured_s"] for r in runs]
        self.equal = known([r["equal_speed_s"] for r in runs])
        self.own = known([judge.own_equal_speed(r, predicted.get("yardsticks", {})) for r in runs])

    def error(self, measured):
        return self.p["step_s"] / statistics.median(measured) - 1 if measured else math.nan

    def inside(self):
        """Of the raw medians."""
        return [self.p["step_low_s"] <= m <= self.p["step_high_s"] for m in self.raw]

    def inside_equal(self):
        return [self.p["equal_low_s"] <= m <= self.p["equal_high_s"] for m in self.equal]

    def half_width(self, name):
        return (self.p[f"{name}_high_s"] - self.p[f"{name}_low_s"]) / 2 / self.p["step_s"]

    def log_variance(self):
        return statistics.variance(math.log(m) for m in self.raw) if len(self.raw) > 1 else math.nan


def spread_between_rounds(rows):
    """Half of the range that holds 90 % of the rounds of one configuration: pooled deviation of logarithms, times 1.645."""
    variances = known([row.log_variance() for row in rows])
    return 1.645 * math.sqrt(statistics.mean(variances)) if variances else math.nan


def show_table(rows):
    print(f"\n{'network':16}{'image':>6}{'batch':>6} {'strategy':50}{'mode':>6}{'predicted':>11}{'interval':>18}"
          f"{'raw':>9}{'equal':>9}{'error':>8}{'equal':>8}  inside")
    for row in rows:
        p, c = row.p, row.c
        interval = f"{1e3 * p['step_low_s']:.4g}-{1e3 * p['step_high_s']:.4g}"
        equal = f"{1e3 * statistics.median(row.equal):9.4g}" if row.equal else f"{'-':>9}"
        inside = f"{sum(row.inside())}/{len(row.raw)}" + (f" {sum(row.inside_equal())}/{len(row.equal)}" if row.equal else "")
        print(f"{c['net']:16}{c['image']:6}{c['batch']:6} {p['strategy'][:49]:50}{c['mode']:>6}{1e3 * p['step_s']:11.4g}"
              f"{interval:>18}{1e3 * statistics.median(row.raw):9.4g}{equal}{judge.percent(row.error(row.raw), True):>8}"
              f"{judge.percent(row.error(row.equal), True):>8}  {inside}")
    print("milliseconds; errors in %, + is predicted slower than measured; inside: raw medians, and those at equal speed\n")


def show_errors(name, rows, measured, judged):
    errors = [abs(row.error(measured(row))) for row in rows if measured(row)]
    if not errors:
        print(f"  errors {name}: not known")
        return
    signed = [row.error(measured(row)) for row in rows if measured(row)]
    if judged:
        print(judge.verdict(f"mean error {name}, {len(errors)} configurations", statistics.mean(errors), -math.inf, EQUAL_MEAN))
        print(judge.verdict(f"worst error {name}", max(errors), -math.inf, EQUAL_WORST))
    else:
        print(f"  errors {name}, {len(errors)} configurations: mean {judge.percent(statistics.mean(errors))} %, "
              f"median {judge.percent(statistics.median(errors))} %, worst {judge.percent(max(errors))} %")
    print(f"    their mean with sign: {judge.percent(statistics.mean(signed), True)} %")


def show_coverage(name, inside):
    if inside:
        print(judge.verdict(f"90 % intervals cover {name}, of {len(inside)} medians", statistics.mean(inside), *COVERED))


def report(book):
    configurations = book.rows("drawn")[0]["configurations"]
    runs = {}
    for r in book.rows("run"):
        runs.setdefault(r["config"], []).append(r)
    rows = [Row(p, configurations[p["config"]], runs[p["config"]]) for p in book.rows("predicted") if p["config"] in runs]
    if not rows:
        sys.exit("nothing was measured")
    show_table(rows)
    print(book.rows("drawn")[0]["heading"])
    print(f"seed {book.rows('drawn')[0]['seed']}; calibration "
          f"{sum(r['elapsed_s'] for r in book.rows('calibrated')):.0f} s in {len(book.rows('calibrated'))} parts")
    show_errors("at equal speed", rows, lambda row: row.equal, True)
    show_errors("at equal speed by multiply-adds alone, as a check", rows, lambda row: row.own, False)
    show_errors("raw", rows, lambda row: row.raw, False)
    show_coverage("medians at equal speed", [hit for row in rows for hit in row.inside_equal()])
    width = statistics.median(row.half_width("equal") for row in rows)
    print(judge.verdict("median half-width at equal speed", width, -math.inf, HALF_WIDTH))
    show_coverage("raw medians", [hit for row in rows for hit in row.inside()])
    raw, spread = statistics.median(row.half_width("step") for row in rows), spread_between_rounds(rows)
    print(judge.verdict("median half-width, raw, over the spread between rounds", raw / spread, -math.inf, OF_SPREAD, ""))
    print(f"    half-width {judge.percent(raw)} %, spread {judge.percent(spread)} %")
    for r in book.rows("failed") + book.rows("failed_run"):
        print(f"  FAILED: {configurations[r['config']]}: {r['what']}")


def main():
    o = options()
    book, clock = judge.Book(o.out or f"accuracy-{o.seed}.jsonl"), judge.Clock(o.minutes)
    if not o.report:
        hplan = judge.Hplan(o.hplan, book.home())
        judge.say(judge.heading())
        configurations = draw_all(hplan, o, book)
        judge.say(f"{len(configurations)} configurations; results in {book.path}, home {hplan.home}")
        judge.calibrate(hplan, configurations, o.calibrate_seconds, o.gpus, o.mode, book)
        predict_all(hplan, configurations, book)
        run_rounds(hplan, o, configurations, book, clock)
        judge.say(f"{clock.elapsed_s() / 60:.1f} minutes")
    report(book)


if __name__ == "__main__":
    try:
        main()
    except judge.Failed as failure:
        sys.exit(f"FAILED: {failure}")
