"""probe.py - what a cost table of this GPU is made of: copies, launches, events, large maps, halos, `hplan calibrate`."""
import json

from steps.harness import Failed, Items, OutOfTime, Refused
from steps.plans import layers, memory, plan, run


def costs(s, data):
    """Copies by size and direction, launches, events, waits."""
    done = s.command([s.place.program("gpu_probe"), 65536 if s.smoke else 1 << 28])
    if done.code:
        raise Failed(done.why())
    data.update(json.loads(done.out))


def convs(s, data):
    """Maps of 2^31 elements and more against sums in float64; a tile's halo against padding on one side."""
    items = Items(s, data)
    try:
        done = s.command([s.place.program("gpu_convs"), *((24, 12) if s.smoke else (5800, 1024))])
    except OutOfTime as why:
        items.check("all cases", raise_it, why)
        return
    for line in done.out.splitlines():
        case = json.loads(line)
        item = items.check(f"{case.pop('case')}, {case['prec']}", dict, case)
        if case["ok"] is None:
            item["ok"] = None
    if done.code > 1 or not items.list:
        raise Failed(done.why())


def raise_it(why):
    raise why


# --- layers ---

SHAPES = [("resnet101", 256, 16), ("amoebanetd:6,190", 256, 2), ("unet:64", 512, 1)]


def timed(s, net, image, batch, mode, prec, steps):
    name = f"layers-{net}-{mode}-{prec}".replace(":", "-").replace(",", "-")
    predicted = plan(s, name, net, image, mode=mode, batch=batch, strategy="dp=1" if prec == "fp32" else f"dp=1,prec={prec}")
    result = run(s, name, steps=steps)
    return {"batch": batch, "image": image, "predicted_s": predicted["step_s"], "step_s": result["step_s"],
            "tasks": layers(s.work / f"{name}.run.db"), **memory(result)}


def per_layer(s, data):
    """Every task of ResNet-101, AmoebaNet-D and U-Net by precision, as the executor runs it."""
    items = Items(s, data)
    shapes = [("cnn", 28, 2)] if s.smoke else SHAPES
    for net, image, batch in shapes:
        for mode, prec in (("train", "fp32"), ("train", "bf16"), ("infer", "int8"), ("infer", "bf16"), ("infer", "tf32"),
                           ("infer", "fp32")):
            if not s.smoke or (mode, prec) in (("train", "fp32"), ("infer", "int8")):
                items.check(f"{net} {mode} {prec}", timed, s, net, image, batch, mode, prec, 2 if s.smoke else 6, optional=True,
                            limit_s=25)


# --- hplan's own ---

def predicted(s, net, image, batch, mode, strategy):
    """Predicted from the table that was just measured, beside measured."""
    candidate = plan(s, "again", net, image, mode=mode, batch=batch, strategy=strategy, options=["--cost", "gpu.cost"])
    result = run(s, "again", steps=10)
    return {"predicted_s": candidate["step_s"], "step_s": result["step_s"], "error": candidate["step_s"] / result["step_s"] - 1,
            "measured_share": candidate.get("measured_share")}


def calibrate(s, data):
    """`hplan calibrate --device cuda`, where this build has it, and predictions from its table."""
    net, image = "resnet50", 224
    if s.smoke:
        raise Refused("some dozen runs: too many for the stand-in")
    done = s.command([s.place.program("hplan"), "calibrate", "--device", "cuda", "--compute", "--net", net, "--image", image,
                      "--batch", 32, "--seconds", 60, "-o", "gpu.cost", "--json"])
    if done.code in (2, 64, 69):
        raise Refused(f"not in this build: {done.why()}")
    if done.code:
        raise Failed(done.why())
    data["calibration"] = json.loads(done.out)
    table = s.work / "gpu.cost"
    (s.results_path.parent / "gpu.cost").write_bytes(table.read_bytes())
    items = Items(s, data)
    items.check(f"{net} train", predicted, s, net, image, 32, "train", "dp=1", optional=True)
    items.check(f"{net} infer int8", predicted, s, net, image, 1, "infer", "dp=1,prec=int8", optional=True)
