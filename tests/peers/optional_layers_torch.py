#!/usr/bin/python3
"""Layers of the reference device beside PyTorch's in float64, over drawn shapes: convolution, transposed convolution,
padding, pooling (ceil mode, padding counted or not), adaptive pooling. Shapes must be equal, outputs and gradients within
1e-12 of the largest. Needs python3-torch, libcmocka-dev, gcc and a build of hplan, whose folder
is the argument (default: build); run from anywhere."""
import pathlib
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build"
ROUNDS, LAW = 300, 1e-12
MAIN = r"""
#include "networks/graph/shape.h"
#include "tests/support/exec/draw_layer.h"

static void print_values(const rig *r, int32_t buffer, int64_t first, int64_t n) {
    for (int64_t i = 0; i < n; i++) printf("%.17g ", rig_get(r, buffer, first + i));
    printf("\n");
}

static void print_round(const draw *d) {
    const hp_layer *l = &d->layer;
    rig *r = build(&hp_device_ref, d);
    hp_tensor shape = {0};
    hp_error err;
    fill(r, -1, 1);
    run_all(r);
    if (hp_layer_shape(&r->graph, &r->layer[1], d->out.c, &shape, &err) != HP_OK) exit(1);
    printf("%s %d %d %d %d  %d %d %d  %d %d %d %d %d %d %d %d %d  %d %d  %d\n", hp_layer_infos[l->op].name, (int)d->samples,
           d->in[0].h, d->in[0].w, d->in[0].c, shape.h, shape.w, shape.c, l->kh, l->kw, l->stride_h, l->stride_w, l->pad_h,
           l->pad_w, l->dil_h, l->dil_w, l->groups, l->ceil_mode, l->count_include_pad, d->bias);
    print_values(r, r->x[0], 0, rig_elems(r, r->x[0]));
    print_values(r, r->dy, 0, rig_elems(r, r->dy));
    print_values(r, r->y, 0, rig_elems(r, r->y));
    print_values(r, r->dx[0], 0, rig_elems(r, r->dx[0]));
    for (int i = 0; i < r->graph.n_param; i++) {
        print_values(r, HP_BUF_WEIGHTS, r->place[i].offset, r->param[i].count);
        print_values(r, HP_BUF_GRADS, r->place[i].offset, r->param[i].count);
    }
    rig_free(r);
}

int main(int argc, char **argv) {
    static draw (*const kinds[])(uint64_t) = {draw_conv, draw_convt, draw_pool};
    for (uint64_t round = 0; argc == 2 && round < (uint64_t)atoi(argv[1]); round++) {
        draw d = kinds[round % 3](round / 3);
        d.flags = 0;
        print_round(&d);
    }
    return 0;
}
"""


def compile_main(folder):
    (folder / "main.c").write_text(MAIN)
    archives = [BUILD / f"libhp_{name}.a" for name in ("support_exec", "exec", "traces", "plan")]
    subprocess.run(["mpicc", "-std=gnu11", "-O1", f"-I{ROOT}", folder / "main.c", *archives, "-lcmocka", "-lxxhash", "-ldnnl",
                    "-lsqlite3", "-ljansson", "-ldl", "-lm", "-o", folder / "main"], check=True)
    return folder / "main"


def values(line, *shape):
    return torch.tensor([float(v) for v in line.split()], dtype=torch.float64).reshape(*shape)


def nchw(line, n, h, w, c):
    return values(line, n, h, w, c).permute(0, 3, 1, 2).contiguous()


def torch_layer(op, a, x, weight, bias):
    """The layer by PyTorch; a: its attributes."""
    window = {"kernel_size": (a["kh"], a["kw"]), "stride": (a["sh"], a["sw"]), "padding": (a["ph"], a["pw"])}
    step = {k: window[k] for k in ("stride", "padding")}
    if op == "conv":
        return F.conv2d(x, weight, bias, **step, dilation=(a["dh"], a["dw"]), groups=a["groups"])
    if op == "convt":
        return F.conv_transpose2d(x, weight, bias, **step)
    if op == "pad":
        below, right = a["oh"] - a["h"] - a["ph"], a["ow"] - a["w"] - a["pw"]
        return F.pad(x, (a["pw"], right, a["ph"], below))
    if op == "maxpool":
        return F.max_pool2d(x, **window, ceil_mode=bool(a["ceil"]))
    if op == "avgpool":
        return F.avg_pool2d(x, **window, ceil_mode=bool(a["ceil"]), count_include_pad=bool(a["counted"]))
    return F.adaptive_avg_pool2d(x, (a["oh"], a["ow"]))


NAMES = "n h w c oh ow oc kh kw sh sw ph pw dh dw groups ceil counted bias".split()


def apart(ours, theirs):
    return float((ours - theirs).abs().max() / theirs.abs().max().clamp(min=1))


def check(lines):
    head = next(lines).split()
    op, a = head[0], dict(zip(NAMES, map(int, head[1:])))
    x = nchw(next(lines), a["n"], a["h"], a["w"], a["c"]).requires_grad_()
    dy, y = (nchw(next(lines), a["n"], a["oh"], a["ow"], a["oc"]) for _ in range(2))
    dx = nchw(next(lines), a["n"], a["h"], a["w"], a["c"])
    params, grads = [], []
    if op in ("conv", "convt"):
        rows = (a["oc"], a["c"] // a["groups"]) if op == "conv" else (a["c"], a["oc"])
        for shape in [(*rows, a["kh"], a["kw"])] + [(a["oc"],)] * a["bias"]:
            params.append(values(next(lines), *shape).requires_grad_())
            grads.append(values(next(lines), *shape))
    out = torch_layer(op, a, x, *(params + [None, None])[:2])
    assert tuple(out.shape) == (a["n"], a["oc"], a["oh"], a["ow"]), f"{op} {a}: PyTorch has {tuple(out.shape)}"
    out.backward(dy)
    pairs = [(y, out.detach()), (dx, x.grad)] + [(g, p.grad) for g, p in zip(grads, params)]
    worst = max(apart(ours, theirs) for ours, theirs in pairs)
    assert worst <= LAW, f"{op} {a}: apart by {worst:.1e}"
    return op, worst


def main():
    with tempfile.TemporaryDirectory() as name:
        program = compile_main(pathlib.Path(name))
        text = subprocess.run([program, str(ROUNDS)], check=True, capture_output=True, text=True).stdout
    lines, seen = iter(text.splitlines()), {}
    for _ in range(ROUNDS):
        op, worst = check(lines)
        count, most = seen.get(op, (0, 0.0))
        seen[op] = count + 1, max(most, worst)
    for op, (count, worst) in sorted(seen.items()):
        print(f"{op}: {count} shapes, outputs and gradients within {worst:.1e} of PyTorch's")


if __name__ == "__main__":
    main()
