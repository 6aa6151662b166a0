#!/usr/bin/python3
"""Ten SGD steps beside PyTorch, from PyTorch's initial weights, on the same batches.

    optional_train_torch.py HPLAN [NET [IMAGE [STRATEGY [STEPS [BATCH [LR]]]]]]

The law: hplan's loss differs from PyTorch's, step by step, by no more than three times what PyTorch's own two memory
formats differ by (or 2e-6, a few units of the last place of a float32 loss, where those happen to agree).
Dropout is off on both sides: its random numbers are each program's own. Needs python3-torch, python3-torchvision and
libopenblas0-pthread."""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from optional_weights_torch import model, write

CLASSES = 10


def write_idx(folder, images, labels):
    """Grey images as MNIST's IDX files, both splits the same."""
    for split in ("train", "t10k"):
        n, h, w = images.shape
        (folder / f"{split}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, n, h, w) + images.numpy().tobytes())
        (folder / f"{split}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, n) + labels.byte().numpy().tobytes())


def torch_losses(net, x, labels, batch, lr, memory_format):
    m = model(net, classes=CLASSES).to(memory_format=memory_format)
    for layer in m.modules():
        if isinstance(layer, torch.nn.Dropout):
            layer.p = 0.0
    m.train()
    optimizer = torch.optim.SGD(m.parameters(), lr=lr, momentum=0.9, weight_decay=1e-4)
    losses = []
    for i in range(0, len(x), batch):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(m(x[i:i + batch].to(memory_format=memory_format)), labels[i:i + batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def hplan_losses(hplan, folder, net, image, strategy, steps, batch, lr):
    plan, run = folder / "p.db", folder / "r.db"
    subprocess.run([hplan, "simulate", "--net", net, "--image", str(image), "--classes", str(CLASSES), "--machine", "local",
                    "--batch", str(batch), "--strategy", strategy, "--out", plan], check=True, capture_output=True)
    out = subprocess.run([hplan, "run", plan, "--data", folder, "--no-shuffle", "--no-dropout", "--steps", str(steps),
                          "--lr", str(lr), "--momentum", "0.9", "--weight-decay", "1e-4", "--init", folder / "w.safetensors",
                          "--trace", run, "--json"], check=True, capture_output=True, text=True).stdout
    return [json.loads(line)["loss"] for line in out.splitlines() if '"step":' in line and "final" not in line]


def main():
    hplan = pathlib.Path(sys.argv[1]).resolve()
    given = sys.argv[2:] + [None] * 6
    net, image = given[0] or "resnet18", int(given[1] or 64)
    strategy, steps = given[2] or "dp=1", int(given[3] or 10)
    batch, lr = int(given[4] or 32), float(given[5] or 1e-4)
    torch.manual_seed(3)
    torch.set_num_threads(1)
    labels = torch.randint(0, CLASSES, (steps * batch,))
    base = torch.randint(0, 256, (CLASSES, image // 4, image // 4), dtype=torch.float32)
    images = torch.nn.functional.interpolate(base[:, None], scale_factor=4)[labels, 0]
    images = (0.7 * images + 0.3 * torch.randint(0, 256, images.shape)).byte()
    x = ((images.float() / 255 - 0.5) / 0.5)[:, None].expand(-1, 3, -1, -1).contiguous()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_idx(folder, images, labels)
        write(folder / "w.safetensors", model(net, classes=CLASSES).state_dict())
        ours = hplan_losses(hplan, folder, net, image, strategy, steps, batch, lr)
    theirs = torch_losses(net, x, labels, batch, lr, torch.contiguous_format)
    other = torch_losses(net, x, labels, batch, lr, torch.channels_last)
    own = max(abs(a - b) for a, b in zip(theirs, other))
    apart = max(min(abs(o - t), abs(o - c)) for o, t, c in zip(ours, theirs, other))
    for i, row in enumerate(zip(ours, theirs, other)):
        print(f"step {i + 1:2d}  hplan {row[0]:.8f}  torch {row[1]:.8f}  channels-last {row[2]:.8f}")
    print(f"{net} {image}x{image} {strategy}: hplan against torch {apart:.2e}, torch against itself {own:.2e}, "
          f"ratio {apart / own if own else float('nan'):.2f}")
    return 0 if len(ours) == steps and apart <= max(3 * own, 2e-6) else 1


if __name__ == "__main__":
    sys.exit(main())
