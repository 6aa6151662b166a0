#!/usr/bin/python3
"""Fashion-MNIST's images for ort.mjs, so that networks trained by hplan can be held against ONNX Runtime.

    fashion.py make DIR [--image 28]     DIR/test.npy and DIR/calib.npy (uint8 (N, H, W, 3)), DIR/labels.npy
    fashion.py score Y.npy DIR           top-1 of (N, 10) outputs

The images lie in Debian's package dataset-fashion-mnist; grey in all three channels, bilinear where another size is asked for. Exit
77 with the reason where it is missing."""
import argparse
import gzip
import pathlib

import numpy as np
from PIL import Image

from fetch import skip

FOLDER = pathlib.Path("/usr/share/datasets/fashion-mnist")
CALIB = 512  # images of the training split


def idx(name):
    path = FOLDER / (name + "-ubyte.gz")
    if not path.exists():
        skip(f"no {path}; on Debian: apt install dataset-fashion-mnist")
    raw = gzip.decompress(path.read_bytes())
    shape = np.frombuffer(raw, ">i4", raw[3], 4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)


def pixels(images, side):
    if side != images.shape[1]:
        images = np.stack([np.asarray(Image.fromarray(im).resize((side, side), Image.BILINEAR)) for im in images])
    return np.repeat(images[..., None], 3, axis=3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    maker = commands.add_parser("make")
    maker.add_argument("folder", type=pathlib.Path)
    maker.add_argument("--image", type=int, default=28)
    scorer = commands.add_parser("score")
    scorer.add_argument("outputs")
    scorer.add_argument("folder", type=pathlib.Path)
    o = parser.parse_args()
    if o.command == "score":
        labels = np.load(o.folder / "labels.npy")
        right = np.load(o.outputs).reshape(len(labels), -1).argmax(1) == labels
        print(f"top-1 {right.mean():.4f} of {len(labels)}")
        return
    o.folder.mkdir(parents=True, exist_ok=True)
    np.save(o.folder / "test.npy", pixels(idx("t10k-images-idx3"), o.image))
    np.save(o.folder / "calib.npy", pixels(idx("train-images-idx3")[:CALIB], o.image))
    np.save(o.folder / "labels.npy", idx("t10k-labels-idx1"))


if __name__ == "__main__":
    main()
