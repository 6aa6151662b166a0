#!/usr/bin/env python3
"""enumerate.py HPLAN NO_MEMORY.so [MOST] - lets the k-th allocation, and the k-th write, sync, rename, truncation and close of commands fail: once, and
from then on. Each ends with a documented code and a message, by no signal, and its output is the earlier file or the new
one. At most MOST (12) values of k, evenly spread, per command and mode; 0: all. Input and output fail by strace
(its `inject`), where that is there and permitted."""
import os, shutil, subprocess, sys, tempfile

hplan, preload = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
most = int(sys.argv[3]) if len(sys.argv) > 3 else 12
os.chdir(tempfile.mkdtemp(prefix="hplan-enumerate-"))
os.environ.update(XDG_CACHE_HOME=os.getcwd() + "/cache", XDG_STATE_HOME=os.getcwd() + "/state")
CALLS = "write,pwrite64,fsync,fdatasync,rename,ftruncate,close"
CODES = (1, 2, 3, 65, 69, 70, 73, 74)
ONNX = "/usr/share/libonnx-testdata/data/pytorch-converted/test_Conv2d_groups/model.onnx"


def run(*words, **more):
    return subprocess.run([hplan, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=120, **more)


def need(*words):
    r = run(*words)
    assert r.returncode == 0, (words, r.stderr)


small = ["simulate", "--net", "cnn", "--image", "8", "--classes", "10", "--machine", "thesis-a100", "--batch", "8", "--strategy", "dp=2"]
need(*small, "--out", "plan.db")
# command, its output, how the output is looked at
commands = [(small + ["--out", "out.db"], "out.db", ["explain", "out.db"]),
            (["explain", "plan.db"], None, None),
            (["why", "plan.db", "dp=1"], None, None),
            (["export", "plan.db", "--csv", "-o", "out.csv"], "out.csv", None),
            (["export", "plan.db", "--chrome", "-o", "out.json"], "out.json", None),
            (["report", "plan.db", "-o", "out.html"], "out.html", None),
            (["machine", "show", "thesis-a100"], None, None),
            (["sbatch", "plan.db", "-o", "out.sh"], "out.sh", None),
            (["plot", "scaling", "plan.db", "-o", "out.svg"], "out.svg", None)]
if os.path.exists(ONNX):
    commands.append((["import", ONNX, "-o", "out.db"], "out.db", None))
if os.path.exists(os.path.join(os.path.dirname(hplan), "hplan-exec")):
    need("simulate", "--net", "cnn", "--image", "8", "--classes", "10", "--machine", "local", "--batch", "8", "--strategy", "dp=1", "--out", "here.db")
    need("run", "here.db", "--steps", "6", "--trace", "run.db", "--checkpoint", "saved", "--every", "2")
    commands += [(["check", "run.db", "--baseline", "run.db"], None, None), (["compare", "run.db"], None, None),
                 (["checkpoint", "verify", "saved"], None, None),
                 (["checkpoint", "export", "saved", "-o", "out.st"], "out.st", None),
                 (["export", "run.db", "--nsys", "-o", "out.sqlite"], "out.sqlite", None)]

failures, tried, ended, left = [], 0, {}, [0]


def judge(words, output, look, r, before, fresh, where, kind, no_stderr):
    """What a failure may leave behind."""
    code = r.returncode
    if b"error while loading shared libraries" in r.stderr:  # the loader's own calls
        code = 127
    ended[code] = ended.get(code, 0) + 1
    if code not in (0, 127) and code not in CODES:
        failures.append(f"{where}: exit {code}: {r.stderr.decode(errors='replace')[-300:]}")
    elif code not in (0, 1) and not r.stderr.strip() and not no_stderr:
        failures.append(f"{where}: exit {code} without a message")
    if output:
        now = open(output, "rb").read() if os.path.exists(output) else None
        if now != before and now != fresh and not (look and now and run(*look).returncode == 0):
            failures.append(f"{where}: exit {code}: {output} is neither the earlier file nor the new one")
        if code == 0 and now == before != fresh:
            failures.append(f"{where}: exit 0 and nothing written")
    for name in os.listdir("."):
        if ".tmp-" in name:
            if kind == "allocation" and code == 70:  # as after a kill: the program ends where it is
                left[0] += 1
            else:
                failures.append(f"{where}: {name} is left")
            shutil.rmtree(name) if os.path.isdir(name) else os.unlink(name)


def points(n):
    """Of 1 .. n."""
    step = 1 if most == 0 or n <= most else n / most
    return sorted({1 + int(i * step) for i in range(n if step == 1 else most)} & set(range(1, n + 1)))


def allocation(k, suffix):
    return [], dict(os.environ, LD_PRELOAD=preload, HPLAN_NO_MEMORY_IN="hplan", HPLAN_NO_MEMORY=f"{k}{suffix}")


def disk(k, suffix):
    return ["strace", "-o", "/dev/null", "-e", f"trace={CALLS}", "-e", f"inject={CALLS}:error=ENOSPC:when={k}{suffix}"], None


def allocations(words):
    env = dict(os.environ, LD_PRELOAD=preload, HPLAN_NO_MEMORY_IN="hplan", HPLAN_NO_MEMORY_COUNT="count")
    subprocess.run([hplan, *words], stdin=subprocess.DEVNULL, capture_output=True, env=env, timeout=120)
    return int(open("count").read())


def disk_calls(words):
    """Of each kind strace counts apart, so that the most frequent one says how far to go."""
    subprocess.run(["strace", "-o", "calls", "-e", f"trace={CALLS}", hplan, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    return sum(1 for line in open("calls") if "(" in line)


kinds = [("allocation", allocations, allocation)]
if shutil.which("strace") and subprocess.run(["strace", "-o", "/dev/null", "-e", "inject=write:error=EIO:when=1000", "true"], capture_output=True).returncode == 0:
    kinds.append(("disk", disk_calls, disk))
else:
    print("no strace, or not permitted: only allocations fail")
for words, output, look in commands:
    if output and os.path.exists(output):
        os.unlink(output)
    code = run(*words).returncode
    assert code in (0, 1), (words, code)
    fresh = open(output, "rb").read() if output else None
    for kind, count, fails in kinds:
        n = count(words)
        for suffix in ("", "+"):
            for k in points(n):
                before = b"earlier"
                if output:
                    open(output, "wb").write(before)
                prefix, env = fails(k, suffix)
                where = f"{kind} {k}{suffix} of {n}, {' '.join(words[:3])}"
                try:
                    r = subprocess.run([*prefix, hplan, *words], stdin=subprocess.DEVNULL, capture_output=True, env=env, timeout=60)
                    judge(words, output, look, r, before, fresh, where, kind, kind == "disk" and (suffix or k == 1))
                except subprocess.TimeoutExpired:
                    failures.append(f"{where}: hangs")
                tried += 1
print(f"{tried} failures let happen; ended with {dict(sorted(ended.items()))}; {left[0]} temporary files left where memory ended")
for f in failures[:40]:
    print("FAIL", f)
shutil.rmtree(os.getcwd())
sys.exit(len(failures) > 0)
