"""98 small models of the kinds that exporters write, seeded, as rows of a table: (name, opset, function of a Net). Each takes an image of
(1, 3, 32, 40) and has one output; optional_onnx_exporters.py runs them."""
import numpy
import onnx
from onnx import TensorProto, numpy_helper

from exporter_net import Net

# --- one operator between two convolutions ---

def between(middle, ins=8, outs=8):
    """A convolution to `ins` channels, `middle`, a convolution of the `outs` that it makes."""
    def build(n):
        return n.conv(middle(n, n.conv("x", 3, ins)), outs, 4)
    return build


def after(middle, c=8):
    return lambda n: middle(n, n.conv("x", 3, c))


def act(kind, **attributes):
    return between(lambda n, x: n.op(kind, x, **attributes))


def softsign(n, x):
    return n.op("Div", x, n.number("Add", n.op("Abs", x), 1.))


def mish(n, x):
    return n.op("Mul", x, n.op("Tanh", n.op("Softplus", x)))


def channels_last(middle, c=8):
    """As ConvNeXt: the norm between two transpositions."""
    def build(n, x):
        y = middle(n, n.op("Transpose", x, perm=[0, 2, 3, 1]), c)
        return n.op("Transpose", y, perm=[0, 3, 1, 2])
    return between(build)


def vectors(n, c, *shape):
    return n.const(n.random.uniform(.5, 1.5, (c,) + shape)), n.drawn(c, *shape, size=.3)


def groupnorm18(n, x):
    return n.op("GroupNormalization", x, *vectors(n, 4), num_groups=4)


def groupnorm21(n, x):
    return n.op("GroupNormalization", x, *vectors(n, 8), num_groups=4)


def rms_nodes(n, x, c):
    mean = n.reduce("ReduceMean", n.number("Pow", x, 2.), [-1])
    return n.op("Mul", n.op("Div", x, n.op("Sqrt", n.number("Add", mean, 1e-5))), n.const(n.random.uniform(.5, 1.5, c)))


# --- gates ---

def attention_gate(n):
    """Attention U-Net: a map of one channel, times the skip."""
    skip = n.op("Relu", n.conv("x", 3, 8))
    g = n.conv(n.op("MaxPool", skip, kernel_shape=[2, 2], strides=[2, 2]), 8, 8)
    up = n.resize(g, [1, 1, 2, 2], mode="linear", coordinate_transformation_mode="half_pixel")
    a = n.op("Relu", n.op("Add", n.conv(up, 8, 4, 1), n.conv(skip, 8, 4, 1)))
    gate = n.op("Sigmoid", n.conv(a, 4, 1, 1))
    return n.conv(n.op("Concat", n.op("Mul", skip, gate), up, axis=1), 16, 4)


def cbam_channel(n, x):
    w1, b1, w2, b2 = n.drawn(4, 8, 1, 1, size=.5), n.drawn(4), n.drawn(8, 4, 1, 1, size=.7), n.drawn(8)

    def perceptron(v):
        return n.op("Conv", n.op("Relu", n.op("Conv", v, w1, b1)), w2, b2)
    return n.op("Mul", x, n.op("Sigmoid", n.op("Add", perceptron(n.op("GlobalAveragePool", x)), perceptron(n.op("GlobalMaxPool", x)))))


def cbam_space(n, x):
    both = n.op("Concat", n.reduce("ReduceMean", x, [1]), n.reduce("ReduceMax", x, [1]), axis=1)
    return n.op("Mul", x, n.op("Sigmoid", n.conv(both, 2, 1, 7)))


def gated_sum(n, x):
    return n.op("Add", x, n.op("Mul", x, n.op("Sigmoid", n.conv(n.op("GlobalAveragePool", x), 8, 8, 1))))


def excite_by_gemm(n, x):
    """As PyTorch exports AdaptiveAvgPool2d, flatten, two linear layers and view."""
    s = n.reshape(n.op("GlobalAveragePool", x), 1, 8)
    s = n.op("Sigmoid", n.gemm(n.op("Relu", n.gemm(s, 8, 4)), 4, 8))
    return n.op("Mul", x, n.reshape(s, 1, 8, 1, 1))


# --- space and depth ---

def pixel_shuffle(n, x):
    y = n.op("Transpose", n.reshape(x, 1, 2, 2, 2, 32, 40), perm=[0, 1, 4, 2, 5, 3])
    return n.reshape(y, 1, 2, 64, 80)


def pixel_unshuffle(n, x):
    y = n.op("Transpose", n.reshape(x, 1, 8, 16, 2, 20, 2), perm=[0, 1, 3, 5, 2, 4])
    return n.reshape(y, 1, 32, 16, 20)


def channel_shuffle(n, x):
    y = n.op("Transpose", n.reshape(x, 1, 2, 4, 32, 40), perm=[0, 2, 1, 3, 4])
    return n.reshape(y, 1, 8, 32, 40)


def focus(n):
    """YOLOv5's: every second pixel, four times, as channels."""
    parts = [n.cut(n.cut("x", 2, i, 1 << 30, 2), 3, k, 1 << 30, 2) for k in range(2) for i in range(2)]
    return n.conv(n.op("Concat", *parts, axis=1), 12, 8)


# --- splits ---

def two_halves(n, x):
    a, b = n.op("Split", x, n.ints(4, 4), outs=2, axis=1)
    return n.op("Concat", n.op("Relu", b), n.conv(a, 4, 4), axis=1)


def three_outputs(n, x):
    a, b, c = n.op("Split", x, outs=3, axis=1, num_outputs=3)
    return n.op("Concat", c, n.op("Add", a, n.op("Sigmoid", a)), b, axis=1)


def rows_apart(n, x):
    a, b = n.op("Split", x, n.ints(12, 20), outs=2, axis=2)
    return n.op("Concat", b, a, axis=2)


# --- blocks ---

def aspp(n):
    x = n.op("Relu", n.conv("x", 3, 8, strides=[2, 2]))
    parts = [n.op("Relu", n.bn(n.conv(x, 8, 8, 1, bias=False), 8))]
    parts += [n.op("Relu", n.bn(n.conv(x, 8, 8, 3, bias=False, dilations=[d, d], pads=[d] * 4), 8)) for d in (2, 4)]
    pooled = n.op("Relu", n.conv(n.op("GlobalAveragePool", x), 8, 8, 1))
    parts.append(n.resize(pooled, sizes=(1, 8, 16, 20), mode="linear", coordinate_transformation_mode="half_pixel"))
    return n.conv(n.op("Concat", *parts, axis=1), 32, 4, 1)


def fpn(mode, **more):
    def build(n):
        low = n.op("Relu", n.conv("x", 3, 8, strides=[2, 2]))
        high = n.op("Relu", n.conv(low, 8, 16, strides=[2, 2]))
        top = n.conv(high, 16, 8, 1)
        up = n.resize(top, [1, 1, 2, 2], mode=mode, **more)
        return n.conv(n.op("Add", n.conv(low, 8, 8, 1), up), 8, 4)
    return build


def fpn_by_shape(n):
    """Sizes of the lower map, as PyTorch exports interpolate(size=x.shape[2:])."""
    low = n.op("Relu", n.conv("x", 3, 8, strides=[2, 2]))
    high = n.op("Relu", n.conv(low, 8, 8, strides=[2, 2]))
    size = n.op("Slice", n.op("Shape", low), n.ints(2), n.ints(4), n.ints(0))
    first = n.op("Slice", n.op("Shape", high), n.ints(0), n.ints(2), n.ints(0))
    sizes = n.op("Concat", first, n.op("Cast", size, to=TensorProto.INT64), axis=0)
    up = n.op("Resize", high, "", "", sizes, mode="linear", coordinate_transformation_mode="pytorch_half_pixel")
    return n.conv(n.op("Concat", low, up, axis=1), 16, 4)


def mbconv(n):
    """EfficientNet's."""
    x = n.silu(n.bn(n.conv("x", 3, 8, bias=False), 8))
    y = n.silu(n.bn(n.conv(x, 8, 16, 1, bias=False), 16))
    y = n.silu(n.bn(n.conv(y, 16, 16, 5, bias=False, group=16), 16))
    s = n.op("Sigmoid", n.conv(n.silu(n.conv(n.reduce("ReduceMean", y, [2, 3]), 16, 4, 1)), 4, 16, 1))
    return n.op("Add", x, n.bn(n.conv(n.op("Mul", y, s), 16, 8, 1, bias=False), 8))


def convnext(n):
    x = n.conv("x", 3, 8, 4, strides=[4, 4], pads=[0] * 4)
    y = n.op("Transpose", n.conv(x, 8, 8, 7, group=8), perm=[0, 2, 3, 1])
    y = n.op("LayerNormalization", y, *vectors(n, 8), axis=-1, epsilon=1e-6)
    y = n.linear(n.gelu(n.linear(y, 8, 32)), 32, 8)
    y = n.op("Transpose", n.op("Mul", n.drawn(8, size=.5), y), perm=[0, 3, 1, 2])
    return n.op("Add", x, y)


def mobilenet3(n):
    x = n.hardswish(n.bn(n.conv("x", 3, 8, bias=False, strides=[2, 2]), 8))
    y = n.op("Relu", n.bn(n.conv(x, 8, 16, 1, bias=False), 16))
    y = n.squeeze_excite(n.op("Relu", n.bn(n.conv(y, 16, 16, 3, bias=False, group=16), 16)), 16)
    return n.op("Add", x, n.bn(n.conv(y, 16, 8, 1, bias=False), 8))


def bottleneck(n):
    x = n.op("Relu", n.bn(n.conv("x", 3, 16, 7, bias=False, strides=[2, 2]), 16))
    x = n.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    y = n.op("Relu", n.bn(n.conv(x, 16, 4, 1, bias=False), 4))
    y = n.op("Relu", n.bn(n.conv(y, 4, 4, 3, bias=False), 4))
    y = n.bn(n.conv(y, 4, 16, 1, bias=False), 16)
    y = n.op("Flatten", n.op("GlobalAveragePool", n.op("Relu", n.op("Add", y, x))), axis=1)
    return n.gemm(y, 16, 10)


def dense(n):
    x, c = n.conv("x", 3, 8), 8
    for _ in range(3):
        y = n.op("Relu", n.bn(x, c))
        x, c = n.op("Concat", x, n.conv(y, c, 4), axis=1), c + 4
    return n.conv(n.op("AveragePool", n.op("Relu", n.bn(x, c)), kernel_shape=[2, 2], strides=[2, 2]), c, 4, 1)


def ghost(n):
    x = n.op("Relu", n.conv("x", 3, 8, 1))
    return n.conv(n.op("Concat", x, n.op("Relu", n.conv(x, 8, 8, 3, group=8)), axis=1), 16, 4, 1)


def yolo(n):
    """C2f and SPPF of YOLOv8."""
    x = n.silu(n.conv("x", 3, 16, strides=[2, 2]))
    a, b = n.op("Split", x, n.ints(8, 8), outs=2, axis=1)
    c = n.op("Add", b, n.silu(n.conv(n.silu(n.conv(b, 8, 8)), 8, 8)))
    x = n.silu(n.conv(n.op("Concat", a, b, c, axis=1), 24, 8, 1))
    pools = [x]
    for _ in range(3):
        pools.append(n.op("MaxPool", pools[-1], kernel_shape=[5, 5], pads=[2] * 4))
    return n.conv(n.op("Concat", *pools, axis=1), 32, 4, 1)


def unet(n):
    a = n.op("Relu", n.conv("x", 3, 8))
    b = n.op("Relu", n.conv(n.op("MaxPool", a, kernel_shape=[2, 2], strides=[2, 2]), 8, 16))
    return n.conv(n.op("Relu", n.conv(n.op("Concat", a, n.convt(b, 16, 8, strides=[2, 2]), axis=1), 16, 8)), 8, 2, 1)


def shufflenet(n):
    x = n.op("Relu", n.conv("x", 3, 8))
    a, b = n.op("Split", x, n.ints(4, 4), outs=2, axis=1)
    b = n.op("Relu", n.bn(n.conv(n.bn(n.conv(b, 4, 4, group=4, bias=False), 4), 4, 4, 1, bias=False), 4))
    return n.conv(channel_shuffle(n, n.op("Concat", a, b, axis=1)), 8, 4, 1)


def bifpn(n):
    """Two maps, weighted by numbers that the exporter left as nodes of constants."""
    x = n.op("Relu", n.conv("x", 3, 8))
    up = n.resize(n.conv(n.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), 8, 8, 1), [1, 1, 2, 2], mode="nearest",
                  coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    w = n.op("Max", n.const([.7, .4]), n.const([0., 0.]))
    total = n.number("Add", n.op("ReduceSum", w, n.ints(0), keepdims=1), 1e-4)
    parts = [n.op("Mul", v, n.op("Div", n.op("Gather", w, n.ints(k), axis=0), total)) for k, v in enumerate((x, up))]
    return n.conv(n.silu(n.op("Add", *parts)), 8, 4)


def segment(n):
    """A head that answers with classes."""
    y = n.op("ArgMax", n.conv(n.op("Relu", n.conv("x", 3, 8)), 8, 5, 1), axis=1, keepdims=0)
    n.classes = True
    return y


# --- attention ---

def heads(n, x, k):
    return n.op("Transpose", n.reshape(x, 1, 20, k, -1), perm=[0, 2, 1, 3])


def joined(n, x):
    return n.reshape(n.op("Transpose", x, perm=[0, 2, 1, 3]), 1, 20, 16)


def by_nodes(n):
    x = n.tokens(16)
    q, k, v = (heads(n, n.linear(x, 16, 16), 4) for _ in range(3))
    scores = n.number("Mul", n.op("MatMul", q, n.op("Transpose", k, perm=[0, 1, 3, 2])), .5)
    return n.linear(joined(n, n.op("MatMul", n.op("Softmax", scores, axis=-1), v)), 16, 16)


def block(n):
    """A block of a ViT by nodes, LayerNormalization and a perceptron."""
    x = n.tokens(16)
    y = n.op("LayerNormalization", x, *vectors(n, 16), axis=-1)
    q, k, v = (heads(n, n.linear(y, 16, 16), 2) for _ in range(3))
    scores = n.number("Div", n.op("MatMul", q, n.op("Transpose", k, perm=[0, 1, 3, 2])), 8 ** .5)
    x = n.op("Add", x, n.linear(joined(n, n.op("MatMul", n.op("Softmax", scores, axis=-1), v)), 16, 16))
    return n.op("Add", x, n.linear(n.gelu(n.linear(n.layernorm(x, 16), 16, 32)), 32, 16))


def attention(q_heads=4, kv_heads=4, dims=3, mask=None, **more):
    """Opset 23's operator."""
    def build(n):
        x, wide = n.tokens(16), 16 // q_heads * kv_heads
        q, k, v = n.linear(x, 16, 16), n.linear(x, 16, wide), n.linear(x, 16, wide)
        given = [] if mask is None else [n.const(mask, numpy.array(mask).dtype)]
        if dims == 4:
            return n.linear(joined(n, n.op("Attention", heads(n, q, q_heads), heads(n, k, kv_heads), heads(n, v, kv_heads), *given,
                                           **more)), 16, 16)
        return n.linear(n.op("Attention", q, k, v, *given, q_num_heads=q_heads, kv_num_heads=kv_heads, **more), 16, 16)
    return build


LATER = numpy.tril(numpy.ones((20, 20), bool))


# --- forms of files ---

def shuffled(build):
    def make(n):
        n.shuffled = True
        return build(n)
    return make


def half(build):
    def make(n):
        n.half = True
        return build(n)
    return make


def flattened_by_shape(n):
    """View by the sizes that Shape says, as PyTorch exports x.view(x.size(0), -1)."""
    x = n.op("MaxPool", n.op("Relu", n.conv("x", 3, 4)), kernel_shape=[8, 8], strides=[8, 8])
    size = n.op("Unsqueeze", n.op("Gather", n.op("Shape", x), n.const(0, numpy.int64), axis=0), n.ints(0))
    return n.gemm(n.op("Reshape", x, n.op("Concat", size, n.ints(-1), axis=0)), 80, 10)


def constants_as_nodes(n):
    w = n.op("Constant", value=numpy_helper.from_array(n.random.uniform(-.3, .3, (8, 3, 3, 3)).astype(numpy.float32)))
    x = n.op("Conv", "x", w, pads=[1] * 4)
    return n.conv(n.op("Clip", x, n.op("Constant", value_float=0.), n.op("Constant", value_float=6.)), 8, 4, 1)


def same(n):
    """What most models have, in every opset."""
    x = n.op("Relu", n.bn(n.conv("x", 3, 8, bias=False), 8))
    y = n.op("Add", x, n.op("Sigmoid", n.conv(x, 8, 8, group=2)))
    y = n.resize(y, [1, 1, 2, 2], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    y = n.op("AveragePool", y, kernel_shape=[2, 2], strides=[2, 2])
    return n.op("Softmax", n.gemm(n.op("Flatten", n.op("GlobalAveragePool", y)), 8, 5), axis=1)


CUBIC = {"mode": "cubic", "cubic_coeff_a": -.75}
PAD = [0, 0, 2, 3, 0, 0, 1, 4]


def resized(scale=None, sizes=None, **more):
    return after(lambda n, x: n.resize(x, scale, sizes, **more), c=4)


MODELS = [
    # activations
    ("swish of opset 24", 24, act("Swish")),
    ("leaky relu", 16, act("LeakyRelu", alpha=.1)),
    ("prelu, a slope per channel", 16, between(lambda n, x: n.op("PRelu", x, n.drawn(8, 1, 1, size=.4)))),
    ("elu", 13, act("Elu", alpha=.7)),
    ("softplus", 13, act("Softplus")),
    ("mish by nodes", 13, between(mish)),
    ("mish", 18, act("Mish")),
    ("hard sigmoid", 13, act("HardSigmoid", alpha=.2, beta=.5)),
    ("hard swish", 14, act("HardSwish")),
    ("hard swish by nodes", 13, between(lambda n, x: n.hardswish(x))),
    ("silu by nodes", 13, between(lambda n, x: n.silu(x))),
    ("gelu by erf", 13, between(lambda n, x: n.gelu(x))),
    ("gelu by tanh", 20, act("Gelu", approximate="tanh")),
    ("softsign by nodes", 13, between(softsign)),
    # norms
    ("instance norm", 13, between(lambda n, x: n.op("InstanceNormalization", x, *vectors(n, 8)))),
    ("group norm of opset 18", 18, between(groupnorm18)),
    ("group norm of opset 21", 21, between(groupnorm21)),
    ("group norm as PyTorch exports it", 13, between(lambda n, x: n.groupnorm(x, 8, 2, 32, 40))),
    ("layer norm, channels last", 17, channels_last(lambda n, x, c: n.op("LayerNormalization", x, *vectors(n, c), axis=-1))),
    ("layer norm by nodes, channels last", 13, channels_last(lambda n, x, c: n.layernorm(x, c))),
    ("layer norm by nodes, channels first", 13, between(lambda n, x: n.layernorm(x, 8, 1, (8, 1, 1)))),
    ("RMS norm", 23, channels_last(lambda n, x, c: n.op("RMSNormalization", x, n.const(n.random.uniform(.5, 1.5, c)), axis=-1))),
    ("RMS norm by nodes", 17, channels_last(rms_nodes)),
    # gates
    ("squeeze and excitation, hard sigmoid", 13, between(lambda n, x: n.squeeze_excite(x, 8))),
    ("squeeze and excitation by linear layers", 13, between(excite_by_gemm)),
    ("attention gate of one channel", 13, attention_gate),
    ("sum with a map of one channel", 13, between(lambda n, x: n.op("Add", x, n.conv(x, 8, 1, 1)))),
    ("CBAM over channels", 13, between(cbam_channel)),
    ("CBAM over space", 13, between(cbam_space)),
    ("x + x gate", 13, between(gated_sum)),
    ("product with a factor per channel", 13, between(lambda n, x: n.op("Mul", n.drawn(8, 1, 1), x))),
    # reductions
    ("mean over space", 13, between(lambda n, x: n.reduce("ReduceMean", x, [2, 3]))),
    ("mean over space, then linear", 18, after(lambda n, x: n.gemm(n.reduce("ReduceMean", x, [2, 3], 0), 8, 5))),
    ("mean over channels", 13, after(lambda n, x: n.reduce("ReduceMean", x, [1]))),
    ("mean over channels, axes as an input", 18, between(lambda n, x: n.op("Mul", x, n.reduce("ReduceMean", x, [1])))),
    ("maximum over channels", 13, after(lambda n, x: n.reduce("ReduceMax", x, [1]))),
    ("maximum over space", 18, between(lambda n, x: n.reduce("ReduceMax", x, [2, 3]))),
    ("classes by ArgMax", 13, segment),
    # space and depth
    ("depth to space, DCR", 13, between(lambda n, x: n.op("DepthToSpace", x, blocksize=2), 8, 2)),
    ("depth to space, CRD", 13, between(lambda n, x: n.op("DepthToSpace", x, blocksize=2, mode="CRD"), 8, 2)),
    ("space to depth", 13, between(lambda n, x: n.op("SpaceToDepth", x, blocksize=2), 8, 32)),
    ("pixel shuffle by nodes", 13, between(pixel_shuffle, 8, 2)),
    ("pixel unshuffle by nodes", 13, between(pixel_unshuffle, 8, 32)),
    ("channel shuffle", 13, between(channel_shuffle)),
    ("focus by strided slices", 13, focus),
    # pads
    ("pad by reflection", 13, between(lambda n, x: n.op("Pad", x, n.ints(*PAD), mode="reflect"))),
    ("pad by the edge", 13, between(lambda n, x: n.op("Pad", x, n.ints(*PAD), mode="edge"))),
    ("pad by zeros", 13, between(lambda n, x: n.op("Pad", x, n.ints(*PAD)))),
    ("pad with axes", 18, between(lambda n, x: n.op("Pad", x, n.ints(1, 2, 3, 1), "", n.ints(3, 2)))),
    ("pad by reflection, as style transfer", 13, lambda n: n.conv(n.op("Pad", "x", n.ints(0, 0, 3, 3, 0, 0, 3, 3), mode="reflect"), 3, 4, 7, pads=[0] * 4)),
    # splits and slices
    ("split into halves", 13, between(two_halves)),
    ("split by num_outputs", 18, between(three_outputs, 9, 9)),
    ("rows split and joined", 13, between(rows_apart)),
    ("some channels", 13, between(lambda n, x: n.cut(n.op("Relu", x), 1, 2, 7), 8, 5)),
    ("every second row and column", 13, between(lambda n, x: n.cut(n.cut(x, 2, 0, 1 << 30, 2), 3, 1, 1 << 30, 2))),
    ("a box", 13, between(lambda n, x: n.cut(n.cut(x, 2, 3, -4), 3, -20, 1 << 30))),
    # resizes
    ("resize nearest, asymmetric", 13, resized([1, 1, 2, 2], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")),
    ("resize nearest, half a pixel", 13, resized([1, 1, 2, 3], mode="nearest")),
    ("resize linear, aligned corners", 13, resized([1, 1, 2, 2], mode="linear", coordinate_transformation_mode="align_corners")),
    ("resize linear, half a pixel", 13, resized([1, 1, 2, 2], mode="linear")),
    ("resize linear, to half", 13, resized([1, 1, .5, .5], mode="linear", coordinate_transformation_mode="pytorch_half_pixel")),
    ("resize cubic", 13, resized([1, 1, 2, 2], **CUBIC)),
    ("resize cubic, aligned corners", 13, resized(sizes=(1, 4, 45, 50), coordinate_transformation_mode="align_corners", **CUBIC)),
    ("resize nearest by 1.5", 13, resized([1, 1, 1.5, 1.5], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")),
    ("resize linear by 1.7 and 1.3", 13, resized([1, 1, 1.7, 1.3], mode="linear")),
    ("resize linear to a size", 13, resized(sizes=(1, 4, 50, 33), mode="linear")),
    ("resize with axes", 18, resized([2., 1.5], mode="linear", axes=[2, 3])),
    ("upsample of opset 9", 9, after(lambda n, x: n.op("Upsample", x, n.const([1, 1, 2, 2]), mode="nearest"), 4)),
    # transposed convolutions
    ("transposed convolution, output padding", 13, after(lambda n, x: n.convt(x, 8, 4, 3, strides=[2, 2], pads=[1] * 4, output_padding=[1, 1]))),
    ("transposed convolution, groups", 13, after(lambda n, x: n.convt(x, 8, 4, 4, group=2, strides=[2, 2], pads=[1] * 4))),
    ("transposed convolution, same", 13, after(lambda n, x: n.convt(x, 8, 4, 3, strides=[2, 2], auto_pad="SAME_UPPER"))),
    # pools and convolutions
    ("max pool, rounded up", 13, between(lambda n, x: n.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1))),
    ("average pool with its padding", 13, between(lambda n, x: n.op("AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1))),
    ("convolutions of 1 x 7 and 7 x 1", 13, lambda n: n.conv(n.conv("x", 3, 8, (1, 7)), 8, 4, (7, 1))),
    ("convolution, same lower", 13, lambda n: n.conv("x", 3, 4, 4, strides=[2, 2], auto_pad="SAME_LOWER")),
    # blocks
    ("ASPP", 13, aspp),
    ("FPN, nearest", 13, fpn("nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")),
    ("FPN, sizes by Shape", 13, fpn_by_shape),
    ("EfficientNet's block", 13, mbconv),
    ("ConvNeXt's block", 17, convnext),
    ("MobileNetV3's block", 13, mobilenet3),
    ("ResNet's bottleneck", 13, bottleneck),
    ("DenseNet's block", 13, dense),
    ("GhostNet's module", 13, ghost),
    ("YOLOv8's C2f and SPPF", 13, yolo),
    ("U-Net", 13, unet),
    ("ShuffleNet's unit", 13, shufflenet),
    ("BiFPN's weighted sum", 13, bifpn),
    # attention
    ("attention by nodes", 13, by_nodes),
    ("ViT's block", 17, block),
    ("attention of opset 23", 23, attention()),
    ("attention of opset 23, four dimensions, causal", 23, attention(dims=4, is_causal=1)),
    ("attention of opset 23, shared keys, a mask, a scale", 24, attention(4, 2, mask=LATER, scale=.3)),
    # forms of files
    ("converted to float16, casts last", 13, half(fpn("linear", coordinate_transformation_mode="half_pixel"))),
    ("nodes in any order", 13, shuffled(dense)),
    ("view by Shape", 13, flattened_by_shape),
    ("opset 22", 22, same),
    ("opset 24", 24, same),
]


def make(row):
    name, opset, build = row
    net = Net(name, opset)
    return net.model(build(net))


def save(row, path):
    onnx.save(make(row), path)
