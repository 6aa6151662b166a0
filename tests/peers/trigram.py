#!/usr/bin/python3
"""A trigram model of bytes, to judge a network of text by: bits per byte on what `--data text:PATH` holds out.

    trigram.py PATH[,PATH]...

Interpolated by Witten and Bell's rule ("The zero-frequency problem", IEEE Transactions on Information Theory 37, 1991; formula
(16) of Chen and Goodman 1999): p(c | ab) = (n(abc) + t(ab) p(c | b)) / (n(ab) + t(ab)), with t(ab) the number of different bytes
seen after ab; likewise down to equal chances of 256 bytes. Files and splits as exec/data/dataset/dataset_text.c and text_files.c have
them. Prints one JSON object. Needs python3-numpy."""
import json
import math
import os
import stat
import sys

import numpy as np

HELD_OUT, LOOK_BYTES = 20, 8000


def files(path):
    if not os.path.isdir(path):
        yield path, True
        return
    for name in sorted(os.listdir(path), key=os.fsencode):
        inside = os.path.join(path, name)
        kind = os.lstat(inside).st_mode
        if name.startswith("."):
            continue
        if stat.S_ISDIR(kind):
            yield from files(inside)
        elif stat.S_ISREG(kind):
            yield inside, False


def splits(paths):
    """Bytes for training and those held out; whether a network's samples leave a few at the end out does not matter."""
    parts = ([], [])
    for path in paths.split(","):
        for name, named in files(path):
            with open(name, "rb") as f:
                data = f.read()
            if b"\0" in data[:LOOK_BYTES]:
                if named:
                    sys.exit(f"{name} is no text")
                continue
            held = len(data) // HELD_OUT
            parts[0].append(data[:len(data) - held])
            parts[1].append(data[len(data) - held:])
    return [np.frombuffer(b"".join(p), dtype=np.uint8) for p in parts]


def contexts(data, order):
    """For each byte from the second one on of those that have `order` before them: the number that these make."""
    at = np.zeros(len(data) - order, dtype=np.int64)
    for k in range(order):
        at = at * 256 + data[k:len(data) - order + k]
    return at


def bits(train, held, most):
    """Bits per byte by contexts of up to `most` bytes."""
    p = np.full(len(held), 1 / 256)
    for order in range(most + 1):
        size = 256 ** order
        n = np.bincount(contexts(train, order) * 256 + train[order:], minlength=size * 256).reshape(size, 256)
        total, different = n.sum(axis=1), (n > 0).sum(axis=1)
        where, what = contexts(held, order), held[order:]
        seen = total[where] > 0
        new = (n[where, what] + different[where] * p[order:]) / np.maximum(total[where] + different[where], 1)
        p[order:] = np.where(seen, new, p[order:])
    return -np.log2(p[1:]).mean()


def main():
    train, held = splits(sys.argv[1])
    if len(train) < 3 or len(held) < 3:
        sys.exit("too little text")
    found = [bits(train, held, order) for order in range(3)]
    print(json.dumps({"train_bytes": len(train), "held_out_bytes": len(held), "unigram_bits": found[0], "bigram_bits": found[1],
                      "trigram_bits": found[2], "trigram_nats": found[2] * math.log(2)}))


if __name__ == "__main__":
    main()
