"""onnx_quant.py - emits a network's operations as INT8 ONNX nodes, as ONNX Runtime's own quantiser writes them.

Activations are u8 with a zero point per tensor, weights s8 with a scale per output channel, biases s32. What ONNX Runtime cannot
compute on integers (a batch norm after a concatenation) stays float between DequantizeLinear and QuantizeLinear."""
import numpy as np

import calibrate
from onnx_float import Folded, pool_window, window

MS = "com.microsoft"


class Quantised(Folded):
    """Quantisation parameters, shared by both forms."""

    def __init__(self, weights, ranges, pixels=False):
        self.takes_pixels = pixels
        self._affine = {name: self._fit(*r) for name, r in ranges.items()}
        self._affine["image"] = (np.float32(2 / 255), np.uint8(128))  # (x / 255 - 0.5) / 0.5: each pixel value has its level
        super().__init__(weights, ranges, pixels)

    @staticmethod
    def _fit(low, high):
        scale = np.float32(max(high - low, 1e-8) / 255)
        return scale, np.uint8(np.clip(np.rint(-low / scale), 0, 255))

    def scale_zero(self, name):
        scale, zero = self._affine[name]
        return [self.constant(name + ".scale", np.array(scale)), self.constant(name + ".zero", np.array(zero))]

    def integer_weights(self, o):
        """s8 weights (output channels first), their scales, and the s32 bias."""
        w, b = (t.numpy() for t in calibrate.folded(self.weights, o))
        top = np.abs(w.reshape(w.shape[0], -1)).max(1)
        scale = np.maximum(top, 1e-12).astype(np.float32) / np.float32(127)
        q = np.clip(np.rint(w / scale.reshape(-1, *[1] * (w.ndim - 1))), -127, 127).astype(np.int8)
        units = b / (self._affine[o["x"][0]][0] * scale).astype(np.float64)
        return q, scale, np.rint(units).astype(np.int32)


class QOperator(Quantised):
    """Every tensor of the network is u8 from its first node on."""

    def __init__(self, weights, ranges, pixels=False):
        super().__init__(weights, ranges, pixels)
        self.nodes.clear()
        self._in_float = set()  # outputs of linear layers
        if pixels:
            self.node("Identity", ["input"], "image")
        else:
            self.node("QuantizeLinear", ["input", *self.scale_zero("image")], "image")

    def finish(self, name):
        if name in self._in_float:
            return name
        return self.node("DequantizeLinear", [name, *self.scale_zero(name)], "logits")

    def _quantised(self, name):
        return [name, *self.scale_zero(name)]

    def conv(self, o):
        q, scale, bias = self.integer_weights(o)
        w = [self.constant(o["w"] + ".w", q), self.constant(o["w"] + ".scale", scale),
             self.constant(o["w"] + ".zero", np.zeros(len(scale), np.int8))]
        self.node("QLinearConv", [*self._quantised(o["x"][0]), *w, *self.scale_zero(o["y"]), self.constant(o["w"] + ".b", bias)],
                  o["y"], **window(o, q))

    def add(self, o):
        a, b = (self._quantised(name) for name in o["x"])
        self.node("QLinearAdd", [*a, *b, *self.scale_zero(o["y"])], o["y"], domain=MS)

    def maxpool(self, o):
        self._affine[o["y"]] = self._affine[o["x"][0]]
        super().maxpool(o)

    def avgpool(self, o):
        self.node("QLinearAveragePool", [*self._quantised(o["x"][0]), *self.scale_zero(o["y"])], o["y"], domain=MS,
                  **pool_window(o))

    def gap(self, o):
        self.node("QLinearGlobalAveragePool", [*self._quantised(o["x"][0]), *self.scale_zero(o["y"])], o["y"], domain=MS,
                  channels_last=0)

    def concat(self, o):
        parts = [part for name in o["x"] for part in self._quantised(name)]
        self.node("QLinearConcat", [*self.scale_zero(o["y"]), *parts], o["y"], domain=MS, axis=1)

    def bnrelu(self, o):
        x, real = self._quantised(o["x"][0]), o["y"] + ".real"
        self.node("DequantizeLinear", x, o["y"] + ".in")
        self.batch_norm(o["y"] + ".in", o["y"] + ".linear", o["bn"])
        self.node("Relu", [o["y"] + ".linear"], real)
        self.node("QuantizeLinear", [real, *self.scale_zero(o["y"])], o["y"])

    def linear(self, o):
        q, scale, bias = self.integer_weights(o)
        flat = self.node("Flatten", o["x"], o["y"] + ".flat")
        w = [self.constant(o["w"] + ".w", np.ascontiguousarray(q.T)), self.constant(o["w"] + ".scale", scale),
             self.constant(o["w"] + ".zero", np.zeros(len(scale), np.int8))]
        to_float = not o["act"]  # the logits
        if to_float:
            self._in_float.add(o["y"])
        self.node("QGemm", [flat, *self.scale_zero(o["x"][0]), *w, self.constant(o["w"] + ".b", bias),
                            *([] if to_float else self.scale_zero(o["y"]))], o["y"], domain=MS, transB=0)


class Qdq(Quantised):
    """Float operators between QuantizeLinear and DequantizeLinear; ONNX Runtime joins them to integer ones."""

    def __init__(self, weights, ranges, pixels=False):
        super().__init__(weights, ranges, pixels)
        self.nodes.clear()
        if pixels:
            self.node("DequantizeLinear", ["input", *self.scale_zero("image")], "image")
        else:
            self.pair("input", "image", "image")

    def pair(self, x, y, like):
        """x rounded to the levels of tensor `like`, as floats."""
        self.node("QuantizeLinear", [x, *self.scale_zero(like)], y + ".q")
        self.node("DequantizeLinear", [y + ".q", *self.scale_zero(like)], y)

    def _weights(self, o):
        q, scale, bias = self.integer_weights(o)
        names = [self.constant(o["w"] + ".w", q), self.constant(o["w"] + ".scale", scale),
                 self.constant(o["w"] + ".zero", np.zeros(len(scale), np.int8))]
        w = self.node("DequantizeLinear", names, o["w"] + ".w.real", axis=0)
        units = (self._affine[o["x"][0]][0] * scale).astype(np.float32)
        names = [self.constant(o["w"] + ".b", bias), self.constant(o["w"] + ".b.scale", units),
                 self.constant(o["w"] + ".b.zero", np.zeros(len(scale), np.int32))]
        return q, w, self.node("DequantizeLinear", names, o["w"] + ".b.real", axis=0)

    def _finish(self, o, y):
        """The activation, which the rounding to u8 without negative levels includes, and the rounding."""
        self.pair(y, o["y"], o["y"])

    def finish(self, name):
        return name

    def conv(self, o):
        q, w, b = self._weights(o)
        self._finish(o, self.node("Conv", [o["x"][0], w, b], o["y"] + ".linear", **window(o, q)))

    def add(self, o):
        self._finish(o, self.node("Add", o["x"], o["y"] + ".linear"))

    def linear(self, o):
        _, w, b = self._weights(o)
        flat = self.node("Flatten", o["x"], o["y"] + ".flat")
        y = self.node("Gemm", [flat, w, b], o["y"] + ".linear" if o["act"] else o["y"], transB=1)
        if o["act"]:
            self._finish(o, y)

    def _around(self, o, emit):
        """A float operator's output, rounded."""
        emit(dict(o, y=o["y"] + ".linear"))
        self._finish(o, o["y"] + ".linear")

    def maxpool(self, o):
        self._affine[o["y"]] = self._affine[o["x"][0]]
        self._around(o, super().maxpool)

    def avgpool(self, o):
        self._around(o, super().avgpool)

    def gap(self, o):
        self._around(o, super().gap)

    def concat(self, o):
        self._around(o, super().concat)

    def bnrelu(self, o):
        self._around(o, super().bnrelu)
