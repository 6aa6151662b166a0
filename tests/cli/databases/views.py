#!/usr/bin/env python3
"""views.py RUN.db SPANS.csv - the views of views.sql say what the measured spans say, as `hplan export --csv` writes them: each
task's median, each rank's time by step and phase. Also that columns of docs/sql.md are those of the views."""
import collections
import csv
import math
import pathlib
import re
import statistics
import sys

import hplan

spans, phases = collections.defaultdict(list), collections.Counter()
for row in csv.DictReader(open(sys.argv[2], newline="", encoding="utf-8")):
    if int(row["iter"]) >= 0:
        seconds = float(row["t1_s"]) - float(row["t0_s"])
        spans[int(row["role"]), int(row["task"])].append(seconds)
        phases[int(row["rank"]), int(row["iter"]), row["phase"]] += seconds


def same(a, b):
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-8)  # the CSV has nanoseconds


with hplan.read(sys.argv[1]) as db:
    tasks = {(r["role"], r["task"]): r for r in db.rows("SELECT * FROM tasks WHERE measured_s IS NOT NULL")}
    assert tasks.keys() == spans.keys(), tasks.keys() ^ spans.keys()
    for key, seconds in spans.items():
        assert same(tasks[key]["measured_s"], statistics.median(seconds)), tasks[key]
    found = {(r["rank"], r["step"], r["phase"]): r["seconds"] for r in db.rows("SELECT * FROM phases WHERE kind = 'exec'")}
    assert found.keys() == phases.keys(), found.keys() ^ phases.keys()
    assert all(same(found[key], phases[key]) for key in phases)
    batch = int(db.rows("SELECT value FROM meta WHERE key = 'batch'")[0]["value"])
    for step in db.rows("SELECT * FROM steps"):
        assert same(step["images_per_s"] * step["step_s"], batch), step
    document = (pathlib.Path(__file__).parents[3] / "docs" / "sql.md").read_text(encoding="utf-8")
    for view, columns in re.findall(r"^\| `(\w+)` \| [^|]* \| (.*) \|$", document, re.M):
        told = re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", columns))
        has = list(db.rows(f"SELECT * FROM {view}")[0])
        assert sorted(told) == sorted(has), (view, told, has)
