#!/usr/bin/python3
"""Networks read with hplan import, run by hplan-exec and by those they come from on the same pixels, at several sizes and
opsets: two trained ones from npm under ONNX Runtime (outputs are probabilities: within 1e-4), and torchvision's, exported
by PyTorch, with random weights (within 1e-5 of the largest output). Needs npm or a filled $HPLAN_CACHE, node, numpy,
python3-torch and python3-torchvision; takes the folder of the build (default: build). What is missing is left out, with
the reason."""
import pathlib
import subprocess
import sys
import tempfile
import warnings
import zlib

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAINED = {"ch_ppocr_mobile_v2.0_cls_infer.onnx": [(48, 192), (48, 100)],
           "ch_PP-OCRv4_det_infer.onnx": [(64, 96), (352, 640), (640, 960)]}
DRAWN = {"resnet18": (7, 13), "mobilenet_v3_large": (9, 17), "densenet121": (10, 13), "squeezenet1_1": (13,), "googlenet": (13,),
         "efficientnet_b0": (9, 15), "regnet_y_400mf": (13,), "segmentation.lraspp_mobilenet_v3_large": (11, 17),
         "segmentation.deeplabv3_mobilenet_v3_large": (13,)}


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


def agrees(hplan, model, pixels, theirs, most, folder):
    """Imports, plans and runs the model; theirs: (N, C, ...)."""
    image = f"{pixels.shape[0]}x{pixels.shape[1]}"
    save_png(folder / "page.png", pixels)
    run(hplan, "import", model, "--image", image, "-o", "m.db", cwd=folder)
    run(hplan, "simulate", "--onnx", "m.db", "--image", image, "--mode", "infer", "--strategy", "dp=1", "--out", "p.db", cwd=folder)
    run(hplan, "run", "p.db", "--init", "m.safetensors", "--input", "page.png", "--output", "y.npy", cwd=folder)
    theirs = theirs.astype(numpy.float64)
    if theirs.ndim == 4:
        theirs = theirs.transpose(0, 2, 3, 1)
    error = abs(numpy.load(folder / "y.npy").reshape(theirs.shape) - theirs).max()
    print(f"{model.name} {image}: {error:.1e}, largest {abs(theirs).max():.3g}", flush=True)
    return error <= most(abs(theirs).max())


def trained(hplan, folder):
    fetched = subprocess.run([ROOT / "tests/peers/fetch.py", "ocr"], capture_output=True, text=True, check=False)
    if fetched.returncode:
        print(fetched.stderr.strip())
        return
    for name, sizes in TRAINED.items():
        model = next(pathlib.Path(fetched.stdout.strip()).rglob(name))
        for size in sizes:
            pixels = page(*size)
            numpy.save(folder / "page.npy", pixels[None])
            run("node", ROOT / "tests/peers/ort.mjs", model, "--input", folder / "page.npy", "--runs", 1, "--warm", 0, "--output",
                folder / "theirs.npy")
            yield agrees(hplan, model, pixels, numpy.load(folder / "theirs.npy"), lambda _: 1e-4, folder)


def with_statistics(net):
    """Running means and variances that are not 0 and 1."""
    for name, values in net.named_buffers():
        if "running_mean" in name:
            values.uniform_(-.1, .1)
        if "running_var" in name:
            values.uniform_(.5, 1.5)
    return net.eval()


def drawn(hplan, folder):
    try:
        import torch
        import torchvision
    except ImportError as why:
        print(f"skipped: {why}")
        return
    warnings.filterwarnings("ignore")
    pixels = page(72, 80)
    x = torch.from_numpy(pixels.transpose(2, 0, 1)[None].copy()).float() / 255 * 2 - 1
    for name, opsets in DRAWN.items():
        torch.manual_seed(0)
        make = torchvision.models
        for part in name.split("."):
            make = getattr(make, part)
        more = {"weights_backbone": None} if "segmentation" in name else {"init_weights": True} if name == "googlenet" else {}
        net = make(weights=None, **more)

        class Out(torch.nn.Module):
            def forward(self, image):
                y = net(image)
                return y["out"] if isinstance(y, dict) else y

        with torch.no_grad():
            with_statistics(net)
            theirs = net(x)
        theirs = theirs["out"] if isinstance(theirs, dict) else theirs
        for opset in opsets:
            model = folder / f"{name}.{opset}.onnx"
            out = Out()
            out.net = net
            torch.onnx.export(out.eval(), x, model, opset_version=opset, input_names=["x"], dynamic_axes={"x": {0: "n", 2: "h", 3: "w"}})
            yield agrees(hplan, model, pixels, theirs.numpy(), lambda largest: 1e-5 * largest, folder)


def main():
    hplan = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve() / "hplan"
    with tempfile.TemporaryDirectory() as folder:
        good = [*trained(hplan, pathlib.Path(folder)), *drawn(hplan, pathlib.Path(folder))]
    print(f"{sum(good)} of {len(good)} agree")
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
