#!/usr/bin/python3
"""The 98 models of exporter_models.py, each read with hplan import, run in float32 on the CPU beside ONNX Runtime on the same pixels (within
1e-5 of the largest output), and in int8 with scales of synthetic images: that it runs, or why not. Prints a table and the total.
Needs npm or a filled $HPLAN_CACHE, node, numpy and onnx.

    optional_onnx_exporters.py [BUILD] [--only WORD] [--least N]     exit 0: at least N agree (default 90)"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx

import exporter_models
from exporter_net import IMAGE
from optional_onnx_peers import page, save_png

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST = 1e-5


class Failed(Exception):
    pass


def run(*words, cwd):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, timeout=300, cwd=cwd)
    if done.returncode == 77:
        print(done.stderr.strip())
        sys.exit(77)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if ": " in line] or ["?"]
        own = [line for line in lines if line.startswith("hplan: ")] or lines
        raise Failed(own[0].removeprefix("hplan: ").removeprefix("m.onnx: "))
    return done.stdout


def theirs(folder):
    run("node", ROOT / "tests/peers/ort.mjs", "m.onnx", "--input", "page.npy", "--runs", 1, "--warm", 0, "--output", "theirs.npy", cwd=folder)
    y = numpy.load(folder / "theirs.npy").astype(numpy.float64)
    return y.transpose(0, 2, 3, 1) if y.ndim == 4 else y


def plan(hplan, folder, prec):
    run(hplan, "simulate", "--onnx", "m.db", "--mode", "infer", "--prec", prec, "--strategy", "dp=1", "--machine", "local", "--out",
        "p.db", cwd=folder)


def error_of(hplan, folder):
    """Of the largest output."""
    wanted = theirs(folder)
    run(hplan, "import", "m.onnx", "-o", "m.db", cwd=folder)
    plan(hplan, folder, "fp32")
    run(hplan, "run", "p.db", "--init", "m.safetensors", "--input", "page.png", "--output", "y.npy", "--no-history", "--no-yardsticks", cwd=folder)
    got = numpy.load(folder / "y.npy").astype(numpy.float64)
    if got.size != wanted.size:
        raise Failed(f"its output is {got.shape}, ONNX Runtime's {wanted.shape}")
    return abs(got.reshape(wanted.shape) - wanted).max() / max(abs(wanted).max(), 1e-30)


def in_int8(hplan, folder):
    try:
        plan(hplan, folder, "int8")
        run(hplan, "run", "p.db", "--init", "m.safetensors", "--data", "synthetic", "--steps", 1, "--no-history", "--no-yardsticks", cwd=folder)
        return "ran"
    except Failed as why:
        return str(why)


def one(hplan, row, folder):
    for old in ("m.db", "m.safetensors", "p.db", "y.npy"):
        (folder / old).unlink(missing_ok=True)
    exporter_models.save(row, folder / "m.onnx")
    try:
        error = error_of(hplan, folder)
    except Failed as why:
        return False, str(why), ""
    return error <= MOST, f"{error:.1e}", in_int8(hplan, folder)


def main():
    asks = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asks.add_argument("build", nargs="?", default=ROOT / "build")
    asks.add_argument("--only", default="", help="models whose names have this word")
    asks.add_argument("--least", type=int, default=90)
    asks.add_argument("--no-int8", action="store_true")
    o = asks.parse_args()
    hplan = pathlib.Path(o.build).resolve() / "hplan"
    if o.no_int8:
        globals()["in_int8"] = lambda *_: "-"
    rows = [row for row in exporter_models.MODELS if o.only in row[0]]
    agree = whole = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        pixels = page(*IMAGE[2:])
        save_png(folder / "page.png", pixels)
        numpy.save(folder / "page.npy", pixels[None])
        print(f"{'model':52} opset  float32    int8     (onnx {onnx.__version__})")
        for row in rows:
            good, said, bytes8 = one(hplan, row, folder)
            agree += good
            whole += bytes8 == "ran"
            print(f"{row[0]:52} {row[1]:5}  {'' if good else 'NOT '}{said:9}  {bytes8}", flush=True)
    print(f"{agree} of {len(rows)} agree with ONNX Runtime within {MOST:g}; {whole} run in int8")
    sys.exit(0 if agree >= min(o.least, len(rows)) else 1)


if __name__ == "__main__":
    main()
