#!/usr/bin/env python3
"""hostile.py FILE.db - gives a run's host, machine and tasks, which are named by their layers, and the notes of its
candidates names that a browser might take for markup or script."""
import sqlite3
import sys

NAME = "</script><script>window.owned=1</script><!--<img src=x onerror=window.owned=1>\"'&amp;"

db = sqlite3.connect(sys.argv[1])
for what in ("run SET host", "run SET machine", "task SET label", "candidate SET note"):
    db.execute(f"UPDATE {what} = ?", (what.split()[-1] + NAME,))
db.execute("UPDATE meta SET value = 'none' WHERE key = 'content'")  # changed by hand on purpose
db.commit()
