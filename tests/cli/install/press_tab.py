#!/usr/bin/env python3
"""press_tab.py SHELL SETUP KEYS FILE - types into an interactive shell on a terminal: the line SETUP, then KEYS, TAB and
Enter; returns when FILE exists, which the command leaves. For tests of completion."""
import os
import pty
import select
import sys
import time

shell, setup, keys, left = sys.argv[1:]
END = time.monotonic() + 120


def read_until(fd, seen, wanted):
    while not wanted(seen):
        if time.monotonic() > END:
            sys.exit(f"{shell}: no answer; it has said: {bytes(seen[-400:])!r}")
        if select.select([fd], [], [], 0.2)[0]:
            seen += os.read(fd, 4096)


pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM="dumb", HOME=os.getcwd(), HISTFILE="/dev/null")
    os.execvp(shell.split()[0], shell.split())
seen = bytearray()
os.write(fd, (setup + "; printf 'rea%s\\n' dy\n").encode())
read_until(fd, seen, lambda text: b"\nready" in text)
os.write(fd, keys.encode())
read_until(fd, seen, lambda text: keys.split()[-1][-3:].encode() in text[text.index(b"\nready"):])
os.write(fd, b"\t\r")
read_until(fd, seen, lambda text: os.path.exists(left))
os.write(fd, b"exit\r")
os.close(fd)
os.waitpid(pid, 0)
