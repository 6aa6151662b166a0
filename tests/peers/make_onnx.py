#!/usr/bin/python3
"""ONNX files of torchvision's networks from weights in a safetensors file, in FP32 and in INT8, for ONNX Runtime.

    make_onnx.py NET WEIGHTS.safetensors -o F.onnx [--form fp32|bn|qoperator|qdq] [--image 224] [--free-size]
                 [--calib X.npy] [--seed 1] [--pixels] [--check]

Networks: resnet18 34 50 101 152, mobilenetv2, vgg19, densenet121, and hplan's cnn. Forms:
    fp32        batch norm folded into the convolutions
    bn          BatchNormalization nodes, as exporters of untouched models write them
    qoperator   QLinearConv (u8 activations, s8 weights per output channel), QLinearAdd and the like of ONNX Runtime
    qdq         the same quantisation as QuantizeLinear, DequantizeLinear pairs around float operators
Ranges are the extremes over the images of --calib (float32 (N, 3, H, W), or uint8 (N, H, W, 3)), else over four synthetic ones.
With --pixels the quantised model takes uint8 pixels. --free-size leaves height and width open. --check says how near the
network by PyTorch comes to the weights' own by torchvision."""
import argparse
import pathlib
import sys

import numpy as np
import onnx
import torch
from onnx import helper

import calibrate
import nets
import onnx_float
import onnx_quant

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import optional_weights_torch as torchvision_weights  # noqa: E402

FORMS = {"fp32": onnx_float.Folded, "bn": onnx_float.Unfolded, "qoperator": onnx_quant.QOperator, "qdq": onnx_quant.Qdq}


def calibration(o, side):
    """(N, 3, H, W) floats in -1..1."""
    if not o.calib:
        return calibrate.smooth_images(4, min(side, 512), o.seed)
    x = np.load(o.calib)
    if x.dtype == np.uint8:
        x = (x.transpose(0, 3, 1, 2).astype(np.float32) / 255 - 0.5) / 0.5
    return torch.from_numpy(np.ascontiguousarray(x, np.float32))


def write(o, ops, emitter):
    """Emits every operation, then the model around them."""
    for op in ops:
        getattr(emitter, op["op"])(op)
    out = emitter.finish(ops[-1]["y"])
    size = ["height", "width"] if o.free_size else [o.image, o.image]
    kind = onnx.TensorProto.UINT8 if emitter.takes_pixels else onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        emitter.nodes, o.net, [helper.make_tensor_value_info("input", kind, ["batch", 3, *size])],
        [helper.make_tensor_value_info(out, onnx.TensorProto.FLOAT, ["batch", None])], emitter.constants)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="hplan tests")
    onnx.save(model, o.output)


def check(o, ops, weights, x):
    """The largest difference to torchvision's own module, in units of its largest logit."""
    ours = calibrate.evaluate(ops, weights, x)
    module = torchvision_weights.model(o.net, 0, weights_classes(ops, weights))
    module.load_state_dict(weights)
    with torch.no_grad():
        theirs = module.eval()(x)
    print(f"{o.net}: differs from torchvision by {float((ours - theirs).abs().max() / theirs.abs().max()):.2e}")


def weights_classes(ops, weights):
    return weights[ops[-1]["w"] + ".weight"].shape[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("net")
    parser.add_argument("weights")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--form", choices=FORMS, default="fp32")
    parser.add_argument("--image", type=int, default=224)
    parser.add_argument("--free-size", action="store_true")
    parser.add_argument("--calib")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pixels", action="store_true")
    parser.add_argument("--check", action="store_true")
    o = parser.parse_args()
    weights = torchvision_weights.read(o.weights)
    ops = nets.build(o.net, o.image)
    x = calibration(o, o.image)
    ranges = calibrate.ranges(ops, weights, x) if o.form.startswith("q") else None
    write(o, ops, FORMS[o.form](weights, ranges, o.pixels))
    if o.check:
        check(o, ops, weights, x)


if __name__ == "__main__":
    main()
