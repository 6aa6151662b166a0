"""bench.py - how fast, beside PyTorch on the same GPU: turn by turn, so that what disturbs the machine disturbs both;
medians of the turns, predicted beside measured, memory as planned beside as observed."""
import json
import statistics
import subprocess
import sys
import threading

from steps.harness import Failed, Items, OutOfTime, Refused, end_session
from steps.plans import layers, memory, plan, run


TORCH = {"vit-b16": "vit_b_16", "swin-t": "swin_t"}  # torchvision's names


class Peer:
    """steps/peer.py, kept running: `turn` times some steps there."""

    def __init__(self, s, net, image, batch, mode, prec):
        self.s = s
        self.process = subprocess.Popen(
            [sys.executable, str(s.place.root / "steps/peer.py"), TORCH.get(net, net), str(image), str(batch), mode, prec,
             "cpu" if s.smoke else "cuda"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=s.work, start_new_session=True)
        self.ready = self.answer(min(90, s.left()))

    def answer(self, limit_s):
        line = []
        reader = threading.Thread(target=lambda: line.append(self.process.stdout.readline()), daemon=True)
        reader.start()
        reader.join(max(0.0, limit_s))
        if reader.is_alive():
            self.close()
            raise OutOfTime(f"PyTorch did not answer within {limit_s:.0f} s")
        if not line[0]:
            why = self.process.stderr.read()
            self.s.note("peer: " + why)
            raise Refused("PyTorch: " + (why.strip().splitlines() or ["no answer"])[-1][:300])
        return json.loads(line[0])

    def turn(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return self.answer(min(60, self.s.left()))

    def close(self):
        end_session(self.process.pid)
        self.process.wait()


def open_peer(s, facts, *what):
    try:
        peer = Peer(s, *what)
        facts["torch"] = peer.ready
        return peer
    except (Refused, OutOfTime, OSError) as why:
        facts["torch"] = {"refused": str(why)}
        return None


def turns(s, name, steps, peer, rounds):
    """[(hplan's median step, PyTorch's)], the runs of both, in turn."""
    mine, theirs, walls, last = [], [], [], None
    for r in range(rounds):
        if r and s.left() < 2 * walls[-1]:
            break
        last = run(s, name, steps=steps)
        mine.append(last["step_s"])
        walls.append(last["wall_s"])
        if peer:
            theirs.append(peer.turn(steps)["step_s"])
    last["walls_s"] = walls
    return mine, theirs, last


def compared(s, net, image, batch, mode, prec, steps, rounds=2):
    """One network in one precision. cuDNN's engines are chosen, and compiled, before the first step: that is wall_s, not step_s."""
    facts = {"batch": batch, "image": image, "net": net, "prec": prec}
    name = f"{net}-{mode}-{prec}".replace(":", "-").replace(",", "-")
    strategy = "dp=1" if prec == "fp32" else f"dp=1,prec={prec}"
    predicted = plan(s, name, net, image, mode=mode, batch=batch, strategy=strategy)
    facts["predicted_s"] = predicted["step_s"]
    peer = None if prec.startswith("int8") else open_peer(s, facts, net, image, batch, mode, prec)
    try:
        mine, theirs, last = turns(s, name, steps, peer, rounds)
    finally:
        if peer:
            peer.close()
    step_s = statistics.median(mine)
    facts.update(step_s=step_s, turns_s=mine, walls_s=last["walls_s"], images_per_s=batch / step_s, **memory(last),
                 predicted_error=predicted["step_s"] / step_s - 1)
    if theirs:
        facts["torch"].update(step_s=statistics.median(theirs), turns_s=theirs)
        facts["times_torch"] = statistics.median(theirs) / step_s
    facts["tasks"] = layers(s.work / f"{name}.run.db")
    return facts


def ratios(data):
    """Of the targets: int8 against TF32 and strict float32."""
    s = {i["name"]: i["step_s"] for i in data["items"] if i.get("step_s")}
    data["ratios"] = {f"int8 to {p}": s[p] / s["int8"] for p in ("fp32", "tf32", "bf16", "fp16") if p in s and "int8" in s}


def bench_infer(s, data):
    """ResNet-101, 256x256, 64 images: INT8 at least 3 times TF32's speed, 10 times strict float32's."""
    items = Items(s, data)
    if s.smoke:
        items.check("int8", compared, s, "cnn", 28, 2, "infer", "int8", 2, 1)
        items.check("bf16", compared, s, "resnet18", 32, 1, "infer", "bf16", 2, 1)
    for prec in () if s.smoke else ("int8", "bf16", "tf32", "fp32", "fp16"):
        items.check(prec, compared, s, "resnet101", 256, 64, "infer", prec, 15, optional=True, limit_s=45)
    ratios(data)


def large(s, prec, image):
    facts = compared(s, "cnn" if s.smoke else "resnet101", image, 1, "infer", prec, 2 if s.smoke else 6, 1)
    facts["ok"] = facts["planned_bytes"] == facts["peak_bytes"]
    return facts


def bench_large(s, data):
    """ResNet-101, one image of 8192x8192: INT8 within 30 ms, bf16 within 60 ms, peak memory as planned."""
    items = Items(s, data)
    for prec in ("int8",) if s.smoke else ("int8", "bf16", "tf32"):
        items.check(prec, large, s, prec, 48 if s.smoke else 8192, optional=True, limit_s=60)


def bench_train(s, data):
    """ResNet-50, 224x224: bf16 at least PyTorch's speed with channels-last and autocast."""
    items = Items(s, data)
    net, image, batch, steps = ("cnn", 28, 2, 2) if s.smoke else ("resnet50", 224, 64, 12)
    for prec in ("bf16", "fp32") if s.smoke else ("bf16", "tf32", "fp32"):
        items.check(prec, compared, s, net, image, batch, "train", prec, steps, 1 if s.smoke else 2, optional=True, limit_s=60)


def bench_transformers(s, data):
    """Training ViT-B/16 and Swin-T at 224x224 and GPT-2 (124 M) on texts of 1024 tokens, beside PyTorch's fused attention; inference."""
    items = Items(s, data)
    if s.smoke:
        items.check("vit bf16", compared, s, "vit:1,16,2,7", 28, 2, "train", "bf16", 2, 1)
        return
    for net, image, batch, prec in (("vit-b16", 224, 64, "bf16"), ("gpt2", 1024, 8, "bf16"), ("swin-t", 224, 64, "bf16"),
                                    ("vit-b16", 224, 64, "tf32")):
        items.check(f"{net} {prec}", compared, s, net, image, batch, "train", prec, 10, 1, optional=True, limit_s=60)
    for net, image, batch in (("vit-b16", 224, 64), ("gpt2", 1024, 8)):
        for prec in ("bf16", "int8"):
            items.check(f"{net} infer {prec}", compared, s, net, image, batch, "infer", prec, 10, 1, optional=True, limit_s=60)


# --- trained for real ---

def cut(s, images):
    """A few of the images."""
    to = s.work / "few"
    to.mkdir(exist_ok=True)
    for file in images.iterdir():
        raw, n = file.read_bytes(), 128 if file.name.startswith("train") else 64
        head = 4 * (1 + raw[3])
        size = 784 if raw[3] == 3 else 1
        (to / file.name).write_bytes(raw[:4] + n.to_bytes(4, "big") + raw[8:head] + raw[head:head + n * size])
    return to


def learns(s, prec, images, steps_per_epoch, least):
    strategy = "dp=1" if prec == "fp32" else f"dp=1,prec={prec}"
    plan(s, "fashion", "cnn", 28, batch=16 if s.smoke else 64, strategy=strategy, options=["--classes", "10"])
    result = run(s, "fashion", steps=steps_per_epoch, options=["--data", images, "--eval"])
    accuracy = result["final"]["accuracy"]
    return {"ok": accuracy >= least, "accuracy": accuracy, "least": least, "loss": result["final"]["loss"],
            "step_s": result["step_s"]}


def fashion(s, data):
    """cnn on Fashion-MNIST: bf16 converges as float32 does."""
    images = s.place.root / "data/fashion-mnist"
    if not images.is_dir():
        raise Refused("the pack holds no Fashion-MNIST: it was not installed where the pack was made")
    images = cut(s, images) if s.smoke else images
    items = Items(s, data)
    steps, least = (3, 0.0) if s.smoke else (936, 0.80)
    for prec in ("bf16", "fp32"):
        items.check(prec, learns, s, prec, images, steps, least, optional=True, limit_s=60)
    accuracy = [i["accuracy"] for i in data["items"] if i["ok"]]
    if len(accuracy) == 2 and not s.smoke and accuracy[0] < accuracy[1] - 0.02:
        raise Failed(f"bf16 reaches {accuracy[0]:.4f}, float32 {accuracy[1]:.4f}")


def text(s, data):
    """A GPT of 2.8 M parameters reads Debian's documentation: in bits per byte, below tests/peers/trigram.py of the same pages."""
    folder = s.place.root / "data/text"
    if not folder.is_dir():
        raise Refused("the pack holds no text: it was not installed where the pack was made")
    if s.smoke:
        page = s.work / "page.html"
        page.write_bytes(next(f for f in sorted(folder.rglob("*")) if f.is_file()).read_bytes()[:4000])
    what = (page, "gpt:1,16,2,16,256", 2, 9.0) if s.smoke else (folder, "gpt:6,192,6,256,256", 1200, 2.159)
    Items(s, data).check("bf16", reads, s, *what)


def reads(s, place, net, steps, most):
    plan(s, "text", net, None, batch=8, strategy="dp=1,prec=bf16", options=["--optimizer", "adamw", "--clip-norm"])
    result = run(s, "text", steps=steps, options=["--data", f"text:{place}", "--lr", "2e-3", "--lr-schedule", "cosine", "--warmup",
                                                  "100" if steps > 100 else "1", "--min-lr", "1e-4", "--betas", "0.9,0.95",
                                                  "--weight-decay", "0.1", "--clip-norm", "1", "--eval"])
    bits = result["final"]["bits_per_byte"]
    return {"ok": bits <= most, "bits_per_byte": bits, "most": most, "loss": result["final"]["loss"], "step_s": result["step_s"]}
