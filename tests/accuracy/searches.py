#!/usr/bin/env python3
"""searches.py - does the search's order hold: regret of its number 1, Kendall's tau over pairs that differ.

    tests/accuracy/searches.py [--hplan build/hplan] [--seed 1] [--searches 5] [--strategies 8] [--rounds 8] [--measure 4]

Draws networks and image sizes (draw.py), calibrates each, searches, and runs number 1 and the best of other kinds, in
rounds of which each has another order. With --measure K the search also races its best K, in a copy of the home, so
that nothing it measures reaches the tables; what it chose runs in the same rounds.

A pair differs where the 95 % interval (Student) of the mean logarithm of its ratios, round by round, excludes 1; tau is
(concordant - discordant) / all of those. The regret of a choice is the mean of its ratio to the best strategy. "The
best of several noisy means" is too fast, so it is also cross-fitted: the best is found in the odd rounds and held
against in the even ones, and the other way round. That one is judged. Figures are at equal machine speed where the
runs have yardsticks, and raw.
"""
import argparse
import itertools
import math
import random
import shutil
import statistics
import sys

import draw
import judge

MEAN_REGRET, WORST_REGRET, MEAN_RACED, WORST_RACED, TAU = 0.015, 0.05, 0.005, 0.02, 0.85
LONGEST_S, SLOWEST = 0.8, 2.5  # of number 1's step; of a strategy that is run, in steps of number 1
SAME_KIND = ("micro", "cut", "fuse", "recompute", "halo", "overlap", "comm", "chunks")


def options():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("--hplan", default="build/hplan")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--searches", type=int, default=5)
    p.add_argument("--strategies", type=int, default=8)
    p.add_argument("--rounds", type=int, default=8)
    p.add_argument("--seconds", type=float, default=0.8, help="steps of a run")
    p.add_argument("--mode", choices=("quick", "full"), default="quick", help="calibration")
    p.add_argument("--calibrate-seconds", type=int, default=60)
    p.add_argument("--gpus", type=int, default=judge.some_ranks(), help="ranks")
    p.add_argument("--measure", type=int, default=0, help="also race the best K")
    p.add_argument("--race-seconds", type=int, default=60)
    p.add_argument("--minutes", type=float, default=18, help="no round begins that would not end within them")
    p.add_argument("--after", help="results of an accuracy.py with this seed: its calibrations are used as they are")
    p.add_argument("--out", help="results (searches-SEED.jsonl)")
    p.add_argument("--report", action="store_true", help="only judge what there is")
    return p.parse_args()


# --- what is searched, and what of it is run ---


def use_calibrations(earlier, book):
    """With an equal seed the networks and sizes drawn here begin with those drawn there."""
    shutil.copytree(earlier.home(), book.home(), ignore=shutil.ignore_patterns("plans"))
    for row in earlier.rows("calibrated"):
        book.add("calibrated", job=row["job"], elapsed_s=0)


def draw_problems(hplan, o, book):
    if book.rows("drawn"):
        return book.rows("drawn")[0]["problems"]
    rng = random.Random(o.seed)
    problems = []
    for net, image, batches in draw.draw_pairs(rng, 4 * o.searches):
        problem = {"net": net, "image": image, "batch": rng.choice(batches), "mode": "train"}
        found = hplan.search(problem, "--gpus", o.gpus, "--out", hplan.home / "draw.db")["candidates"]
        if found and found[0]["step_s"] <= LONGEST_S and len(problems) < o.searches:
            problems.append(problem)
    book.add("drawn", seed=o.seed, problems=problems, heading=judge.heading())
    return problems


def kind(strategy):
    """What a strategy combines, without its finer settings."""
    return tuple(word for word in strategy.split(",") if word.split("=")[0] not in SAME_KIND)


def choose(candidates, most):
    """Number 1, the best of each other kind, then the best of the rest."""
    first, kinds, rest = candidates[:1], {kind(candidates[0]["strategy"])}, []
    for c in candidates[1:]:
        if c["step_s"] > SLOWEST * candidates[0]["step_s"]:
            continue
        (rest if kind(c["strategy"]) in kinds else first).append(c)
        kinds.add(kind(c["strategy"]))
    return (first + rest)[:most]


def race(hplan, o, problem, number):
    """What --measure chooses; the home's copy takes what it learns."""
    copy = hplan.home.with_name(hplan.home.name + f"-race{number}")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(hplan.home, copy)
    racer = judge.Hplan(hplan.program, copy)
    words = ["--gpus", o.gpus, "--out", copy / "raced.db", "--measure", o.measure]
    if racer.has_option("simulate", "seconds"):
        words += ["--seconds", o.race_seconds]
    found = racer.search(problem, *words, limit_s=120 + 4 * o.race_seconds)
    shutil.rmtree(copy, ignore_errors=True)
    chosen = [c for c in found["candidates"] if c["rank"] == found.get("chosen", 1)]
    return chosen[0] if chosen else None


def search_all(hplan, o, problems, book):
    done = {row["search"] for row in book.rows("searched")}
    (hplan.home / "plans").mkdir(exist_ok=True)
    for i, problem in enumerate(problems):
        if i in done:
            continue
        found = hplan.search(problem, "--gpus", o.gpus, "--out", hplan.home / "draw.db", "--top", 40)["candidates"]
        chosen, raced = choose(found, o.strategies), None
        if o.measure:
            judge.say(f"race {i + 1}/{len(problems)}: {problem['net']} {problem['image']}")
            raced = race(hplan, o, problem, i)
            if raced and raced["strategy"] not in [c["strategy"] for c in chosen]:
                chosen.append(raced)
        rows = []
        for k, c in enumerate(chosen):
            alone = hplan.predict(problem, c["strategy"], hplan.home / "plans" / f"search{i}-{k}.db")
            rows.append({"strategy": c["strategy"], "step_s": alone["step_s"], "searched_s": c["step_s"]})
        book.add("searched", search=i, strategies=rows, raced=raced and raced["strategy"])


def run_rounds(hplan, o, problems, book, clock):
    before = hplan.fingerprint()
    searched = {row["search"]: row["strategies"] for row in book.rows("searched")}
    every = [(i, k) for i, rows in searched.items() for k in range(len(rows))]
    for number in range(o.rounds):
        took = [r["wall_s"] for r in book.rows("run")]
        needed = len(every) * (statistics.mean(took) + 0.3 if took else o.seconds + 1.5)
        if not clock.room_for(needed):
            judge.say(f"round {number + 1} would take {needed:.0f} s: not within {o.minutes:g} minutes")
            break
        judge.say(f"round {number + 1}/{o.rounds}: about {needed:.0f} s; {clock.elapsed_s():.0f} s so far")
        done = {(r["search"], r["strategy"]) for r in book.rows("run") + book.rows("failed_run") if r["round"] == number}
        rng = random.Random(o.seed * 1000 + number)
        for i in rng.sample(list(searched), len(searched)):  # strategies of a search run one straight after another
            for k in rng.sample(range(len(searched[i])), len(searched[i])):
                if (i, k) not in done:
                    run_one(hplan, o, problems[i], (i, k, number), searched[i][k]["step_s"], book)
    if hplan.fingerprint() != before:
        sys.exit("the runs changed a table or a history that predictions rest on: these figures judge nothing")


def run_one(hplan, o, problem, what, step_s, book):
    i, k, number = what
    try:
        figures = hplan.measure(hplan.home / "plans" / f"search{i}-{k}.db", problem["mode"],
                                judge.steps_for(o.seconds, step_s), step_s)
        book.add("run", search=i, strategy=k, round=number, **figures)
    except judge.Failed as failure:
        book.add("failed_run", search=i, strategy=k, round=number, what=str(failure))
        judge.say(f"failed: {failure}")


# --- judgement ---


class Search:
    """The measured seconds of the strategies of one search: those that ran in every round that counts."""

    def __init__(self, row, runs, figure):
        table = {}
        for r in runs:
            if r["search"] == row["search"] and r[figure]:
                table.setdefault(r["strategy"], {})[r["round"]] = r[figure]
        self.strategies = row["strategies"]
        most = max((len(rounds) for rounds in table.values()), default=0)
        self.ran = sorted(k for k, rounds in table.items() if len(rounds) == most)
        self.rounds = sorted(set.intersection(*(set(table[k]) for k in self.ran))) if self.ran else []
        self.seconds = {k: [table[k][r] for r in self.rounds] for k in self.ran}
        self.raced = next((k for k in self.ran if self.strategies[k]["strategy"] == row.get("raced")), None)

    def mean(self, k, which=slice(None)):
        return statistics.mean(map(math.log, self.seconds[k][which]))

    def best(self, which=slice(None)):
        return min(self.ran, key=lambda k: self.mean(k, which))

    def regret(self, k):
        return math.expm1(self.mean(k) - self.mean(self.best()))

    def fair_regret(self, k):
        """Cross-fitted: without the bias of a minimum over noisy means. May be negative."""
        odd, even = slice(0, None, 2), slice(1, None, 2)
        return statistics.mean(math.expm1(self.mean(k, b) - self.mean(self.best(a), b)) for a, b in ((odd, even), (even, odd)))

    def pairs(self):
        """+1 and -1 for pairs that differ: in the predicted order, or against it; and how many pairs there are."""
        found, n = [], 0
        for a, b in itertools.combinations(self.ran, 2):
            n += 1
            mean, half = judge.paired_interval([x / y for x, y in zip(self.seconds[a], self.seconds[b])])
            if abs(mean) > half:
                predicted = math.log(self.strategies[a]["searched_s"] / self.strategies[b]["searched_s"])
                found.append(0 if predicted == 0 else int(math.copysign(1, predicted * mean)))
        return found, n


def show_search(row, problem, search):
    print(f"\n{problem['net']} {problem['image']} batch {problem['batch']}: {len(search.rounds)} rounds")
    for k in search.ran:
        s = search.strategies[k]
        mark = ("1" if k == 0 else " ") + ("m" if k == search.raced else " ") + ("*" if k == search.best() else " ")
        print(f"  {mark} {s['strategy'][:56]:57}{1e3 * s['searched_s']:9.4g} predicted{1e3 * math.exp(search.mean(k)):9.4g} measured"
              f"{judge.percent(s['searched_s'] / math.exp(search.mean(k)) - 1, True):>8}")


def show_regrets(name, searches, choice, mean_target, worst_target):
    chosen = [(s, choice(s)) for s in searches if choice(s) is not None and len(s.rounds) >= 2]
    if not chosen:
        return
    plain = [s.regret(k) for s, k in chosen]
    fair = [s.fair_regret(k) for s, k in chosen]
    print(f"  regret of {name}, {len(chosen)} searches: plain mean {judge.percent(statistics.mean(plain))} %, "
          f"worst {judge.percent(max(plain))} %")
    print(judge.verdict(f"regret of {name}, cross-fitted, mean", statistics.mean(fair), -math.inf, mean_target))
    print(judge.verdict(f"regret of {name}, cross-fitted, worst", max(fair), -math.inf, worst_target))


def judge_figure(name, book, figure, show):
    problems = book.rows("drawn")[0]["problems"]
    searches = [(row, Search(row, book.rows("run"), figure)) for row in book.rows("searched")]
    searches = [(row, s) for row, s in searches if len(s.ran) > 1 and s.rounds]
    if not searches:
        print(f"\n{name}: not known")
        return False
    for row, s in searches if show else []:
        show_search(row, problems[row["search"]], s)
    only = [s for _, s in searches]
    print(f"\n{name}:")
    show_regrets("number 1", only, lambda s: 0 if 0 in s.ran else None, MEAN_REGRET, WORST_REGRET)
    show_regrets("the race's choice", only, lambda s: s.raced, MEAN_RACED, WORST_RACED)
    differ = [p for s in only for p in s.pairs()[0]]
    n = sum(s.pairs()[1] for s in only)
    print(judge.verdict(f"Kendall's tau over {len(differ)} of {n} pairs that differ, at least "
                        f"{min(len(s.rounds) for s in only)} rounds", statistics.mean(differ) if differ else None, TAU, math.inf, ""))
    return True


def report(book):
    print(book.rows("drawn")[0]["heading"] if book.rows("drawn") else "nothing was drawn")
    known = judge_figure("at equal speed", book, "equal_speed_s", True)
    judge_figure("raw", book, "measured_s", not known)
    print("  1: the search's number 1; m: the race's choice; *: the fastest measured; milliseconds, errors in %")
    for r in book.rows("failed_run"):
        print(f"  FAILED: search {r['search']}, strategy {r['strategy']}: {r['what']}")


def main():
    o = options()
    book, clock = judge.Book(o.out or f"searches-{o.seed}.jsonl"), judge.Clock(o.minutes)
    if not o.report:
        if o.after and not book.home().exists():
            use_calibrations(judge.Book(o.after), book)
        hplan = judge.Hplan(o.hplan, book.home())
        judge.say(judge.heading())
        problems = draw_problems(hplan, o, book)
        judge.calibrate(hplan, problems, o.calibrate_seconds, o.gpus, o.mode, book)
        search_all(hplan, o, problems, book)
        run_rounds(hplan, o, problems, book, clock)
        judge.say(f"{clock.elapsed_s() / 60:.1f} minutes")
    report(book)


if __name__ == "__main__":
    try:
        main()
    except judge.Failed as failure:
        sys.exit(f"FAILED: {failure}")
