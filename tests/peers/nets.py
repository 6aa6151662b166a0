"""nets.py - torchvision's networks as lists of operations, for writing them as ONNX and for calibrating them.

Every operation is a dict: op, x (input tensors' names), y (output's name), and what the operation needs; `w` and `bn` are
prefixes of names in torchvision's state dict. Batch norm belongs to the convolution before it, except in `bnrelu` (DenseNet).
"""
BOTTLENECK = {"resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3), "resnet152": (3, 8, 36, 3)}
BASIC = {"resnet18": (2, 2, 2, 2), "resnet34": (3, 4, 6, 3)}
MOBILE = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
VGG19 = (64, 64, "M", 128, 128, "M", 256, 256, 256, 256, "M", 512, 512, 512, 512, "M", 512, 512, 512, 512, "M")


class Ops(list):
    """A network under construction: each method appends one operation and returns the name of its output."""

    def _put(self, op, x, **rest):
        y = f"{op}_{len(self)}"
        self.append(dict(op=op, x=list(x), y=y, **rest))
        return y

    def conv(self, x, w, bn=None, stride=1, pad=0, act=None, depthwise=False):
        return self._put("conv", [x], w=w, bn=bn, stride=stride, pad=pad, act=act, depthwise=depthwise)

    def add(self, a, b, act=None):
        return self._put("add", [a, b], act=act)

    def pool(self, x, kind, k, stride, pad=0):
        return self._put(kind, [x], k=k, stride=stride, pad=pad)

    def bnrelu(self, x, bn):
        return self._put("bnrelu", [x], bn=bn)

    def concat(self, xs):
        return xs[0] if len(xs) == 1 else self._put("concat", xs)

    def gap(self, x):
        return self._put("gap", [x])

    def to7x7(self, x):
        """VGG's adaptive average pool; `fit` makes an ordinary one of it, or none."""
        return self._put("to7x7", [x])

    def linear(self, x, w, act=None):
        return self._put("linear", [x], w=w, act=act)


def _bottleneck(n, x, at, stride, widen):
    y = n.conv(x, at + ".conv1", at + ".bn1", act="relu")
    y = n.conv(y, at + ".conv2", at + ".bn2", stride, 1, "relu")
    y = n.conv(y, at + ".conv3", at + ".bn3")
    if widen:
        x = n.conv(x, at + ".downsample.0", at + ".downsample.1", stride)
    return n.add(y, x, "relu")


def _basic(n, x, at, stride, widen):
    y = n.conv(x, at + ".conv1", at + ".bn1", stride, 1, "relu")
    y = n.conv(y, at + ".conv2", at + ".bn2", 1, 1)
    if widen:
        x = n.conv(x, at + ".downsample.0", at + ".downsample.1", stride)
    return n.add(y, x, "relu")


def _resnet(n, counts, block, always):
    """always: the first layer's first block widens too (bottlenecks: 64 to 256)."""
    x = n.conv("image", "conv1", "bn1", 2, 3, "relu")
    x = n.pool(x, "maxpool", 3, 2, 1)
    for layer, count in enumerate(counts):
        for i in range(count):
            stride = 2 if layer and not i else 1
            x = block(n, x, f"layer{layer + 1}.{i}", stride, not i and (layer or always))
    n.linear(n.gap(x), "fc")


def _mobilenetv2(n):
    x = n.conv("image", "features.0.0", "features.0.1", 2, 1, "relu6")
    at, channels = 1, 32
    for widen, c, count, stride in MOBILE:
        for i in range(count):
            y, k, base = x, 0, f"features.{at}.conv."
            if widen > 1:
                y, k = n.conv(y, base + "0.0", base + "0.1", act="relu6"), 1
            y = n.conv(y, f"{base}{k}.0", f"{base}{k}.1", 1 if i else stride, 1, "relu6", depthwise=True)
            y = n.conv(y, f"{base}{k + 1}", f"{base}{k + 2}")
            x = n.add(y, x) if channels == c and (i or stride == 1) else y
            at, channels = at + 1, c
    x = n.conv(x, "features.18.0", "features.18.1", act="relu6")
    n.linear(n.gap(x), "classifier.1")


def _vgg19(n):
    x, at = "image", 0
    for c in VGG19:
        x = n.pool(x, "maxpool", 2, 2) if c == "M" else n.conv(x, f"features.{at}", pad=1, act="relu")
        at += 1 if c == "M" else 2
    x = n.to7x7(x)
    for name, act in (("classifier.0", "relu"), ("classifier.3", "relu"), ("classifier.6", None)):
        x = n.linear(x, name, act)


def _densenet121(n):
    x = n.conv("image", "features.conv0", "features.norm0", 2, 3, "relu")
    x = n.pool(x, "maxpool", 3, 2, 1)
    for b, count in enumerate((6, 12, 24, 16), 1):
        parts = [x]
        for i in range(1, count + 1):
            at = f"features.denseblock{b}.denselayer{i}."
            y = n.bnrelu(n.concat(parts), at + "norm1")
            y = n.conv(y, at + "conv1", at + "norm2", act="relu")
            parts.append(n.conv(y, at + "conv2", pad=1))
        x = n.concat(parts)
        if b < 4:
            at = f"features.transition{b}."
            x = n.pool(n.conv(n.bnrelu(x, at + "norm"), at + "conv"), "avgpool", 2, 2)
    n.linear(n.gap(n.bnrelu(x, "features.norm5")), "classifier")


def _cnn(n):
    x = "image"
    for i in "12":
        x = n.pool(n.conv(x, "conv" + i, "bn" + i, pad=1, act="relu"), "maxpool", 2, 2)
    n.linear(n.linear(x, "fc1", "relu"), "fc2")


def _fit(ops, image):
    """VGG's pool for this image: of windows of equal size, or none at all."""
    side = image // 32
    for o in ops:
        if o["op"] == "to7x7" and side % 7:
            raise SystemExit(f"an image of {image} pixels gives VGG-19 a {side} x {side} map; take a multiple of 224")
        if o["op"] == "to7x7":
            o.update(op="avgpool", k=side // 7, stride=side // 7, pad=0)
    return ops


def build(net, image):
    """The operations of a network, from "image" to its logits, the last operation's output."""
    n = Ops()
    if net in BOTTLENECK:
        _resnet(n, BOTTLENECK[net], _bottleneck, True)
    elif net in BASIC:
        _resnet(n, BASIC[net], _basic, False)
    else:
        {"mobilenetv2": _mobilenetv2, "vgg19": _vgg19, "densenet121": _densenet121, "cnn": _cnn}[net](n)
    return _fit(n, image)
