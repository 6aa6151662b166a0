"""package.py - a Spack recipe. It takes the checkout at hand:

    spack repo create hplan-repo hplan && mkdir hplan-repo/packages/hplan
    cp cli/packaging/spack/package.py hplan-repo/packages/hplan/ && spack repo add hplan-repo
    spack dev-build hplan@main
"""
from spack.package import *


class Hplan(CMakePackage, CudaPackage):
    """Plans, simulates and runs parallel training of neural networks."""

    license("Apache-2.0 AND GPL-3.0-or-later")  # hplan links GSL, hplan-exec does not
    version("main")

    variant("exec", default=True, description="Build hplan-exec, which runs the plans: MPI, oneDNN")
    variant("openslide", default=True, when="+exec", description="Read slides")
    variant("zfp", default=True, when="+exec", description="Compress messages with zfp")

    depends_on("c", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("protobuf-c")
    depends_on("py-onnx", type="build")  # its .proto file alone; the library onnx installs none
    depends_on("sqlite@3.37:")
    depends_on("jansson")
    depends_on("xxhash")
    depends_on("hwloc@2.1:")
    depends_on("gsl")
    depends_on("gnuplot", type="run")
    with when("+exec"):
        depends_on("mpi")
        depends_on("onednn")
        depends_on("libpng")
        depends_on("libjpeg")
        depends_on("libtiff")
        depends_on("zlib-api")
        depends_on("openslide", when="+openslide")
        depends_on("zfp", when="+zfp")
    with when("+cuda"):
        depends_on("cudnn")
        depends_on("nccl")

    def cmake_args(self):
        onnx = self.spec["py-onnx"]
        args = [
            self.define("BUILD_TESTING", False),
            self.define("ONNX_PROTO", join_path(onnx.prefix, onnx["python"].package.platlib)),
            self.define("HPLAN_EXEC", "ON" if self.spec.satisfies("+exec") else "OFF"),
            self.define("HP_WITH_CUDA", "ON" if self.spec.satisfies("+cuda") else "OFF"),
        ]
        if self.spec.satisfies("+cuda"):
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", self.spec.variants["cuda_arch"].value))
        return args
