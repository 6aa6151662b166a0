#!/usr/bin/python3
"""Transformers as PyTorch exports them, and their linear layers in INT8 for ONNX Runtime.

    onnx_tokens.py export vit-b16|gpt2 [--image 224] -o M.onnx [--input X.npy]
    onnx_tokens.py ranges M.onnx -o R.onnx
    onnx_tokens.py static M.onnx --ranges r.npy -o Q.onnx
    onnx_tokens.py dynamic M.onnx -o D.onnx

`export` writes torchvision's ViT-B/16, or GPT-2 (124 M, 50257 words, texts of --image tokens) as optional_onnx_tokens.py spells it,
with drawn weights, and an input for ort.mjs. Products with weights become u8 x s8, a scale per column of weights and one per tensor
of inputs, as ONNX Runtime's own quantiser makes them, which its npm package lacks: `dynamic` finds the inputs' scales at run time
(DynamicQuantizeLinear, MatMulInteger, which ONNX Runtime joins), `static` has them from `r.npy`, what R.onnx puts out for one input,
and uses the operator that ONNX Runtime itself puts in the place of DequantizeLinear, MatMul and the addition of the bias. All else stays float."""
import argparse
import warnings

import numpy as np
import onnx
from onnx import helper, numpy_helper

MS = "com.microsoft"
WORDS = 50257


def export(o):
    import torch
    import torchvision

    import optional_onnx_tokens as tokens
    torch.manual_seed(1)
    tokens.IDS, tokens.TOKENS = WORDS, o.image
    net = torchvision.models.vit_b_16(image_size=o.image) if o.net == "vit-b16" else tokens.GPT(12, 768, 12)
    for p in net.parameters():  # torchvision's head and class token begin with zeros
        torch.nn.init.normal_(p, 1.0 if p.dim() == 1 and p.min() == 1 else 0.0, 0.02)
    x = torch.rand(1, 3, o.image, o.image) * 2 - 1 if o.net == "vit-b16" else torch.randint(WORDS, (1, o.image))
    if o.input:
        np.save(o.input, x.numpy())
    warnings.filterwarnings("ignore")
    torch.onnx.export(net.eval(), x, o.output, opset_version=14, input_names=["x"], output_names=["y"])


# --- products with weights ---

def constants(model):
    return {t.name: t for t in model.graph.initializer}


def products(model):
    """[(node, weights)] of those whose second factor is a constant matrix."""
    known = constants(model)
    return [(n, numpy_helper.to_array(known[n.input[1]])) for n in model.graph.node
            if n.op_type in ("MatMul", "Gemm") and n.input[1] in known and known[n.input[1]].dims.__len__() == 2]


def is_turned(node):
    return any(a.name == "transB" and a.i for a in node.attribute)


def ranges(model):
    """Least and greatest of what each product reads, one after another, in place of the output."""
    names = []
    for node, _ in products(model):
        for kind in ("ReduceMin", "ReduceMax"):
            name = f"{node.output[0]}.{kind}"
            model.graph.node.append(helper.make_node(kind, [node.input[0]], [name + ".0"], keepdims=0))
            model.graph.initializer.append(numpy_helper.from_array(np.array([1]), name + ".shape"))
            model.graph.node.append(helper.make_node("Reshape", [name + ".0", name + ".shape"], [name]))
            names.append(name)
    model.graph.node.append(helper.make_node("Concat", names, ["ranges"], axis=0))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("ranges", onnx.TensorProto.FLOAT, [len(names)]))


class Quantiser:
    def __init__(self, model, found):
        self.model, self.found = model, found
        self.nodes, self.made, self.affine = [], [], {}

    def constant(self, name, array):
        self.made.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, kind, x, y, domain=""):
        self.nodes.append(helper.make_node(kind, x, y, domain=domain, name=f"{y[0]}.{kind}"))
        return y

    def quantised_input(self, x, k):
        """[bytes, scale, zero] of tensor x, the k-th product's; once."""
        if x not in self.affine:
            names = [f"{x}.{part}" for part in ("u8", "scale", "zero")]
            if self.found is None:
                self.node("DynamicQuantizeLinear", [x], names)
            else:
                low, high = min(self.found[2 * k], 0), max(self.found[2 * k + 1], 0)
                scale = np.float32(max(high - low, 1e-8) / 255)
                self.constant(names[1], np.array(scale))
                self.constant(names[2], np.array(np.uint8(np.clip(np.rint(-low / scale), 0, 255))))
                self.node("QuantizeLinear", [x, *names[1:]], names[:1])
            self.affine[x] = names
        return self.affine[x]

    def weights(self, y, w):
        scale = np.maximum(np.abs(w).max(0), 1e-12).astype(np.float32) / np.float32(127)
        q = np.clip(np.rint(w / scale), -127, 127).astype(np.int8)
        return [self.constant(y + ".w", q), self.constant(y + ".w.scale", scale),
                self.constant(y + ".w.zero", np.zeros(len(scale), np.int8))]

    def product(self, k, node, w, bias, y):
        """y = x w + bias (a constant's name, or None)."""
        x, scale, zero = self.quantised_input(node.input[0], k)
        q, w_scale, w_zero = self.weights(node.output[0], w.T if is_turned(node) else w)
        if self.found is not None:
            self.node("MatMulIntegerToFloat", [x, q, scale, w_scale, zero, w_zero, *([bias] if bias else [])], [y], MS)
            return
        sums, both = node.output[0] + ".sums", node.output[0] + ".both"
        self.node("MatMulInteger", [x, q, zero, w_zero], [sums])
        self.nodes.append(helper.make_node("Cast", [sums], [sums + ".real"], to=onnx.TensorProto.FLOAT))
        self.node("Mul", [scale, w_scale], [both])
        self.node("Mul", [sums + ".real", both], [node.output[0] + ".linear" if bias else y])
        if bias:
            self.node("Add", [node.output[0] + ".linear", bias], [y])


def quantise(model, found):
    known, graph, to = constants(model), model.graph, Quantiser(model, found)
    index = {n.output[0]: (k, w) for k, (n, w) in enumerate(products(model))}
    readers = {}
    for n in graph.node:
        for x in n.input:
            readers.setdefault(x, []).append(n)
    skipped = set()
    for n in graph.node:
        if n.output[0] in skipped:
            continue
        if n.output[0] not in index:
            to.nodes.append(n)
            continue
        bias, y, after = (n.input[2] if len(n.input) > 2 else None), n.output[0], readers.get(n.output[0], [])
        if not bias and len(after) == 1 and after[0].op_type == "Add":
            other = [x for x in after[0].input if x != y]
            if other and other[0] in known and len(known[other[0]].dims) == 1:
                bias, y = other[0], after[0].output[0]
                skipped.add(y)
        to.product(*index[n.output[0]][:1], n, index[n.output[0]][1], bias, y)
    del graph.node[:]
    graph.node.extend(to.nodes)
    read = {x for n in graph.node for x in n.input}
    kept = [t for t in graph.initializer if t.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept + to.made)
    model.opset_import.append(helper.make_opsetid(MS, 1))
    return len(index)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=("export", "ranges", "static", "dynamic"))
    parser.add_argument("net", metavar="NET|M.onnx")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--image", type=int, default=224)
    parser.add_argument("--input")
    parser.add_argument("--ranges")
    o = parser.parse_args()
    if o.what == "export":
        export(o)
        return
    model = onnx.load(o.net)
    if o.what == "ranges":
        ranges(model)
    else:
        print(quantise(model, np.load(o.ranges) if o.what == "static" else None), "products")
    onnx.save(model, o.output)


if __name__ == "__main__":
    main()
