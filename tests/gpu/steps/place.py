"""place.py - where programs and libraries are: the pack's own, and CUDA's, which are the machine's."""
import glob
import json
import os
import pathlib
import re
import shutil
import site
import sys

# what is looked for on the GPU machine, and what else of the same folder belongs to it
CUDA = {"libcuda.so.1": ["libnvidia-ptxjitcompiler.so*", "libnvidia-gpucomp.so*", "libnvidia-ml.so*", "libnvidia-nvvm.so*"],
        "libcudart.so.13": [], "libcublasLt.so.13": ["libcublas.so*"], "libcudnn.so.9": ["libcudnn_*.so*"], "libnccl.so.2": [],
        "libnvrtc.so.13": ["libnvrtc-builtins.so*"], "libnvJitLink.so.13": []}
OPTIONAL = {"libnvJitLink.so.13"}
INTERPRETER = b"/lib64/ld-linux-x86-64.so.2\0"


def cuda_folders():
    """Folders that may hold CUDA's libraries, the likeliest first."""
    found = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    for home in (os.environ.get("CUDA_HOME", ""), "/usr/local/cuda", *sorted(glob.glob("/usr/local/cuda-*"), reverse=True)):
        found += [f"{home}/lib64", f"{home}/lib", f"{home}/targets/x86_64-linux/lib"] if home else []
    packages = site.getsitepackages() + [site.getusersitepackages()] + [p for p in sys.path if p.endswith("-packages")]
    for p in dict.fromkeys(packages):
        found += sorted(glob.glob(f"{p}/nvidia/*/lib")) + [f"{p}/torch/lib"]
    found += ["/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu",
              "/usr/lib64", "/usr/lib/wsl/lib"]
    return [f for f in dict.fromkeys(found) if f and os.path.isdir(f)]


def find_cuda():
    """{library: file or None}"""
    found = {}
    for name in CUDA:
        files = [f"{folder}/{name}" for folder in cuda_folders() if os.path.exists(f"{folder}/{name}")]
        found[name] = files[0] if files else None
    return found


def own_glibc():
    """(2, 39) of this machine, as its python3 is linked with it."""
    try:
        m = re.search(r"(\d+)\.(\d+)", os.confstr("CS_GNU_LIBC_VERSION") or "")
    except (ValueError, OSError):
        m = None
    return (int(m[1]), int(m[2])) if m else (0, 0)


def with_loader(file, loader):
    """The program's bytes with another loader: the shorter name takes the place of the usual one's."""
    raw, name = file.read_bytes(), os.fsencode(loader) + b"\0"
    if len(name) > len(INTERPRETER):
        raise ValueError(f"{loader} is too long a name")
    at = raw.find(INTERPRETER, 0, 4096)
    return raw if at < 0 else raw[:at] + name.ljust(len(INTERPRETER), b"\0") + raw[at + len(INTERPRETER):]


class Place:
    def __init__(self, root, force_glibc=False):
        self.root = root
        self.pack = json.loads((root / "pack.json").read_text())
        self.stand_in = self.pack["stand_in"]
        self.glibc = own_glibc()
        self.carries_glibc = force_glibc or self.glibc < tuple(self.pack["glibc"])
        self.cuda = {} if self.stand_in else find_cuda()
        self.bin = root / "bin"
        self.short = None  # where the loader has a short name

    def missing(self):
        return [name for name, file in self.cuda.items() if file is None and name not in OPTIONAL]

    def link_cuda(self, folder):
        """Links to CUDA's libraries, and to nothing else that lies beside them."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, file in self.cuda.items():
            if file is None:
                continue
            beside = [f for pattern in CUDA[name] for f in glob.glob(f"{os.path.dirname(file)}/{pattern}")]
            for f in [file, *beside]:
                link = folder / os.path.basename(f)
                if not link.is_symlink():
                    link.symlink_to(f)

    def bring_loader(self, work):
        """Programs that start with the pack's own C library."""
        self.short = pathlib.Path(f"/tmp/hpl{os.getpid() % 1000000}")
        self.short.mkdir(exist_ok=True)
        loader = self.short / "ld.so"
        loader.unlink(missing_ok=True)
        loader.symlink_to(self.root / "lib/glibc/ld-linux-x86-64.so.2")
        self.bin = work / "bin"
        shutil.rmtree(self.bin, ignore_errors=True)
        shutil.copytree(self.root / "bin", self.bin)
        for file in self.bin.iterdir():
            file.write_bytes(with_loader(file, loader))

    def environment(self, work):
        """Of the pack's programs: their libraries, an Open MPI that was moved, ranks of this machine alone."""
        if self.carries_glibc:
            self.bring_loader(work)
        self.link_cuda(work / "cuda")
        libraries = [self.root / "lib", work / "cuda"] + ([self.root / "lib/glibc"] if self.carries_glibc else [])
        mpi = self.root / "mpi"
        e = {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "OMPI_", "OPAL_", "PMIX_", "HPLAN_CUDA"))}
        e.update({"PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin", "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
                  "HOME": str(work), "XDG_CACHE_HOME": str(work / "cache"), "HPLAN_NO_HISTORY": "1", "TMPDIR": str(work), "LC_ALL": "C"})
        for kind in ("OPAL", "PMIX"):
            e.update({f"{kind}_PREFIX": str(mpi), f"{kind}_BINDIR": str(self.bin), f"{kind}_LIBDIR": str(mpi / "lib"),
                      f"{kind}_SYSCONFDIR": str(mpi / "etc"), f"{kind}_DATADIR": str(mpi / "share")})
        e.update({"OPAL_PKGLIBDIR": str(mpi / "lib/openmpi"), "OPAL_PKGDATADIR": str(mpi / "share/openmpi"),
                  "PMIX_PKGLIBDIR": str(mpi / "lib/pmix"), "PMIX_PKGDATADIR": str(mpi / "share/pmix")})
        e.update({"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
                  "OMPI_MCA_plm": "isolated", "OMPI_MCA_oob_tcp_if_include": "lo", "OMPI_MCA_btl": "self,vader",
                  "OMPI_MCA_pml": "ob1", "OMPI_MCA_orte_tmpdir_base": "/tmp", "HWLOC_COMPONENTS": "-gl,-opencl,-cuda,-nvml"})
        return e

    def clean(self):
        if self.short:
            shutil.rmtree(self.short, ignore_errors=True)

    def program(self, name):
        return self.bin / name

    def facts(self):
        return {"glibc": ".".join(map(str, self.glibc)), "pack_needs_glibc": ".".join(map(str, self.pack["glibc"])),
                "pack_brings_glibc": self.carries_glibc, "cuda_libraries": self.cuda, "stand_in": self.stand_in,
                "hplan": self.pack["hplan"]}
