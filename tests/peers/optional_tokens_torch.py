#!/usr/bin/python3
"""Gradients and logits of transformers beside PyTorch's in float64, and ten steps in float32 as near to float64 as PyTorch's.

    optional_tokens_torch.py HPLAN [NET...]     (vit-b16, swin-t, gpt:4,64,4,64,256 by default)

The first law is optional_gradients_torch.py's: one step with lr 1, gradients apart by no more than 1e-9 of each tensor's largest. The
second: hplan's losses in float32 are from PyTorch's in float64 no more than three times as far as PyTorch's in float32 are, of
which three runs add up in another order (one thread or two, oneDNN or not), or 2e-6. Logits are
those of inference, in float64 and float32, whole and in tiles; apart by no more than 1e-6 and 1e-4 of the largest. ViT is torchvision's for images of 64 pixels, Swin
its own for 224, GPT is written below from torch.nn and has GPT-2's names. Dropout and stochastic depth are off. Needs
python3-torch, python3-torchvision, libopenblas0-pthread."""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy
import torch
import torchvision

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from optional_train_torch import CLASSES, write_idx
from optional_weights_torch import read, write

LAW, STEPS = 1e-9, 10
LOGITS = {"ref": 1e-6, "cpu": 1e-4}  # constants and what is put out are float32


class Block(torch.nn.Module):
    def __init__(self, c, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = torch.nn.LayerNorm(c), torch.nn.LayerNorm(c)
        self.c_attn, self.proj = torch.nn.Linear(c, 3 * c), torch.nn.Linear(c, c)
        self.c_fc, self.c_proj = torch.nn.Linear(c, 4 * c), torch.nn.Linear(4 * c, c)

    def forward(self, x):
        n, s, c = x.shape
        q, k, v = (t.view(n, s, self.heads, -1).transpose(1, 2) for t in self.c_attn(self.ln_1(x)).split(c, 2))
        scores = q @ k.transpose(2, 3) / (c // self.heads) ** 0.5
        scores = scores.masked_fill(torch.ones(s, s, dtype=torch.bool).triu(1), float("-inf"))
        x = x + self.proj((scores.softmax(3) @ v).transpose(1, 2).reshape(n, s, c))
        return x + self.c_proj(torch.nn.functional.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class GPT(torch.nn.Module):
    """GPT-2; `named` gives parameters the names and layout of its files."""
    MODULES = {"c_attn": "attn.c_attn", "proj": "attn.c_proj", "c_fc": "mlp.c_fc", "c_proj": "mlp.c_proj"}

    def __init__(self, layers, c, heads, seq, ids):
        super().__init__()
        self.wte, self.wpe = torch.nn.Embedding(ids, c), torch.nn.Embedding(seq, c)
        self.h = torch.nn.ModuleList(Block(c, heads) for _ in range(layers))
        self.ln_f = torch.nn.LayerNorm(c)
        for p in self.parameters():
            torch.nn.init.normal_(p, 0.0, 0.1)

    def forward(self, x):
        x = self.wte(x) + self.wpe(torch.arange(x.shape[1]))
        for block in self.h:
            x = block(x)
        return (self.ln_f(x) @ self.wte.weight.T).flatten(0, 1)

    def named(self, values):
        out = {}
        for name, v in values.items():
            parts = name.split(".")
            turned = len(parts) == 4 and parts[2] in self.MODULES and parts[3] == "weight"
            if len(parts) == 4 and parts[2] in self.MODULES:
                parts[2] = self.MODULES[parts[2]]
            out[".".join(parts)] = v.T.contiguous() if turned else v
        return out


class Case:
    """A network, its data for both programs, and how hplan is asked for it."""

    def __init__(self, net, folder, samples):
        torch.manual_seed(1)
        self.net, self.folder, self.text = net, folder, net.startswith("gpt:")
        self.labels = torch.randint(0, CLASSES, (samples,))
        if self.text:
            self.numbers = [int(n) for n in net[4:].split(",")]
            seq = self.numbers[3]
            raw = bytes(random.Random(1).randrange(self.numbers[4]) for _ in range((samples * seq + 1) * 20 // 19 + 20))
            (folder / "text").write_bytes(raw)
            ids = torch.tensor(list(raw[:samples * seq + 1]))
            self.x, self.labels = ids[:-1].view(samples, seq), ids[1:].view(samples, seq)
            self.options, self.data = [], f"text:{folder / 'text'}"
        else:
            image = 64 if net.startswith("vit") else 224
            images = (torch.rand(samples, image, image) < 0.5).byte() * 255
            self.x = torch.where(images[:, None] > 0, 1.0, -1.0).double().expand(-1, 3, -1, -1).contiguous()
            write_idx(folder, images, self.labels)
            self.options, self.data = ["--image", str(image), "--classes", str(CLASSES)], folder

    def model(self):
        torch.manual_seed(2)
        if self.text:
            return GPT(*self.numbers)
        if self.net == "swin-t":
            m = torchvision.models.swin_transformer.SwinTransformer(
                [4, 4], 96, [2, 2, 6, 2], [3, 6, 12, 24], [7, 7], stochastic_depth_prob=0.0, num_classes=CLASSES)
        else:
            m = torchvision.models.vit_b_16(num_classes=CLASSES, image_size=64)
        for p in m.parameters():  # torchvision's head and class token begin with zeros, biases too
            torch.nn.init.normal_(p, 1.0 if p.dim() == 1 and p.min() == 1 else 0.0, 0.05)
        return m

    def named(self, model, values):
        return model.named(values) if self.text else values

    def loss(self, model, x, labels):
        return torch.nn.functional.cross_entropy(model(x if self.text else x.to(next(model.parameters()).dtype)),
                                                 labels.flatten())

    def run(self, hplan, strategy, device, batch, *options, mode="train"):
        plan = self.folder / "p.db"
        subprocess.run([hplan, "simulate", "--net", self.net, *self.options, "--machine", "local", "--batch", str(batch), "--strategy",
                        strategy, "--device", device, "--mode", mode, "--out", plan], check=True, capture_output=True)
        return subprocess.run([hplan, "run", plan, "--data", self.data, "--no-shuffle", "--no-dropout", "--init", self.folder / "w",
                               "--trace", self.folder / "r.db", "--json", *options], check=True, capture_output=True,
                              text=True).stdout


def gradients(hplan, net, strategy, micro):
    batch = 4 if net.startswith("gpt") else 2
    with tempfile.TemporaryDirectory() as name:
        case = Case(net, pathlib.Path(name), batch)
        m = case.model().double().train()
        before = {k: v.clone() for k, v in case.named(m, m.state_dict()).items()}
        write(case.folder / "w", before)
        case.run(hplan, strategy, "ref", batch, "--steps", "1", "--lr", "1", "--momentum", "0", "--weight-decay", "0", "--save",
                 case.folder / "after")
        after = read(case.folder / "after")
    for part in range(micro):
        of = slice(part * batch // micro, (part + 1) * batch // micro)
        (case.loss(m, case.x[of], case.labels[of]) / micro).backward()
    theirs = case.named(m, {k: p.grad for k, p in m.named_parameters()})
    floor = 1e-6 * max(g.abs().max() for g in theirs.values())  # keys' biases have no gradient but rounding
    worst, where = max((((before[k] - after[k]) - g).abs().max().item() / max(g.abs().max(), floor).item(), k)
                       for k, g in theirs.items())
    print(f"{net} {strategy}: gradients within {worst:.1e} of PyTorch's (worst: {where})", flush=True)
    return worst <= LAW


def torch_losses(case, batch, threads, onednn, dtype=torch.float32):
    torch.set_num_threads(threads)
    torch.backends.mkldnn.flags(enabled=onednn).__enter__()
    m = case.model().to(dtype).train()
    optimizer = torch.optim.SGD(m.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4)
    losses = []
    for i in range(0, STEPS * batch, batch):
        optimizer.zero_grad()
        loss = case.loss(m, case.x[i:i + batch], case.labels[i:i + batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def steps(hplan, net):
    batch = 8 if net.startswith("gpt") else 2
    with tempfile.TemporaryDirectory() as name:
        case = Case(net, pathlib.Path(name), STEPS * batch)
        m = case.model()
        write(case.folder / "w", case.named(m, m.state_dict()))
        out = case.run(hplan, "dp=1", "cpu", batch, "--steps", str(STEPS), "--lr", "1e-3", "--momentum", "0.9", "--weight-decay", "1e-4")
    ours = [json.loads(line)["loss"] for line in out.splitlines() if '"step":' in line and "final" not in line]
    exact = torch_losses(case, batch, 2, True, torch.float64)
    theirs = [torch_losses(case, batch, *how) for how in ((1, True), (1, False), (2, True))]

    def farthest(losses, others):
        return max(abs(a - b) for a, b in zip(losses, others))

    off, spread = farthest(ours, exact), max(farthest(t, exact) for t in theirs)
    print(f"{net}: losses {ours[0]:.6f} .. {ours[-1]:.6f}; from float64 hplan {off:.2e}, torch {spread:.2e}; torch from itself "
          f"{max(farthest(t, theirs[0]) for t in theirs[1:]):.2e}", flush=True)
    return len(ours) == STEPS and off <= max(3 * spread, 2e-6)


def logits(hplan, net, device, strategy):
    batch = 2
    with tempfile.TemporaryDirectory() as name:
        case = Case(net, pathlib.Path(name), batch)
        m = case.model().double().eval()
        write(case.folder / "w", case.named(m, m.state_dict()))
        if case.text:  # its last twentieth is for tests
            held = (case.folder / "text").read_bytes()[:case.x.numel() + 1]
            (case.folder / "text").write_bytes(b"a" * (19 * len(held)) + held)
        case.run(hplan, strategy, device, batch, "--output", case.folder / "y.npy", mode="infer")
        ours = torch.from_numpy(numpy.load(case.folder / "y.npy")).double()
    with torch.no_grad():
        theirs = m(case.x)
    apart = (ours.reshape(theirs.shape) - theirs).abs().max().item() / theirs.abs().max().item()
    print(f"{net} {strategy} on {device}: logits within {apart:.1e} of PyTorch's", flush=True)
    return apart <= LOGITS[device]


def main():
    hplan = pathlib.Path(sys.argv[1]).resolve()
    good = []
    for net in sys.argv[2:] or ["gpt:4,64,4,64,256", "vit-b16", "swin-t"]:
        tiled = (("dp=1", 1), ("sp=2x1", 1), ("sp=2x1,micro=2,recompute=boundary", 2),
                 ("stages=2,micro=2,sched=1f1b", 2), ("tp=2", 1), ("tp=2,seq=2:ring,stages=2,micro=2", 2))
        good += [gradients(hplan, net, s, m) for s, m in tiled]
        good.append(steps(hplan, net))
        good += [logits(hplan, net, device, s) for device in LOGITS for s in ("dp=1", "sp=2x1", "stages=2")]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
