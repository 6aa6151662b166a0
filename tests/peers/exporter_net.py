"""A graph being built as exporters write it (exporter_models.py)."""
import zlib

import numpy
from onnx import TensorProto, helper, numpy_helper

IMAGE = (1, 3, 32, 40)


class Net:
    """A graph being built: every method appends nodes and returns the name of what they make."""

    def __init__(self, name, opset):
        self.random = numpy.random.default_rng(zlib.crc32(name.encode()))
        self.name, self.opset, self.nodes, self.init = name, opset, [], []
        self.shuffled = self.half = self.classes = False  # what kind of file it becomes, and whether its output is of whole numbers

    def const(self, values, kind=numpy.float32):
        name = f"k{len(self.init)}"
        self.init.append(numpy_helper.from_array(numpy.array(values, kind), name))
        return name

    def ints(self, *values):
        return self.const(values, numpy.int64)

    def drawn(self, *shape, size=1.):
        return self.const(self.random.uniform(-size, size, shape))

    def op(self, kind, *inputs, outs=1, domain="", **attributes):
        names = [f"{kind.lower()}_{len(self.nodes)}" + (f".{k}" if k else "") for k in range(outs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=f"n{len(self.nodes)}", domain=domain, **attributes))
        return names[0] if outs == 1 else names

    # --- layers ---

    def conv(self, x, ins, outs, k=3, bias=True, group=1, **more):
        kh, kw = (k, k) if isinstance(k, int) else k
        more.setdefault("pads", [kh // 2, kw // 2, kh // 2, kw // 2])
        if "auto_pad" in more:
            del more["pads"]
        w = self.drawn(outs, ins // group, kh, kw, size=(3. / (ins // group * kh * kw)) ** .5)
        return self.op("Conv", x, w, *([self.drawn(outs, size=.2)] if bias else []), group=group, **more)

    def convt(self, x, ins, outs, k=2, group=1, **more):
        w = self.drawn(ins, outs // group, k, k, size=(3. / (ins // group * k * k)) ** .5)
        return self.op("ConvTranspose", x, w, self.drawn(outs, size=.2), group=group, **more)

    def bn(self, x, c):
        gamma, beta = self.const(self.random.uniform(.5, 1.5, c)), self.drawn(c, size=.3)
        mean, var = self.drawn(c, size=.1), self.const(self.random.uniform(.5, 1.5, c))
        return self.op("BatchNormalization", x, gamma, beta, mean, var, epsilon=1e-5)

    def gemm(self, x, ins, outs):
        return self.op("Gemm", x, self.drawn(outs, ins, size=(3. / ins) ** .5), self.drawn(outs, size=.2), transB=1)

    def linear(self, x, ins, outs):
        return self.op("Add", self.op("MatMul", x, self.drawn(ins, outs, size=(3. / ins) ** .5)), self.drawn(outs, size=.2))

    def reshape(self, x, *dims):
        return self.op("Reshape", x, self.ints(*dims))

    def reduce(self, kind, x, axes, keep=1):
        """With axes as an attribute, from opset 18 on (ReduceSum 13) as an input."""
        if self.opset >= (13 if kind == "ReduceSum" else 18):
            return self.op(kind, x, self.ints(*axes), keepdims=keep)
        return self.op(kind, x, axes=list(axes), keepdims=keep)

    def resize(self, x, scale=None, sizes=None, **more):
        if sizes:
            return self.op("Resize", x, "", "", self.ints(*sizes), **more)
        return self.op("Resize", x, "", self.const(scale), **more)

    def cut(self, x, axis, first, end, step=1):
        return self.op("Slice", x, self.ints(first), self.ints(end), self.ints(axis), self.ints(step))

    def number(self, kind, x, value):
        return self.op(kind, x, self.const(value))

    def silu(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x))

    def gelu(self, x):
        erf = self.number("Add", self.op("Erf", self.number("Div", x, 2 ** .5)), 1.)
        return self.number("Mul", self.op("Mul", x, erf), .5)

    def hardswish(self, x):
        clipped = self.op("Clip", self.number("Add", x, 3.), self.const(0.), self.const(6.))
        return self.number("Div", self.op("Mul", x, clipped), 6.)

    def layernorm(self, x, c, axis=-1, vector=None):
        """By its nodes, over one axis."""
        shape = vector or (c,)
        centred = self.op("Sub", x, self.reduce("ReduceMean", x, [axis]))
        variance = self.reduce("ReduceMean", self.number("Pow", centred, 2.), [axis])
        normed = self.op("Div", centred, self.op("Sqrt", self.number("Add", variance, 1e-5)))
        return self.op("Add", self.op("Mul", normed, self.const(self.random.uniform(.5, 1.5, shape))), self.drawn(*shape, size=.3))

    def groupnorm(self, x, c, groups, h, w):
        """As PyTorch exports it."""
        flat = self.reshape(x, 0, groups, -1)
        normed = self.op("InstanceNormalization", flat, self.const(numpy.ones(groups)), self.const(numpy.zeros(groups)), epsilon=1e-5)
        back = self.reshape(normed, 1, c, h, w)
        return self.op("Add", self.op("Mul", back, self.const(self.random.uniform(.5, 1.5, (c, 1, 1)))), self.drawn(c, 1, 1, size=.3))

    def squeeze_excite(self, x, c, gate="HardSigmoid"):
        s = self.conv(self.op("GlobalAveragePool", x), c, c // 2, 1)
        s = self.conv(self.op("Relu", s), c // 2, c, 1)
        return self.op("Mul", x, self.op(gate, s, **({"alpha": 1 / 6, "beta": .5} if gate == "HardSigmoid" else {})))

    def tokens(self, c):
        """(1, 20, c) of patches of 8 x 8."""
        x = self.conv("x", 3, c, 8, strides=[8, 8], pads=[0] * 4)
        return self.op("Transpose", self.reshape(x, 1, c, 20), perm=[0, 2, 1])

    def model(self, y):
        nodes, init = list(self.nodes), list(self.init)
        if self.half:
            nodes, init = to_half(nodes, init, y)
            y = "y32"
        if self.shuffled:
            self.random.shuffle(nodes)
        graph = helper.make_graph(nodes, self.name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, IMAGE)],
                                  [helper.make_tensor_value_info(y, TensorProto.INT64 if self.classes else TensorProto.FLOAT, None)], init)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], producer_name="exporter_models")
        model.ir_version = 8 if self.opset < 19 else 10
        return model


def to_half(nodes, init, y):
    """As converters to float16 do: casts of the input and the output, and of what stays in float32, at the end."""
    late = [helper.make_node("Cast", ["x"], ["x16"], name="x_cast", to=TensorProto.FLOAT16),
            helper.make_node("Cast", [y], ["y32"], name="y_cast", to=TensorProto.FLOAT)]
    init = [numpy_helper.from_array(numpy_helper.to_array(t).astype(numpy.float16), t.name) if t.data_type == TensorProto.FLOAT else t
            for t in init]
    out = []
    for n in nodes:
        n.input[:] = ["x16" if i == "x" else i for i in n.input]
        if n.op_type == "Resize":
            late += [helper.make_node("Cast", [n.input[0]], [n.name + "_in"], name=n.name + "_in_cast", to=TensorProto.FLOAT),
                     helper.make_node("Cast", [n.name + "_out"], [n.output[0]], name=n.name + "_out_cast", to=TensorProto.FLOAT16)]
            scales = next(t for t in init if t.name == n.input[2])
            init.append(numpy_helper.from_array(numpy_helper.to_array(scales).astype(numpy.float32), scales.name + "_32"))
            n.input[0], n.input[2], n.output[0] = n.name + "_in", scales.name + "_32", n.name + "_out"
        out.append(n)
    return out + late, init
