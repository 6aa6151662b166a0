#!/usr/bin/python3
"""Weights between PyTorch and hplan, as safetensors files (parsed here by hand: no package is needed but torch).

    optional_weights_torch.py                          checks both directions for several networks, one line per net
    optional_weights_torch.py export NET FILE [SEED] [CLASSES]   torchvision's initial weights of NET, for --init FILE
    optional_weights_torch.py check NET FILE [CLASSES]           does NET take FILE with strict=True?

Needs python3-torch, python3-torchvision; the check also gcc and libjansson-dev. Run from anywhere."""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import torch
import torchvision

ROOT = pathlib.Path(__file__).resolve().parents[2]
NETS = {"resnet18": "resnet18", "resnet34": "resnet34", "resnet50": "resnet50", "resnet101": "resnet101",
        "resnet152": "resnet152", "vgg19": "vgg19", "mobilenetv2": "mobilenet_v2", "densenet121": "densenet121"}
DTYPES = {"F64": torch.float64, "F32": torch.float32, "I64": torch.int64}
MAIN = """
#include "exec/data/weights/weights.h"
typedef struct { const hp_graph *g; hp_role role; hp_weights w; } model;
static const void *get(void *self, int i, hp_error *err) {
    model *m = self;
    (void)err;
    return (float *)(hp_param_trained(&m->g->param[i]) ? m->w.weights : m->w.state) + m->role.place[i].offset;
}
int main(int argc, char **argv) { /* NET OUT: initial weights; NET OUT IN: what IN holds */
    hp_arena *a = hp_arena_new();
    hp_graph *g = NULL;
    hp_error err = {0};
    int64_t end[2] = {0, 0};
    if (argc < 3 || hp_net_build(a, argv[1], 224, 224, 1000, &g, &err) != HP_OK) return 1;
    model m = {.g = g};
    m.role.place = HP_NEW(a, hp_param_place, g->n_param);
    for (int i = 0; i < g->n_param; i++) {
        int64_t *e = &end[!hp_param_trained(&g->param[i])];
        m.role.place[i].here = 1;
        m.role.place[i].offset = *e;
        *e += g->param[i].count;
    }
    m.role.trained_elems = end[0];
    m.w = (hp_weights){g, &m.role, HP_F32, malloc((size_t)end[0] * 4), malloc((size_t)end[1] * 4 + 4)};
    hp_weights_init(&m.w, 1, true);
    if (argc > 3 && hp_weights_load(argv[3], &m.w, &err) != HP_OK) return fprintf(stderr, "%s\\n", err.text), 1;
    const hp_weights_source source = {get, &m};
    if (hp_weights_save(argv[2], g, HP_F32, &source, 0, &err) != HP_OK) return fprintf(stderr, "%s\\n", err.text), 1;
    return 0;
}
"""


def read(path):
    """State dict of a safetensors file."""
    raw = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    data = bytearray(raw[8 + length:])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        dtype = DTYPES[entry["dtype"]]
        size = torch.empty(0, dtype=dtype).element_size()
        flat = torch.frombuffer(data, dtype=dtype, offset=begin, count=(end - begin) // size)
        tensors[name] = flat.reshape(entry["shape"]).clone()
    return tensors


def write(path, tensors):
    """Safetensors file of a state dict; 8-byte tensors first, so that all data are aligned."""
    names = {dtype: name for name, dtype in DTYPES.items()}
    header, blobs, at = {}, [], 0
    for name, t in sorted(tensors.items(), key=lambda item: -item[1].element_size()):
        blob = t.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": names[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def model(net, seed=0, classes=1000):
    torch.manual_seed(seed)
    return getattr(torchvision.models, NETS[net])(num_classes=classes)


def compile_main(folder):
    (folder / "main.c").write_text(MAIN)
    sources = [ROOT / "base" / f for f in ("arena.c", "rng.c", "status.c", "units.c")]
    sources += [ROOT / "plan" / f for f in ("graph/graph.c", "graph/shape.c", "graph/fuse.c", "program/program.c")]
    for pattern in ("networks/nets/*.c", "exec/data/weights/st_*.c", "exec/data/weights/init.c", "exec/data/weights/weights_file.c"):
        sources += sorted(ROOT.glob(pattern))
    subprocess.run(["gcc", "-std=gnu11", "-O2", f"-I{ROOT}", folder / "main.c", *sources, "-o", folder / "main",
                    "-ljansson", "-lm"], check=True)
    return folder / "main"


def both_directions(main, folder, net):
    ours, theirs, back = folder / "ours", folder / "theirs", folder / "back"
    subprocess.run([main, net, ours], check=True)
    m = model(net)
    m.load_state_dict(read(ours), strict=True)
    logits = m.eval()(torch.randn(1, 3, 224, 224))
    assert torch.isfinite(logits).all()
    m = model(net)
    write(theirs, m.state_dict())
    subprocess.run([main, net, back, theirs], check=True)
    returned = read(back)
    for name, t in m.state_dict().items():
        assert torch.equal(returned[name], t), name
    print(f"{net}: strict load of our initial weights; {len(returned)} tensors of torch's return bit for bit")


def main():
    if len(sys.argv) > 3 and sys.argv[1] == "export":
        extra = [int(a) for a in sys.argv[4:]]
        write(sys.argv[3], model(sys.argv[2], *extra).state_dict())
    elif len(sys.argv) > 3 and sys.argv[1] == "check":
        classes = int(sys.argv[4]) if len(sys.argv) > 4 else 1000
        print(model(sys.argv[2], 0, classes).load_state_dict(read(sys.argv[3]), strict=True))
    elif len(sys.argv) == 1:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            program = compile_main(folder)
            for net in ["resnet18", "resnet50", "mobilenetv2", "densenet121", "vgg19"]:
                both_directions(program, folder, net)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
