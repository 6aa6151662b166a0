"""plans.py - `hplan simulate` and `hplan run`, and what they leave: losses, times, memory, outputs, weights, spans."""
import array
import json
import math
import sqlite3
import statistics
import struct

from steps.harness import Failed, Refused

REFUSED = (2, 3, 69)  # usage, no feasible plan, not in this build or on this machine


def plan(s, name, net, image, *, device="cuda", strategy="dp=1", mode="train", batch=1, gpus=1, options=()):
    """NAME.db; returns what is predicted of it. Raises Refused where this build does not know the words. A network of text says
    itself how long its texts are."""
    size = [] if net.startswith("gpt") else ["--image", image]
    machine = s.known.get("machine", "local") if device == "cuda" and gpus == 1 else "local"
    done = s.command([s.place.program("hplan"), "simulate", "--machine", machine, "--gpus", gpus, "--device", device, "--net", net,
                      *size, "--mode", mode, "--batch", batch, "--strategy", strategy, "--json", "--out", f"{name}.db",
                      *options])
    if done.code in REFUSED:
        raise Refused(f"{strategy}: {done.why()}")
    if done.code:
        raise Failed(f"simulate: {done.why()}")
    answer = json.loads(done.out)
    return answer["candidates"][answer["chosen"] - 1]


def run(s, name, *, steps, options=(), limit_s=1e9, env=None):
    """Runs NAME.db, records NAME.run.db."""
    done = s.command([s.place.program("hplan"), "run", f"{name}.db", "--steps", steps, "--json", "--trace", f"{name}.run.db",
                      "--no-dropout", *options], limit_s, env)
    if done.code == 69:
        raise Refused(f"run: {done.why()}")
    if done.code:
        raise Failed(f"run: {done.why()}")
    lines = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
    per_step = [x for x in lines if "step" in x]
    final = next(x for x in lines if x.get("final"))
    warm = [x["step_s"] for x in per_step[1:]] or [x["step_s"] for x in per_step]
    return {"losses": [x["loss"] for x in per_step], "step_s": statistics.median(warm), "steps_s": [x["step_s"] for x in per_step],
            "final": final, "wall_s": done.seconds}


def planned_and_run(s, name, net, image, *, steps, options=(), env=None, **how):
    predicted = plan(s, name, net, image, **how)
    return predicted, run(s, name, steps=steps, options=options, env=env)


def memory(result):
    """Planned and observed bytes of the fullest rank."""
    return {"planned_bytes": max(result["final"]["planned_bytes"]), "peak_bytes": max(result["final"]["peak_bytes"])}


def apart(a, b):
    """The largest relative difference of two lists of losses; one that is no number is infinitely far."""
    if len(a) != len(b) or not a:
        return math.inf
    return max(abs(x - y) / max(1.0, abs(x)) if None not in (x, y) else math.inf for x, y in zip(a, b))


def finite(x):
    """JSON has no infinity."""
    return x if x is None or math.isfinite(x) else None


def norm(have, want):
    """|have - want| / |want|"""
    size = math.sqrt(math.fsum(x * x for x in want))
    off = math.sqrt(math.fsum((x - y) ** 2 for x, y in zip(have, want)))
    return off / size if size else off


def floats(path):
    """A .npy file of float32."""
    raw = path.read_bytes()
    (length,) = struct.unpack("<H", raw[8:10])
    return array.array("f", raw[10 + length:])


TYPES = {"F32": "f", "F64": "d"}


def open_tensors(path):
    """(raw, where the numbers begin, {name: (type, first byte, last)}) of a safetensors file's float tensors."""
    raw = bytearray(path.read_bytes())
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    return raw, 8 + length, {k: (TYPES[v["dtype"]], *v["data_offsets"]) for k, v in header.items() if v["dtype"] in TYPES}


def tensors(path, most=20000):
    """{name: float32 numbers}; of large tensors every so manieth element."""
    raw, base, places = open_tensors(path)
    found = {}
    for name, (kind, first, end) in places.items():
        numbers = array.array(kind, bytes(raw[base + first:base + end]))
        found[name] = numbers[::1 + len(numbers) // most]
    return found


def nudge(path, to):
    """The same weights, but those of one tensor are the next larger float32: what rounding alone does to a run."""
    raw, base, places = open_tensors(path)
    name = min((k for k in places if k.endswith("weight")), key=lambda k: places[k][1])
    first, end = (base + x for x in places[name][1:])
    bits = array.array("I", bytes(raw[first:end]))
    raw[first:end] = array.array("I", (b + 1 if b & 0x7fffffff else b for b in bits)).tobytes()
    to.write_bytes(raw)


SPANS = """SELECT t.op, t.phase, t.label, t.layer, t.micro, sp.iter, sp.t1_ns - sp.t0_ns FROM span sp
           JOIN task t ON t.run = sp.run AND t.role = sp.role AND t.task = sp.task
           WHERE sp.rank = 0 AND sp.run = (SELECT max(id) FROM run WHERE kind = 'exec') AND sp.iter > 0"""


def layers(path):
    """Median seconds of every task of rank 0, from a recorded run; the first step is left out."""
    spans = {}
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        for op, phase, label, layer, micro, _, ns in db.execute(SPANS):
            spans.setdefault((op, phase, label, layer, micro), []).append(ns)
    return [{"op": k[0], "phase": k[1], "label": k[2], "layer": k[3], "micro": k[4], "s": statistics.median(v) * 1e-9}
            for k, v in sorted(spans.items(), key=lambda x: (x[0][3], x[0][0], x[0][4]))]
