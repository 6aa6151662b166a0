#!/usr/bin/python3
"""Gradients beside PyTorch's in float64: one step with lr 1 and nothing else, so that old minus new weights is the
gradient.

    optional_gradients_torch.py HPLAN [NET...]     (cnn-sized images; resnet18, mobilenetv2, densenet121 by default)

The law: `--device ref` and PyTorch in float64 differ, relative to each tensor's largest gradient (at least
a millionth of the network's), by no more than 1e-9;
running statistics by 1e-9 too. Pixels are 0 or 255, which both programs map to -1 and 1 without rounding. Dropout is off
on both sides. Needs python3-torch, python3-torchvision, libopenblas0-pthread."""
import pathlib
import subprocess
import sys
import tempfile

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from optional_train_torch import CLASSES, write_idx
from optional_weights_torch import model, read, write

IMAGE, BATCH, LAW = 64, 4, 1e-9


def hplan_step(hplan, folder, net, strategy):
    plan, after = folder / "p.db", folder / "after.safetensors"
    subprocess.run([hplan, "simulate", "--net", net, "--image", str(IMAGE), "--classes", str(CLASSES), "--machine", "local",
                    "--batch", str(BATCH), "--strategy", strategy, "--device", "ref", "--out", plan], check=True,
                   capture_output=True)
    subprocess.run([hplan, "run", plan, "--data", folder, "--no-shuffle", "--no-dropout", "--steps", "1", "--lr", "1",
                    "--momentum", "0", "--weight-decay", "0", "--init", folder / "w.safetensors", "--save", after,
                    "--trace", folder / "r.db", "--json"], check=True, capture_output=True)
    return read(after)


def torch_step(net, x, labels, micro):
    m = model(net, classes=CLASSES).double().train()
    for layer in m.modules():
        if isinstance(layer, torch.nn.Dropout):
            layer.p = 0.0
        if hasattr(layer, "drop_rate"):
            layer.drop_rate = 0.0
    for part in range(micro):
        n = len(x) // micro
        loss = torch.nn.functional.cross_entropy(m(x[part * n:(part + 1) * n]), labels[part * n:(part + 1) * n])
        (loss / micro).backward()
    return m


def check(hplan, net, strategy, micro):
    torch.manual_seed(1)
    images = (torch.rand(BATCH, IMAGE, IMAGE) < 0.5).byte() * 255
    labels = torch.randint(0, CLASSES, (BATCH,))
    x = torch.where(images[:, None] > 0, 1.0, -1.0).double().expand(-1, 3, -1, -1).contiguous()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_idx(folder, images, labels)
        before = {k: v.double() if v.is_floating_point() else v for k, v in model(net, classes=CLASSES).state_dict().items()}
        write(folder / "w.safetensors", before)
        after = hplan_step(hplan, folder, net, strategy)
    m = torch_step(net, x, labels, micro)
    worst, where = 0.0, ""
    # a bias that the next batch norm takes away again has no gradient but rounding
    floor = 1e-6 * max(p.grad.abs().max() for p in m.parameters())
    for key, p in m.named_parameters():
        apart = ((before[key] - after[key]) - p.grad).abs().max() / max(p.grad.abs().max(), floor)
        worst, where = max((worst, where), (apart.item(), key))
    for key, b in m.named_buffers():
        if b.is_floating_point():
            apart = (after[key] - b).abs().max() / max(b.abs().max(), 1e-6)  # means of normalised values are rounding
            worst, where = max((worst, where), (apart.item(), key))
    print(f"{net} {strategy}: gradients and running statistics within {worst:.1e} of PyTorch's (worst: {where})")
    return worst <= LAW


def main():
    hplan = pathlib.Path(sys.argv[1]).resolve()
    nets = sys.argv[2:] or ["resnet18", "mobilenetv2", "densenet121"]
    good = [check(hplan, net, s, m) for net in nets
            for s, m in (("dp=1", 1), ("stages=2,micro=2,sched=1f1b", 2), ("dp=2", 2), ("dp=2,recompute=boundary", 2))]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
