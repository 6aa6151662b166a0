#!/usr/bin/python3
"""Random weights of a torchvision network that behave like trained ones: He's initial weights, and batch-norm statistics measured
on a batch, so that no activation grows or dies. For timing, and for comparing programs number by number.

    random_weights.py NET -o F.safetensors [--classes 1000] [--seed 1] [--image 224] [--batch 4]"""
import argparse
import pathlib
import sys

import torch

import calibrate

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import optional_weights_torch as torchvision_weights  # noqa: E402


@torch.no_grad()
def measured(module, images):
    """The module with the batch's statistics as its running ones."""
    for layer in module.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.momentum = 1.0
        if isinstance(layer, torch.nn.Dropout):
            layer.p = 0.0
    module.train()(images)
    return module.eval()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("net", choices=sorted(torchvision_weights.NETS))
    parser.add_argument("-o", "--output", required=True)
    for name, value in (("classes", 1000), ("seed", 1), ("image", 224), ("batch", 4)):
        parser.add_argument("--" + name, type=int, default=value)
    o = parser.parse_args()
    module = torchvision_weights.model(o.net, o.seed, o.classes)
    images = calibrate.smooth_images(o.batch, o.image, o.seed)
    measured(module, images)
    torchvision_weights.write(o.output, module.state_dict())
    with torch.no_grad():
        print(f"{o.net}: logits of standard deviation {float(module(images).std()):.3g}")


if __name__ == "__main__":
    main()
