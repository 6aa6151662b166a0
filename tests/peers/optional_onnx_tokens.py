#!/usr/bin/python3
"""Transformers that PyTorch exports, read with hplan import: logits and losses of training beside PyTorch's in float64.

    optional_onnx_tokens.py [BUILD [NET...]]

BUILD: the folder of the build (build); NET: "vit of 2 blocks", gpt, "swin of 2 stages", swin_t, vit_b_16 (all). torchvision's ViT-B/16 at
64 pixels and one of two blocks, its Swin-T and one of two stages, and a GPT-2 written below from torch.nn as its exporters spell it;
opsets 13, 14 and 17, sizes fixed and open. Logits apart by no more than 1e-6 (ref) and 1e-5 (cpu) of the largest; losses of three steps
of SGD (ref, the small ones) by no more than 1e-9. Needs python3-torch, python3-torchvision."""
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

import numpy
import torch
import torchvision

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from optional_train_torch import write_idx

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST = {"ref": 1e-6, "cpu": 1e-5}
IDS, TOKENS, STEPS = 256, 12, 3
LARGE = ("vit_b_16", "swin_t")  # by definition, in float64, they would train for minutes


class Block(torch.nn.Module):
    def __init__(self, c, heads, tokens):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = torch.nn.LayerNorm(c), torch.nn.LayerNorm(c)
        self.c_attn, self.c_proj = torch.nn.Linear(c, 3 * c), torch.nn.Linear(c, c)
        self.fc, self.proj = torch.nn.Linear(c, 4 * c), torch.nn.Linear(4 * c, c)
        self.register_buffer("seen", torch.tril(torch.ones(tokens, tokens, dtype=torch.bool)).view(1, 1, tokens, tokens))

    def forward(self, x):
        n, s, c = x.size()
        q, k, v = (t.view(n, s, self.heads, c // self.heads).transpose(1, 2) for t in self.c_attn(self.ln_1(x)).split(c, dim=2))
        scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.seen[:, :, :s, :s] == 0, float("-inf"))
        x = x + self.c_proj((scores.softmax(-1) @ v).transpose(1, 2).contiguous().view(n, s, c))
        y = self.fc(self.ln_2(x))
        return x + self.proj(0.5 * y * (1 + torch.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * torch.pow(y, 3)))))


class GPT(torch.nn.Module):
    def __init__(self, layers, c, heads):
        super().__init__()
        self.wte, self.wpe = torch.nn.Embedding(IDS, c), torch.nn.Embedding(2 * TOKENS, c)
        self.h = torch.nn.ModuleList(Block(c, heads, 2 * TOKENS) for _ in range(layers))
        self.ln_f, self.head = torch.nn.LayerNorm(c), torch.nn.Linear(c, IDS, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.size(1)).unsqueeze(0))
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))


def nets():
    vit = torchvision.models.VisionTransformer
    yield "vit of 2 blocks", vit(32, 8, 2, 2, 24, 40, num_classes=10), 32, (13, 14, 17)
    yield "gpt", GPT(2, 24, 2), None, (13, 17)
    swin = torchvision.models.swin_transformer.SwinTransformer
    yield "swin of 2 stages", swin([4, 4], 12, [2, 2], [2, 4], [4, 4], stochastic_depth_prob=0.0, num_classes=10), 64, (13, 17)
    yield "swin_t", swin([4, 4], 96, [2, 2, 6, 2], [3, 6, 12, 24], [7, 7], stochastic_depth_prob=0.0, num_classes=10), 224, (17,)
    yield "vit_b_16", torchvision.models.vit_b_16(image_size=64, num_classes=10), 64, (17,)


class Case:
    """A network with drawn weights, two samples for both programs, and the folder of its files."""

    def __init__(self, hplan, net, image, folder):
        torch.manual_seed(1)
        for p in net.parameters():  # torchvision's head and class token begin with zeros
            torch.nn.init.normal_(p, 1.0 if p.dim() == 1 and p.min() == 1 else 0.0, 0.05)
        self.hplan, self.net, self.folder = hplan, net.eval(), folder
        self.labels = torch.tensor([3, 7])
        if image:
            pixels = (torch.rand(2, image, image) < 0.5).byte() * 255
            write_idx(folder, pixels, self.labels)
            self.x = torch.where(pixels[:, None] > 0, 1.0, -1.0).expand(-1, 3, -1, -1).contiguous()
            self.data, self.size, self.axes = folder, [], {0: "n"}
        else:
            raw = bytes(random.Random(1).randrange(IDS) for _ in range(2 * TOKENS + 1))
            (folder / "text").write_bytes(raw * 20)  # the last twentieth is for tests
            ids = torch.tensor(list(raw))
            self.x, self.labels = ids[:-1].view(2, TOKENS), ids[1:]
            self.data, self.size, self.axes = f"text:{folder / 'text'}", ["--image", str(TOKENS)], {0: "n", 1: "s"}

    def run(self, *words):
        return subprocess.run([self.hplan, *map(str, words)], check=True, capture_output=True, text=True, cwd=self.folder).stdout

    def export(self, opset, is_open):
        names = {"input_names": ["x"], "output_names": ["y"], "dynamic_axes": {"x": self.axes, "y": {0: "n"}}} if is_open else {}
        torch.onnx.export(self.net, self.x[:1], self.folder / "m.onnx", opset_version=opset, **names)
        self.size_given = self.size if is_open else []
        self.run("import", "m.onnx", *self.size_given, "-o", "m.db")

    def plan(self, mode, device, strategy):
        self.run("simulate", "--onnx", "m.db", *self.size_given, "--machine", "local", "--batch", 2, "--mode", mode, "--strategy", strategy,
                 "--device", device, "--out", "p.db")

    def logits(self, device, strategy):
        self.plan("infer", device, strategy)
        self.run("run", "p.db", "--init", "m.safetensors", "--data", self.data, "--no-shuffle", "--output", "y.npy")
        return torch.from_numpy(numpy.load(self.folder / "y.npy")).double()

    def losses(self, strategy):
        self.plan("train", "ref", strategy)
        out = self.run("run", "p.db", "--init", "m.safetensors", "--data", self.data, "--no-shuffle", "--steps", STEPS, "--lr", 0.01,
                       "--momentum", 0, "--weight-decay", 0, "--json")
        return [json.loads(line)["loss"] for line in out.splitlines() if '"step":' in line and "final" not in line]

    def torch_losses(self):
        net, losses = self.net.double(), []
        before = {k: v.clone() for k, v in net.state_dict().items()}
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        for _ in range(STEPS):
            y = net(self.x.double() if self.x.is_floating_point() else self.x)
            loss = torch.nn.functional.cross_entropy(y.flatten(0, -2), self.labels)
            losses.append(loss.item())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.load_state_dict(before)
        net.float()
        return losses


def check(hplan, name, net, image, opsets):
    with tempfile.TemporaryDirectory() as folder:
        case = Case(hplan, net, image, pathlib.Path(folder))
        with torch.no_grad():
            theirs = case.net.double()(case.x.double() if image else case.x)
        case.net.float()
        for opset in opsets:
            case.export(opset, opset == 17)
            for device, most in MOST.items():
                for strategy in ("dp=1",) if name in LARGE else ("dp=1", "sp=2x1", "stages=2"):
                    apart = ((case.logits(device, strategy).reshape(theirs.shape) - theirs).abs().max() / theirs.abs().max()).item()
                    print(f"{name}, opset {opset}, {device}, {strategy}: logits within {apart:.1e}", flush=True)
                    yield apart <= most
        if name in LARGE:
            return
        wanted = case.torch_losses()
        for strategy in ("dp=1", "tp=2", "sp=2x1" if name.startswith("swin") else "seq=2", "stages=2"):
            ours = case.losses(strategy)
            apart = max(abs(a - b) for a, b in zip(ours, wanted))
            print(f"{name}, {strategy}: losses {ours[0]:.6f} .. {ours[-1]:.6f} within {apart:.1e}", flush=True)
            yield len(ours) == STEPS and apart <= 1e-9


def main():
    warnings.filterwarnings("ignore")
    hplan = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve() / "hplan"
    good = [g for net in nets() if net[0] in (sys.argv[2:] or net[:1]) for g in check(hplan, *net)]
    print(f"{sum(good)} of {len(good)} agree")
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
