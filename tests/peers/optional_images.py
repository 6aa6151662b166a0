#!/usr/bin/env python3
"""Image files as Pillow and libvips write them, read by hplan through a network that gives its input back, pixel by pixel against what
Pillow reads (and libvips, of TIFF): formats x bits x orientation x alpha x bands. Exits 77 where a program is missing."""
import os, shutil, subprocess, sys, tempfile

try:
    import numpy as np, onnx
    from onnx import helper as h, TensorProto as T, numpy_helper as nh
    from PIL import Image
except ImportError as e:
    print("skipped:", e); sys.exit(77)
if not shutil.which("hplan") or not shutil.which("vips"):
    print("skipped: hplan and vips are to be in PATH"); sys.exit(77)

H, W = 20, 30
work = tempfile.mkdtemp(); os.chdir(work)
plans = {}

def plan(c, rows, columns):
    key = (c, rows, columns)
    if key not in plans:
        name = "id%d_%d" % (c, rows)
        w = np.eye(c, dtype=np.float32).reshape(c, c, 1, 1)
        g = h.make_graph([h.make_node("Conv", ["x", "w"], ["y"])], "g", [h.make_tensor_value_info("x", T.FLOAT, ["N", c, rows, columns])],
                         [h.make_tensor_value_info("y", T.FLOAT, None)], [nh.from_array(w, "w")])
        m = h.make_model(g, opset_imports=[h.make_opsetid("", 13)]); m.ir_version = 8; onnx.save(m, name + ".onnx")
        quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        subprocess.run(["hplan", "import", name + ".onnx", "-o", name + ".db"], **quiet)
        subprocess.run(["hplan", "simulate", "--onnx", name + ".db", "--image", "%dx%d" % (rows, columns), "--mode", "infer", "--batch", "1",
                        "--gpus", "1", "--machine", "local", "--strategy", "dp=1", "--out", name + ".plan"], **quiet)
        plans[key] = name
    return plans[key]

def seen(path, c, rows, columns, *more):
    name = plan(c, rows, columns)
    r = subprocess.run(["hplan", "run", name + ".plan", "--init", name + ".safetensors", "--mean", "0", "--std", "1", "--input", path, "--output",
                        "o.npy", "--no-history", "--no-yardsticks", "--trace", "r.db", *more], capture_output=True, text=True)
    return np.load("o.npy").reshape(rows, columns, c) if r.returncode == 0 else r.stderr.strip().splitlines()[-1]

wrong = 0
def check(what, path, want, *more):
    """want: (rows, columns, c) of the network's numbers"""
    global wrong
    got = seen(path, want.shape[2], want.shape[0], want.shape[1], *more)
    ok = not isinstance(got, str) and np.abs(got - want).max() <= 1e-6 * max(1, np.abs(want).max())
    wrong += not ok
    print("ok  " if ok else "BAD ", what, "" if ok else got if isinstance(got, str) else "up to %g apart" % np.abs(got - want).max())

def numbers(image):
    a = np.asarray(image); a = a[..., None] if a.ndim == 2 else a
    return a.astype(np.float64) / {np.dtype(np.uint8): 255, np.dtype(np.uint16): 65535}.get(a.dtype, 1)

rng = np.random.default_rng(5)
rgba = rng.integers(0, 256, (H, W, 4), dtype=np.uint8)
grey16 = rng.integers(0, 65536, (H, W), dtype=np.uint16)
real = rng.normal(100, 500, (H, W)).astype(np.float32)
rgb = Image.fromarray(rgba[..., :3].copy())

for ext in ("png", "tif"):
    for mode in ("1", "L", "LA", "RGB", "RGBA", "P"):
        if (ext, mode) == ("tif", "LA"): continue
        image = Image.fromarray(rgba).convert("RGB").convert(mode) if mode in ("1", "L", "P", "RGB") else Image.fromarray(rgba).convert(mode)
        image.save("x." + ext)
        colour = image.convert("RGB" if mode in ("P", "RGB", "RGBA") else "L")
        check("Pillow %s %s" % (ext, mode), "x." + ext, numbers(colour))
    Image.fromarray(rgba).save("x." + ext)
    check("Pillow %s RGBA, four channels" % ext, "x." + ext, numbers(rgba))
    Image.fromarray(grey16).save("x." + ext)
    check("Pillow %s 16 bits" % ext, "x." + ext, numbers(grey16))
for quality in (60, 95):
    rgb.save("x.jpg", quality=quality); check("Pillow JPEG RGB", "x.jpg", numbers(Image.open("x.jpg")))
    rgb.convert("L").save("x.jpg", quality=quality); check("Pillow JPEG grey", "x.jpg", numbers(Image.open("x.jpg")))
Image.fromarray(real).save("x.tif"); check("Pillow TIFF float", "x.tif", numbers(real))

from PIL import ImageOps
for o in range(1, 9):
    exif = Image.Exif(); exif[0x0112] = o
    rgb.save("x.jpg", exif=exif); check("JPEG orientation %d" % o, "x.jpg", numbers(ImageOps.exif_transpose(Image.open("x.jpg"))))
    rgb.save("x.png", exif=exif); check("PNG orientation %d" % o, "x.png", numbers(ImageOps.exif_transpose(Image.open("x.png"))))
    rgb.save("x.tif", tiffinfo={274: o})
    subprocess.run(["vips", "autorot", "x.tif", "up.v"], check=True); subprocess.run(["vips", "copy", "up.v", "up.png"], check=True)
    check("TIFF orientation %d" % o, "x.tif", numbers(Image.open("up.png")))

# libvips: any format, any number of bands, strips and tiles, compressions, predictors
formats = {"uchar": (np.uint8, 255), "ushort": (np.uint16, 65535), "uint": (np.uint32, 2**32 - 1), "char": (np.int8, 127), "short": (np.int16, 32767),
           "int": (np.int32, 2**31 - 1), "float": (np.float32, 1), "double": (np.float64, 1)}
for name, (dtype, most) in formats.items():
    for bands in (1, 3, 5, 40):
        a = rng.normal(0, 1000, (H, W, bands)).astype(dtype) if most == 1 else rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (H, W, bands), dtype=dtype)
        a.tofile("x.raw")
        subprocess.run(["vips", "rawload", "x.raw", "x.v", str(W), str(H), str(bands), "--format", name], check=True)
        for how in ([], ["--tile", "--tile-width", "16", "--tile-height", "16"], ["--compression", "lzw", "--predictor", "horizontal" if most > 1 else "none"],
                    ["--bigtiff", "--compression", "deflate"]):
            if subprocess.run(["vips", "tiffsave", "x.v", "x.tif", *how], capture_output=True).returncode: continue
            check("libvips TIFF %s x %d %s" % (name, bands, " ".join(how)), "x.tif", a.astype(np.float64) / most)
        if bands == 5:
            subprocess.run(["vips", "tiffsave", "x.v", "x.tif"], check=True)
            check("libvips TIFF %s, bands 5,2,2" % name, "x.tif", a[..., [4, 1, 1]].astype(np.float64) / most, "--bands", "5,2,2")
shutil.rmtree(work)
print("%d wrong" % wrong); sys.exit(wrong > 0)
