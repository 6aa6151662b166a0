#!/usr/bin/env python3
"""identical.py [--plans N] [--seed S] HPLAN [HPLAN]... - the same plans and predictions from every build of hplan, on one processor and on
all, byte by byte: plan.db, and `simulate --json` but for the time that the search took. N (10) problems are drawn: three of four are one
strategy, the others searches. With --variants it builds hplan itself, by gcc and clang at -O0, -O2, and -O3 for this very processor, which may fuse
products with sums: minutes, by hand."""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
VARIANTS = [(compiler, flags) for compiler in ("gcc", "clang") for flags in ("-O0", "-O2", "-O3 -march=native")]
# network, image sizes, does training it by tiles make sense
NETS = [("cnn", (28, 40), False), ("resnet18", (64, 96), True), ("resnet50", (128, 224), True), ("mobilenetv2", (96,), True),
        ("densenet121", (64,), True), ("unet:8", (96, 160), True), ("amoebanetd:3,32", (96,), True), ("vit-b16", (64,), False),
        ("swin-t", (64, 224), False), ("gpt:2,64,2,64,256", (None,), False)]
MACHINES = ("thesis-a100", "lassen", "summit", "frontera", "thetagpu", "perlmutter", "dgx-h100", "p40x8",
            "nodes=3; node=2 x a100-40 + 1 x v100-16; nic=1 x 100Gb/s")
STRATEGIES = ("dp=1", "dp=2", "dp=4,zero=1", "dp=4,zero=3", "dp=2,bn=all,fuse=1M", "stages=2,micro=4,sched=1f1b", "stages=4,micro=8,sched=zb",
              "stages=2,chunks=2,micro=4,sched=interleaved", "stages=2,sched=gems", "dp=2,stages=2,micro=2", "dp=2,place=cyclic",
              "dp=2,compress=allreduce:int8", "dp=2,sync=ps", "dp=1,micro=2,recompute=full", "dp=4,prec=bf16")
TILED = ("sp=2x1", "sp=2x2,halo=2", "stages=2,sp=2x1,tail=shared", "sp=1x2,overlap=interior", "dp=2,sp=2x1,micro=2", "stages=3,sp=2x1,ldp=2")
MORE = (["--jitter", "0.1"], ["--no-fold"], ["--straggler", "0:1.5"], [], [], [], ["--mode", "infer"], ["--optimizer", "adamw", "--clip-norm"],
        ["--as", "pytorch-1.13"], ["--memory", "eager"], ["--samples", "50000", "--price", "1.5"])
SLOW, SMALL = 3, 2  # of MORE: not for searches; of NETS: for searches


def draw(rng, i):
    search = i % 4 == 3
    net, images, tiles = rng.choice(NETS[:SMALL] if search else NETS)
    image = rng.choice(images)
    words = ["--net", net, "--machine", rng.choice(MACHINES), "--batch", str(rng.choice((8, 16, 24, 64))), "--seed", str(rng.randrange(1000)),
             *rng.choice(MORE if not search else MORE[SLOW:])]
    if image:
        words += ["--image", str(image)]
    if search:
        return [*words, "--gpus", str(rng.choice((1, 2))), "--all"]
    return [*words, "--strategy", rng.choice(STRATEGIES + TILED if tiles else STRATEGIES)]


def simulate(hplan, words, folder, cores):
    """The answer's bytes: how it ended, what it said, why it failed (else it may say how long it took), the plan."""
    plan = pathlib.Path(folder, "plan.db")
    plan.unlink(missing_ok=True)
    r = subprocess.run([hplan, "simulate", *words, "--json", "--out", "plan.db"], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                       preexec_fn=lambda: os.sched_setaffinity(0, cores), env=dict(os.environ, XDG_CACHE_HOME=folder, XDG_STATE_HOME=folder))
    said = json.loads(r.stdout) if r.stdout else {}
    said.pop("elapsed_s", None)
    return r.returncode, json.dumps(said), r.stderr.decode() if r.returncode else "", plan.read_bytes() if plan.exists() else b""


def build_variants(folder):
    for compiler, flags in VARIANTS:
        to = pathlib.Path(folder, f"{compiler}{flags}".replace(" ", ""))
        print(f"builds {to}", flush=True)
        options = ["-DCMAKE_BUILD_TYPE=Plain", f"-DCMAKE_C_COMPILER={compiler}", f"-DCMAKE_C_FLAGS={flags}", "-DHPLAN_EXEC=OFF",
                   "-DHP_WITH_CUDA=OFF", "-DBUILD_TESTING=OFF", "-DHPLAN_WERROR=OFF"]
        subprocess.run(["cmake", "-S", SOURCE, "-B", to, "-G", "Ninja", *options], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", to, "--target", "hplan"], check=True, stdout=subprocess.DEVNULL)
        yield str(to / "hplan")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--plans", type=int, default=10)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--variants", metavar="FOLDER", help="where they are built")
    p.add_argument("hplan", nargs="*")
    o = p.parse_args()
    programs = [os.path.abspath(h) for h in o.hplan] + (list(build_variants(os.path.abspath(o.variants))) if o.variants else [])
    cores = os.sched_getaffinity(0)
    ways = [(h, cores) for h in programs] + [(programs[0], {min(cores)})]
    rng, planned, differ = random.Random(o.seed), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for i in range(o.plans):
            words = draw(rng, i)
            first, *others = (simulate(h, words, folder, c) for h, c in ways)
            planned += first[0] == 0
            for (h, c), other in zip(ways[1:], others):
                parts = [name for name, a, b in zip(("status", "--json", "message", "plan.db"), first, other) if a != b]
                if parts:
                    differ += 1
                    print(f"FAIL {h} on {len(c)} processors: other {', '.join(parts)}: simulate {' '.join(words)}", flush=True)
    print(f"{o.plans} problems, {planned} with a plan, {len(ways)} ways: {differ} differ")
    if planned < o.plans // 2:
        print("FAIL too few plans for a test")
    sys.exit(differ > 0 or planned < o.plans // 2)


main()
