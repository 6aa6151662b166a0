#!/usr/bin/env python3
"""slowest-layers.py RUN.db - the five kinds of task that contribute most to the error of a prediction."""
import sys

import hplan

WORST = """SELECT op, sum(predicted_s) AS predicted_s, sum(measured_s) AS measured_s FROM tasks WHERE error IS NOT NULL
           GROUP BY op ORDER BY abs(sum(predicted_s) - sum(measured_s)) DESC LIMIT 5"""
with hplan.read(sys.argv[1]) as db:
    for row in db.rows(WORST):
        print(f"{row['op']:14} predicted {row['predicted_s'] * 1e6:8.1f} us   measured {row['measured_s'] * 1e6:8.1f} us")
