"""conform.py - is it right? Operations against the reference, laws, networks against the processor."""
import json
import math

from steps.harness import Failed, Items, OutOfTime
from steps.plans import apart, finite, floats, memory, norm, nudge, plan, run, tensors

# of relative norms: float32 sums of some thousand terms; stores of 8 and 11 bits of mantissa
NORM = {"fp32": 1e-5, "bf16": 1e-2}
BATCH_NORM = 1e-4  # its statistics divide by a deviation that may be small


# --- operations ---

def operator_norms(s, op, rounds):
    """The worst norms of one operator by precision, with the layer that had them."""
    try:
        done = s.command([s.place.program("gpu_norms"), op, rounds])
        text, ended = done.out, None if done.code == 0 else done.why()
    except OutOfTime as why:
        done, text, ended = None, why.out, str(why)
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    facts = {"draws": len(rows), "ok": ended is None and bool(rows), "worst": {}}
    for row in rows:
        for what in ("y", "dx", "dx_more", "gradients"):
            if what in row:
                worse(facts, row, what)
        if "error" in row:
            facts.update(ok=False, why=f"{row['layer']}: {row['error']}")
    if ended:
        facts.update(why=ended, timeout=done is None)
    return facts


def worse(facts, row, what):
    bound = max(NORM[row["prec"]], BATCH_NORM if row["op"] == "bn" else 0)
    key, value = f"{row['prec']} {what}", row[what]
    if value is None or value > bound:
        facts.update(ok=False, why=f"{key} of {row['layer']}: {value}, bound {bound}")
    best = facts["worst"].get(key)
    if best is None or value is None or (best["norm"] is not None and value > best["norm"]):
        facts["worst"][key] = {"norm": value, "layer": row["layer"]}


def norms(s, data):
    items = Items(s, data)
    for op in ("conv", "linear", "bn", "pool", "point", "convt"):
        items.check(op, operator_norms, s, op, 2 if s.smoke else 5, limit_s=45)


# --- laws ---

# drawn cases of a law: each shape is another plan of cuDNN's
CASES = {"check": 36, "train": 40, "infer": 60, "nets": 5, "infer_nets": 8}

def law(s, program, test):
    done = s.command([s.place.program("gpu_tests"), f"standin/{program}"], 60 if not s.smoke else 20,
                     {"HPLAN_TEST_FILTER": test, "HPLAN_LAW_CASES": str(6 if s.smoke else CASES[program])})
    if done.code:
        lines = [line for line in (done.err + done.out).splitlines() if "[  ERROR" in line or "error" in line.lower()]
        raise Failed(" | ".join(lines[:3])[:600] or done.why())
    if f"[       OK ] {test}" not in done.out + done.err:
        raise Failed("the test did not run")


def laws_of(program, smoke=None):
    def step(s, data):
        items = Items(s, data)
        for test in s.place.pack["laws"][program]:
            if not s.smoke or smoke is None or test in smoke:
                items.check(test, law, s, program, test)
    return step


# --- networks ---

def outputs(s, name, net, image, prec, device, start=None, batch=1):
    plan(s, name, net, image, device=device, mode="infer", batch=batch, strategy=f"dp=1,prec={prec}")
    result = run(s, name, steps=1, options=["--output", f"{name}.npy", "--threads", 1 if s.smoke or device == "cuda" else 8,
                                            *(["--init", start] if start else [])])
    return list(floats(s.work / f"{name}.npy")), result


# logits against the processor's: sums in another order; a store of 16 bits per layer; in 8 bits the last layer alone is real
LOGITS = {"fp32": 1e-4, "bf16": 5e-2, "fp16": 1e-2, "int8": 1e-5, "int8-dynamic": 1e-4}


def same_logits(s, net, image, prec, bounds=LOGITS, start=None):
    want, _ = outputs(s, "cpu", net, image, prec, "cpu", start)
    have, result = outputs(s, "cuda", net, image, prec, "cuda", start)
    off = norm(have, want) if len(have) == len(want) and any(want) else float("inf")
    return {"ok": off <= bounds[prec], "norm": finite(off), "bound": bounds[prec], "outputs": len(have),
            "differing": sum(x != y for x, y in zip(have, want)), **memory(result),
            "memory_as_planned": memory(result)["planned_bytes"] == memory(result)["peak_bytes"]}


def infer_nets(s, data):
    items = Items(s, data)
    cases = [("resnet18", 224, p) for p in LOGITS]
    cases += [("mobilenetv2", 224, "int8"), ("unet:8", 256, "int8"), ("densenet121", 224, "fp32"), ("resnet50", 1024, "int8")]
    for net, image, prec in [("cnn", 28, "fp32"), ("unet:2", 32, "int8")] if s.smoke else cases:
        items.check(f"{net} {image} {prec}", same_logits, s, net, image, prec)


# of transformers, whose norms and attention are real: between quantised maps a byte is now and then its neighbour
TOKENS = {**LOGITS, "int8": 2e-2, "int8-dynamic": 2e-2}


def same_tokens(s, net, image, prec):
    """After a step of training, since a ViT's head begins with zeros."""
    start = s.work / f"{net.split(':')[0]}.safetensors"
    if not start.exists():
        train(s, start.stem, net, image, "cuda", 2, 1, rate="0.1")
    return same_logits(s, net, image, prec, TOKENS, start)


def infer_tokens(s, data):
    items = Items(s, data)
    nets = (("vit-b16", 224), ("swin-t", 224), ("gpt:2,768,12,256,50257", 256))  # GPT-2's takes the processor half a minute
    cases = [(net, image, prec) for net, image in nets for prec in TOKENS]
    for net, image, prec in [("vit:1,16,2,7", 28, "fp32"), ("gpt:1,16,2,16,64", 16, "int8")] if s.smoke else cases:
        items.check(f"{net} {prec}", same_tokens, s, net, image, prec)


def train(s, name, net, image, device, batch, steps, strategy="dp=1", gpus=1, rate="1e-4", start=None):
    plan(s, name, net, image, device=device, batch=batch, strategy=strategy, gpus=gpus)
    return run(s, name, steps=steps, options=["--lr", rate, "--momentum", "0.9" if steps > 1 else "0", "--save",
                                              f"{name}.safetensors", "--threads", 1 if s.smoke or device == "cuda" else 8,
                                              *(["--init", start] if start else [])])


def gradients(s):
    """A step of rate 1 is the gradient: how far the GPU's and a nudged run's are from the processor's, and the worst tensor."""
    start, want, nudged, have = (tensors(s.work / f"{n}.safetensors") for n in ("start", "cpu-step", "nudged-step", "cuda-step"))
    trained = [k for k in want if not k.endswith(("running_mean", "running_var"))]
    size = {k: math.fsum((x - y) ** 2 for x, y in zip(want[k], start[k])) for k in trained}
    off, own = ({k: math.fsum((x - y) ** 2 for x, y in zip(other[k], want[k])) for k in trained} for other in (have, nudged))
    whole = math.fsum(size.values())
    worst = max((k for k in trained if size[k] > 1e-6 * whole), key=lambda k: off[k] / size[k])
    return {"gradient_norm": finite(math.sqrt(math.fsum(off.values()) / whole)),
            "nudged_gradient_norm": finite(math.sqrt(math.fsum(own.values()) / whole)), "worst_tensor": worst,
            "worst_tensor_norm": finite(math.sqrt(off[worst] / size[worst])), "tensors": len(trained)}


# What is right: no farther from the processor than some times what the last bit of one tensor's weights makes there
LOSS, GRADIENT, TIMES = 1e-5, 1e-4, 10


def curves(s, **what):
    """Losses of a few steps, and weights after one of rate 1: of the processor, of it nudged, of the GPU."""
    train(s, "start", device="cpu", rate="0", **{**what, "steps": 1})
    nudge(s.work / "start.safetensors", s.work / "nudged.safetensors")
    runs = {}
    for name, device, start in (("cpu", "cpu", "start"), ("nudged", "cpu", "nudged"), ("cuda", "cuda", "start")):
        begin = s.work / f"{start}.safetensors"
        train(s, f"{name}-step", device=device, rate="1", start=begin, **{**what, "steps": 1})
        runs[name] = train(s, f"{name}-run", device=device, start=begin, **what)
    return runs["cpu"], runs["nudged"], runs["cuda"]


def same_training(s, net, image, batch, steps):
    want, nudged, have = curves(s, net=net, image=image, batch=batch, steps=steps)
    off, own = apart(want["losses"], have["losses"]), apart(want["losses"], nudged["losses"])
    facts = {"losses": have["losses"], "cpu_losses": want["losses"], "apart": finite(off), "nudged_apart": finite(own),
             **memory(have), **gradients(s)}
    facts["bound"] = max(LOSS, TIMES * own) if own < 1 else LOSS
    facts["gradient_bound"] = max(GRADIENT, TIMES * (facts["nudged_gradient_norm"] or 0))
    norm_of_gradient = facts["gradient_norm"]
    facts["ok"] = off <= facts["bound"] and norm_of_gradient is not None and norm_of_gradient <= facts["gradient_bound"]
    return facts


def train_first(s, data):
    items = Items(s, data)
    if s.smoke:
        items.check("cnn", same_training, s, "cnn", 28, 4, 2)
        return
    items.check("resnet50", same_training, s, "resnet50", 96, 16, 4)


def train_nets(s, data):
    items = Items(s, data)
    cases = [("unet:2", 32, 2, 2)] if s.smoke else [("unet:16", 128, 2, 4), ("amoebanetd:3,64", 96, 4, 4), ("resnet18", 128, 16, 4),
                                                       ("mobilenetv2", 64, 16, 4)]
    for net, image, batch, steps in cases:
        items.check(net, same_training, s, net, image, batch, steps)


def train_tokens(s, data):
    """Transformers: images by patches and by windows that shift, text."""
    items = Items(s, data)
    cases = [("vit:1,16,2,7", 28, 2, 2)] if s.smoke else [("gpt:4,128,4,128,256", 128, 4, 4), ("vit:4,96,3,8", 64, 8, 4),
                                                           ("swin-t", 224, 2, 2)]
    for net, image, batch, steps in cases:
        items.check(net, same_training, s, net, image, batch, steps)


# --- ranks ---

def by_routes(s, name, steps, options, outcome):
    """The plan run as it goes: (outcome(result), result, facts). Where messages went straight from one rank's memory into another's,
    by way of the host as well: the outcome is the same."""
    have = run(s, name, steps=steps, options=options)
    found = outcome(have)
    facts = {"ok": True, **sent(have)}
    if any(facts["direct_bytes"]):
        again = run(s, name, steps=steps, options=[*options, "--no-ipc"])
        facts["by_host"] = sent(again)
        facts["routes_agree"] = outcome(again) == found
        facts["ok"] = facts["routes_agree"] and not any(facts["by_host"]["direct_bytes"])
    return found, have, facts


def sent(result):
    return {"step_s": result["step_s"], **{k: result["final"][k] for k in ("sent_bytes", "direct_bytes")}}


def same_as_one_rank(s, strategy, gpus, net, image, batch):
    """Several ranks on one GPU, by either route: one rank's losses."""
    options = ["--lr", "1e-4"]
    if "one" not in s.known:
        plan(s, "one", net, image, batch=batch)
        s.known["one"] = run(s, "one", steps=3, options=options)["losses"]
    plan(s, "ranks", net, image, batch=batch, strategy=f"{strategy},comm=mpi", gpus=gpus)
    losses, have, facts = by_routes(s, "ranks", 3, options, lambda result: result["losses"])
    off = apart(s.known["one"], losses)
    facts["ok"] = facts["ok"] and off <= 1e-3
    return {"losses": losses, "one_rank": s.known["one"], "apart": finite(off), "bound": 1e-3, **facts, **memory(have)}


def ranks_of(gpus, strategies):
    def step(s, data):
        items = Items(s, data)
        net, image, batch = ("cnn", 28, 4) if s.smoke else ("resnet18", 64, 8)
        for strategy in strategies[:1] if s.smoke else strategies:
            items.check(strategy, same_as_one_rank, s, strategy, gpus, net, image, batch, limit_s=30)
    return step


def ranks_infer(s, strategy, gpus, net, image):
    plan(s, "one", net, image, mode="infer", strategy="dp=1,prec=int8")
    run(s, "one", steps=1, options=["--output", "one.npy"])
    plan(s, "many", net, image, mode="infer", strategy=f"{strategy},prec=int8,comm=mpi", gpus=gpus)
    many, _, facts = by_routes(s, "many", 1, ["--output", "many.npy"], lambda _: list(floats(s.work / "many.npy")))
    one = list(floats(s.work / "one.npy"))
    facts["ok"] = facts["ok"] and one == many
    return {"outputs": len(one), "differing": sum(x != y for x, y in zip(one, many)), **facts}


def ranks2(s, data):
    ranks_of(2, ["sp=2x1", "dp=2,bn=all", "stages=2"])(s, data)
    net, image = ("cnn", 28) if s.smoke else ("resnet18", 256)
    Items(s, data).check("sp=2x1 int8", ranks_infer, s, "sp=2x1", 2, net, image, limit_s=30)


def ranks4(s, data):
    ranks_of(4, ["sp=2x2", "sp=2x1,stages=2,tail=shared", "dp=2,sp=2x1,bn=all"])(s, data)
