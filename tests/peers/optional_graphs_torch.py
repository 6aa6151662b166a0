#!/usr/bin/python3
"""Networks that torchvision does not have, written once more in PyTorch as their papers and well-known programs have them:
AmoebaNet-D (torchgpipe's genotype as MPI4DL reads it), U-Net (milesial/Pytorch-UNet), the CIFAR ResNets. The graph of
networks/nets, interpreted layer by layer, must have the same state dict, the same logits and the same gradients in float64,
also at odd image sizes. Needs python3-torch and gcc; run from anywhere, prints one line per network and size."""
import pathlib
import re
import subprocess
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAW = 1e-9
SIZES = ((64, 64), (96, 160), (101, 67))

# --- the networks, in PyTorch ---


def relu_conv_bn(c_in, c_out, k=1, stride=1, pad=0):
    return [nn.ReLU(), nn.Conv2d(c_in, c_out, k, stride, pad, bias=False), nn.BatchNorm2d(c_out)]


def c1(c, stride):
    return nn.Sequential(*relu_conv_bn(c, c, 1, stride))


def c33(c, stride):
    return nn.Sequential(*relu_conv_bn(c, c // 4), *relu_conv_bn(c // 4, c // 4, 3, stride, 1), *relu_conv_bn(c // 4, c))


def c17(c, stride):
    n = c // 4
    return nn.Sequential(*relu_conv_bn(c, n), *relu_conv_bn(n, n, (1, 7), (1, stride), (0, 3)),
                         *relu_conv_bn(n, n, (7, 1), (stride, 1), (3, 0)), *relu_conv_bn(n, c))


def avg3(_, stride):
    return nn.AvgPool2d(3, stride, 1, count_include_pad=False)


def max2(_, stride):
    return nn.MaxPool2d(2, stride, ceil_mode=True)


def none(_, stride):
    return nn.Identity()


class FactorizedReduce(nn.Module):
    def __init__(self, c_in, c_out):
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, c_out // 2, 1, 2, bias=False)
        self.conv2 = nn.Conv2d(c_in, c_out // 2, 1, 2, bias=False)
        self.bn = nn.BatchNorm2d(c_out)

    def forward(self, x):
        x = F.relu(x)
        return self.bn(torch.cat([self.conv1(x), self.conv2(x)], 1))


class Cell(nn.Module):
    NORMAL = [(1, c1), (1, avg3), (1, none), (0, c17), (0, c1), (0, c17), (2, avg3), (2, none), (1, avg3), (5, c1)]
    REDUCTION = [(0, max2), (0, avg3), (2, none), (1, c33), (2, c17), (2, avg3), (3, none), (1, max2), (2, avg3), (3, c1)]

    def __init__(self, c_skip, c_prev, c, reduction, reduced):
        super().__init__()
        genes = self.REDUCTION if reduction else self.NORMAL
        self.joins = [4, 5, 6] if reduction else [0, 3, 4, 6]
        self.states = [state for state, _ in genes]
        self.reduce1 = nn.Sequential(*relu_conv_bn(c_prev, c))
        self.reduce2 = nn.Identity()
        if reduced:
            self.reduce2 = FactorizedReduce(c_skip, c)
        elif c_skip != c:
            self.reduce2 = nn.Sequential(*relu_conv_bn(c_skip, c))
        self.operations = nn.ModuleList(op(c, 2 if reduction and state < 2 else 1) for state, op in genes)

    def forward(self, prev, skip):
        s = [self.reduce1(prev), self.reduce2(skip)]
        for i in range(0, 10, 2):
            s.append(self.operations[i](s[self.states[i]]) + self.operations[i + 1](s[self.states[i + 1]]))
        return torch.cat([s[i] for i in self.joins], 1), prev


class AmoebaNetD(nn.Module):
    def __init__(self, layers, filters, classes):
        super().__init__()
        c = filters // 4
        self.stem1 = nn.Sequential(*relu_conv_bn(3, c, 3, 2, 1))
        self.cells, c_skip, c_prev, reduced = [], c, c, False
        normals = layers // 3
        plan = [("stem2", True), ("stem3", True)] + [(f"cell1_normal{i + 1}", False) for i in range(normals)]
        plan += [("cell2_reduction", True)] + [(f"cell3_normal{i + 1}", False) for i in range(normals)]
        plan += [("cell4_reduction", True)] + [(f"cell5_normal{i + 1}", False) for i in range(normals)]
        for name, reduction in plan:
            c *= 2 if reduction else 1
            self.add_module(name, Cell(c_skip, c_prev, c, reduction, reduced))
            self.cells.append(name)
            c_skip, c_prev, reduced = c_prev, c * (3 if reduction else 4), reduction
        self.classify = nn.ModuleDict({"fc": nn.Linear(c_prev, classes)})

    def forward(self, x):
        x = skip = self.stem1(x)
        for name in self.cells:
            x, skip = getattr(self, name)(x, skip)
        return self.classify["fc"](x.mean((2, 3)))


class DoubleConv(nn.Module):
    def __init__(self, c_in, c_out):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(c_in, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(),
            nn.Conv2d(c_out, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU())

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(c, 2 * c))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.up = nn.ConvTranspose2d(2 * c, c, 2, 2)
        self.conv = DoubleConv(2 * c, c)

    def forward(self, x, skip):
        x = self.up(x)
        dy, dx = skip.shape[2] - x.shape[2], skip.shape[3] - x.shape[3]
        return self.conv(torch.cat([skip, F.pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])], 1))


class OutConv(nn.Module):
    def __init__(self, c, classes):
        super().__init__()
        self.conv = nn.Conv2d(c, classes, 1)

    def forward(self, x):
        return self.conv(x)


class UNet(nn.Module):
    def __init__(self, f, classes):
        super().__init__()
        self.inc = DoubleConv(3, f)
        self.down1, self.down2, self.down3, self.down4 = (Down(f << i) for i in range(4))
        self.up1, self.up2, self.up3, self.up4 = (Up(f << i) for i in (3, 2, 1, 0))
        self.outc = OutConv(f, classes)

    def forward(self, x):
        skips = [self.inc(x)]
        for down in (self.down1, self.down2, self.down3, self.down4):
            skips.append(down(skips[-1]))
        x = skips.pop()
        for up in (self.up1, self.up2, self.up3, self.up4):
            x = up(x, skips.pop())
        return self.outc(x)


def same(c_in, c_out, k, stride=1):
    return nn.Conv2d(c_in, c_out, k, stride, (k - 1) // 2)


class BlockV1(nn.Module):
    def __init__(self, c_in, c, stride):
        super().__init__()
        self.conv1, self.bn1 = same(c_in, c, 3, stride), nn.BatchNorm2d(c)
        self.conv2, self.bn2 = same(c, c, 3), nn.BatchNorm2d(c)
        self.shortcut = same(c_in, c, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.shortcut(x))


class BlockV2(nn.Module):
    def __init__(self, c_in, mid, c_out, stride, first, plain, k):
        super().__init__()
        self.bn1 = nn.Identity() if plain else nn.BatchNorm2d(c_in)
        self.plain = plain
        self.conv1, self.bn2 = same(c_in, mid, k, stride), nn.BatchNorm2d(mid)
        self.conv2, self.bn3 = same(mid, mid, 3), nn.BatchNorm2d(mid)
        self.conv3 = same(mid, c_out, 1)
        self.shortcut = same(c_in, c_out, 1, stride) if first else nn.Identity()

    def forward(self, x):
        y = self.conv1(x if self.plain else F.relu(self.bn1(x)))
        y = self.conv3(F.relu(self.bn3(self.conv2(F.relu(self.bn2(y))))))
        return y + self.shortcut(x)


class Cifar(nn.Module):
    def __init__(self, version, depth, size, classes, k=3):
        super().__init__()
        n = (depth - 2) // (6 if version == 1 else 9)
        self.conv1, self.bn1, c = same(3, 16, 3), nn.BatchNorm2d(16), 16
        for g in range(3):
            blocks = []
            for i in range(n):
                stride, out = 2 if g > 0 and i == 0 else 1, (16 << g) if version == 1 else (64, 128, 256)[g]
                blocks.append(BlockV1(c, out, stride) if version == 1 else
                              BlockV2(c, (16, 64, 128)[g], out, stride, i == 0, g == 0 and i == 0, k))
                c = out
            setattr(self, f"layer{g + 1}", nn.Sequential(*blocks))
        if version == 2:
            self.bn = nn.BatchNorm2d(c)
        h, w = (((s + 1) // 2 + 1) // 2 // 8 for s in size)
        self.fc = nn.Linear(c * h * w, classes)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(F.relu(self.bn1(self.conv1(x))))))
        x = F.relu(self.bn(x)) if hasattr(self, "bn") else x
        return self.fc(F.avg_pool2d(x, 8).flatten(1))


NETS = {"amoebanetd:3,32": lambda size: AmoebaNetD(3, 32, 7), "amoebanetd:6,53": lambda size: AmoebaNetD(6, 53, 7),
        "unet:8": lambda size: UNet(8, 7), "resnet-v1-14": lambda size: Cifar(1, 14, size, 7),
        "resnet-v2-20": lambda size: Cifar(2, 20, size, 7), "resnet-v2-20:131": lambda size: Cifar(2, 20, size, 7, 1)}

# --- hplan's graph, interpreted ---

MAIN = """
#include "networks/graph/graph.h"
int main(int argc, char **argv) {
    hp_arena *a = hp_arena_new();
    hp_graph *g = NULL;
    hp_error err;
    if (argc != 4 || hp_net_build(a, argv[1], atoi(argv[2]), atoi(argv[3]), 7, &g, &err) != HP_OK) return 1;
    fputs(hp_graph_text(a, g), stdout);
    hp_arena_free(a);
    return 0;
}
"""


def compile_dump(folder):
    (folder / "dump.c").write_text(MAIN)
    sources = [ROOT / "networks/graph" / f for f in ("graph.c", "shape.c", "fuse.c")]
    sources += sorted((ROOT / "networks/nets").glob("*.c")) + [ROOT / "base" / f for f in ("arena.c", "status.c", "units.c")]
    subprocess.run(["gcc", "-std=gnu11", "-O1", f"-I{ROOT}", folder / "dump.c", *sources, "-lm", "-o", folder / "dump"],
                   check=True)
    return folder / "dump"


LAYER = re.compile(r"^\d+ u\d+ (\w+) (\S+)((?: t\d+)*) -> t(\d+) (\d+)x(\d+)x(\d+)(.*)$")
PARAM = re.compile(r"^    (\S+) kind\d init\d \(([\d,]+)\)$")


def parse(text):
    """[(op, inputs, output, shape, attributes, [(parameter, shape)])]"""
    layers = []
    for line in text.splitlines()[1:]:
        p = PARAM.match(line)
        if p:
            layers[-1][5].append((p[1], tuple(map(int, p[2].split(",")))))
            continue
        m = LAYER.match(line)
        inputs = [int(t[1:]) for t in m[3].split()]
        layers.append((m[1], inputs, int(m[4]), (int(m[5]), int(m[6]), int(m[7])), m[8].split(), []))
    return layers


def window(attributes):
    pairs = {a[0]: tuple(map(int, a[1:].split("x"))) for a in attributes if re.match(r"[kspd]\d+x\d+$", a)}
    return pairs["k"], pairs["s"], pairs["p"], pairs["d"]


def flag(attributes, name):
    return any(a == name + "1" for a in attributes)


def compute(layer, x, state):
    op, _, _, shape, at, params = layer
    w = [state[name] for name, _ in params]
    if op == "conv":
        _, s, p, d = window(at)
        y = F.conv2d(x[0], w[0], w[1] if len(w) > 1 else None, s, p, d, int(at[-1][1:]))
    elif op == "convt":
        _, s, p, _ = window(at)
        y = F.conv_transpose2d(x[0], w[0], w[1], s, p)
    elif op == "linear":
        y = F.linear(x[0].flatten(1), w[0], w[1])[:, :, None, None]
    elif op == "bn":
        y = F.batch_norm(x[0], None, None, w[0], w[1], True) + (x[1] if len(x) > 1 else 0)
    elif op == "add":
        y = x[0] + x[1]
    elif op == "maxpool":
        k, s, p, _ = window(at)
        y = F.max_pool2d(x[0], k, s, p, ceil_mode=flag(at, "ceil"))
    elif op == "avgpool":
        k, s, p, _ = window(at)
        y = F.avg_pool2d(x[0], k, s, p, flag(at, "ceil"), flag(at, "countpad"))
    elif op == "adaptpool":
        y = F.adaptive_avg_pool2d(x[0], shape[:2])
    elif op == "pad":
        top, left = map(int, at[1].split(","))
        h, w = x[0].shape[2:]
        y = F.pad(x[0], (left, shape[1] - w - left, top, shape[0] - h - top))
    elif op == "concat":
        y = torch.cat(x, 1)
    else:
        assert op == "act", op
        y = x[0]
    y = F.relu(y) if "relu" in at else y
    assert tuple(y.shape[1:]) == (shape[2], *shape[:2]), layer
    return y


def run_graph(layers, image, state):
    tensors = {}
    for layer in layers:
        inputs = [tensors[t] for t in layer[1]]
        tensors[layer[2]] = image if layer[0] == "input" else compute(layer, inputs, state)
    return tensors[layers[-1][2]]


def check(dump, net, size):
    torch.manual_seed(1)
    model = NETS[net](size).double().train()
    text = subprocess.run([dump, net, *map(str, size)], check=True, capture_output=True, text=True).stdout
    layers = parse(text)
    names = {name: shape for layer in layers for name, shape in layer[5]}
    theirs = {k: tuple(v.shape) for k, v in model.state_dict().items() if not k.endswith("num_batches_tracked")}
    assert names == theirs, sorted(names.items() ^ theirs.items())[:6]
    count = int(re.search(r"parameters (\d+)", text)[1])
    assert count == sum(p.numel() for p in model.parameters())
    for p in model.parameters():
        nn.init.uniform_(p, -0.3, 0.7 if p.dim() == 1 else 0.3)  # norms and biases matter too
    image = torch.randn(2, 3, *size, dtype=torch.float64)
    state = {k: v.detach().clone().requires_grad_(v.is_floating_point()) for k, v in model.state_dict().items()}
    ours, expect = run_graph(layers, image, state), model(image)
    ours = ours.reshape(expect.shape)
    weight = torch.randn_like(expect)
    (ours * weight).sum().backward()
    (expect * weight).sum().backward()
    worst = float((ours - expect).abs().max() / expect.abs().max())
    floor = 1e-6 * max(p.grad.abs().max() for p in model.parameters())  # biases that a norm takes away again
    for name, p in model.named_parameters():
        worst = max(worst, float((state[name].grad - p.grad).abs().max() / max(p.grad.abs().max(), floor)))
    print(f"{net} {size[0]}x{size[1]}: {count} parameters, {len(layers)} layers, logits and gradients within {worst:.1e}")
    assert worst <= LAW


def main():
    with tempfile.TemporaryDirectory() as folder:
        dump = compile_dump(pathlib.Path(folder))
        for net in NETS:
            for size in SIZES:
                check(dump, net, size)


if __name__ == "__main__":
    main()
