#!/usr/bin/python3
"""Compares every torchvision network of networks/nets with torchvision itself: names, shapes, spread of the initial
weights, parameter counts. Needs python3-torch, python3-torchvision and gcc; run from anywhere, prints one line per net."""
import math
import pathlib
import re
import subprocess
import tempfile

import torch
import torchvision

ROOT = pathlib.Path(__file__).resolve().parents[2]
NETS = {"resnet18": "resnet18", "resnet34": "resnet34", "resnet50": "resnet50", "resnet101": "resnet101",
        "resnet152": "resnet152", "vgg19": "vgg19", "mobilenetv2": "mobilenet_v2", "densenet121": "densenet121"}
MAIN = """
#include "networks/graph/graph.h"
int main(int argc, char **argv) {
    hp_arena *a = hp_arena_new();
    hp_graph *g = NULL;
    hp_error err;
    if (argc != 2 || hp_net_build(a, argv[1], 224, 224, 1000, &g, &err) != HP_OK) return 1;
    for (int i = 0; i < g->n_param; i++) {
        const hp_param *p = &g->param[i];
        const double std[] = {0, 0, p->n_dim == 4 ? 2.0 / ((double)p->dim[0] * p->dim[2] * p->dim[3]) : 0,
                              2.0 / (double)p->fan_in, 1e-4, 1.0 / (3.0 * (double)p->fan_in)};
        printf("%s %d %.9g", p->name, p->init, std[p->init]);
        for (int d = 0; d < p->n_dim; d++) printf(" %d", p->dim[d]);
        printf("\\n");
    }
    printf("count %lld\\n", (long long)hp_graph_param_count(g));
    hp_arena_free(a);
    return 0;
}
"""


def compile_dump(folder):
    (folder / "dump.c").write_text(MAIN)
    sources = [ROOT / "networks/graph" / f for f in ("graph.c", "shape.c", "fuse.c")]
    sources += sorted((ROOT / "networks/nets").glob("*.c"))
    sources += [ROOT / "base" / f for f in ("arena.c", "status.c", "units.c")]
    subprocess.run(["gcc", "-std=gnu11", "-O1", f"-I{ROOT}", folder / "dump.c", *sources, "-lm", "-o",
                    folder / "dump"], check=True)
    return folder / "dump"


def check_spread(name, init, variance, tensor):
    """The scheme's mean and standard deviation, within six standard errors of a normal sample."""
    x = tensor.double()
    if init < 2:
        assert bool((x == init).all()), f"{name}: not all {init}"
    elif x.numel() >= 100:
        std = math.sqrt(variance)
        assert abs(float(x.mean())) < 6 * std / math.sqrt(x.numel()), f"{name}: mean {float(x.mean())}"
        assert abs(float(x.std()) / std - 1) < 6 / math.sqrt(2 * x.numel()), f"{name}: std {float(x.std())}, not {std}"


def check(dump, net, factory):
    model = getattr(torchvision.models, factory)(weights=None)
    state = {k: v for k, v in model.state_dict().items() if not k.endswith("num_batches_tracked")}
    lines = subprocess.run([dump, net], check=True, capture_output=True, text=True).stdout.split("\n")
    rows = {}
    for line in lines:
        fields = line.split()
        if len(fields) > 2:
            rows[fields[0]] = (int(fields[1]), float(fields[2]), tuple(map(int, fields[3:])))
    assert rows.keys() == state.keys(), sorted(rows.keys() ^ state.keys())
    for name, (init, variance, shape) in rows.items():
        assert shape == tuple(state[name].shape), f"{name}: {shape} {tuple(state[name].shape)}"
        check_spread(name, init, variance, state[name])
    count = int(re.search(r"^count (\d+)", "\n".join(lines), re.M).group(1))
    assert count == sum(p.numel() for p in model.parameters())
    print(f"{net}: {len(rows)} tensors, {count} parameters, as torchvision {torchvision.__version__}")


def main():
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        dump = compile_dump(pathlib.Path(folder))
        for net, factory in NETS.items():
            check(dump, net, factory)


if __name__ == "__main__":
    main()
