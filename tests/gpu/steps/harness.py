"""harness.py - what all steps stand on: commands with time limits that leave nothing running, steps that fail alone,
and results that are on the disk as soon as they are known."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import traceback


class Refused(Exception):
    """This build, or this machine, does not have that: an answer, no failure of it."""


class Failed(Exception):
    """It is wrong."""


class OutOfTime(Exception):
    """The step's limit, or the whole run's. out: what the command had printed by then."""

    def __init__(self, why, out=""):
        super().__init__(why)
        self.out = out


class Done:
    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    def why(self):
        lines = [line for line in (self.err or self.out).splitlines() if line.strip()]
        return f"exit {self.code}: " + " | ".join(lines[-3:])[:500]


def end_session(pid):
    """Ends all that a session holds that began with process `pid`: politely, then not."""
    for number, pause in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 0.0)):
        alive = [p for p in session_of(pid)]
        for p in alive:
            try:
                os.kill(p, number)
            except ProcessLookupError:
                pass
        end = time.monotonic() + (pause if alive else 0)
        while time.monotonic() < end and session_of(pid):
            time.sleep(0.05)


def session_of(leader):
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                rest = pathlib.Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(rest[3]) == leader and rest[0] != "Z":
                found.append(int(entry))
    return found


class Session:
    """One run of the script: where things are, how much time is left, what was found."""

    def __init__(self, place, out, smoke, budget_s):
        self.place, self.smoke = place, smoke
        self.results_path = out
        self.work = out.parent / (out.stem + ".work")
        self.logs = out.parent / (out.stem + ".logs")
        for folder in (self.work, self.logs):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        self.started = time.monotonic()
        self.end = self.started + budget_s
        self.step_end, self.log = self.end, self.logs / "start.txt"
        self.environment = place.environment(self.work)
        self.results = {}
        self.known = {}  # what one step leaves for others

    def left(self):
        return min(self.step_end, self.end) - time.monotonic()

    def note(self, text):
        with open(self.log, "a", encoding="utf-8", errors="replace") as f:
            f.write(text if text.endswith("\n") else text + "\n")

    def command(self, argv, limit_s=1e9, env=None, plain=False):
        """Runs it in the pack's environment (plain: the machine's own). Raises OutOfTime."""
        limit_s = min(limit_s, self.left())
        if limit_s <= 0:
            raise OutOfTime("no time left for " + pathlib.Path(str(argv[0])).name)
        argv = [str(a) for a in argv]
        environment = dict(os.environ) if plain else dict(self.environment)
        environment.update(env or {})
        began = time.monotonic()
        p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.work,
                             env=environment, start_new_session=True)
        try:
            out, err = p.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            end_session(p.pid)
            p.kill()
            out, err = p.communicate()
            self.note(f"$ {' '.join(argv)}\n{tail(out)}{tail(err)}# ended after {limit_s:.0f} s")
            raise OutOfTime(f"{pathlib.Path(argv[0]).name} {' '.join(argv[1:3])}: not done within {limit_s:.0f} s; "
                            + " | ".join(tail(err).strip().splitlines()[-2:])[:300], tail(out)) from None
        done = Done(p.returncode, out.decode(errors="replace"), err.decode(errors="replace"), time.monotonic() - began)
        self.note(f"$ {' '.join(argv)}\n{tail(out)}{tail(err)}# exit {done.code}, {done.seconds:.2f} s")
        return done

    def save(self):
        fresh = self.results_path.with_suffix(".new")
        fresh.write_text(json.dumps(self.results, indent=1, allow_nan=False) + "\n")
        fresh.replace(self.results_path)


def tail(raw, most=100_000):
    text = raw.decode(errors="replace") if isinstance(raw, bytes) else raw or ""
    return text if len(text) <= most else "...\n" + text[-most:]


class Items:
    """The parts of a step, each right, wrong, or not to be had, whatever became of the others."""

    def __init__(self, session, data):
        self.session = session
        self.list = data.setdefault("items", [])

    def check(self, name, part, *args, optional=False, limit_s=None):
        """part(*args) returns facts, or raises. optional: what is refused is no failure."""
        item = {"name": name, "ok": None}
        self.list.append(item)
        before, began = self.session.step_end, time.monotonic()
        if limit_s:
            self.session.step_end = min(before, began + limit_s)
        try:
            facts = part(*args) or {}
            item["ok"] = bool(facts.pop("ok", True))
            item.update(facts)
        except Refused as why:
            item.update(ok=None if optional else False, refused=True, why=str(why))
        except (Failed, OutOfTime) as why:
            item.update(ok=False, why=str(why), timeout=isinstance(why, OutOfTime))
        except Exception as why:  # a fault of the script must not cost the other parts
            item.update(ok=False, why=f"{type(why).__name__}: {why}")
            self.session.note(traceback.format_exc())
        finally:
            self.session.step_end = before
            item["seconds"] = round(time.monotonic() - began, 3)
        self.session.save()
        return item


def verdict(data):
    """Of a step with items: failed if one is wrong, refused if none could be had."""
    oks = [i["ok"] for i in data.get("items", [])]
    if False in oks:
        wrong = [i for i in data["items"] if i["ok"] is False]
        only_time = all(i.get("timeout") for i in wrong)
        return "timeout" if only_time else "failed", "; ".join(f"{i['name']}: {i.get('why', 'wrong')}" for i in wrong)[:1000]
    if oks and not any(oks):
        return "refused", "; ".join(i.get("why", "") for i in data["items"])[:500]
    return "ok", ""


def run_step(session, step):
    """The step's row of the results; never raises."""
    row = {"name": step.name, "conformance": step.conformance, "status": "running", "seconds": 0.0, "why": "", "data": {},
           "log": f"{session.logs.name}/{step.name}.txt"}
    session.results["steps"].append(row)
    session.log = session.logs / f"{step.name}.txt"
    began = time.monotonic()
    session.step_end = began + step.limit_s
    session.save()
    try:
        step.run(session, row["data"])
        row["status"], row["why"] = verdict(row["data"])
    except Refused as why:
        row["status"], row["why"] = "refused", str(why)
    except OutOfTime as why:
        row["status"], row["why"] = "timeout", str(why)
    except Exception as why:  # the other steps go on
        row["status"], row["why"] = "failed", f"{'' if isinstance(why, Failed) else type(why).__name__ + ': '}{why}"
        session.note(traceback.format_exc())
    row["seconds"] = round(time.monotonic() - began, 2)
    session.save()
    return row
