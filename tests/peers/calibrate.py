"""calibrate.py - what the deployed network computes, by PyTorch: the reference for ONNX files, and every tensor's range."""
import torch
import torch.nn.functional as F

EPSILON = 1e-5  # torchvision's, in all of these networks
ACTS = {None: lambda y: y, "relu": F.relu, "relu6": F.relu6}


def batch_norm(weights, bn):
    """A batch norm as y = x * scale + shift."""
    scale = weights[bn + ".weight"] / torch.sqrt(weights[bn + ".running_var"] + EPSILON)
    return scale, weights[bn + ".bias"] - weights[bn + ".running_mean"] * scale


def folded(weights, o):
    """Weights and bias of a convolution or linear layer, its batch norm folded into them."""
    w = weights[o["w"] + ".weight"]
    b = weights.get(o["w"] + ".bias", torch.zeros(w.shape[0]))
    if o.get("bn"):
        scale, shift = batch_norm(weights, o["bn"])
        w, b = w * scale[:, None, None, None], b * scale + shift
    return w, b


def _apply(weights, o, x):
    kind = o["op"]
    if kind == "conv":
        w, b = folded(weights, o)
        return F.conv2d(x[0], w, b, o["stride"], o["pad"], groups=w.shape[0] if o["depthwise"] else 1)
    if kind == "linear":
        return F.linear(x[0].flatten(1), *folded(weights, o))
    if kind == "bnrelu":
        scale, shift = batch_norm(weights, o["bn"])
        return F.relu(x[0] * scale[:, None, None] + shift[:, None, None])
    return {"add": lambda: x[0] + x[1], "concat": lambda: torch.cat(x, 1), "gap": lambda: x[0].mean((2, 3), keepdim=True),
            "maxpool": lambda: F.max_pool2d(x[0], o["k"], o["stride"], o["pad"]),
            "avgpool": lambda: F.avg_pool2d(x[0], o["k"], o["stride"], o["pad"])}[kind]()


@torch.no_grad()
def evaluate(ops, weights, image, seen=lambda name, value: None):
    """The logits; `seen` gets every tensor. Tensors are dropped after their last use."""
    last = {name: i for i, o in enumerate(ops) for name in o["x"]}
    live = {"image": image}
    seen("image", image)
    for i, o in enumerate(ops):
        y = ACTS[o.get("act")](_apply(weights, o, [live[name] for name in o["x"]]))
        seen(o["y"], y)
        live[o["y"]] = y
        for name in o["x"]:
            if last[name] == i:
                live.pop(name, None)
    return y


def ranges(ops, weights, image):
    """{tensor: (smallest, largest)} over a batch, zero included."""
    found = {}

    def seen(name, value):
        found[name] = (min(0.0, float(value.min())), max(0.0, float(value.max())))

    evaluate(ops, weights, image, seen)
    return found


def smooth_images(n, size, seed):
    """Synthetic pixels in -1..1 with structure at every scale, as photographs have: (n, 3, size, size)."""
    g = torch.Generator().manual_seed(seed)
    total, side = torch.zeros(n, 3, size, size), 4
    while side <= size:
        noise = torch.randn(n, 3, side, side, generator=g)
        total += F.interpolate(noise, (size, size), mode="bilinear", align_corners=False)
        side *= 4
    return torch.tanh(total * 0.4)
