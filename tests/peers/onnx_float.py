"""onnx_float.py - emits a network's operations as float ONNX nodes (opset 13)."""
from onnx import helper, numpy_helper

import calibrate


class Emitter:
    """Nodes and constants of a model under construction. A tensor `t` of the network is the ONNX tensor `t`."""

    takes_pixels = False

    def __init__(self, weights, ranges=None, pixels=False):
        self.weights, self.ranges = weights, ranges
        self.nodes, self.constants, self._known = [], [], set()

    def node(self, kind, x, y, domain="", **attributes):
        self.nodes.append(helper.make_node(kind, x, [y], name=f"{kind}_{len(self.nodes)}", domain=domain, **attributes))
        return y

    def constant(self, name, array):
        """A constant's name; the second time it is there already."""
        if name not in self._known:
            self._known.add(name)
            self.constants.append(numpy_helper.from_array(array, name))
        return name

    def act(self, o, x):
        """The activation of an operation, as its last node, which names the output."""
        if o["act"] == "relu":
            self.node("Relu", [x], o["y"])
        elif o["act"] == "relu6":
            bounds = [self.constant(f"clip.{v}", calibrate.torch.tensor(v).numpy()) for v in (0.0, 6.0)]
            self.node("Clip", [x, *bounds], o["y"])


def window(o, w):
    """Attributes of a convolution."""
    return dict(kernel_shape=list(w.shape[2:]), strides=[o["stride"]] * 2, pads=[o["pad"]] * 4,
                group=w.shape[0] if o["depthwise"] else 1)


def pool_window(o):
    return dict(kernel_shape=[o["k"]] * 2, strides=[o["stride"]] * 2, pads=[o["pad"]] * 4)


class Folded(Emitter):
    """Batch norm folded into the convolutions."""

    def __init__(self, weights, ranges=None, pixels=False):
        super().__init__(weights, ranges, pixels)
        self.node("Identity", ["input"], "image")

    def finish(self, name):
        return name

    def conv(self, o):
        w, b = calibrate.folded(self.weights, o)
        out = o["y"] if not o["act"] else o["y"] + ".linear"
        self.node("Conv", [o["x"][0], self.constant(o["w"] + ".w", w.numpy()), self.constant(o["w"] + ".b", b.numpy())], out,
                  **window(o, w))
        self.act(o, out)

    def add(self, o):
        out = o["y"] if not o["act"] else o["y"] + ".linear"
        self.node("Add", o["x"], out)
        self.act(o, out)

    def maxpool(self, o):
        self.node("MaxPool", o["x"], o["y"], **pool_window(o))

    def avgpool(self, o):
        self.node("AveragePool", o["x"], o["y"], **pool_window(o))

    def gap(self, o):
        self.node("GlobalAveragePool", o["x"], o["y"])

    def concat(self, o):
        self.node("Concat", o["x"], o["y"], axis=1)

    def batch_norm(self, x, y, bn):
        parts = [self.constant(f"{bn}.{p}", self.weights[f"{bn}.{p}"].numpy())
                 for p in ("weight", "bias", "running_mean", "running_var")]
        self.node("BatchNormalization", [x, *parts], y, epsilon=calibrate.EPSILON)

    def bnrelu(self, o):
        self.batch_norm(o["x"][0], o["y"] + ".linear", o["bn"])
        self.node("Relu", [o["y"] + ".linear"], o["y"])

    def linear(self, o):
        w, b = calibrate.folded(self.weights, o)
        flat = self.node("Flatten", o["x"], o["y"] + ".flat")
        out = o["y"] if not o["act"] else o["y"] + ".linear"
        self.node("Gemm", [flat, self.constant(o["w"] + ".w", w.numpy()), self.constant(o["w"] + ".b", b.numpy())], out, transB=1)
        self.act(o, out)


class Unfolded(Folded):
    """BatchNormalization nodes after the convolutions."""

    def conv(self, o):
        if not o["bn"]:
            super().conv(o)
            return
        w = self.weights[o["w"] + ".weight"]
        parts = [self.constant(o["w"] + ".w", w.numpy())]
        if o["w"] + ".bias" in self.weights:
            parts.append(self.constant(o["w"] + ".b", self.weights[o["w"] + ".bias"].numpy()))
        self.node("Conv", [o["x"][0], *parts], o["y"] + ".conv", **window(o, w))
        out = o["y"] if not o["act"] else o["y"] + ".linear"
        self.batch_norm(o["y"] + ".conv", out, o["bn"])
        self.act(o, out)
