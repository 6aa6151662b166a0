#!/usr/bin/env python3
"""Makes a small segmentation data set in plain Python: make_discs.py DIR HEIGHT WIDTH TRAIN TEST

DIR/{train,test}/{images,masks}/N.png: bright discs on dark noise. Masks are 1 inside the discs, 0 outside, and
255 on their rims."""
import pathlib
import random
import struct
import sys
import zlib


def png(path, h, w, channels, rows):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", w, h, 8, 2 if channels == 3 else 0, 0, 0, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(r) for r in rows))) +
                     chunk(b"IEND", b""))


def sample(draw, h, w):
    discs = [(draw.uniform(0, h), draw.uniform(0, w), draw.uniform(0.15, 0.3) * min(h, w)) for _ in range(2)]
    image, mask = [], []
    for y in range(h):
        image.append([])
        mask.append([])
        for x in range(w):
            gap = min(((y - a) ** 2 + (x - b) ** 2) ** 0.5 - r for a, b, r in discs)
            mask[-1].append(255 if abs(gap) < 0.7 else int(gap < 0))
            level = draw.gauss(150 if gap < 0 else 90, 25)
            image[-1] += [max(0, min(255, int(level + draw.gauss(0, 15)))) for _ in range(3)]
    return image, mask


def main():
    folder, h, w = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    draw = random.Random(1)
    for split, n in (("train", int(sys.argv[4])), ("test", int(sys.argv[5]))):
        for i in range(n):
            image, mask = sample(draw, h, w)
            png(folder / split / "images" / f"{i:03d}.png", h, w, 3, image)
            png(folder / split / "masks" / f"{i:03d}.png", h, w, 1, mask)


main()
