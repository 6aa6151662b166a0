"""judge.py - what the judges share: hplan in a home of its own, runs of plans, figures of rounds, results that survive a stop.

Nothing here knows how hplan predicts. A prediction is what `simulate` wrote into plan.db; a measurement is the median
step of `run`, as `compare` reports it, raw and at equal machine speed (compare's split; null where a run has no
yardsticks).
"""
import contextlib
import hashlib
import json
import math
import os
import pathlib
import re
import shlex
import signal
import sqlite3
import statistics
import subprocess
import sys
import time

# two-sided 95 % and 90 % quantiles of Student's t by degrees of freedom, 1 to 30 (any table of it); the normal beyond
T95 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
       2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042]


class Failed(Exception):
    """A command of hplan that did not do what it should: the command and its last words."""


def say(text):
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return os.uname().machine


def heading():
    """Processor, cores, date and load: what figures are worth little without."""
    load = ", ".join(f"{x:.2f}" for x in os.getloadavg())
    return f"{processor()}, {len(os.sched_getaffinity(0))} cores, {time.strftime('%Y-%m-%d %H:%M %Z')}, load {load}"


def some_ranks():
    """What a search is asked for: the processors at hand, at most four ranks."""
    return max(2, min(4, len(os.sched_getaffinity(0))))


class Hplan:
    """One binary, with cache and state folders of its own, so that no calibration or history of the user is used or fed."""

    def __init__(self, program, home):
        self.program = str(pathlib.Path(program).resolve())
        if not os.access(self.program, os.X_OK):
            sys.exit(f"{program} is no program: build hplan first, or name it with --hplan")
        self.home = pathlib.Path(home).resolve()
        self.home.mkdir(parents=True, exist_ok=True)
        self.environment = dict(os.environ, XDG_CACHE_HOME=str(self.home / "cache"),
                                XDG_STATE_HOME=str(self.home / "state"))
        self.prefix = []  # words before every command: taskset, a control group

    def call(self, *words, limit_s=300, accept=(0,)):
        """(status, stdout, stderr); Failed unless the status is one of `accept`."""
        command = [*self.prefix, self.program, *map(str, words)]
        with subprocess.Popen(command, cwd=self.home, env=self.environment, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as started:
            try:
                out, complaint = started.communicate(timeout=limit_s)
            except BaseException as why:  # ^C too: its ranks must not slow what is measured next
                os.killpg(started.pid, signal.SIGKILL)
                if not isinstance(why, subprocess.TimeoutExpired):
                    raise
                raise Failed(f"{shlex.join(command)}: not over after {limit_s:.0f} s") from None
        if started.returncode not in accept:
            raise Failed(f"{shlex.join(command)}: status {started.returncode}: {complaint.strip()[-300:]}")
        return started.returncode, out, complaint

    def has_option(self, command, option):
        return f"--{option}" in self.call("help", command)[1]

    def search(self, problem, *words, limit_s=300):
        """The JSON object of `simulate`; without candidates where the strategy is not legal."""
        _, text, _ = self.call("simulate", *problem_words(problem), *words, "--machine", "local", "--json",
                               limit_s=limit_s, accept=(0, 3))
        return json.loads(text) if text.strip() else {"candidates": []}

    def predict(self, problem, strategy, plan):
        """The candidate of one strategy, None where it is not legal; its program is written to `plan`."""
        found = self.search(problem, "--strategy", strategy, "--out", plan)["candidates"]
        if not found:
            return None
        of_table = yardsticks(plan, found[0]["gpus"])
        return {**found[0], **without_drift(found[0], of_table), "yardsticks": of_table}

    def measure(self, plan, mode, steps, expected_s):
        """Figures of one run that leaves nothing behind: no history, no ledger."""
        trace = self.home / "run.db"
        trace.unlink(missing_ok=True)
        training = ["--lr", "0"] if mode == "train" else []  # numbers stay finite however long it runs
        before = time.monotonic()
        self.call("run", plan, "--data", "synthetic", "--steps", steps, *training, "--trace", trace, "--no-history",
                  "--json", limit_s=120 + 5 * steps * expected_s)
        wall_s = time.monotonic() - before
        compared = json.loads(self.call("compare", trace, "--json")[1])
        step, speed = compared["step"], compared.get("speed") or {}
        return {"measured_s": step["measured_s"], "predicted_s": step["predicted_s"],
                "equal_speed_s": step.get("equal_speed_s") or speed.get("equal_speed_s"),
                "model_error": step.get("model_error", speed.get("model_error")), "speed": speed or None,
                "steps": steps, "wall_s": wall_s, "load": os.getloadavg()[0], **counters(trace)}

    def fingerprint(self):
        """Of all tables and histories in the home: equal before and after runs that feed neither."""
        found = hashlib.sha256()
        for path in sorted(p for p in self.home.rglob("*") if p.suffix in (".cost", ".db") and p.parent != self.home):
            if path.parts[-2:] == ("plans", path.name):
                continue
            found.update(str(path.relative_to(self.home)).encode())
            if path.name == "history.db":
                with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
                    names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
                    for name in sorted(names):
                        found.update(f"{name} {db.execute(f'SELECT count(*) FROM {name}').fetchone()[0]}".encode())
            else:
                found.update(path.read_bytes())
        return found.hexdigest()


def problem_words(problem):
    return ["--net", problem["net"], "--image", problem["image"], "--batch", problem["batch"], "--mode",
            problem.get("mode", "train")]


def yardsticks(plan, ranks):
    """What the cost table of a plan says of each class of operation, for so many ranks or the next smaller number of
    them: {"arith": {"quiet": s, "mean": s, "spread": relative}, ...}; {} of a table without."""
    found = {}
    with contextlib.closing(sqlite3.connect(f"file:{plan}?mode=ro", uri=True)) as db:
        bodies = db.execute("SELECT body FROM cost ORDER BY part LIMIT 1").fetchall()
    for line in "".join(body for (body,) in bodies).splitlines():
        row = re.match(r"yardstick cpu (arith|l2|dram) r(\d+) \|.*\| (.*)", line)
        if row and int(row[2]) <= ranks:
            values = {name: float(value) for name, value in (word.split(":") for word in row[3].split())}
            found[row[1]] = max(found.get(row[1], (0, {})), (int(row[2]), values), key=lambda by: by[0])
    return {name: values for name, (_, values) in found.items()}


def without_drift(candidate, of_table):
    """The interval at equal machine speed: that of the prediction without its part for how the speed moves from run to
    run, which is the mean `spread` of the table's yardsticks."""
    drift = statistics.mean(y["spread"] for y in of_table.values()) if of_table else 0
    low, high, step = (candidate[k] for k in ("step_low_s", "step_high_s", "step_s"))
    half = math.sqrt(max((math.log(high / low) / 2) ** 2 - (1.645 * drift) ** 2, 0))
    return {"drift": drift, "equal_low_s": step * math.exp(-half), "equal_high_s": step * math.exp(half)}


def own_equal_speed(figures, of_table):
    """The measured step at the table's usual speed by the judge's own arithmetic, as a check of compare's: all of it goes
    with the multiply-adds, and with the processor time that the ranks had. None where one of them is not known."""
    run, table = figures.get("yardsticks", {}).get("yard_arith_s"), of_table.get("arith")
    if not run or not table or "availability" not in figures:
        return None
    return figures["measured_s"] * table["mean"] / run * min(1, figures["availability"])


def counters(trace):
    """Means of the yardsticks, and the share of the steps in which the ranks had a processor; {} of older traces."""
    with contextlib.closing(sqlite3.connect(f"file:{trace}?mode=ro", uri=True)) as db:
        means = dict(db.execute("SELECT name, avg(value) FROM counter WHERE name LIKE 'yard_%' GROUP BY name"))
        sums = dict(db.execute("SELECT name, avg(value) FROM counter WHERE name IN ('step_s', 'step_cpu_s') "
                               "AND iter > 0 GROUP BY name"))
    found = {"yardsticks": means}
    if sums.get("step_s") and sums.get("step_cpu_s"):
        found["availability"] = sums["step_cpu_s"] / sums["step_s"]
    return found


def steps_for(seconds, step_s):
    """Steps of about `seconds`: one of warm-up and at least five that count."""
    return 1 + max(5, min(400, round(seconds / step_s)))


def calibrate(hplan, problems, seconds, gpus, mode, book):
    """Quick: what each (net, image, mode) needs, in `seconds`. Full: the whole table once. Done ones are not repeated."""
    timed = hplan.has_option("calibrate", "seconds")
    jobs = [("all", [])] if mode == "full" else []
    if mode == "quick" and not timed:
        jobs.append(("messages", ["--comm"]))
    wanted = dict.fromkeys((p["net"], p["image"], p.get("mode", "train")) for p in problems)
    for net, image, what in wanted if mode == "quick" else []:
        words = ["--net", net, "--image", str(image)] + (["--mode", what] if timed and what != "train" else [])
        if timed:
            words += ["--gpus", str(gpus), "--seconds", str(seconds)]
        jobs.append((f"{net} {image} {what}", words))
    done = {r["job"] for r in book.rows("calibrated")}
    for i, (job, words) in enumerate(jobs):
        if job in done:
            continue
        say(f"calibrate {i + 1}/{len(jobs)}: {job}")
        before = time.monotonic()
        hplan.call("calibrate", *words, limit_s=1800 if mode == "full" else max(300, 5 * seconds))
        book.add("calibrated", job=job, elapsed_s=time.monotonic() - before)


class Book:
    """Results as lines of JSON, one as soon as there is one: a judge that was stopped goes on where it was."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.lines = []
        if self.path.exists():
            whole, _, torn = self.path.read_text().rpartition("\n")
            self.lines = [json.loads(line) for line in whole.splitlines()]
            if torn:  # it was stopped while writing
                self.path.write_text(whole + "\n" if whole else "")

    def add(self, kind, **fields):
        row = {"kind": kind, "at": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **fields}
        self.lines.append(row)
        with self.path.open("a") as f:
            f.write(json.dumps(row) + "\n")
        return row

    def rows(self, kind):
        return [row for row in self.lines if row["kind"] == kind]

    def home(self):
        return self.path.with_suffix(".home")


class Clock:
    """How long it has taken, and whether what comes next still fits."""

    def __init__(self, minutes):
        self.start, self.limit_s = time.monotonic(), 60 * minutes

    def elapsed_s(self):
        return time.monotonic() - self.start

    def room_for(self, seconds):
        return self.elapsed_s() + seconds <= self.limit_s


# --- figures ---


def t95(freedom):
    return T95[freedom - 1] if freedom <= len(T95) else 1.96


def paired_interval(ratios):
    """Mean of logarithms of ratios of the same rounds, and the half-width of its 95 % interval (Student)."""
    logs = [math.log(x) for x in ratios]
    if len(logs) < 2:
        return logs[0] if logs else math.nan, math.inf
    return statistics.mean(logs), t95(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))


def percent(x, signed=False):
    if x is None or math.isnan(x):
        return "-"
    return f"{100 * x:+.1f}" if signed else f"{100 * x:.1f}"


def verdict(name, value, low, high, unit="%"):
    """A line of the judgement: the figure, its target, and whether it is met."""
    if value is None or math.isnan(value):
        return f"  {name}: not known"
    scale = 100 if unit == "%" else 1
    met = low <= value <= high
    target = f"at most {scale * high:g}" if low == -math.inf else (
        f"at least {scale * low:g}" if high == math.inf else f"{scale * low:g} to {scale * high:g}")
    return f"  {name}: {scale * value:.3g} {unit}".rstrip() + f" (target {target}): {'met' if met else 'MISSED'}"
