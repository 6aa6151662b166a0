#!/usr/bin/python3
"""Ten steps beside PyTorch in float64: AdamW or SGD, clipped gradients, a warm-up and a rate that falls.

    optional_adamw_torch.py HPLAN [STRATEGY]

The law: `--device ref` computes in float64, and so does PyTorch here, from equal weights on equal batches: losses and, in the
end, every weight agree to 1e-9 of the tensor's largest. All that differs is the order of sums. AdamW decays parameters of two
dimensions and more alone, in two groups of PyTorch's. Needs python3-torch, python3-torchvision."""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from optional_train_torch import write_idx
from optional_weights_torch import read, write

STEPS, BATCH, CLASSES, IMAGE = 10, 8, 10, 12
LR, LEAST, WARMUP, BETAS, EPS, DECAY, CLIP = 3e-3, 1e-4, 3, (0.8, 0.97), 1e-7, 0.1, 0.7


class Cnn(torch.nn.Module):
    """networks/nets/cnn.c"""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = torch.nn.Conv2d(3, 32, 3, padding=1, bias=False), torch.nn.BatchNorm2d(32)
        self.conv2, self.bn2 = torch.nn.Conv2d(32, 64, 3, padding=1, bias=False), torch.nn.BatchNorm2d(64)
        self.fc1, self.fc2 = torch.nn.Linear(64 * (IMAGE // 4) ** 2, 128), torch.nn.Linear(128, CLASSES)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 2)
        x = torch.max_pool2d(torch.relu(self.bn2(self.conv2(x))), 2)
        return self.fc2(torch.relu(self.fc1(torch.flatten(x, 1))))


def rate(step):
    if step < WARMUP:
        return (step + 1) / WARMUP
    return (LEAST + (LR - LEAST) * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP))) / 2) / LR


def optimizer_of(name, net):
    if name == "sgd":
        return torch.optim.SGD(net.parameters(), lr=LR, momentum=0.9, weight_decay=DECAY)
    groups = [{"params": [p for p in net.parameters() if p.dim() > 1], "weight_decay": DECAY},
              {"params": [p for p in net.parameters() if p.dim() < 2], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=LR, betas=BETAS, eps=EPS)


def torch_steps(name, net, x, labels, clip):
    optimizer = optimizer_of(name, net)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    losses, clipped = [], 0
    for i in range(0, len(x), BATCH):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x[i:i + BATCH]), labels[i:i + BATCH])
        loss.backward()
        if clip:
            clipped += torch.nn.utils.clip_grad_norm_(net.parameters(), CLIP).item() > CLIP
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses, clipped


def hplan_steps(hplan, folder, name, strategy, clip):
    plan, after = folder / "p.db", folder / "after.safetensors"
    subprocess.run([hplan, "simulate", "--net", "cnn", "--image", str(IMAGE), "--machine", "local", "--device", "ref", "--batch",
                    str(BATCH), "--strategy", strategy, "--optimizer", name, *(["--clip-norm"] if clip else []), "--out", plan],
                   check=True, capture_output=True)
    own = ["--momentum", "0.9"] if name == "sgd" else ["--betas", "{},{}".format(*BETAS), "--adam-eps", str(EPS)]
    own += ["--clip-norm", str(CLIP)] if clip else []
    out = subprocess.run([hplan, "run", plan, "--data", folder, "--no-shuffle", "--steps", str(STEPS), "--lr", str(LR),
                          "--lr-schedule", "cosine", "--warmup", str(WARMUP), "--min-lr", str(LEAST), "--weight-decay",
                          str(DECAY), *own, "--init", folder / "w.safetensors", "--save", after, "--trace", folder / "r.db",
                          "--json"], check=True, stdout=subprocess.PIPE, text=True).stdout
    losses = [json.loads(line)["loss"] for line in out.splitlines() if '"step":' in line and "final" not in line]
    return losses, read(after)


def apart(a, b):
    return ((a - b).abs().max() / (b.abs().max() + 1e-30)).item()


def compare(hplan, folder, name, strategy, clip, x, labels):
    torch.manual_seed(5)
    net = Cnn().double()
    write(folder / "w.safetensors", net.float().state_dict())  # of which float64 holds every number
    net.double()
    ours, weights = hplan_steps(hplan, folder, name, strategy, clip)
    theirs, clipped = torch_steps(name, net, x, labels, clip)
    worst_loss = max(abs(o - t) for o, t in zip(ours, theirs))
    worst = max(apart(weights[k].double(), v) for k, v in net.state_dict().items() if v.is_floating_point())
    print(f"{name}{' clipped' if clip else ''}, {strategy}: losses {worst_loss:.1e} apart, weights {worst:.1e}"
          + (f"; {clipped} of {STEPS} steps were clipped" if clip else ""))
    return len(ours) == STEPS and worst_loss < 1e-9 and worst < 1e-9 and (not clip or clipped > 0)


def main():
    hplan, strategy = pathlib.Path(sys.argv[1]).resolve(), (sys.argv[2:] + ["dp=1"])[0]
    torch.manual_seed(3)
    torch.set_num_threads(1)
    labels = torch.randint(0, CLASSES, (STEPS * BATCH,))
    images = torch.randint(0, 256, (STEPS * BATCH, IMAGE, IMAGE)).byte()
    x = ((images.double() / 255 - 0.5) / 0.5).float().double()[:, None].expand(-1, 3, -1, -1).contiguous()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_idx(folder, images, labels)
        held = [compare(hplan, folder, optimizer, strategy, clip, x, labels)
                for optimizer in ("sgd", "adamw") for clip in (False, True)]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
