#!/usr/bin/python3
"""Two trained networks from npm, read with hplan import, run by hplan-exec and by ONNX Runtime on the same pixels: their
outputs, which are probabilities, must agree within 1e-4. Several image sizes each. Needs npm or a filled $HPLAN_CACHE, node, numpy;
takes the folder of the build (default: build). Exit 77 with the reason where something is missing."""
import pathlib
import subprocess
import sys
import tempfile
import zlib

import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = {"ch_ppocr_mobile_v2.0_cls_infer.onnx": [(48, 192), (48, 100)],
          "ch_PP-OCRv4_det_infer.onnx": [(64, 96), (352, 640), (640, 960)]}


def run(*words, **options):
    return subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True, timeout=600, **options).stdout


def page(height, width):
    """Light paper with dark bars of many lengths and heights, and some noise: (H, W, 3) bytes."""
    random = numpy.random.default_rng(5)
    pixels = random.integers(225, 256, (height, width, 3))
    for _ in range(height * width // 400):
        y, x = random.integers(height), random.integers(width)
        pixels[y:y + random.integers(1, 12), x:x + random.integers(1, 40)] = random.integers(0, 90)
    return pixels.astype(numpy.uint8)


def save_png(path, pixels):
    """Written by hand: 8 bits, RGB."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 2, 0, 0, 0])
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def hplan_output(hplan, model, size, folder):
    image = f"{size[0]}x{size[1]}"
    run(hplan, "import", model, "--image", image, "-o", "m.db", cwd=folder)
    run(hplan, "simulate", "--onnx", "m.db", "--image", image, "--mode", "infer", "--strategy", "dp=1", "--out", "p.db", cwd=folder)
    run(hplan, "run", "p.db", "--init", "m.safetensors", "--input", "page.png", "--output", "y.npy", cwd=folder)
    return numpy.load(folder / "y.npy")


def check(hplan, model, size, folder):
    pixels = page(*size)
    save_png(folder / "page.png", pixels)
    numpy.save(folder / "page.npy", pixels[None])
    run("node", ROOT / "tests/peers/ort.mjs", model, "--input", folder / "page.npy", "--runs", 1, "--warm", 0, "--output",
        folder / "theirs.npy")
    theirs = numpy.load(folder / "theirs.npy").astype(numpy.float64)
    ours = hplan_output(hplan, model, size, folder)
    if theirs.ndim == 4:
        theirs = theirs.transpose(0, 2, 3, 1)
    error = abs(ours.reshape(theirs.shape) - theirs).max()
    print(f"{model.name} {size[0]}x{size[1]}: {error:.1e}, largest {abs(theirs).max():.3g}")
    return error <= 1e-4


def main():
    hplan = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve() / "hplan"
    fetched = subprocess.run([ROOT / "tests/peers/fetch.py", "ocr"], capture_output=True, text=True, check=False)
    if fetched.returncode:
        sys.exit(print(fetched.stderr.strip()) or 77)
    models = pathlib.Path(fetched.stdout.strip())
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for name, sizes in MODELS.items():
            for size in sizes:
                good &= check(hplan, next(models.rglob(name)), size, pathlib.Path(folder))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
