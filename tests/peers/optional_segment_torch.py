#!/usr/bin/python3
"""A U-Net trained on masks beside PyTorch, in float64, from PyTorch's initial weights on the same batches.

    optional_segment_torch.py HPLAN [STRATEGY [STEPS]]

The law: the losses of all steps (PyTorch's cross_entropy with ignore_index=255, whose mean is over the pixels that have
a label), and after them the test split's loss, agree within 1e-9; pixel accuracy and the foreground's intersection over
union are equal. Needs python3-torch, libopenblas0-pthread."""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from optional_graphs_torch import UNet
from optional_weights_torch import write

H, W, BATCH, FILTERS, LR = 40, 52, 4, 4, 0.05


def pixels(path):
    """Of a PNG as make_discs.py writes it: one IDAT, no filters."""
    raw = path.read_bytes()
    w, h, _, colour = struct.unpack(">IIBB", raw[16:26])
    (length,) = struct.unpack(">I", raw[33:37])
    rows = torch.frombuffer(bytearray(zlib.decompress(raw[41:41 + length])), dtype=torch.uint8).reshape(h, -1)
    return rows[:, 1:].reshape(h, w, 3 if colour == 2 else 1)


def split(folder):
    """Images (n, 3, h, w) as hplan feeds them, rounded to float32; masks (n, h, w)."""
    names = sorted(p.name for p in (folder / "images").iterdir())
    x = torch.stack([pixels(folder / "images" / n) for n in names]).double()
    y = torch.stack([pixels(folder / "masks" / n)[:, :, 0] for n in names]).long()
    return (((x / 255 - 0.5) / 0.5).float().double()).permute(0, 3, 1, 2).contiguous(), y


def loss_of(logits, masks):
    return torch.nn.functional.cross_entropy(logits, masks, ignore_index=255)


def theirs(net, folder, steps):
    x, y = split(folder / "train")
    optimizer = torch.optim.SGD(net.parameters(), lr=LR, momentum=0.9, weight_decay=1e-4)
    losses = []
    net.train()
    for step in range(steps):
        at = step * BATCH % len(x)
        optimizer.zero_grad()
        loss = loss_of(net(x[at:at + BATCH]), y[at:at + BATCH])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    x, y = split(folder / "test")
    net.eval()
    with torch.no_grad():
        logits = net(x)
    guess, known = logits.argmax(1), y != 255
    hit = ((guess == 1) & (y == 1)).sum().item()
    either = (((guess == 1) | (y == 1)) & known).sum().item()
    return losses, {"eval_loss": loss_of(logits, y).item(), "iou": hit / either,
                    "accuracy": ((guess == y) & known).sum().item() / known.sum().item()}


def ours(hplan, folder, strategy, steps):
    plan = folder / "p.db"
    subprocess.run([hplan, "simulate", "--net", f"unet:{FILTERS}", "--image", f"{H}x{W}", "--classes", "2", "--machine", "local",
                    "--device", "ref", "--batch", str(BATCH), "--strategy", strategy, "--out", plan], check=True,
                   capture_output=True)
    out = subprocess.run([hplan, "run", plan, "--data", folder / "data", "--no-shuffle", "--steps", str(steps), "--lr", str(LR),
                          "--momentum", "0.9", "--weight-decay", "1e-4", "--init", folder / "w.safetensors", "--eval",
                          "--trace", folder / "r.db", "--json"], check=True, capture_output=True, text=True).stdout
    rows = [json.loads(line) for line in out.splitlines()]
    return [row["loss"] for row in rows if "step" in row], rows[-1]


def main():
    hplan = pathlib.Path(sys.argv[1]).resolve()
    strategy = sys.argv[2] if len(sys.argv) > 2 else "dp=1"
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 24
    torch.manual_seed(5)
    net = UNet(FILTERS, 2).float()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([sys.executable, HERE.parent / "support/make_discs.py", folder / "data", str(H), str(W), "8", "3"], check=True)
        write(folder / "w.safetensors", net.state_dict())
        mine, final = ours(hplan, folder, strategy, steps)
        losses, test = theirs(net.double(), folder / "data", steps)
    apart = max(abs(a - b) for a, b in zip(mine + [final["eval_loss"]], losses + [test["eval_loss"]]))
    for i, (a, b) in enumerate(zip(mine, losses)):
        print(f"step {i + 1:2d}  hplan {a:.12f}  torch {b:.12f}")
    print(f"test    hplan {final['eval_loss']:.12f}  torch {test['eval_loss']:.12f}; accuracy {final['accuracy']:.6f}, "
          f"{test['accuracy']:.6f}; intersection over union {final['iou']:.6f}, {test['iou']:.6f}")
    print(f"{strategy}: losses apart by {apart:.2e}")
    same = all(abs(final[k] - test[k]) < 1e-12 for k in ("accuracy", "iou"))
    return 0 if len(mine) == steps and apart < 1e-9 and same else 1


if __name__ == "__main__":
    sys.exit(main())
